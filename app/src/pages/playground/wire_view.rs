//! The last call as it went over the line.

use super::wire::Wire;
use crate::{
    api::query,
    browser,
    ui::{
        button::{Button, Look},
        format,
        panel::Panel,
    },
};
use leptos::{html, prelude::*, task::spawn_local};

/// Two panels: the answer's body as it came, and its headers. Both have their place before anything is there, so that an
/// answer moves nothing.
#[component]
pub fn WireView(wire: RwSignal<Wire>) -> impl IntoView {
    let shown = NodeRef::<html::Code>::new();
    let said = RwSignal::new("");
    write_as_it_comes(wire, shown, said);
    let copy = move |_| {
        let (text, element) = (wire.with_untracked(|wire| wire.raw.clone()), shown.get_untracked());
        spawn_local(async move {
            let copied = browser::copy(text, element).await;
            said.set(if copied { "Copied" } else { "Selected: press Ctrl+C" });
        });
    };
    let nothing = Signal::derive(move || wire.with(|wire| wire.raw.is_empty()));
    let of = move |read: fn(&Wire) -> String| Memo::new(move |_| wire.with(read));
    let (asked, came, cut, sent) = (of(asked), of(came), of(cut), of(|wire| wire.sent.clone()));
    let headers = Memo::new(move |_| wire.with(|wire| wire.headers.clone()));
    let aside = view! {
        <span class="dim">{came}</span>
        <span class="age row"><span class="said" role="status">{said}</span><Button look=Look::Bare off=nothing label="Copy the raw stream" press=copy>"Copy"</Button></span>
    };
    view! {
        <Panel title="Raw stream" aside=aside.into_any() class="w8">
            <p class="path">{asked}</p>
            <pre class="raw" tabindex="0" role="region" aria-label="Raw stream"><code node_ref=shown></code></pre>
            <p class="path">{cut}</p>
            <details><summary>"The request as it was sent"</summary><pre tabindex="0" role="region" aria-label="The request as it was sent">{sent}</pre></details>
        </Panel>
        <Panel title="The answer's headers" class="w4">{move || headers_view(headers.get())}</Panel>
    }
}

/// The text grows in the document by what is new. To write all of it at each event would make each one slower than the last.
fn write_as_it_comes(wire: RwSignal<Wire>, shown: NodeRef<html::Code>, said: RwSignal<&'static str>) {
    Effect::new(move |before: Option<(u32, usize)>| {
        let (call, length) = before.unwrap_or_default();
        let Some(element) = shown.get() else { return (0, 0) };
        wire.with(|Wire { number, raw, .. }| {
            let new = if call == *number {
                raw.get(length..).unwrap_or_default()
            } else {
                element.set_text_content(None);
                // What was copied was another call's.
                said.set("");
                raw
            };
            if !new.is_empty() {
                drop(element.insert_adjacent_text("beforeend", new));
            }
            (*number, raw.len())
        })
    });
}

/// What was called.
fn asked(wire: &Wire) -> String {
    if wire.path.is_empty() {
        return "Frames stand here as they arrive. Nothing has been sent yet.".to_owned();
    }
    ["POST ", &wire.path].concat()
}

/// How much came.
fn came(wire: &Wire) -> String {
    if wire.status == 0 {
        return String::new();
    }
    let events = if wire.events > 0 {
        format::counted(wire.events as u64, "event", "events") + ", "
    } else {
        String::new()
    };
    let bytes = format::counted(wire.bytes as u64, "byte", "bytes");
    format!("{}: {events}{bytes}", wire.status)
}

/// What is not shown.
fn cut(wire: &Wire) -> String {
    if !wire.is_cut() {
        return String::new();
    }
    let shown = format::counted(wire.raw.len() as u64, "byte", "bytes");
    format!("Shown are the first {shown}; the rest was read, and not kept here.")
}

fn headers_view(headers: Vec<(String, String)>) -> AnyView {
    if headers.is_empty() {
        return view! { <p class="dim">"Who answered, after how many attempts, and what was translated: the answer's head says it."</p> }.into_any();
    }
    let rows = headers.into_iter().map(|(name, value)| {
        let value = if name == "x-request-id" {
            let page = format!("/requests/{}", query::segment(&value));
            view! { <a href=page>{value}</a> }.into_any()
        } else {
            value.into_any()
        };
        view! { <dt>{name}</dt><dd class="mono">{value}</dd> }.into_any()
    });
    view! { <dl class="facts headers">{rows.collect_view()}</dl> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire() -> Wire {
        Wire::asked(0, "/v1/messages".to_owned(), "{}".to_owned())
    }

    #[test]
    fn what_came_is_counted_once_there_is_an_answer() {
        let mut wire = wire();
        assert_eq!((asked(&wire).as_str(), came(&wire).as_str()), ("POST /v1/messages", ""));
        wire.status = 200;
        wire.take("data: 1\n\n");
        wire.events = 1;
        assert_eq!(
            (came(&wire).as_str(), cut(&wire).as_str()),
            ("200: 1 event, 9 bytes", "")
        );
        wire.take(&"x".repeat(70_000));
        assert!(cut(&wire).starts_with("Shown are the first 65,536 bytes"));
    }

    #[cfg(feature = "ssr")]
    #[test]
    fn the_requests_page_is_a_step_away() {
        let html = crate::testing::html(headers_view(vec![
            ("x-gateway-translation".to_owned(), "dropped=1".to_owned()),
            ("x-request-id".to_owned(), "5f1c".to_owned()),
        ]));
        assert!(html.contains(r#"<a href="/requests/5f1c">5f1c</a>"#), "{html}");
        assert!(html.contains("dropped=1"), "{html}");
    }
}
