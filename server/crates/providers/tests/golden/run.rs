//! Every place in the grid, once for each run of the tests.

use crate::cells::{Cell, Told, show_error, show_usage};
use crate::diff::{self, Is};
use crate::grid::{
    ANSWERED, CALLER_SECRET, COUNT, EMBEDDINGS, ERRORS, Known, UNKNOWN, UPSTREAM_SECRET, WIRES, asked, caller_file,
    read, read_json, response_file, stream_of,
};
use crate::lost::{self, Whose};
use crate::rules;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;
use switchyard_providers::notes::{Note, Notes};
use switchyard_providers::params::OnUnsupported;
use switchyard_providers::{Call, Encoded, End, FromPath, Origin, Reply, Surface, Takes, Task, Terms, Wire};

/// What the grid looks like along one wire.
#[derive(Clone, Default)]
pub(crate) struct Made {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) faults: Vec<String>,
    pub(crate) requests: BTreeMap<(&'static str, &'static str), Cell>,
    pub(crate) responses: BTreeMap<(&'static str, &'static str), Cell>,
    pub(crate) streams: BTreeMap<(&'static str, &'static str), Cell>,
    /// By error: its kind, and the status that the caller sees.
    pub(crate) errors: BTreeMap<&'static str, (String, u16)>,
    /// What was lost, by surface, and of how many features.
    pub(crate) lost: BTreeMap<(&'static str, String), usize>,
}

/// The run along one wire, made once whoever asks first.
pub(crate) fn of(place: usize) -> Made {
    static MADE: [OnceLock<Made>; WIRES.len()] = [const { OnceLock::new() }; WIRES.len()];
    MADE[place].get_or_init(|| Run::new(&WIRES[place]).run()).clone()
}

/// A panic is a fault of one place, and the others are still looked at.
fn guarded<T>(what: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(what)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panicked: {}", text.unwrap_or("without a word"))
    })
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_000_000)
}

fn terms(on_unsupported: OnUnsupported) -> Terms {
    Terms {
        now: now(),
        on_unsupported,
    }
}

/// What clients send along, credentials of their own above all.
fn client_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("authorization", "Bearer caller-secret"),
        ("x-api-key", CALLER_SECRET),
        ("x-goog-api-key", CALLER_SECRET),
        ("cookie", "session=caller-secret"),
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "context-1m-2025-08-07"),
        ("openai-beta", "responses=experimental"),
        ("user-agent", "client/1.0"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers
}

/// A caller's text of a surface, for a whole answer.
fn asked_for(surface: Surface, feature: &str) -> Option<String> {
    let told_in = match surface {
        Surface::CountTokens => Surface::Messages,
        Surface::GeminiCountTokens => Surface::Generate,
        surface => surface,
    };
    let path = caller_file(told_in, feature);
    let text = String::from_utf8(read(&path)?).unwrap_or_else(|_| panic!("{path} is no UTF-8"));
    if surface.task() != Task::Count {
        return Some(text);
    }
    // What is counted has no limits and no sampling.
    let mut body: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let object = body.as_object_mut()?;
    for only_answered in ["max_tokens", "temperature", "generationConfig"] {
        object.shift_remove(only_answered);
    }
    Some(body.to_string())
}

/// The same for a stream, in one of the places where a client may put the flag.
fn streamed(surface: Surface, text: &str) -> String {
    const OPTIONS: &str = "\"stream_options\": {";
    let text = &text.replacen(OPTIONS, &format!("{OPTIONS}\"include_usage\":true,"), 1);
    let flag = match surface {
        Surface::Generate => return text.clone(),
        _ if text.contains(OPTIONS) => r#""stream":true,"#,
        Surface::Chat | Surface::Completions => r#""stream":true,"stream_options":{"include_usage":true},"#,
        _ => r#""stream":true,"#,
    };
    let brace = text.find('{').expect("an object") + 1;
    format!("{}{flag}{}", &text[..brace], &text[brace..])
}

