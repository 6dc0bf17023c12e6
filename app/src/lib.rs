//! The dashboard: rendered on the server with its data, taken over by WebAssembly in the browser.
//!
//! - [`api`] is the seam to the gateway: pages ask a trait and never know which side they run on.
//! - [`pages`] has a folder or file for each address. Where a page has data, `page` holds its resources and `view` turns
//!   what they brought into markup; tests render the second alone.
//! - [`ui`] has the parts that pages are made of.
//! - [`browser`] is everything that only a browser can do, with stand-ins that let the rest compile anywhere.
//!
//! Hydration must find exactly what the server wrote. So the first render reads no clock and no random number, and no
//! view differs by target; what only the browser knows arrives afterwards, in effects.
#![expect(
    clippy::needless_pass_by_value,
    reason = "components and views take their data by value: they keep it"
)]

pub mod api;
pub mod browser;
pub mod pages;
#[cfg(feature = "ssr")]
mod shell;
pub mod ui;

#[cfg(all(test, feature = "ssr"))]
mod testing;

#[cfg(feature = "ssr")]
pub use shell::shell;

use leptos::prelude::*;
use leptos_meta::{Title, provide_meta_context};
use leptos_router::{
    SsrMode,
    components::{ParentRoute, Route, Router, Routes},
    path,
};
use pages::{keys, not_found::NotFound, overview, playground, request, requests, routing, signin::SignIn};
use ui::{frame::Frame, ready, theme};

/// The whole dashboard, below `<body>`.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    ready::provide();
    theme::restore();
    #[cfg(target_arch = "wasm32")]
    provide_context::<api::Api>(std::sync::Arc::new(api::browser::Http));

    // The old page stays until the new one has its data: no flash of emptiness between two pages.
    let (busy, set_busy) = signal(false);
    provide_context(ui::frame::Busy(busy));

    view! {
        <Title text="Switchyard"/>
        <Router set_is_routing=set_busy>
            <Routes fallback=|| view! { <NotFound/> }>
                <Route path=path!("/signin") view=SignIn ssr=SsrMode::Async/>
                <ParentRoute path=path!("") view=Frame ssr=SsrMode::Async>
                    <Route path=path!("") view=overview::page::Overview ssr=SsrMode::Async/>
                    <Route path=path!("requests") view=requests::page::Requests ssr=SsrMode::Async/>
                    <Route path=path!("requests/:id") view=request::page::Request ssr=SsrMode::Async/>
                    <Route path=path!("routing") view=routing::page::Routing ssr=SsrMode::Async/>
                    <Route path=path!("playground") view=playground::page::Playground ssr=SsrMode::Async/>
                    <Route path=path!("keys") view=keys::page::Keys ssr=SsrMode::Async/>
                </ParentRoute>
            </Routes>
        </Router>
    }
}
