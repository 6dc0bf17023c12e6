//! An address that leads nowhere. It stands outside of the frame: who asks may not even be signed in.

use crate::ui::rail::Brand;
use leptos::prelude::*;
use leptos_meta::Title;

/// Says so, and with the right status: a monitor must be able to tell.
#[component]
pub fn NotFound() -> impl IntoView {
    answer_404();
    view! {
        <Title text="Not found · Switchyard"/>
        <main class="signin">
            <Brand/>
            <div class="stack">
                <h1>"There is no page here"</h1>
                <p>"The address may be mistyped, or the page may have gone with an update."</p>
                <p><a href="/">"To the overview"</a></p>
            </div>
        </main>
    }
}

/// Makes the page that is being rendered a 404.
pub fn answer_404() {
    #[cfg(feature = "ssr")]
    if let Some(response) = use_context::<leptos_axum::ResponseOptions>() {
        response.set_status(http::StatusCode::NOT_FOUND);
    }
}
