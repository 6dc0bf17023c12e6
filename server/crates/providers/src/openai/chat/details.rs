//! The model's reasoning, as chat completions carry it.
//!
//! OpenAI's own has no place for it. What the others have agreed on is `reasoning_content`, a text; `OpenRouter` adds
//! `reasoning_details`, a list that holds signatures and encrypted reasoning too, each with a `format` that tells whose it is:
//!
//! ```text
//! {"type":"reasoning.text","text":"…","signature":"…","format":"anthropic-claude-v1","index":0}
//! {"type":"reasoning.summary","summary":"…","format":"openai-responses-v1","index":0}
//! {"type":"reasoning.encrypted","data":"…","format":"openai-responses-v1","index":0}
//! ```
//!
//! One thought is one text, or one text with its seal, or a summary and the encrypted reasoning of the same index or id, or
//! encrypted reasoning alone. Some clients keep a stream's pieces as they came: texts of the same index are one text.

use super::doc::{List, Object};
use crate::ir::{Maker, Seal, Thought};
use serde_json::{Map, Value};

/// What a seal is written under.
const fn format(maker: Maker) -> &'static str {
    match maker {
        Maker::OpenAi => "openai-responses-v1",
        Maker::Anthropic => "anthropic-claude-v1",
        Maker::Gemini => "google-gemini-v1",
    }
}

/// Whose a seal is that has no mark. `None` for one of a maker that is not known here (`xai-responses-v1`, `unknown`): it is of no
/// use to anybody else.
fn maker(detail: &Map<String, Value>) -> Option<Maker> {
    match detail.get("format").and_then(Value::as_str) {
        Some(format) if format.starts_with("anthropic") => Some(Maker::Anthropic),
        Some(format) if format.starts_with("google") => Some(Maker::Gemini),
        // Azure's begins with its own name.
        Some(format) if !format.contains("openai-responses") => None,
        _ => Some(Maker::OpenAi),
    }
}

/// One entry of a list.
#[derive(Debug, Default)]
pub(super) struct Detail {
    pub(super) text: Option<String>,
    pub(super) is_summary: bool,
    pub(super) seal: Option<Seal>,
    pub(super) is_encrypted: bool,
    pub(super) place: Place,
}

/// Entries of the same thought have the same id or, without ids, the same index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    id: Option<String>,
    index: Option<u64>,
}

impl Place {
    pub(super) fn is(&self, other: &Self) -> bool {
        match (&self.id, &other.id) {
            (Some(id), Some(other)) => id == other,
            _ => self.index.is_some() && self.index == other.index,
        }
    }
}

impl Detail {
    pub(super) fn read(value: Value) -> Option<Self> {
        let Value::Object(mut detail) = value else {
            return None;
        };
        let maker = maker(&detail);
        let text = |detail: &mut Map<String, Value>, key: &str| match detail.get_mut(key).map(Value::take) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let seal = |written: Option<String>| {
            let written = written.filter(|written| !written.is_empty())?;
            Some(Seal::read(&written, maker?))
        };
        let kind = detail.get("type").and_then(Value::as_str).unwrap_or_default();
        let (is_sealed, is_text) = (kind == "reasoning.encrypted", kind == "reasoning.text");
        let seal = seal(text(&mut detail, if is_sealed { "data" } else { "signature" }));
        let summary = text(&mut detail, "summary").filter(|_| !is_text);
        // Clients that put together what has the same index make one entry of a summary and what is encrypted.
        // The summary is one even where nobody can read the rest.
        let is_summary = summary.is_some();
        let is_encrypted = is_sealed && !is_summary;
        let words = if is_sealed || is_summary {
            summary
        } else {
            text(&mut detail, "text")
        };
        let read = Self {
            text: words,
            is_summary,
            seal,
            is_encrypted,
            place: Place {
                id: text(&mut detail, "id"),
                index: detail.get("index").and_then(Value::as_u64),
            },
        };
        (read.text.is_some() || read.seal.is_some()).then_some(read)
    }
}

