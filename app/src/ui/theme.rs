//! Light, dark, or as the system says.
//!
//! The choice is kept in `localStorage`. A cookie of the same name repeats it for the server, which writes it into the
//! document, so that a page never flashes in the other colours before code runs.

use crate::{browser, ui::ready::ready};
use leptos::prelude::*;

/// The themes there are, and how each is called. An empty name follows the system.
const THEMES: [(&str, &str); 3] = [("", "System theme"), ("light", "Light"), ("dark", "Dark")];

fn known(theme: &str) -> Option<&'static str> {
    THEMES
        .iter()
        .map(|(name, _)| *name)
        .find(|name| !name.is_empty() && *name == theme)
}

/// Puts the remembered theme on the document, before the page is taken over.
pub fn restore() {
    if let Some(theme) = browser::remembered_theme() {
        browser::wear_theme(known(&theme));
    }
}

/// The theme that the request's cookie names.
#[cfg(feature = "ssr")]
pub fn of_request() -> Option<&'static str> {
    let parts = use_context::<http::request::Parts>()?;
    let cookies = parts
        .headers
        .get_all(http::header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok());
    cookies
        .flat_map(|line| line.split(';'))
        .find_map(|pair| known(pair.trim().strip_prefix("switchyard-theme=")?))
}

/// The choice. Shows the system's theme until the browser's memory has been asked, on both sides alike.
#[component]
pub fn ThemeSwitch() -> impl IntoView {
    let ready = ready();
    let theme = RwSignal::new(String::new());
    Effect::new(move || theme.set(browser::remembered_theme().unwrap_or_default()));
    let change = move |event| {
        let chosen = event_target_value(&event);
        browser::remember_theme(known(&chosen));
        browser::wear_theme(known(&chosen));
        theme.set(chosen);
    };
    let options = THEMES.map(|(name, text)| {
        let chosen = move || theme.with(|theme| theme == name);
        view! { <option value=name prop:selected=chosen>{text}</option> }.into_any()
    });
    view! {
        <select class="input slim" aria-label="Theme" disabled=move || !ready.get() on:change=change>{options.collect_view()}</select>
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn only_themes_that_exist_reach_the_document() {
        let of = |cookie: &str| {
            Owner::new().with(|| {
                let request = http::Request::builder().header("cookie", cookie).body(()).unwrap();
                provide_context(request.into_parts().0);
                of_request()
            })
        };
        assert_eq!(of("a=b; switchyard-theme=dark"), Some("dark"));
        assert_eq!(of("switchyard-theme=\"><script>"), None);
        assert_eq!(of("switchyard-theme="), None);
    }
}