fn call(surface: Surface, text: &str, stream: bool) -> Result<Call, Error> {
    let path = matches!(surface, Surface::Generate | Surface::GeminiCountTokens).then(|| FromPath {
        model: "m".to_owned(),
        stream,
    });
    let origin = Origin {
        id: "0193f0a0b1c2d3e4f5061728394a5b6c".into(),
        at: 1_764_000_000,
    };
    Call::read(surface, Bytes::copy_from_slice(text.as_bytes()), path, origin)
}

/// A call of this feature, or of a plain one if nobody can ask for it.
pub(crate) fn call_for(surface: Surface, feature: &str, stream: bool) -> Option<Call> {
    let feature = if surface.task() == Task::Count {
        "plain"
    } else {
        feature
    };
    let text = asked_for(surface, feature).or_else(|| asked_for(surface, "plain"))?;
    let text = if stream { streamed(surface, &text) } else { text };
    Some(call(surface, &text, stream).unwrap_or_else(|error| panic!("{} {feature}: {error}", surface.as_str())))
}

fn pretty(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
        Ok(body) => format!("{body:#}\n"),
        Err(error) => format!("no JSON ({error}): {}\n", String::from_utf8_lossy(body)),
    }
}

struct Run {
    known: &'static Known,
    wire: Box<dyn Wire>,
    made: Made,
    /// The notes of whole answers.
    noted: BTreeMap<(&'static str, &'static str), Vec<String>>,
}

impl Run {
    fn new(known: &'static Known) -> Self {
        let wire = guarded(known.make);
        let mut made = Made::default();
        let wire = wire.unwrap_or_else(|why| {
            made.faults.push(format!("{}: {why}", known.name));
            Box::new(Unbuilt)
        });
        let noted = BTreeMap::new();
        Self {
            known,
            wire,
            made,
            noted,
        }
    }

    fn run(mut self) -> Made {
        for surface in Surface::ALL {
            if !self.is_ours(surface) {
                continue;
            }
            self.requests(surface);
            if !self.known.is_twin() {
                self.responses(surface);
                self.streams(surface);
            }
        }
        if !self.known.is_twin() {
            self.errors();
        }
        self.made
    }

    fn takes(&self, surface: Surface) -> Takes {
        guarded(|| self.wire.takes(surface)).unwrap_or(Takes::Not)
    }

    /// The wire takes it, and no other one shows it.
    fn is_ours(&self, surface: Surface) -> bool {
        if self.takes(surface) == Takes::Not {
            return false;
        }
        self.known.only.is_empty()
            || self.known.only.iter().any(|path| {
                let call = call_for(surface, "plain", false);
                let encoded = call.and_then(|call| guarded(|| self.encode(&call, OnUnsupported::Warn)).ok()?.ok());
                encoded.is_some_and(|encoded| encoded.request.uri().path() == *path)
            })
    }

    fn is_native(&self, surface: Surface) -> bool {
        // Completions of a model that has nothing else are relayed, whatever the upstream is said to serve.
        self.takes(surface) == Takes::Native
    }

    fn encode(&self, call: &Call, on_unsupported: OnUnsupported) -> Result<Encoded, Error> {
        let model = self.known.model_for(call.surface);
        self.wire.encode(call, model, &client_headers(), &terms(on_unsupported))
    }

