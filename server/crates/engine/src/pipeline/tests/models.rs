//! The listing names what a call could name.

use super::upstreams::*;
use super::{Rig, config, seconds};

async fn listed(rig: &Rig) -> Vec<String> {
    let models = rig.engine.snapshot().models().await;
    models
        .iter()
        .map(|model| format!("{} of {}", model.id, model.owned_by))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn models_aliases_and_routes_are_listed() {
    let yaml = config(
        &["a", "b"],
        "aliases: {quick: route/fast, short: m1, odd: unknown}\n\
         strategy: {mode: fallback}\n\
         targets: [{virtual_key: a, model_map: {visible: up}}, b]\n\
         routes: {fast: {model: m2, targets: [b]}, bare: {targets: [a]}}",
    );
    let yaml = yaml
        .replace("id: a,", "id: a, models: [m1],")
        .replace("id: b,", "id: b, models: [m2, m1],");
    let rig = Rig::new(&yaml);
    assert_eq!(
        listed(&rig).await,
        [
            "visible of a",
            "m1 of a",
            "m2 of b",
            "quick of b",
            "short of a",
            "route/fast of b"
        ]
    );
    assert_eq!(rig.hosts(), "");
}

#[tokio::test(start_paused = true)]
async fn what_an_upstream_lists_is_kept_for_a_minute() {
    let rig = Rig::new(&config(&["a"], "targets: [a]"));
    let listing = |id: &str| says(200, &format!(r#"{{"data":[{{"id":"{id}","created":5}}]}}"#));
    rig.upstreams.on("a/models", listing("old"));
    assert_eq!(listed(&rig).await, ["old of a"]);
    rig.upstreams.on("a/models", listing("new"));
    seconds(59).await;
    assert_eq!(listed(&rig).await, ["old of a"]);
    seconds(1).await;
    assert_eq!(listed(&rig).await, ["new of a"]);
    rig.upstreams.on("a/models", status(503));
    seconds(60).await;
    assert_eq!(
        listed(&rig).await,
        ["new of a"],
        "and for longer while it does not answer"
    );
    assert_eq!(rig.calls().len(), 3);
    seconds(9).await;
    listed(&rig).await;
    assert_eq!(rig.calls().len(), 0);
    seconds(1).await;
    listed(&rig).await;
    assert_eq!(rig.calls().len(), 1);
}
