//! What the playground asks for. The conversation itself is the frame's, see [`super::talk`].

use super::{
    dialect::Dialect,
    talk::Talk,
    view::{Conversation, Request},
    wire_view::WireView,
};
use crate::{
    api::{
        api,
        asked::{Asked, ask},
        bounded,
    },
    ui::{frame::session, note::Loading, panel::Head},
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;
use switchyard_api::Scope;

/// The names of the models that are served.
pub fn models() -> Asked<Vec<String>> {
    let api = api();
    ask(
        || (),
        move |()| {
            let models = bounded(api.models());
            async move {
                models
                    .await
                    .map(|list| list.data.into_iter().map(|model| model.id).collect())
            }
        },
    )
}

/// The page.
#[component]
pub fn Playground() -> impl IntoView {
    let (models, me, talk, query) = (models(), session(), expect_context::<Talk>(), use_query_map());
    // A link may name model and dialect ("Open in playground"); what is chosen afterwards counts.
    let asked = query
        .with_untracked(|query| query.get("model"))
        .filter(|model| !model.is_empty());
    if let Some(model) = asked {
        talk.model.update_untracked(|now| *now = Some(model));
    }
    let dialect = query.with_untracked(|query| query.get("dialect"));
    if let Some(dialect) = dialect.as_deref().and_then(Dialect::of) {
        talk.dialect.update_untracked(|now| *now = dialect);
    }
    view! {
        <Title text="Playground · Switchyard"/>
        <Head title="Playground" finding=|| view! { <p>"Calls go through the same pipeline as your applications', in the dialect you choose, with your own session, and are logged."</p> }.into_any()/>
        <Transition fallback=|| view! { <Loading/> }.into_any()>
            {move || Suspend::new(async move {
                let (simulated, may_send) = match me.await {
                    Ok(me) => (me.gateway.simulated, me.may(Scope::Invoke)),
                    Err(_) => (false, false),
                };
                let (models, fault) = match models.await {
                    Ok(models) => (models, None),
                    Err(fault) => (Vec::new(), Some(fault.message)),
                };
                let first = StoredValue::new(models.first().cloned().unwrap_or_default());
                let model = Signal::derive(move || talk.model.get().unwrap_or_else(|| first.get_value()));
                view! {
                    <div class="cols">
                        <Conversation talk=talk model=Callback::new(move |()| model.get_untracked()) simulated=simulated may_send=may_send/>
                        <Request talk=talk models=models model=model fault=fault/>
                        <WireView wire=talk.wire/>
                    </div>
                }.into_any()
            })}
        </Transition>
    }
}