    fn keep(&mut self, surface: Surface, kind: &str, told: Vec<(&'static str, Told)>) {
        let (mut file, name) = (String::new(), format!("{}.{kind}.txt", surface.as_str()));
        for (feature, told) in told {
            writeln!(file, "=== {feature} ===\n{}", told.text).unwrap();
            let place = format!("{} {} {feature} ({kind})", self.known.name, surface.as_str());
            let faults = told.faults.into_iter().map(|fault| format!("{place}: {fault}"));
            self.made.faults.extend(faults);
            for note in told.lost {
                let Note { fate, field, why } = note;
                let colon = if why.is_empty() { "" } else { ": " };
                let said = format!("{} `{field}`{colon}{why}", fate.as_str());
                *self.made.lost.entry((surface.as_str(), said)).or_default() += 1;
            }
            let cells = match kind {
                "requests" => &mut self.made.requests,
                "responses" => &mut self.made.responses,
                _ => &mut self.made.streams,
            };
            cells.insert((surface.as_str(), feature), told.cell);
        }
        if !file.is_empty() {
            self.made.files.insert(name, file);
        }
    }

    // === requests ===

    fn requests(&mut self, surface: Surface) {
        let mut all = Vec::new();
        for feature in asked(surface) {
            let Some(text) = asked_for(surface, feature) else {
                continue;
            };
            let told = guarded(|| self.request(surface, &text)).unwrap_or_else(|why| Told::broken(&why));
            all.push((feature, told));
        }
        self.keep(surface, "requests", all);
    }

    fn request(&self, surface: Surface, text: &str) -> Told {
        let mut told = Told::default();
        let whole = self.request_once(surface, text, false, &mut told);
        if surface.task() == Task::Converse {
            let mut stream = Told::default();
            let streamed_text = streamed(surface, text);
            let streamed = self.request_once(surface, &streamed_text, true, &mut stream);
            told.faults.extend(stream.faults);
            if (whole.is_some(), &told.cell) != (streamed.is_some(), &stream.cell) {
                told.faults.push("a stream is asked for in another way".to_owned());
            }
            write_difference(
                &whole.unwrap_or_default(),
                &streamed.unwrap_or_default(),
                &mut told.text,
            );
        }
        told
    }

    /// What goes up as a text, headers and body; what there is to say of it goes to `told`.
    fn request_once(&self, surface: Surface, text: &str, stream: bool, told: &mut Told) -> Option<String> {
        let call = match call(surface, text, stream) {
            Ok(call) => call,
            Err(error) => {
                told.faults
                    .push(format!("the caller's file is not understood: {error}"));
                return None;
            }
        };
        if let Some(reply) = self.wire.answer_here(&call) {
            told.text = format!("answered here\n{}", pretty(&reply.body));
            told.cell = Cell::of(&reply.notes);
            told.add_notes(&reply.notes);
            return None;
        }
        match self.encode(&call, OnUnsupported::Warn) {
            Ok(encoded) => {
                let sent = self.show_request(&call, &encoded, told);
                told.text.push_str(&sent);
                told.add_notes(&encoded.notes);
                if let Err(error) = self.encode(&call, OnUnsupported::Reject) {
                    write!(told.text, "-- under reject: {}", show_error(&error)).unwrap();
                }
                Some(sent)
            }
            Err(error) => {
                told.cell = Cell::Refused;
                told.text = format!("refused: {}", show_error(&error));
                if error.param.is_none() || error.message.len() < 20 {
                    told.faults.push(format!("a refusal that names no field: {error:?}"));
                }
                None
            }
        }
    }

    fn show_request(&self, call: &Call, encoded: &Encoded, told: &mut Told) -> String {
        let request = &encoded.request;
        let mut out = format!(
            "{} {}\n",
            request.method(),
            request.uri().path_and_query().map_or("", |path| path.as_str())
        );
        let mut shown = Vec::new();
        for (name, value) in request.headers() {
            let said = value.to_str().unwrap_or("(no text)");
            let hidden = value.is_sensitive();
            if said.contains(CALLER_SECRET) || (said.contains(UPSTREAM_SECRET) && !hidden) {
                told.faults.push(format!("a credential shows in {name}"));
            }
            shown.push(format!("{name}: {}", if hidden { "(hidden)" } else { said }));
        }
        shown.sort();
        out.push_str(&shown.join("\n"));
        out.push('\n');
        if request.uri().to_string().contains("secret") {
            told.faults.push("a credential shows in the address".to_owned());
        }
        let again = self.encode(call, OnUnsupported::Warn);
        if again.is_ok_and(|again| again.request.body() != request.body()) {
            told.faults
                .push("the same call gives other bytes the second time".to_owned());
        }
        if self.is_native(call.surface) {
            told.cell = Cell::Native;
            let body = String::from_utf8_lossy(request.body());
            let wanted = natively(call, self.known.model_for(call.surface));
            let taken_out = taken_out(&wanted, &body);
            if body != wanted && taken_out.is_none() {
                told.faults
                    .push(format!("not relayed byte for byte\n{}", diff::show(&wanted, &body)));
            }
            if taken_out.is_some() == encoded.notes.is_empty() {
                let fault = format!("what is taken out is not what is noted: {:?}", encoded.notes);
                told.faults.push(fault);
            }
            out.push_str("(the caller's bytes)\n");
            if let Some(lines) = taken_out {
                writeln!(out, "without\n{lines}").unwrap();
            }
        } else {
            told.cell = Cell::of(&encoded.notes);
            told.faults.extend(lost::silently(
                Whose::Caller,
                &call.body,
                request.body(),
                &encoded.notes,
            ));
            out.push_str(&pretty(request.body()));
        }
        out
    }

    // === answers ===

    /// The files that hold what answers a surface.
    fn answers(surface: Surface) -> Vec<&'static str> {
        match surface.task() {
            Task::Converse => ANSWERED.to_vec(),
            Task::Embed => vec![EMBEDDINGS],
            Task::Count => vec![COUNT],
        }
    }

