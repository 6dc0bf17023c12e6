//! What tests of views share.

use leptos::prelude::*;

/// A view's markup, without the marks that hydration finds its way by.
pub(crate) fn html(view: impl IntoView) -> String {
    view.into_view().to_html().replace("<!>", "")
}
