//! Bedrock's Converse. A back only.
//!
//! Users and models take turns here, and nobody else speaks: results of tools are the user's, what the system says stands in
//! front, and two messages of one role in a row are one. A model that lacks something refuses the whole request, so what
//! is known of its family decides what is written.

mod answer;
mod content;
mod options;
mod stream;
#[cfg(test)]
mod tests;

use super::common::{Letters, Tools, in_words};
use super::model::Model;
use crate::codec::{Ask, Back, Reader};
use crate::ir::{Answer, Message, Part, Prompt, Role};
use crate::names::{Spot, Thing};
use crate::notes::Notes;
use crate::{Call, Origin};
use content::Content;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use switchyard_core::error::{Error, Kind};

/// What Bedrock takes for the name of a tool.
const LETTERS: Letters = Letters::WithHyphens;

/// The longest id of a call.
const LONGEST_ID: usize = 64;

/// Bedrock's Converse.
#[derive(Debug, Default)]
pub(crate) struct Converse {
    /// Those of the request that is answered.
    tools: Arc<Tools>,
}

impl Converse {
    /// For the answer to a call.
    pub(super) fn answering(call: &Call) -> Self {
        Self {
            tools: Arc::new(Tools::of(call, LETTERS)),
        }
    }
}

impl Back for Converse {
    fn write(&self, prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
        let model = Model::of(ask.model);
        let mut turns = Turns::new(ask, &model, notes);
        for message in &prompt.messages {
            turns.add(message)?;
        }
        let (mut system, messages) = turns.finish();
        let options = options::Options::new(prompt, ask, &model, &messages);
        let tools = options.tools(notes);
        let (inference, additional) = options.inference(notes);
        let output = options.output(notes);
        let (metadata, tier) = (options.metadata(notes), options.service_tier(notes));
        // In words only where it could not be said otherwise.
        if let Some(words) = prompt.format.as_ref().filter(|_| output.is_none()).and_then(in_words) {
            system.push(json!({ "text": words }));
        }
        // Which text it was that ended the answer is told by this alone.
        let asks_which = model.is_claude() && !prompt.sampling.stop.is_empty();
        let fields = [
            ("system", (!system.is_empty()).then_some(Value::Array(system))),
            ("messages", Some(Value::Array(messages))),
            ("inferenceConfig", inference),
            ("toolConfig", tools),
            ("additionalModelRequestFields", additional),
            (
                "additionalModelResponseFieldPaths",
                asks_which.then(|| json!(["/stop_sequence"])),
            ),
            ("outputConfig", output),
            ("requestMetadata", metadata),
            ("serviceTier", tier),
        ];
        let given = fields
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let body: Map<String, Value> = given.collect();
        serde_json::to_vec(&body).map_err(|error| Error::new(Kind::Internal, error.to_string()))
    }

    fn read(&self, body: &[u8], origin: &Origin) -> Result<Answer, Error> {
        answer::read(body, &self.tools, origin)
    }

    fn reader(&self, origin: &Origin) -> Box<dyn Reader> {
        Box::new(stream::ConverseReader::new(Arc::clone(&self.tools), origin))
    }
}

/// One side's turn.
struct Turn {
    role: &'static str,
    content: Vec<Value>,
}

struct Turns<'a> {
    content: Content<'a>,
    system: Vec<Value>,
    turns: Vec<Turn>,
}

impl<'a> Turns<'a> {
    fn new(ask: &Ask<'_>, model: &'a Model, notes: &'a mut Notes) -> Self {
        Self {
            content: Content::new(ask.surface, model, notes),
            system: Vec::new(),
            turns: Vec::new(),
        }
    }

    fn add(&mut self, message: &Message) -> Result<(), Error> {
        self.content.spot = Spot::of(message, self.content.surface);
        if message.name.is_some() {
            let field = self.content.spot.name(Thing::Name);
            self.content.notes.dropped(field, "nobody has a name there");
        }
        let role = match message.role {
            Role::System | Role::Developer => return self.add_system(message),
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
        };
        let mut blocks = Vec::new();
        for part in &message.parts {
            self.content.part(part, role, &mut blocks)?;
        }
        match self.turns.last_mut() {
            // Another turn of the same side is more of that one.
            Some(turn) if turn.role == role => turn.content.append(&mut blocks),
            _ if blocks.is_empty() => {}
            _ => self.turns.push(Turn { role, content: blocks }),
        }
        Ok(())
    }

    fn add_system(&mut self, message: &Message) -> Result<(), Error> {
        if !self.turns.is_empty() {
            let why = "what the system says in between stands in front there";
            let field = self.content.spot.name(Thing::Role);
            self.content.notes.approximated(field, why);
        }
        for part in &message.parts {
            match part {
                Part::Text { .. } => self.content.part(part, "system", &mut self.system)?,
                _ => {
                    let field = self.content.spot.name(Thing::Part);
                    let message = format!(
                        "`{field}`: Bedrock takes nothing but text from the system; put what else there is into a message \
                         of the user"
                    );
                    return Err(Error::new(Kind::Unsupported, message).with_param(field));
                }
            }
        }
        Ok(())
    }

    /// What the system says, and the turns.
    fn finish(mut self) -> (Vec<Value>, Vec<Value>) {
        for turn in &mut self.turns {
            let has = |kind: &str| turn.content.iter().any(|block| block.get(kind).is_some());
            if turn.role == "user" && has("document") && !has("text") {
                // Bedrock wants a text beside every document.
                turn.content.push(json!({"text": "See the document."}));
                self.content.notes.approximated(
                    Spot::anywhere(self.content.surface).name(Thing::Content),
                    "a text was added: documents need one there",
                );
            }
        }
        if let Some(last) = self.turns.last_mut().filter(|turn| turn.role == "assistant") {
            // A model of Anthropic's does not carry on behind a space.
            let text = last.content.last_mut().and_then(|block| block.get_mut("text"));
            if let Some(Value::String(text)) = text.filter(|_| self.content.model.may_be_claude()) {
                let length = text.trim_end().len();
                if length < text.len() {
                    text.truncate(length);
                    let why = "without the space at its end, behind which the model does not carry on";
                    let field = self.content.spot.name(Thing::Content);
                    self.content.notes.approximated(field, why);
                }
            }
        }
        let turn = |turn: Turn| json!({"role": turn.role, "content": turn.content});
        (self.system, self.turns.into_iter().map(turn).collect())
    }
}