    fn responses(&mut self, surface: Surface) {
        let mut all = Vec::new();
        for feature in Self::answers(surface) {
            let (Some(body), Some(call)) = (
                read(&response_file(self.known.vendor, feature)),
                self.asked_here(surface, feature),
            ) else {
                continue;
            };
            let told = guarded(|| self.response(&call, &body)).unwrap_or_else(|why| Told::broken(&why));
            self.noted.insert((surface.as_str(), feature), told.noted());
            all.push((feature, told));
        }
        self.keep(surface, "responses", all);
    }

    /// The call that is answered. Not every wire embeds two texts at once.
    fn asked_here(&self, surface: Surface, feature: &str) -> Option<Call> {
        if surface.task() != Task::Embed {
            return call_for(surface, feature, false);
        }
        let mut calls = ["plain", "dimensions"]
            .into_iter()
            .filter_map(|feature| call_for(surface, feature, false));
        calls.find(|call| guarded(|| self.encode(call, OnUnsupported::Warn).is_ok()) == Ok(true))
    }

    fn response(&self, call: &Call, body: &[u8]) -> Told {
        let mut told = Told::default();
        if self.wire.answer_here(call).is_some() {
            told.faults
                .push("answered here, and still there is a file of an answer".to_owned());
        }
        let decode = || {
            self.wire
                .decode(call, self.known.model_for(call.surface), Bytes::copy_from_slice(body))
        };
        let Reply {
            body: made,
            usage,
            notes,
        } = match decode() {
            Ok(reply) => reply,
            Err(error) => {
                told.cell = Cell::Failed(error.kind.as_str());
                told.text = format!("failed: {}", show_error(&error));
                told.faults.push(format!("an answer that is one failed: {error}"));
                return told;
            }
        };
        if decode().is_ok_and(|again| again.body != made) {
            told.faults
                .push("the same answer gives other bytes the second time".to_owned());
        }
        if self.is_native(call.surface) {
            told.cell = Cell::Native;
            let (kept, made) = (nameless(body), nameless(&made));
            if kept != made {
                told.faults
                    .push(format!("not relayed byte for byte\n{}", diff::show(&kept, &made)));
            }
            told.text.push_str("(the upstream's bytes)\n");
        } else {
            told.cell = Cell::of(&notes);
            told.text = pretty(&made);
            told.faults.extend(rules::whole(call.surface, &made));
            told.faults.extend(lost::silently(Whose::Upstream, body, &made, &notes));
        }
        told.text.push_str(&show_usage(usage));
        told.add_notes(&notes);
        told
    }

    // === streams ===

    fn streams(&mut self, surface: Surface) {
        if surface.task() != Task::Converse {
            return;
        }
        let mut all = Vec::new();
        for feature in ANSWERED {
            let (Some(bytes), Some(call)) = (stream_of(self.known.vendor, feature), call_for(surface, feature, true))
            else {
                continue;
            };
            let mut told = guarded(|| self.stream(&call, feature, &bytes)).unwrap_or_else(|why| Told::broken(&why));
            // The vendor's two files hold the same answer.
            let (streamed, whole) = (told.noted(), self.noted.get(&(surface.as_str(), feature)));
            if let Some(whole) = whole.filter(|whole| **whole != streamed) {
                let fault = format!("noted of the whole answer: {whole:?}, and of the stream: {streamed:?}");
                told.faults.push(fault);
            }
            all.push((feature, told));
        }
        self.keep(surface, "streams", all);
    }

