//! What stands around every page but sign-in.
//!
//! The session is asked for once and shared: the frame shows it, pages read from it what the caller may do. Every half
//! minute the frame alone asks again, because the session also says whether records are being written; pages keep the
//! first answer, so that nothing someone types into is drawn anew.

use crate::{
    api::{
        api,
        asked::{Asked, ask},
        bounded,
    },
    pages::playground::talk::Talk,
    ui::{poll, rail, rail::Rail, ready::ready, top, top::Top},
};
use leptos::{html, prelude::*, task::spawn_local};
use leptos_router::{components::Outlet, hooks::use_location};
use switchyard_api::Me;

/// True while the router waits for the next page's data.
#[derive(Clone, Copy)]
pub struct Busy(pub ReadSignal<bool>);

/// The session, for the pages inside the frame.
#[derive(Clone, Copy)]
pub struct Session(pub Asked<Me>);

/// The session of this page.
pub fn session() -> Asked<Me> {
    expect_context::<Session>().0
}

/// The frame with the current page in it.
#[component]
pub fn Frame() -> impl IntoView {
    let api = api();
    let again = StoredValue::new(api.clone());
    let me = ask(|| (), move |()| bounded(api.me()));
    let latest = RwSignal::new(None);
    provide_context(Session(me));
    // Here and not in its page, so that a conversation is still there after a look at another page.
    provide_context(Talk::default());
    poll::every(30, ready(), move || {
        spawn_local(async move { latest.set(Some(again.get_value().me().await)) })
    });

    let busy = use_context::<Busy>();
    let main = focus_on_navigation();
    view! {
        <div class="shell">
            // External to the router, so that the browser moves the focus along.
            <a class="skip" href="#main" rel="external">"Skip to the page"</a>
            <Rail>
                <Transition>
                    {move || {
                        let latest = latest.get();
                        Suspend::new(async move { rail::foot(match latest { Some(me) => me, None => me.await }) })
                    }}
                </Transition>
            </Rail>
            <Top>
                <Transition fallback=|| view! { <span class="grow"></span> }.into_any()>
                    {move || {
                        // Who looks does not change when the gateway cannot be reached; the foot says that it cannot.
                        let latest = latest.get().filter(Result::is_ok);
                        Suspend::new(async move { top::session(match latest { Some(me) => me, None => me.await }) })
                    }}
                </Transition>
            </Top>
            <main id="main" tabindex="-1" node_ref=main aria-busy=move || busy.is_some_and(|Busy(busy)| busy.get()).then_some("true")>
                <Outlet/>
            </main>
        </div>
    }
}

/// After a step to another page the focus would stay on a link of the old one: it goes to the page instead, which also
/// makes a screen reader begin there. Not on the first page, where the browser decides.
fn focus_on_navigation() -> NodeRef<html::Main> {
    let main = NodeRef::<html::Main>::new();
    let path = use_location().pathname;
    Effect::new(move |before: Option<String>| {
        let now = path.get();
        if before.is_some_and(|before| before != now)
            && let Some(main) = main.get_untracked()
        {
            drop(main.focus());
        }
        now
    });
    main
}
