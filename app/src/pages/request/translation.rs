//! What became of the caller's words on their way into another dialect.

use crate::ui::{
    panel::Panel,
    scroll::Scroll,
    state::{Mark, State},
    table::{Column, heading},
};
use leptos::prelude::*;
use switchyard_api::Note;

/// What can become of a field, gravest first.
const FATES: [(&str, Mark); 4] = [
    ("dropped", Mark::Bad),
    ("approximated", Mark::Warn),
    ("mapped", Mark::Ok),
    ("kept", Mark::Ok),
];

/// A record lists no more.
const MOST: usize = 64;

/// The panel. Without notes it says what that means. A record does not tell a relay from a translation that had nothing to
/// note, so neither does the page.
#[component]
pub fn Translation(
    notes: Vec<Note>,
    /// An upstream was called.
    was_sent: bool,
) -> impl IntoView {
    if notes.is_empty() {
        let why = if was_sent {
            "Nothing was dropped or changed: relayed as it came where caller and upstream speak the same dialect, carried over whole where they do not."
        } else {
            "No upstream was called, so nothing was translated."
        };
        return view! { <Panel title="Translation"><p class="dim">{why}</p></Panel> }.into_any();
    }
    let counts = FATES.map(|(fate, mark)| {
        let count = notes.iter().filter(|note| note.fate == fate).count();
        let mark = if count > 0 { mark } else { Mark::Off };
        view! { <State mark=mark text=format!("{count} {fate}")/> }.into_any()
    });
    let more = (notes.len() >= MOST).then(|| {
        view! { <p class="dim more">"A record lists the first "{MOST}" fields. The header X-Gateway-Translation of the answer counts all of them."</p> }.into_any()
    });
    let head = heading(&[
        Column::Text("Field"),
        Column::Text("What became of it"),
        Column::Text("Why"),
    ]);
    let rows: Vec<_> = gravest_first(notes).into_iter().map(row).collect();
    view! {
        <Panel title="Translation" flush=true aside=counts.collect_view().into_any()>
            <Scroll label="Translation"><table class="table fates">{head}<tbody>{rows}</tbody></table></Scroll>
            {more}
        </Panel>
    }
    .into_any()
}

/// Of equal gravity in the order in which they were made. What this page does not know may be grave.
fn gravest_first(mut notes: Vec<Note>) -> Vec<Note> {
    notes.sort_by_key(|note| FATES.iter().position(|(fate, _)| *fate == note.fate));
    notes
}

fn row(note: Note) -> AnyView {
    let mark = FATES.iter().find(|(fate, _)| *fate == note.fate);
    let mark = mark.map_or(Mark::Warn, |(_, mark)| *mark);
    view! {
        <tr>
            <th scope="row" class="wrap"><code>{note.field}</code></th>
            <td><State mark=mark text=note.fate/></td>
            <td class="wrap"><div>{note.why}</div></td>
        </tr>
    }
    .into_any()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::{pages::request::view::tests::note, testing::html};

    fn panel(notes: Vec<Note>, was_sent: bool) -> String {
        html(view! { <Translation notes=notes was_sent=was_sent/> })
    }

    #[test]
    fn the_gravest_stand_first_and_each_kind_is_counted() {
        let html = panel(
            vec![
                note("kept", "model", ""),
                note("dropped", "seed", "no such parameter there"),
                note("mapped", "max_tokens", "generationConfig.maxOutputTokens"),
                note("dropped", "<b>", "odd"),
            ],
            true,
        );
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}: {html}"));
        assert!(at("<code>seed</code>") < at("&lt;b&gt;") && at("&lt;b&gt;") < at("max_tokens"));
        assert!(at("<code>max_tokens</code>") < at("<code>model</code>"));
        assert!(at("2 dropped") < at("0 approximated") && at("1 mapped") < at("1 kept"));
        assert!(
            html.contains(r#"<span class="state off">0 approximated</span>"#),
            "{html}"
        );
        assert!(!html.contains("lists the first") && !html.contains("style="), "{html}");
    }

    #[test]
    fn a_list_that_may_go_on_says_so() {
        let notes = (0..MOST).map(|n| note("dropped", &format!("messages[{n}]"), "odd"));
        assert!(panel(notes.collect(), true).contains("lists the first 64 fields"));
    }

    #[test]
    fn nothing_to_tell_has_a_reason() {
        assert!(panel(vec![], true).contains("speak the same dialect"));
        assert!(panel(vec![], false).contains("No upstream was called"));
    }
}