    fn stream(&self, call: &Call, feature: &str, bytes: &[u8]) -> Told {
        let mut told = Told::default();
        let whole = self.feed(call, [bytes]);
        let mut compare = |how: &str, fed: Fed| {
            if fed != whole {
                told.faults.push(format!(
                    "fed {how} it is not the same\n{}",
                    diff::show(&whole.show(), &fed.show())
                ));
            }
        };
        compare("byte by byte", self.feed(call, bytes.chunks(1)));
        for seed in 1..=7 {
            compare("in pieces", self.feed(call, pieces(bytes, seed)));
        }
        match whole.ends.as_slice() {
            [End::Complete] => {
                // What a vendor may do tomorrow keeps to no rule of today.
                if !(self.is_native(call.surface) && feature == UNKNOWN) {
                    told.faults.extend(rules::stream(call.surface, &whole.out));
                }
                if !whole.content {
                    told.faults.push("an answer without content".to_owned());
                }
            }
            [End::Failed(error)] => told.faults.push(format!("a stream that is whole failed: {error}")),
            ends => told
                .faults
                .push(format!("a stream ends once, not {} times", ends.len())),
        }
        if self.is_native(call.surface) {
            told.cell = Cell::Native;
            let (kept, made) = (relayed(bytes), relayed(&whole.out));
            if kept != made {
                told.faults
                    .push(format!("not relayed event for event\n{}", diff::show(&kept, &made)));
            }
            told.text.push_str("(the upstream's events)\n");
        } else {
            told.cell = Cell::of(&whole.notes);
            told.text.push_str(&whole.text());
        }
        if let [End::Failed(error)] = whole.ends.as_slice() {
            told.cell = Cell::Failed(error.kind.as_str());
            write!(told.text, "failed: {}", show_error(error)).unwrap();
        }
        told.text.push_str(&show_usage(whole.usage));
        told.add_notes(&whole.notes);
        told
    }

