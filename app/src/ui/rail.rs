//! Where one can go, where one is, and how the records are doing.

use crate::ui::{
    format,
    state::{Mark, State},
};
use leptos::prelude::*;
use leptos_router::hooks::use_location;
use switchyard_api::{ApiError, Gateway, Me};

/// The pages, by what one does there. Only those that exist.
const SECTIONS: [(&str, &[(&str, &str)]); 3] = [
    ("Observe", &[("/", "Overview"), ("/requests", "Requests")]),
    ("Route", &[("/routing", "Routing"), ("/playground", "Playground")]),
    ("Govern", &[("/keys", "Keys")]),
];

/// The navigation, with `foot` below it.
#[component]
pub fn Rail(children: Children) -> impl IntoView {
    let here = use_location().pathname;
    let item = move |(href, name): &(&'static str, &'static str)| {
        let (href, name) = (*href, *name);
        let current = move || here.with(|here| current(here, href)).then_some("page");
        view! { <li><a class="item" href=href aria-current=current>{name}</a></li> }.into_any()
    };
    let section = move |(title, pages): (&'static str, &[(&'static str, &'static str)])| {
        view! { <section><h2>{title}</h2><ul>{pages.iter().map(item).collect_view()}</ul></section> }.into_any()
    };
    view! {
        <nav class="rail" aria-label="Pages">
            <Brand/>
            {SECTIONS.map(section).collect_view()}
            {children()}
        </nav>
    }
}

/// A page is current on its own address and below it; the overview on its own alone.
fn current(here: &str, href: &str) -> bool {
    here == href || (href != "/" && here.strip_prefix(href).is_some_and(|rest| rest.starts_with('/')))
}

/// The name and its sign: one track that crosses to another.
#[component]
pub fn Brand() -> impl IntoView {
    view! {
        <a class="brand" href="/">
            <svg viewBox="0 0 22 22" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" aria-hidden="true">
                <path d="M2 5h5.5c4 0 4.5 12 8.5 12H20"></path>
                <path d="M2 17h4.5M14.5 5H20"></path>
            </svg>
            "Switchyard"
        </a>
    }
}

/// The foot of the rail: the version, and whether records reach the database.
pub fn foot(me: Result<Me, ApiError>) -> AnyView {
    match me {
        Ok(me) => gateway(me.gateway),
        Err(fault) => view! { <div class="foot"><p>{fault.message}</p></div> }.into_any(),
    }
}

fn gateway(Gateway { version, store, .. }: Gateway) -> AnyView {
    let lost = (store.shed > 0).then(|| {
        let text = format!(
            "{} lost since the start",
            format::counted(store.shed, "record", "records")
        );
        view! { <p><State mark=Mark::Bad text=text/></p> }.into_any()
    });
    let waiting = store.spooled + store.queued;
    let state = match store.degraded {
        Some(sentence) => {
            let waiting = format!(
                "{} on disk, {} in memory.",
                format::counted(store.spooled, "record", "records"),
                format::count(store.queued)
            );
            view! { <p>{sentence}</p><p>{waiting}</p> }.into_any()
        }
        None if store.spooled > 0 => {
            let text = format!(
                "{}, {} to catch up",
                store.backend,
                format::counted(waiting, "record", "records")
            );
            view! { <p>{text}</p> }.into_any()
        }
        None => view! { <p>{store.backend}", all writes current"</p> }.into_any(),
    };
    view! { <div class="foot"><p>{version}</p>{state}{lost}</div> }.into_any()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::testing::html;
    use switchyard_api::StoreState;

    #[test]
    fn a_page_is_current_below_its_address_too() {
        let on = |here| {
            SECTIONS
                .iter()
                .flat_map(|(_, pages)| *pages)
                .filter(|(href, _)| current(here, href))
                .count()
        };
        assert!(current("/requests/5f1c", "/requests") && !current("/requestsX", "/requests"));
        assert_eq!(
            ["/", "/requests", "/requests/5f1c", "/routing", "/keys", "/nowhere"].map(on),
            [1, 1, 1, 1, 1, 0]
        );
    }

    #[test]
    fn the_foot_tells_where_records_are() {
        let store = StoreState {
            backend: "SQLite".to_owned(),
            degraded: None,
            queued: 3,
            spooled: 0,
            shed: 0,
        };
        let foot = |store: StoreState| {
            html(gateway(Gateway {
                version: "0.1.0".to_owned(),
                environment: None,
                simulated: false,
                store,
            }))
        };
        assert!(foot(store.clone()).contains("SQLite, all writes current"));
        let away = StoreState {
            degraded: Some("The disk is full.".to_owned()),
            spooled: 1_204,
            shed: 1,
            ..store
        };
        let foot = foot(away);
        assert!(
            foot.contains("The disk is full.") && foot.contains("1,204 records on disk, 3 in memory."),
            "{foot}"
        );
        assert!(foot.contains("1 record lost since the start"), "{foot}");
    }
}
