//! Messages, piece by piece.

use super::{LETTERS, LONGEST_ID};
use crate::Surface;
use crate::bedrock::common::fitting_name;
use crate::bedrock::model::Model;
use crate::ir::{Audio, Call, Document, Image, Maker, Part, ResultOf, Source, Thought};
use crate::names::{Spot, Thing};
use crate::notes::Notes;
use crate::{custom, ids};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use switchyard_core::error::{Error, Kind};

const IMAGES: &[(&str, &str)] = &[
    ("image/png", "png"),
    ("image/jpeg", "jpeg"),
    ("image/jpg", "jpeg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
];

const DOCUMENTS: &[(&str, &str)] = &[
    ("application/pdf", "pdf"),
    ("text/csv", "csv"),
    ("application/msword", "doc"),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "docx",
    ),
    ("application/vnd.ms-excel", "xls"),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xlsx",
    ),
    ("text/html", "html"),
    ("text/markdown", "md"),
    ("text/plain", "txt"),
    ("application/json", "txt"),
];

const VIDEOS: &[(&str, &str)] = &[
    ("video/mp4", "mp4"),
    ("video/quicktime", "mov"),
    ("video/x-matroska", "mkv"),
    ("video/webm", "webm"),
    ("video/x-flv", "flv"),
    ("video/mpeg", "mpeg"),
    ("video/mpg", "mpg"),
    ("video/x-ms-wmv", "wmv"),
    ("video/3gpp", "three_gp"),
];

