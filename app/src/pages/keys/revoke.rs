//! The dialog that revokes a key, and says what that breaks.

use super::page::Asking;
use crate::{
    api::api,
    browser,
    ui::{
        button::{Button, Look},
        dialog::Dialog,
        format,
        note::{Note, Tone},
    },
};
use leptos::{prelude::*, task::spawn_local};
use switchyard_api::{ApiError, Key, Scope, Timestamp};

/// Asks once more; the key to revoke stands in the title.
#[component]
pub fn RevokeDialog(asking: RwSignal<Asking>, changed: Callback<()>) -> impl IntoView {
    let key = Signal::derive(move || {
        asking.with(|asking| {
            if let Asking::Revoke(key) = asking {
                Some(key.clone())
            } else {
                None
            }
        })
    });
    let open = Signal::derive(move || key.with(Option::is_some));
    let title = Signal::derive(move || key.get().map_or(String::new(), |key| format!("Revoke {}?", key.name)));
    let close = move |()| asking.set(Asking::Nothing);
    let (fault, busy) = (RwSignal::new(None::<String>), RwSignal::new(false));
    let api = StoredValue::new(api());
    let revoke = move |_| {
        let Some(key) = key.get_untracked() else { return };
        busy.set(true);
        fault.set(None);
        spawn_local(async move {
            let answer = api.get_value().revoke_key(key.id).await;
            busy.set(false);
            match answer {
                Ok(_) => {
                    close(());
                    changed.run(());
                }
                Err(ApiError { message, .. }) => fault.set(Some(message)),
            }
        });
    };
    let body = move || {
        fault.set(None);
        view! {
            <p>{key.get_untracked().map(|key| consequence(&key, browser::now()))}</p>
            <p>"This cannot be undone. To replace the key, create the new one first."</p>
            {move || fault.get().map(|fault| view! { <Note tone=Tone::Bad alert=true>{fault}</Note> }.into_any())}
            <div class="row">
                <span class="grow"></span>
                <Button look=Look::Plain press=move |_| close(())>"Keep it"</Button>
                <Button look=Look::Destroy off=busy press=revoke>"Revoke key"</Button>
            </div>
        }
        .into_any()
    };
    view! { <Dialog id="revoke-key" title=title open=open close=close children=body/> }
}

/// What stops working, judged by what the key may do and when it last did it.
fn consequence(key: &Key, now: Timestamp) -> String {
    let who = if key.scopes == [Scope::Invoke] {
        "Applications that use it"
    } else {
        "Applications and people that use it"
    };
    let used = match key.last_used_at {
        Some(at) => format!(
            "It was last used {}, for {} in all.",
            format::ago(at, now),
            format::counted(key.usage_count, "request", "requests")
        ),
        None => "It has never been used.".to_owned(),
    };
    format!("{who} get 401 within a second, and sessions that were opened with it end. {used}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchyard_api::KeyState;

    #[test]
    fn the_warning_tells_whether_anyone_would_notice() {
        let key = Key {
            id: "k1".to_owned(),
            name: "ci".to_owned(),
            key: "sy_7Qd4…f0aP".to_owned(),
            scopes: vec![Scope::Invoke],
            created_at: Timestamp(0),
            expires_at: None,
            revoked_at: None,
            last_used_at: Some(Timestamp(0)),
            active: true,
            state: KeyState::Live,
            usage_count: 980,
            project: None,
            route: None,
        };
        assert!(consequence(&key, Timestamp(14_000)).ends_with("It was last used 14 s ago, for 980 requests in all."));
        assert!(
            consequence(
                &Key {
                    last_used_at: None,
                    ..key
                },
                Timestamp(0)
            )
            .ends_with("It has never been used.")
        );
    }
}
