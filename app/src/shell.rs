//! The document around the app, and the policy it is sent with. Only the server renders it.

use crate::{App, ui::theme};
use leptos::{nonce::use_nonce, prelude::*};
use leptos_axum::ResponseOptions;
use leptos_meta::MetaTags;

/// The document. `pkg` is where the browser's side is served from, such as `/pkg/5f1c0b7e`.
///
/// Resource data travels in inline scripts. They carry the request's nonce, and the same nonce stands in the
/// `Content-Security-Policy` that is set here, because nobody else knows it.
pub fn shell(pkg: String) -> impl IntoView + use<> {
    let nonce = use_nonce().map(|nonce| nonce.to_string()).unwrap_or_default();
    if let (Some(response), Ok(policy)) = (
        use_context::<ResponseOptions>(),
        http::HeaderValue::from_str(&policy(&nonce)),
    ) {
        response.insert_header(http::header::CONTENT_SECURITY_POLICY, policy);
    }
    view! {
        <!DOCTYPE html>
        // Browser translation rewrites text nodes under the hydrated page, and breaks it.
        <html lang="en" translate="no" data-theme=theme::of_request()>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <link rel="stylesheet" href=format!("{pkg}/app.css")/>
                <link rel="icon" href=format!("{pkg}/favicon.svg") r#type="image/svg+xml"/>
                <link rel="modulepreload" href=format!("{pkg}/app.js")/>
                <link rel="preload" href=format!("{pkg}/app_bg.wasm") r#as="fetch" r#type="application/wasm" crossorigin="anonymous"/>
                <script type="module" src=format!("{pkg}/boot.js")></script>
                <MetaTags/>
            </head>
            <body>
                <App/>
            </body>
        </html>
    }
}

fn policy(nonce: &str) -> String {
    format!(
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; \
         img-src 'self' data:; style-src 'self'; script-src 'self' 'wasm-unsafe-eval' 'nonce-{nonce}'; \
         connect-src 'self'; font-src 'self'"
    )
}
