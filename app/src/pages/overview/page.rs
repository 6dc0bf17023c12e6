//! What the overview asks for.

use super::view::{self, RecentRequests};
use crate::{
    api::{api, asked::ask, bounded},
    browser,
    ui::{
        kept::Kept,
        note::{Failure, Loading},
        poll,
        ready::ready,
    },
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;
use switchyard_api::{LogQuery, Range};

/// Rows of the request log on this page.
const RECENT: u32 = 5;

/// The page. Figures and recent requests fail and refresh apart from each other.
#[component]
pub fn Overview() -> impl IntoView {
    let query = use_query_map();
    let range = Memo::new(move |_| {
        query
            .with(|query| query.get("range").as_deref().and_then(Range::parse))
            .unwrap_or_default()
    });

    let (figures_api, recent_api) = (api(), api());
    let figures = ask(move || range.get(), move |range| bounded(figures_api.dashboard(range)));
    let recent = ask(
        || (),
        move |()| {
            let page = bounded(recent_api.logs(LogQuery {
                limit: Some(RECENT),
                ..LogQuery::default()
            }));
            // The moment travels with the rows, so that both sides tell the same ages.
            async move { page.await.map(|page| (browser::now(), page)) }
        },
    );
    poll::every(30, ready(), move || {
        figures.refetch();
        recent.refetch();
    });

    let (kept_figures, kept_recent) = (Kept::default(), Kept::default());
    view! {
        <Title text="Overview · Switchyard"/>
        <Transition fallback=|| view! { <Loading/> }.into_any()>
            {move || {
                let range = range.get();
                Suspend::new(async move { view::figures(range, kept_figures.settle(range, figures.await)) })
            }}
        </Transition>
        <Transition fallback=|| view! { <Loading/> }.into_any()>
            {move || Suspend::new(async move {
                match kept_recent.settle((), recent.await) {
                    Ok(((as_of, page), fault)) => view! { <RecentRequests as_of=as_of rows=page.data fault=fault/> }.into_any(),
                    Err(fault) => view! { <Failure what="The list of recent requests" fault=fault/> }.into_any(),
                }
            })}
        </Transition>
    }
}
