//! The dialog that creates a key.

use super::{page::Asking, view::explanation};
use crate::{
    api::api,
    browser,
    ui::{
        button::{Button, Look},
        dialog::Dialog,
        field::{Field, Select},
        note::{Note, Tone},
    },
};
use leptos::{ev::SubmitEvent, prelude::*, task::spawn_local};
use switchyard_api::{ApiError, NewKey, Scope, Timestamp};

/// How long a key may live, in days; the last one for ever.
const LIVES: [(&str, &str); 5] = [
    ("7", "7 days"),
    ("30", "30 days"),
    ("90", "90 days"),
    ("365", "a year"),
    ("", "never: until it is revoked"),
];

/// Asks for name, scopes and end. On success the secret is shown next.
#[component]
pub fn CreateDialog(asking: RwSignal<Asking>, changed: Callback<()>) -> impl IntoView {
    let open = Signal::derive(move || asking.with(|asking| *asking == Asking::Create));
    let close = move |()| asking.set(Asking::Nothing);
    let (fault, busy) = (RwSignal::new(None::<String>), RwSignal::new(false));
    let api = StoredValue::new(api());
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        let key = match read(|name| browser::field(&event, name), browser::now()) {
            Ok(key) => key,
            Err(sentence) => return fault.set(Some(sentence.to_owned())),
        };
        busy.set(true);
        fault.set(None);
        spawn_local(async move {
            let answer = api.get_value().create_key(key).await;
            busy.set(false);
            match answer {
                Ok(key) => {
                    asking.set(Asking::Reveal(key));
                    changed.run(());
                }
                Err(ApiError { message, .. }) => fault.set(Some(message)),
            }
        });
    };
    let form = move || {
        fault.set(None);
        view! {
            <form class="stack" on:submit=submit>
                <Field label="Name"><input class="input" name="name" required autofocus maxlength="80" autocomplete="off" placeholder="web-app"/></Field>
                <fieldset class="stack">
                    <legend>"May"</legend>
                    {[Scope::Invoke, Scope::ReadOnly, Scope::Admin].map(scope_view).collect_view()}
                </fieldset>
                <Field label="Expires after">
                    <Select name="days" options=LIVES.map(|(days, text)| (days.to_owned(), text.to_owned())).into() value=Signal::stored("90".to_owned())/>
                </Field>
                <details>
                    <summary>"Routing"</summary>
                    <div class="stack">
                        <Field label="Project" hint="Rules and limits can be made for it."><input class="input" name="project" maxlength="80" autocomplete="off" placeholder="none"/></Field>
                        <Field label="Route" hint="Its calls take it, unless one asks for another."><input class="input" name="route" maxlength="80" autocomplete="off" placeholder="default"/></Field>
                    </div>
                </details>
                {move || fault.get().map(|fault| view! { <Note tone=Tone::Bad alert=true>{fault}</Note> }.into_any())}
                <div class="row">
                    <span class="grow"></span>
                    <Button look=Look::Plain press=move |_| close(())>"Cancel"</Button>
                    <button class="btn main" disabled=busy>"Create key"</button>
                </div>
            </form>
        }
        .into_any()
    };
    view! { <Dialog id="create-key" title="Create a key" open=open close=close children=form/> }
}

fn scope_view(scope: Scope) -> AnyView {
    view! {
        <label class="option">
            <input type="checkbox" name=scope.as_str() checked=scope == Scope::Invoke/>
            <span><code>{scope.as_str()}</code><small>{explanation(scope)}</small></span>
        </label>
    }
    .into_any()
}

/// The key that the form asks for.
fn read(field: impl Fn(&str) -> Option<String>, now: Timestamp) -> Result<NewKey, &'static str> {
    let name = field("name").unwrap_or_default().trim().to_owned();
    if name.is_empty() {
        return Err("Give the key a name: it stands for the application in every list.");
    }
    let scopes: Vec<_> = [Scope::Admin, Scope::ReadOnly, Scope::Invoke]
        .into_iter()
        .filter(|s| field(s.as_str()).is_some())
        .collect();
    if scopes.is_empty() {
        return Err("Choose what the key may do.");
    }
    let given = |name| {
        field(name)
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    let days = field("days").and_then(|days| days.parse::<i64>().ok());
    let expires_at = days.map(|days| Timestamp(now.0 + days * 24 * 3_600_000));
    Ok(NewKey {
        name,
        scopes: Some(scopes),
        expires_at,
        project: given("project"),
        route: given("route"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)]) -> Result<NewKey, &'static str> {
        read(
            |name| {
                fields
                    .iter()
                    .find(|(field, _)| *field == name)
                    .map(|(_, value)| (*value).to_owned())
            },
            Timestamp(0),
        )
    }

    #[test]
    fn a_key_needs_a_name_and_something_it_may_do() {
        assert!(of(&[("name", "  "), ("invoke", "on")]).is_err());
        assert!(of(&[("name", "ci")]).is_err());
    }

    #[test]
    fn the_end_counts_from_now_and_never_is_absent() {
        let key = of(&[("name", " ci "), ("invoke", "on"), ("read_only", "on"), ("days", "7")]).unwrap();
        assert_eq!(key.name, "ci");
        assert_eq!(key.scopes, Some(vec![Scope::ReadOnly, Scope::Invoke]));
        assert_eq!(key.expires_at, Some(Timestamp(604_800_000)));
        assert_eq!((key.project, key.route), (None, None));
        let routed = of(&[
            ("name", "ci"),
            ("invoke", "on"),
            ("project", " shop "),
            ("route", "cheap"),
        ])
        .unwrap();
        assert_eq!(
            (routed.project.as_deref(), routed.route.as_deref()),
            (Some("shop"), Some("cheap"))
        );
        assert_eq!(
            of(&[("name", "ci"), ("admin", "on"), ("days", "")]).unwrap().expires_at,
            None
        );
    }
}
