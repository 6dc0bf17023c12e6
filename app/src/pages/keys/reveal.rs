//! The one time a key is shown.
//!
//! Neither Escape nor a click beside it closes this dialog: a stray key must not lose a secret that nobody can show again.

use super::page::Asking;
use crate::{
    browser,
    ui::{
        button::{Button, Look},
        dialog::Dialog,
        secret::Secret,
    },
};
use leptos::prelude::*;
use switchyard_api::{Key, Scope};

/// Shows the secret and a call made with it, until Done.
#[component]
pub fn RevealDialog(asking: RwSignal<Asking>) -> impl IntoView {
    let key = Signal::derive(move || {
        asking.with(|asking| {
            if let Asking::Reveal(key) = asking {
                Some(key.clone())
            } else {
                None
            }
        })
    });
    let open = Signal::derive(move || key.with(Option::is_some));
    let title = Signal::derive(move || key.get().map_or(String::new(), |key| format!("{} is ready", key.name)));
    let done = move |()| asking.set(Asking::Nothing);
    let body = move || {
        key.get_untracked().map(|key| {
            view! {
                <p>"This is the only time the key is shown. The gateway keeps its hash, not the key."</p>
                <Secret text=key.key.clone() copy="Copy the key"/>
                <p>{works(&key)}</p>
                <p>{example(&key)}</p>
                <Secret text=call(&key, &browser::origin()) long=true copy="Copy the call"/>
                <div class="row"><span class="grow"></span><Button look=Look::Main press=move |_| done(())>"Done"</Button></div>
            }.into_any()
        })
    };
    view! { <Dialog id="new-key" title=title open=open close=done firm=true children=body/> }
}

fn works(key: &Key) -> String {
    let scopes = key
        .scopes
        .iter()
        .map(|scope| scope.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let end = key.expires_at.map_or_else(
        || "until it is revoked".to_owned(),
        |at| format!("until {} {} UTC", at.date(), at.minute()),
    );
    format!("It may {scopes}, {end}.")
}

fn example(key: &Key) -> &'static str {
    if may_invoke(key) {
        "A call with it; write one of your models for MODEL:"
    } else {
        "A call with it:"
    }
}

fn may_invoke(key: &Key) -> bool {
    key.scopes
        .iter()
        .any(|scope| matches!(scope, Scope::Invoke | Scope::Admin))
}

/// A call that this key is allowed to make.
fn call(key: &Key, origin: &str) -> String {
    let auth = format!("-H \"Authorization: Bearer {}\"", key.key);
    if may_invoke(key) {
        let body = r#"{"model": "MODEL", "messages": [{"role": "user", "content": "Hello"}]}"#;
        format!(
            "curl {origin}/v1/chat/completions \\\n  {auth} \\\n  -H \"Content-Type: application/json\" \\\n  -d '{body}'"
        )
    } else {
        format!("curl {origin}/admin/logs?limit=5 \\\n  {auth}")
    }
}
