//! What the keys page shows.

use super::page::Asking;
use crate::ui::{
    button::{Button, Look},
    format,
    note::{Empty, Note, Tone},
    scroll::Scroll,
    state::{Mark, State},
    table::{Ago, Column, Moment, heading},
};
use leptos::prelude::*;
use switchyard_api::{Key, KeyState, Scope, Timestamp};

/// The sentence under the title: how many work, and how many do not any more.
pub fn finding(keys: &[Key]) -> AnyView {
    let in_state = |state| keys.iter().filter(|key| key.state == state).count() as u64;
    let mut parts = vec![format!("{} live", format::count(in_state(KeyState::Live)))];
    for (state, word) in [(KeyState::Expired, "expired"), (KeyState::Revoked, "revoked")] {
        if in_state(state) > 0 {
            parts.push(format!("{} {word}", format::count(in_state(state))));
        }
    }
    view! { <p>{parts.join(", ")}". A key is shown once, when it is made; the gateway keeps only its hash."</p> }
        .into_any()
}

/// The list, and for those who may not change it a note.
#[component]
pub fn KeyList(as_of: Timestamp, keys: Vec<Key>, may_change: bool, asking: RwSignal<Asking>) -> impl IntoView {
    let note = if may_change {
        view! { <noscript><p class="note">"Creating and revoking keys here needs JavaScript. Without it, use the admin API."</p></noscript> }.into_any()
    } else {
        view! { <Note tone=Tone::Plain>"You see keys but cannot change them: that takes a session with the admin scope."</Note> }.into_any()
    };
    let body = if keys.is_empty() {
        view! { <Empty title="No keys yet">"Create one for each application, so that each can be seen, limited and revoked by itself."</Empty> }.into_any()
    } else {
        let rows: Vec<_> = keys
            .into_iter()
            .map(|key| row(key, as_of, may_change, asking))
            .collect();
        view! { <Scroll label="Keys"><table class="table">{head()}<tbody>{rows}</tbody></table></Scroll> }.into_any()
    };
    view! { {note}<section class="panel">{body}</section> }
}

fn head() -> AnyView {
    heading(&[
        Column::Text("Name"),
        Column::Text("Key"),
        Column::Text("May"),
        Column::Text("State"),
        Column::Text("Created, UTC"),
        Column::Text("Last used"),
        Column::Text("Expires"),
        Column::Number("Requests"),
        Column::Hidden("Actions"),
    ])
}

fn row(key: Key, as_of: Timestamp, may_change: bool, asking: RwSignal<Asking>) -> AnyView {
    let scopes: Vec<_> = key
        .scopes
        .iter()
        .map(|scope| view! { <span class="tag">{scope.as_str()}</span>" " }.into_any())
        .collect();
    let expires = match key.expires_at {
        Some(at) => view! { <Moment at=at text=format::until(at, as_of)/> }.into_any(),
        None => "never".into_any(),
    };
    let revoke = (may_change && key.state != KeyState::Revoked).then(|| {
        let (label, this) = (format!("Revoke {}", key.name), key.clone());
        view! { <Button look=Look::Danger label=label press=move |_| asking.set(Asking::Revoke(this.clone()))>"Revoke"</Button> }.into_any()
    });
    let log = crate::api::query::Query::default()
        .with("api_key_id", Some(&key.id))
        .on("/requests");
    view! {
        <tr>
            <td class="clip" title=key.name.clone()><a href=log>{key.name.clone()}</a>{belongs(&key)}</td>
            <td class="mono dim">{key.key.clone()}</td>
            <td>{scopes}</td>
            <td>{state(&key, as_of)}</td>
            <td><Moment at=key.created_at text=key.created_at.date()/></td>
            <td class="dim"><Ago at=key.last_used_at now=as_of/></td>
            <td>{expires}</td>
            <td class="n">{format::count(key.usage_count)}</td>
            <td class="n">{revoke}</td>
        </tr>
    }
    .into_any()
}

/// The key's project and route, below its name.
fn belongs(key: &Key) -> Option<AnyView> {
    let project = key.project.as_ref().map(|project| format!("project {project}"));
    let route = key.route.as_ref().map(|route| format!("route {route}"));
    let text: Vec<_> = project.into_iter().chain(route).collect();
    (!text.is_empty()).then(|| view! { <small class="dim">{text.join(", ")}</small> }.into_any())
}

/// A key that expires within a week is still live, and worth a look.
fn state(key: &Key, as_of: Timestamp) -> AnyView {
    const WEEK: i64 = 7 * 24 * 3_600_000;
    let (mark, text) = match (key.state, key.expires_at, key.revoked_at) {
        (KeyState::Live, Some(at), _) if at.0 - as_of.0 < WEEK => (Mark::Warn, "Expires soon".to_owned()),
        (KeyState::Live, ..) => (Mark::Ok, "Live".to_owned()),
        (KeyState::Expired, ..) => (Mark::Off, "Expired".to_owned()),
        (KeyState::Revoked, _, Some(at)) => (Mark::Off, format!("Revoked {}", format::ago(at, as_of))),
        (KeyState::Revoked, ..) => (Mark::Off, "Revoked".to_owned()),
    };
    view! { <State mark=mark text=text/> }.into_any()
}

/// What a scope allows, for the one who chooses it.
pub const fn explanation(scope: Scope) -> &'static str {
    match scope {
        Scope::Invoke => "Calls models on /v1. For applications.",
        Scope::ReadOnly => "Sees the dashboard and reads the admin API. Cannot spend or change anything.",
        Scope::Admin => "Everything, creating and revoking keys included.",
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::testing;

    fn key(state: KeyState) -> Key {
        Key {
            id: "k1".to_owned(),
            name: "web-app".to_owned(),
            key: "sy_7Qd4…f0aP".to_owned(),
            scopes: vec![Scope::Invoke],
            created_at: Timestamp(1_796_008_447_912),
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
            active: state == KeyState::Live,
            state,
            usage_count: 41_220,
            project: None,
            route: None,
        }
    }

    fn html(key: Key, may_change: bool) -> String {
        Owner::new().with(|| {
            let as_of = Timestamp(1_796_008_500_000);
            testing::html(row(key, as_of, may_change, RwSignal::new(Asking::Nothing)))
        })
    }

    #[test]
    fn only_who_may_revoke_is_offered_it_and_only_while_it_matters() {
        assert!(html(key(KeyState::Live), true).contains("aria-label=\"Revoke web-app\""));
        assert!(!html(key(KeyState::Live), false).contains("<button"));
        assert!(!html(key(KeyState::Revoked), true).contains("<button"));
    }

    #[test]
    fn project_and_route_stand_below_the_name() {
        let routed = Key {
            project: Some("shop".to_owned()),
            route: Some("cheap".to_owned()),
            ..key(KeyState::Live)
        };
        assert!(html(routed, false).contains("</a><small class=\"dim\">project shop, route cheap</small></td>"));
        assert!(!html(key(KeyState::Live), false).contains("<small"));
    }

    #[test]
    fn never_used_is_a_dash_and_an_end_in_sight_is_marked() {
        assert!(html(key(KeyState::Live), false).contains("<td class=\"dim\">–"));
        let ending = Key {
            expires_at: Some(Timestamp(1_796_008_500_000 + 2 * 86_400_000)),
            ..key(KeyState::Live)
        };
        let html = html(ending, false);
        assert!(
            html.contains("state warn\">Expires soon") && html.contains(">in 2 days<"),
            "{html}"
        );
    }
}