/// Reads the thoughts of a message: its list of details, and its plain text.
pub(super) fn thoughts(details: Vec<Value>, plain: Option<String>) -> Vec<Thought> {
    let mut thoughts: Vec<Thought> = Vec::new();
    let mut last = Place::default();
    for detail in details.into_iter().filter_map(Detail::read) {
        let open = thoughts
            .last_mut()
            .filter(|thought| thought.seal.is_none() && detail.place.is(&last));
        last = detail.place;
        match open {
            Some(thought) if detail.is_encrypted || thought.is_summary == detail.is_summary => {
                thought.text.push_str(&detail.text.unwrap_or_default());
                thought.seal = detail.seal;
            }
            _ => thoughts.push(Thought {
                text: detail.text.unwrap_or_default(),
                is_summary: detail.is_summary,
                seal: detail.seal,
                is_redacted: detail.is_encrypted,
            }),
        }
    }
    let Some(text) = plain.filter(|text| !text.is_empty()) else {
        return thoughts;
    };
    if thoughts.iter().all(|thought| thought.text.is_empty()) {
        match thoughts.first_mut().filter(|first| !first.is_redacted) {
            Some(first) => first.text = text,
            None => thoughts.insert(
                0,
                Thought {
                    text,
                    ..Thought::default()
                },
            ),
        }
    }
    thoughts
}

/// Writes one thought for a caller: an entry, or two.
pub(super) fn write(list: &mut List<'_>, index: usize, thought: &Thought) {
    let written = thought.seal.as_ref().map(|seal| seal.write(Maker::OpenAi));
    entries(list, index, thought, written.as_deref());
}

/// Writes one thought for the maker of its seal, who knows no marks.
pub(super) fn write_bare(list: &mut List<'_>, index: usize, thought: &Thought) {
    entries(list, index, thought, thought.seal.as_ref().map(|seal| &*seal.data));
}

fn entries(list: &mut List<'_>, index: usize, thought: &Thought, written: Option<&str>) {
    let name = thought.seal.as_ref().map(|seal| format(seal.maker));
    if thought.is_redacted {
        return encrypted(list, index, written, name);
    }
    let mut entry = list.object();
    if thought.is_summary {
        entry.put("type", "reasoning.summary");
        entry.put("summary", &thought.text);
    } else {
        entry.put("type", "reasoning.text");
        entry.put("text", &thought.text);
        entry.some("signature", written);
    }
    place(entry, index, name);
    if thought.is_summary && written.is_some() {
        encrypted(list, index, written, name);
    }
}

/// Writes what follows a thought whose words were told.
pub(super) fn write_seal(list: &mut List<'_>, index: usize, seal: &Seal) {
    encrypted(list, index, Some(&seal.write(Maker::OpenAi)), Some(format(seal.maker)));
}

fn encrypted(list: &mut List<'_>, index: usize, data: Option<&str>, format: Option<&str>) {
    let mut entry = list.object();
    entry.put("type", "reasoning.encrypted");
    entry.put("data", data.unwrap_or_default());
    place(entry, index, format);
}

fn place(mut entry: Object<'_>, index: usize, format: Option<&str>) {
    entry.some("format", format);
    entry.put("index", &index);
    entry.close();
}

/// Whether a text alone does not say all there is to these thoughts.
pub(super) fn needed(thoughts: &[&Thought]) -> bool {
    let more = |thought: &&Thought| thought.seal.is_some() || thought.is_summary || thought.is_redacted;
    thoughts.len() > 1 || thoughts.iter().any(more)
}

#[cfg(test)]
mod tests {
    use super::{List, thoughts, write};
    use crate::ir::{Maker, Seal, Thought};
    use serde_json::{Value, json};

    fn again(all: &[Thought]) -> Vec<Thought> {
        let mut out = Vec::new();
        let mut list = List::open(&mut out);
        for (index, thought) in all.iter().enumerate() {
            write(&mut list, index, thought);
        }
        list.close();
        let Value::Array(list) = serde_json::from_slice(&out).unwrap() else {
            panic!("no list")
        };
        thoughts(list, Some("told apart already".to_owned()))
    }