const AUDIOS: &[(&str, &str)] = &[
    ("audio/mpeg", "mp3"),
    ("audio/mp3", "mp3"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/wave", "wav"),
    ("audio/ogg", "ogg"),
    ("audio/opus", "opus"),
    ("audio/flac", "flac"),
    ("audio/aac", "aac"),
    ("audio/mp4", "m4a"),
    ("audio/webm", "webm"),
    ("audio/pcm", "pcm"),
];

/// The wire's word for a media type, for a file's ending, or for itself.
fn format_of(table: &[(&str, &'static str)], media_type: &str, name: Option<&str>) -> Option<&'static str> {
    let media_type = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let ending = name
        .and_then(|name| name.rsplit_once('.'))
        .map(|(_, ending)| ending.to_ascii_lowercase());
    let by =
        |found: &dyn Fn(&str, &str) -> bool| table.iter().find(|(of, word)| found(of, word)).map(|(_, word)| *word);
    by(&|of, _| of == media_type)
        .or_else(|| by(&|_, word| word == media_type))
        .or_else(|| by(&|_, word| ending.as_deref() == Some(word)))
        .or_else(|| {
            ending
                .filter(|ending| ending == "jpg")
                .and_then(|_| by(&|_, word| word == "jpeg"))
        })
}

/// A name as documents may have one: letters, digits, single spaces, hyphens, parentheses and brackets.
fn document_name(name: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, ending)| {
        let is_ending = ending.len() <= 5 && ending.bytes().all(|b| b.is_ascii_alphanumeric());
        if is_ending { stem } else { name }
    });
    let mut out = String::new();
    for c in stem.chars() {
        let c = match c {
            c if c.is_ascii_alphanumeric() || "()[]".contains(c) => c,
            c if c.is_whitespace() => ' ',
            _ => '-',
        };
        if !(matches!(c, ' ' | '-') && out.ends_with(c)) {
            out.push(c);
        }
    }
    let out = out.trim_matches([' ', '-']);
    let out: String = out.chars().take(190).collect();
    if out.is_empty() { "document".to_owned() } else { out }
}

/// Writes parts as blocks.
pub(super) struct Content<'a> {
    pub(super) surface: Surface,
    /// Where the message stands that is written.
    pub(super) spot: Spot,
    pub(super) model: &'a Model,
    pub(super) notes: &'a mut Notes,
    /// Names of documents so far; no two may be the same.
    names: HashSet<String>,
}

impl<'a> Content<'a> {
    pub(super) fn new(surface: Surface, model: &'a Model, notes: &'a mut Notes) -> Self {
        Self {
            surface,
            spot: Spot::anywhere(surface),
            model,
            notes,
            names: HashSet::new(),
        }
    }

    /// Appends a part's blocks: none, one, or one and a mark for the cache behind it.
    pub(super) fn part(&mut self, part: &Part, role: &str, out: &mut Vec<Value>) -> Result<(), Error> {
        let mut cache = None;
        let before = out.len();
        match part {
            Part::Text {
                text,
                cache: mark,
                citations,
            } => {
                cache = mark.as_ref();
                if !citations.is_empty() {
                    self.notes
                        .dropped(self.spot.name(Thing::Citations), "what was said before has none there");
                }
                self.text(text, out);
            }
            Part::Image(image) => {
                cache = image.cache.as_ref();
                out.push(self.image(image)?);
            }
            Part::Document(document) => {
                cache = document.cache.as_ref();
                out.push(self.document(document)?);
            }
            Part::Audio(audio) => out.push(self.audio(audio)?),
            Part::Call(call) => {
                cache = call.cache.as_ref();
                out.push(self.call(call));
            }
            Part::Result(result) => {
                cache = result.cache.as_ref();
                out.push(self.result(result)?);
            }
            Part::Thought(thought) => out.extend(self.thought(thought)),
            Part::Refusal(text) => {
                self.notes.approximated(self.spot.name(Thing::Refusal), "sent as text");
                self.text(text, out);
            }
            Part::Stranger(stranger) if role == "assistant" => {
                self.notes.dropped(stranger.field.clone(), "bedrock has no such part");
            }
            Part::Stranger(stranger) => {
                let message = format!(
                    "`{}` cannot be sent to Bedrock; leave it out, say it as text, or ask for a model of another provider",
                    stranger.field
                );
                return Err(Error::new(Kind::Unsupported, message).with_param(stranger.field.clone()));
            }
        }
        if let Some(mark) = cache.filter(|_| out.len() > before) {
            out.extend(cache_point(mark, self.model, self.spot.name(Thing::Cache), self.notes));
        }
        Ok(())
    }

    /// Blank texts are refused there, and say nothing.
    fn text(&mut self, text: &str, out: &mut Vec<Value>) {
        if !text.trim().is_empty() {
            out.push(json!({ "text": text }));
        } else if !text.is_empty() {
            self.notes.dropped(
                self.spot.name(Thing::Content),
                "a text of nothing but spaces is refused there",
            );
        }
    }

    fn image(&mut self, image: &Image) -> Result<Value, Error> {
        if image.detail.as_ref().is_some_and(|detail| detail != "auto") {
            self.notes
                .dropped(self.spot.name(Thing::Detail), "bedrock has no such setting");
        }
        let format = self.format(IMAGES, &image.source, None, Thing::Image, "png, jpeg, gif or webp")?;
        let source = self.source(&image.source, Thing::Image)?;
        Ok(json!({"image": {"format": format, "source": source}}))
    }

    fn document(&mut self, document: &Document) -> Result<Value, Error> {
        let media_type = match &document.source {
            Source::Data { media_type, .. } => media_type.as_str(),
            _ => "",
        };
        if media_type.starts_with("video/") {
            let format = self.format(VIDEOS, &document.source, None, Thing::File, "mp4, mov, mkv or webm")?;
            let source = self.source(&document.source, Thing::File)?;
            return Ok(json!({"video": {"format": format, "source": source}}));
        }
        if media_type.starts_with("audio/") {
            return self.audio(&Audio {
                source: document.source.clone(),
                format: None,
                transcript: None,
            });
        }
        let name = document.name.as_deref();
        let known = "pdf, csv, doc, docx, xls, xlsx, html, txt or md";
        let format = match &document.source {
            Source::Text(_) => "txt",
            // Whatever else is text can be read as text.
            Source::Data { .. } if media_type.starts_with("text/") => {
                format_of(DOCUMENTS, media_type, name).unwrap_or("txt")
            }
            source => self.format(DOCUMENTS, source, name, Thing::File, known)?,
        };
        let mut block = Map::new();
        block.insert("format".to_owned(), json!(format));
        block.insert("name".to_owned(), json!(self.unique(document_name(name))));
        block.insert("source".to_owned(), self.source(&document.source, Thing::File)?);
        if let Some(context) = &document.context {
            block.insert("context".to_owned(), json!(context));
        }
        if document.cite == Some(true) {
            block.insert("citations".to_owned(), json!({"enabled": true}));
        }
        Ok(json!({ "document": block }))
    }

    fn unique(&mut self, name: String) -> String {
        if self.names.insert(name.clone()) {
            return name;
        }
        let mut n = self.names.len();
        loop {
            n += 1;
            let next = format!("{name} ({n})");
            if self.names.insert(next.clone()) {
                return next;
            }
        }
    }

    fn audio(&mut self, audio: &Audio) -> Result<Value, Error> {
        let known = "mp3, wav, flac, ogg, aac or m4a";
        let named = audio
            .format
            .as_deref()
            .and_then(|format| format_of(AUDIOS, format, None));
        let format = match named {
            Some(format) => format,
            None => self.format(AUDIOS, &audio.source, None, Thing::Audio, known)?,
        };
        let source = self.source(&audio.source, Thing::Audio)?;
        Ok(json!({"audio": {"format": format, "source": source}}))
    }

    /// The wire's word for what something is.
    fn format(
        &self,
        table: &[(&str, &'static str)],
        source: &Source,
        name: Option<&str>,
        media: Thing,
        known: &str,
    ) -> Result<&'static str, Error> {
        let (media_type, name) = match source {
            Source::Data { media_type, .. } => (media_type.as_str(), name),
            Source::Url(url) => ("", name.or(Some(url))),
            // Refused for another reason, by whoever reads the source.
            Source::File(_) | Source::Text(_) => return Ok(""),
        };
        let is_fetched = matches!(source, Source::Url(url) if !url.starts_with("s3://"));
        match format_of(table, media_type, name) {
            Some(format) => Ok(format),
            None if is_fetched => Ok(""),
            None => {
                let field = self.spot.name(media);
                let message = format!("`{field}`: Bedrock cannot read `{media_type}`; send {known}");
                Err(Error::new(Kind::Unsupported, message).with_param(field))
            }
        }
    }

    fn source(&self, source: &Source, media: Thing) -> Result<Value, Error> {
        let what = match source {
            Source::Data { base64, .. } => return Ok(json!({ "bytes": base64 })),
            Source::Url(url) if url.starts_with("s3://") => return Ok(json!({"s3Location": {"uri": url}})),
            Source::Text(text) if media == Thing::File => return Ok(json!({ "text": text })),
            Source::Url(_) => "does not fetch addresses",
            Source::File(_) => "knows no file ids of other vendors",
            Source::Text(_) => "takes no text here",
        };
        let field = self.spot.name(media);
        let message = format!(
            "`{field}`: Bedrock {what}; send the data itself in base64 or an s3:// address, or ask for a model of another \
             provider"
        );
        Err(Error::new(Kind::Unsupported, message).with_param(field))
    }

    fn call(&mut self, call: &Call) -> Value {
        if call.seal.is_some() {
            self.notes
                .dropped(self.spot.name(Thing::CallSeal), "calls are not sealed there");
        }
        let (input, is_object) = custom::object(call);
        if !is_object {
            let field = self.spot.name(Thing::Arguments);
            self.notes
                .approximated(field, "what is no JSON object is sent as the text of one");
        }
        let id = ids::fitting(&call.id, LONGEST_ID);
        json!({"toolUse": {"toolUseId": id, "name": fitting_name(&call.name, LETTERS), "input": input}})
    }

    fn result(&mut self, result: &ResultOf) -> Result<Value, Error> {
        let mut content = Vec::new();
        for part in &result.parts {
            match part {
                Part::Text { text, .. } if text.trim().is_empty() => {}
                Part::Text { text, .. } => content.push(json!({ "text": text })),
                Part::Image(_) | Part::Document(_) => self.part_without_cache(part, &mut content)?,
                _ => self.part(part, "user", &mut content)?,
            }
        }
        if content.is_empty() {
            content.push(json!({"text": "(no output)"}));
        }
        let mut block = Map::new();
        block.insert("toolUseId".to_owned(), json!(ids::fitting(&result.call_id, LONGEST_ID)));
        block.insert("content".to_owned(), Value::Array(content));
        if result.is_error && self.model.knows_status() {
            block.insert("status".to_owned(), json!("error"));
        } else if result.is_error {
            self.notes
                .dropped(self.spot.name(Thing::IsError), "the model takes no status of results");
        }
        Ok(json!({ "toolResult": block }))
    }

    /// There are no marks inside of a result.
    fn part_without_cache(&mut self, part: &Part, out: &mut Vec<Value>) -> Result<(), Error> {
        let block = match part {
            Part::Image(image) => self.image(image)?,
            Part::Document(document) => self.document(document)?,
            _ => return Ok(()),
        };
        out.push(block);
        Ok(())
    }

    /// Only what a model signed itself is taken back.
    fn thought(&mut self, thought: &Thought) -> Option<Value> {
        let seal = thought.seal.as_ref().and_then(|seal| seal.for_maker(Maker::Anthropic));
        match seal.filter(|_| self.model.may_be_claude()) {
            Some(data) if thought.is_redacted => Some(json!({"reasoningContent": {"redactedContent": data}})),
            Some(signature) => {
                let text = json!({"text": thought.text, "signature": signature});
                Some(json!({"reasoningContent": {"reasoningText": text}}))
            }
            None => {
                self.notes.dropped(
                    self.spot.name(Thing::Thought),
                    "the model takes back only reasoning that it signed",
                );
                None
            }
        }
    }
}

/// The mark up to which the vendor may cache.
pub(super) fn cache_point(mark: &Value, model: &Model, field: String, notes: &mut Notes) -> Option<Value> {
    if !model.caches() {
        notes.dropped(field, "the model has no prompt cache on bedrock");
        return None;
    }
    notes.mapped(field, "cachePoint");
    let mut point = Map::new();
    point.insert("type".to_owned(), json!("default"));
    // Five minutes are what it is anyway.
    if let Some(ttl) = mark.get("ttl").filter(|ttl| **ttl == "1h") {
        point.insert("ttl".to_owned(), ttl.clone());
    }
    Some(json!({ "cachePoint": point }))
}

#[cfg(test)]
mod tests {
    use super::{DOCUMENTS, IMAGES, document_name, format_of};

    #[test]
    fn names_of_documents_keep_to_the_rules() {
        for (name, want) in [
            (Some("report.pdf"), "report"),
            (Some("Q3 report_(final) [v2].docx"), "Q3 report-(final) [v2]"),
            (Some("a  b\t c"), "a b c"),
            (Some("v1.2 of the plan"), "v1-2 of the plan"),
            (Some("日本語.pdf"), "document"),
            (Some(""), "document"),
            (None, "document"),
        ] {
            assert_eq!(document_name(name), want, "{name:?}");
        }
        assert!(document_name(Some(&"x".repeat(500))).len() < 200);
    }

    #[test]
    fn formats_are_told_by_type_and_by_ending() {
        assert_eq!(format_of(IMAGES, "image/JPG", None), Some("jpeg"));
        assert_eq!(format_of(IMAGES, "", Some("s3://b/a.JPG")), Some("jpeg"));
        assert_eq!(format_of(IMAGES, "image/svg+xml", None), None);
        assert_eq!(format_of(DOCUMENTS, "text/plain; charset=utf-8", None), Some("txt"));
        assert_eq!(
            format_of(DOCUMENTS, "application/octet-stream", Some("a.xlsx")),
            Some("xlsx")
        );
    }
}