    fn feed<'a>(&self, call: &Call, pieces: impl IntoIterator<Item = &'a [u8]>) -> Fed {
        let mut decoder = self.wire.decoder(call, self.known.model_for(call.surface));
        let mut fed = Fed::default();
        let mut steps: Vec<_> = pieces
            .into_iter()
            .map(|piece| decoder.push(Bytes::copy_from_slice(piece)))
            .collect();
        steps.push(decoder.finish());
        for step in steps {
            fed.out.extend(step.out.iter().flatten());
            fed.content |= step.content;
            fed.ends.extend(step.end);
        }
        fed.usage = decoder.usage();
        fed.notes = decoder.notes().cloned().unwrap_or_default();
        fed
    }

    // === errors ===

    fn errors(&mut self) {
        let mut file = String::new();
        for error in ERRORS {
            let path = format!("vendors/{}/errors/{error}.json", self.known.vendor);
            let Some(said) = read_json(&path) else {
                continue;
            };
            writeln!(file, "=== {error} ===").unwrap();
            let read = guarded(|| self.failed(&said));
            let failed = read.unwrap_or_else(|why| vec![(String::from("broken"), Err(why))]);
            for (how, failed) in failed {
                match failed {
                    Ok(failed) => {
                        self.check_error(&path, &said, &failed);
                        let face = failed.face();
                        let wait = failed
                            .retry_after
                            .map_or_else(|| "-".to_owned(), |wait| format!("{wait:?}"));
                        writeln!(
                            file,
                            "{how}\nkind: {}\nshown as: {} {} {}\nupstream's code: {}\nretry after: {wait}\n{}",
                            failed.kind.as_str(),
                            face.status,
                            face.kind,
                            face.code,
                            failed.upstream_code.as_deref().unwrap_or("-"),
                            failed.message,
                        )
                        .unwrap();
                        self.made
                            .errors
                            .insert(error, (failed.kind.as_str().to_owned(), face.status));
                    }
                    Err(why) => {
                        self.made.faults.push(format!("{path}: {how}: {why}"));
                        writeln!(file, "{how}\nbroken: {why}").unwrap();
                    }
                }
            }
            file.push('\n');
        }
        if !file.is_empty() {
            self.made.files.insert("errors.txt".to_owned(), file);
        }
    }

    fn check_error(&mut self, path: &str, said: &Value, failed: &Error) {
        let mut fault = |what: String| self.made.faults.push(format!("{path}: {what}"));
        let wanted = said["kind"].as_str().unwrap_or_default();
        if failed.kind.as_str() != wanted {
            fault(format!("the kind is {}, and should be {wanted}", failed.kind.as_str()));
        }
        if let Some(message) = message_of(&said["body"]).filter(|message| !failed.message.contains(*message)) {
            fault(format!(
                "the vendor's message is lost\n- {message}\n+ {}",
                failed.message
            ));
        }
    }

    /// The same error in each way in which it comes.
    fn failed(&self, said: &Value) -> Vec<(String, Result<Error, String>)> {
        let status = said["status"]
            .as_u64()
            .and_then(|status| u16::try_from(status).ok())
            .unwrap_or(200);
        let body = match &said["body"] {
            Value::Null => None,
            Value::String(text) => Some(text.clone().into_bytes()),
            body => Some(body.to_string().into_bytes()),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in said["headers"].as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            headers.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let mut failed = Vec::new();
        if status != 200 {
            let status = StatusCode::from_u16(status).unwrap();
            let error = self
                .wire
                .failure(status, &headers, body.as_deref().unwrap_or_default(), now());
            failed.push((format!("under {status}"), Ok(error)));
        }
        for surface in Surface::ALL {
            if !self.is_ours(surface) || surface.task() != Task::Converse {
                continue;
            }
            let place = surface.as_str();
            if let (200, Some(body), Some(call)) = (status, &body, call_for(surface, "plain", false)) {
                let decoded = self.wire.decode(&call, self.known.model, Bytes::copy_from_slice(body));
                let said =
                    decoded.map(|reply| format!("taken for an answer: {}", String::from_utf8_lossy(&reply.body)));
                failed.push((format!("under 200, to {place}"), swapped(said)));
            }
            let stream = match &said["stream"] {
                Value::String(text) => Some(text.clone().into_bytes()),
                events @ Value::Array(_) => Some(crate::frames::stream(events)),
                _ => None,
            };
            if let (Some(stream), Some(call)) = (stream, call_for(surface, "plain", true)) {
                let fed = self.feed(&call, [stream.as_slice()]);
                let said = match fed.ends.as_slice() {
                    [End::Failed(error)] => Ok(error.clone()),
                    ends => Err(format!("taken for an answer: {ends:?} {}", fed.text())),
                };
                failed.push((format!("in a stream, to {place}"), said));
            }
        }
        // Mostly it is the same for every surface, and is told once.
        let mut told: Vec<(String, Result<Error, String>)> = Vec::new();
        for (how, error) in failed {
            match told.iter_mut().find(|(_, known)| *known == error) {
                Some((known, _)) => write!(known, "; {how}").unwrap(),
                None => told.push((how, error)),
            }
        }
        told
    }
}

fn swapped(said: Result<String, Error>) -> Result<Error, String> {
    match said {
        Ok(said) => Err(said),
        Err(error) => Ok(error),
    }
}

/// The first message in a vendor's words.
fn message_of(body: &Value) -> Option<&str> {
    match body {
        Value::Object(object) => {
            let named = ["message", "Message"]
                .iter()
                .find_map(|name| object.get(*name)?.as_str());
            named.or_else(|| object.values().find_map(message_of))
        }
        Value::Array(items) => items.iter().find_map(message_of),
        _ => None,
    }
}

/// How the request for a stream differs from that for a whole answer.
fn write_difference(whole: &str, streamed: &str, out: &mut String) {
    if whole == streamed {
        return;
    }
    out.push_str("-- as a stream\n");
    for (is, line) in diff::lines(whole, streamed) {
        let mark = match is {
            Is::Same => continue,
            Is::Gone => '-',
            Is::New => '+',
        };
        writeln!(out, "{mark} {line}").unwrap();
    }
}

