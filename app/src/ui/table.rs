//! What tables share: headings, and a moment in a cell.

use crate::ui::format;
use leptos::prelude::*;
use switchyard_api::Timestamp;

/// A column's heading. Numbers stand at the right.
#[derive(Clone, Copy)]
pub enum Column {
    Text(&'static str),
    Number(&'static str),
    /// A column of buttons: named for those who hear the table.
    Hidden(&'static str),
}

/// The heading row.
pub fn heading(columns: &[Column]) -> AnyView {
    let cell = |column: &Column| match *column {
        Column::Text(text) => view! { <th scope="col">{text}</th> }.into_any(),
        Column::Number(text) => view! { <th scope="col" class="n">{text}</th> }.into_any(),
        Column::Hidden(text) => view! { <th scope="col"><span class="sr">{text}</span></th> }.into_any(),
    };
    view! { <thead><tr>{columns.iter().map(cell).collect_view()}</tr></thead> }.into_any()
}

/// A moment, shown as `text` and in full on demand.
#[component]
pub fn Moment(at: Timestamp, #[prop(into)] text: String) -> impl IntoView {
    view! { <time datetime=at.rfc3339() title=format::moment(at)>{text}</time> }
}

/// How long ago something was, or the dash.
#[component]
pub fn Ago(at: Option<Timestamp>, now: Timestamp) -> impl IntoView {
    match at {
        Some(at) => view! { <Moment at=at text=format::ago(at, now)/> }.into_any(),
        None => format::ABSENT.into_any(),
    }
}
