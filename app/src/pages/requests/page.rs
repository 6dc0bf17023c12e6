//! What the request log asks for.

use super::{
    filter::Filter,
    view::{FilterForm, Rows, finding},
};
use crate::{
    api::{api, asked::ask, bounded},
    browser,
    pages::keys,
    ui::{
        button::{Button, Look},
        kept::Kept,
        note::{Failure, Loading},
        panel::Head,
        poll,
        ready::ready,
    },
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::{
    NavigateOptions,
    hooks::{use_navigate, use_query_map},
};

/// The page. "Follow" asks for the newest page again while someone looks; older pages stand still by nature.
#[component]
pub fn Requests() -> impl IntoView {
    let params = use_query_map();
    let filter = Memo::new(move |_| params.with(Filter::of));
    let rows_api = api();
    let rows = ask(
        move || filter.get(),
        move |filter| {
            let now = browser::now();
            let page = bounded(rows_api.logs(filter.query(now)));
            async move { page.await.map(|page| (now, page)) }
        },
    );
    // Only to offer names in the filter: without them it still works.
    let keys = keys::page::list();

    let following = RwSignal::new(false);
    let newest = Memo::new(move |_| filter.with(|filter| filter.before.is_none()));
    let there = ready();
    poll::every(
        10,
        Signal::derive(move || there.get() && following.get() && newest.get()),
        move || rows.refetch(),
    );
    let follow = move |_| {
        following.update(|on| *on = !*on);
        if following.get_untracked() {
            rows.refetch();
        }
    };

    let navigate = use_navigate();
    let search = Callback::new(move |filter: Filter| navigate(&filter.newest(), NavigateOptions::default()));
    let kept = Kept::default();
    let count = move || {
        view! {
            <Transition fallback=|| view! { <p>"Counting…"</p> }.into_any()>
                {move || Suspend::new(async move {
                    rows.await.ok().map(|(_, page)| finding(&page.summary, filter.get_untracked().narrows()))
                })}
            </Transition>
        }
        .into_any()
    };
    let live = move || following.get() && newest.get();
    view! {
        <Title text="Requests · Switchyard"/>
        <Head title="Requests" finding=count>
            <Button look=Look::Plain off=Signal::derive(move || !newest.get()) press=follow>
                <span class=move || if live() { "state ok" } else { "state off" }>{move || if live() { "Following" } else { "Follow" }}</span>
            </Button>
        </Head>
        <Transition fallback=|| view! { <Loading/> }.into_any()>
            {move || Suspend::new(async move {
                let keys = keys.await.map(|(_, keys)| keys).unwrap_or_default();
                view! { <FilterForm filter=filter keys=keys search=search/> }.into_any()
            })}
        </Transition>
        <Transition fallback=|| view! { <Loading/> }.into_any()>
            {move || {
                let filter = filter.get();
                Suspend::new(async move {
                    match kept.settle(filter.clone(), rows.await) {
                        Ok(((as_of, page), fault)) => view! { <Rows filter=filter as_of=as_of page=page fault=fault/> }.into_any(),
                        Err(fault) => view! { <Failure what="The request log" fault=fault/> }.into_any(),
                    }
                })
            }}
        </Transition>
    }
}