/// What must go up where the dialect is the same, made in the plainest way.
fn natively(call: &Call, model: &str) -> String {
    let body = std::str::from_utf8(&call.body).unwrap();
    if matches!(call.surface, Surface::Generate | Surface::GeminiCountTokens) {
        return body.to_owned();
    }
    let at = body.find("\"model\"").expect("a model") + "\"model\"".len();
    let (before, after) = body.split_at(at);
    format!("{before}{}", after.replacen("\"m\"", &format!("\"{model}\""), 1))
}

/// The one thing that is taken out of what is relayed: what another vendor has sealed, with what it stands in.
fn taken_out(wanted: &str, made: &str) -> Option<String> {
    const MARK: &str = "\"sy.";
    let lines = diff::lines(wanted, made);
    let gone: Vec<&str> = lines
        .iter()
        .filter(|(is, _)| *is == Is::Gone)
        .map(|(_, line)| *line)
        .collect();
    let gone = gone.join("\n");
    let is_all = lines.iter().all(|(is, _)| *is != Is::New) && !made.contains(MARK) && gone.contains(MARK);
    (wanted != made && is_all).then_some(gone)
}

/// A JSON text without the names of models: they are what may differ.
fn nameless(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let (mut out, mut rest) = (String::new(), text.as_ref());
    while let Some((at, key)) = ["\"model\"", "\"modelVersion\""]
        .into_iter()
        .filter_map(|key| Some((rest.find(key)?, key)))
        .min()
    {
        let (before, after) = rest.split_at(at + key.len());
        out.push_str(before);
        rest = after;
        let value = after.trim_start_matches([' ', ':']);
        if let Some(end) = value.strip_prefix('"').and_then(|value| value.find('"')) {
            out.push_str(&after[..after.len() - value.len()]);
            out.push_str("(a model)");
            rest = &value[end + 2..];
        }
    }
    out.push_str(rest);
    out
}

/// The events of a stream that is relayed, without the names of models. Pings are the gateway's own to send.
fn relayed(stream: &[u8]) -> String {
    let mut out = String::new();
    let events = rules::events(stream).into_iter();
    for event in events.filter(|event| event.name.as_deref() != Some("ping")) {
        writeln!(
            out,
            "{}\t{}",
            event.name.unwrap_or_default(),
            nameless(event.data.as_bytes())
        )
        .unwrap();
    }
    out
}

/// Cuts at random, the same way every time.
fn pieces(bytes: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (mut rest, mut pieces) = (bytes, Vec::new());
    while !rest.is_empty() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Mostly short, at times long.
        let most = if state & 0x70 == 0 { 700 } else { 40 };
        let length = usize::try_from((state >> 32) % most).unwrap_or_default() + 1;
        let (piece, after) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// What came of a stream.
#[derive(Default, PartialEq)]
struct Fed {
    out: Vec<u8>,
    content: bool,
    ends: Vec<End>,
    usage: Usage,
    notes: Notes,
}

impl Fed {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    fn show(&self) -> String {
        format!(
            "{}\n{}{:?}\n{:?}\ncontent: {}",
            self.text(),
            show_usage(self.usage),
            self.ends,
            self.notes,
            self.content
        )
    }
}

/// Stands where no wire could be made.
struct Unbuilt;

impl Wire for Unbuilt {
    fn kind(&self) -> switchyard_providers::params::WireKind {
        unreachable!("it takes nothing")
    }

    fn takes(&self, _surface: Surface) -> Takes {
        Takes::Not
    }

    fn encode(&self, _call: &Call, _model: &str, _client: &HeaderMap, _terms: &Terms) -> Result<Encoded, Error> {
        unreachable!("it takes nothing")
    }

    fn list_models(&self) -> Option<http::Request<Bytes>> {
        None
    }

    fn decode(&self, _call: &Call, _model: &str, _body: Bytes) -> Result<Reply, Error> {
        unreachable!("it takes nothing")
    }

    fn decoder(&self, _call: &Call, _model: &str) -> Box<dyn switchyard_providers::StreamDecoder> {
        unreachable!("it takes nothing")
    }

    fn failure(&self, _status: StatusCode, _headers: &HeaderMap, _body: &[u8], _now: SystemTime) -> Error {
        unreachable!("it takes nothing")
    }
}
