//! What the keys page asks for, and what it changes.

use super::{create::CreateDialog, reveal::RevealDialog, revoke::RevokeDialog, view};
use crate::{
    api::{
        api,
        asked::{Asked, ask},
        bounded,
    },
    browser,
    ui::{
        button::{Button, Look},
        frame::session,
        note::{Failure, Loading},
        panel::Head,
    },
};
use leptos::prelude::*;
use leptos_meta::Title;
use switchyard_api::{ApiError, Key, Me, Scope, Timestamp};

/// Which dialog is open. One at a time, so that a secret never lies below another dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    Nothing,
    Create,
    /// The key that was just created, secret and all. Dropped when its dialog is done.
    Reveal(Key),
    Revoke(Key),
}

/// The keys, and the moment they were listed at. It travels with them, so that both sides tell the same ages.
pub fn list() -> Asked<(Timestamp, Vec<Key>)> {
    let api = api();
    ask(
        || (),
        move |()| {
            let keys = bounded(api.keys());
            async move { keys.await.map(|keys| (browser::now(), keys)) }
        },
    )
}

/// The page.
#[component]
pub fn Keys() -> impl IntoView {
    let keys = list();
    let me = session();
    let asking = RwSignal::new(Asking::Nothing);
    let changed = Callback::new(move |()| keys.refetch());
    let count = move || {
        view! {
            <Transition fallback=|| view! { <p>"Counting…"</p> }.into_any()>
                {move || Suspend::new(async move { keys.await.ok().map(|(_, keys)| view::finding(&keys)) })}
            </Transition>
        }
        .into_any()
    };
    let create = move |_| asking.set(Asking::Create);
    view! {
        <Title text="Keys · Switchyard"/>
        <Head title="Keys" finding=count>
            <Transition>
                {move || Suspend::new(async move {
                    may_change(&me.await).then(|| view! { <Button look=Look::Main press=create>"Create key"</Button> }.into_any())
                })}
            </Transition>
        </Head>
        <Transition fallback=|| view! { <Loading/> }.into_any()>
            {move || Suspend::new(async move {
                let may_change = may_change(&me.await);
                match keys.await {
                    Ok((as_of, keys)) => view! { <view::KeyList as_of=as_of keys=keys may_change=may_change asking=asking/> }.into_any(),
                    Err(fault) => view! { <Failure what="The list of keys" fault=fault/> }.into_any(),
                }
            })}
        </Transition>
        <CreateDialog asking=asking changed=changed/>
        <RevealDialog asking=asking/>
        <RevokeDialog asking=asking changed=changed/>
    }
}

fn may_change(me: &Result<Me, ApiError>) -> bool {
    me.as_ref().is_ok_and(|me| me.may(Scope::Admin))
}