    #[test]
    fn every_thought_comes_back_as_it_was() {
        let seal = |maker| Some(Seal::new(maker, "c2Vh/bA=="));
        let all = [
            Thought {
                text: "First.".to_owned(),
                seal: seal(Maker::Anthropic),
                ..Thought::default()
            },
            Thought {
                seal: seal(Maker::Anthropic),
                is_redacted: true,
                ..Thought::default()
            },
            Thought {
                text: "In short".to_owned(),
                is_summary: true,
                seal: seal(Maker::OpenAi),
                ..Thought::default()
            },
            Thought {
                seal: seal(Maker::Gemini),
                ..Thought::default()
            },
            Thought {
                text: "Unsealed.".to_owned(),
                ..Thought::default()
            },
        ];
        assert_eq!(again(&all), all);
    }

    #[test]
    fn pieces_of_a_stream_and_a_seal_behind_them_are_one_thought() {
        let list = vec![
            json!({"type": "reasoning.text", "text": "Let me ", "index": 0, "format": "anthropic-claude-v1"}),
            json!({"type": "reasoning.text", "text": "see.", "index": 0, "format": "anthropic-claude-v1"}),
            json!({"type": "reasoning.text", "signature": "sig", "index": 0, "format": "anthropic-claude-v1"}),
            json!("odd"),
            json!({"type": "reasoning.server_tool_call"}),
        ];
        let want = Thought {
            text: "Let me see.".to_owned(),
            seal: Some(Seal::new(Maker::Anthropic, "sig")),
            ..Thought::default()
        };
        assert_eq!(thoughts(list, Some("Let me see.".to_owned())), [want]);
    }

    #[test]
    fn a_summary_that_was_put_together_with_its_seal_is_one_thought() {
        let merged = json!({"type": "reasoning.encrypted", "summary": "In short", "data": "x", "index": 0});
        let want = Thought {
            text: "In short".to_owned(),
            is_summary: true,
            seal: Some(Seal::new(Maker::OpenAi, "x")),
            is_redacted: false,
        };
        assert_eq!(thoughts(vec![merged], Some("In short".to_owned())), [want]);
    }

    #[test]
    fn a_seal_of_an_unknown_maker_is_nobodys_and_its_text_stays() {
        for (format, maker) in [
            (json!(null), Some(Maker::OpenAi)),
            (json!("openai-responses-v1"), Some(Maker::OpenAi)),
            (json!("azure-openai-responses-v1"), Some(Maker::OpenAi)),
            (json!("anthropic-claude-v1"), Some(Maker::Anthropic)),
            (json!("google-gemini-v1"), Some(Maker::Gemini)),
            (json!("xai-responses-v1"), None),
            (json!("unknown"), None),
        ] {
            let read = |detail: Value| {
                let mut detail = detail;
                detail["format"] = format.clone();
                let thoughts = thoughts(vec![detail], None);
                let told = |thought: Thought| (thought.text, thought.seal.map(|seal| seal.maker));
                thoughts.into_iter().map(told).collect::<Vec<_>>()
            };
            let text = json!({"type": "reasoning.text", "text": "Hm.", "signature": "x"});
            assert_eq!(read(text), [("Hm.".to_owned(), maker)], "{format}");
            let merged = json!({"type": "reasoning.encrypted", "summary": "In short", "data": "x"});
            assert_eq!(read(merged), [("In short".to_owned(), maker)], "{format}");
            let alone = read(json!({"type": "reasoning.encrypted", "data": "x"}));
            assert_eq!(alone.len(), usize::from(maker.is_some()), "{format}");
        }
    }

    #[test]
    fn a_plain_text_belongs_to_the_first_thought_that_has_none() {
        let seal = json!({"type": "reasoning.text", "signature": "sig", "format": "anthropic-claude-v1"});
        let read = thoughts(vec![seal], Some("Hm.".to_owned()));
        assert_eq!((read.len(), read[0].text.as_str()), (1, "Hm."));
        let hidden = json!({"type": "reasoning.encrypted", "data": "x"});
        let read = thoughts(vec![hidden], Some("Hm.".to_owned()));
        assert_eq!(
            (read.len(), read[0].text.as_str(), read[1].is_redacted),
            (2, "Hm.", true)
        );
        assert!(thoughts(Vec::new(), Some(String::new())).is_empty());
    }
}
