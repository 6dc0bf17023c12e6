//! The dashboard.

pub mod api;

use leptos::prelude::*;
use leptos_meta::{MetaTags, Title, provide_meta_context};
use leptos_router::{
    SsrMode,
    components::{Route, Router, Routes},
    path,
};

/// The whole dashboard, below `<body>`.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    view! {
        <Title text="Switchyard"/>
        <Router>
            <Routes fallback=|| "Not found">
                <Route path=path!("") view=|| view! { <h1>"Switchyard"</h1> } ssr=SsrMode::Async/>
            </Routes>
        </Router>
    }
}

/// The document around the app, rendered by the server alone.
pub fn shell(pkg: &str) -> impl IntoView + use<> {
    view! {
        <!DOCTYPE html>
        <html lang="en"><head><script type="module" src=format!("{pkg}/boot.js")></script><MetaTags/></head><body><App/></body></html>
    }
}
