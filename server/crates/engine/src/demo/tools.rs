//! Deciding whether to call a tool, and with what.
//!
//! The simulated model calls when it must (`tool_choice` says so) or when the last user message sounds like it: names
//! the function, says "call" or "use the … tool", or shares words with the function's name and description. A
//! conversation that ends with a tool's result is answered with text, even under `tool_choice: "required"`: a demo
//! should come to an end rather than call for ever.

use super::{
    fields::Fields,
    refusal::Refusal,
    request::ChatRequest,
    schema::Filler,
    text::{Dice, fingerprint, topics},
};
use serde_json::Value;

/// An offered function.
pub(super) struct Tool {
    name: String,
    description: String,
    /// JSON schema of its arguments.
    parameters: Value,
}

pub(super) enum ToolChoice {
    Auto,
    None,
    Required,
    /// One of the request's tools, by name.
    Named(String),
}

/// A call that the answer makes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// A JSON object, unless `max_tokens` has cut it.
    pub(super) arguments: String,
}

impl Tool {
    /// Tools that are no functions are left aside: nothing here could call them.
    pub(super) fn parse_all(fields: &Fields<'_>) -> Result<Vec<Self>, Refusal> {
        let mut tools = Vec::new();
        for (nth, tool) in fields.array("tools")?.into_iter().flatten().enumerate() {
            let tool = Fields::of(tool, format!("tools[{nth}]"))?;
            if tool.required_string("type")? != "function" {
                continue;
            }
            let function = tool
                .object("function")?
                .ok_or_else(|| Refusal::missing(tool.path_of("function")))?;
            function.object("parameters")?;
            tools.push(Self {
                name: function.required_string("name")?.to_owned(),
                description: function.string("description")?.unwrap_or_default().to_owned(),
                parameters: function.get("parameters").cloned().unwrap_or(Value::Null),
            });
        }
        Ok(tools)
    }

    /// Whether the message, in lower case, names this function in full.
    fn is_named_in(&self, message: &str) -> bool {
        let name = self.name.to_lowercase();
        message.contains(&name) || message.contains(&name.replace(['_', '-', '.'], " "))
    }

    /// How much the message sounds like this function: two words of its description suffice, or one of its name.
    fn affinity(&self, message: &str) -> usize {
        let says = |word: &&str| contains_word(message, &word.to_lowercase());
        let name_parts = self.name.split(['_', '-', '.']).filter(|part| part.len() > 3);
        2 * name_parts.filter(says).count() + topics(&self.description).iter().filter(|word| says(word)).count()
    }
}

impl ToolChoice {
    pub(super) fn parse(fields: &Fields<'_>, tools: &[Tool]) -> Result<Self, Refusal> {
        let choice = match fields.get("tool_choice") {
            None => return Ok(Self::Auto),
            Some(Value::String(mode)) => match mode.as_str() {
                "auto" => return Ok(Self::Auto),
                "none" => return Ok(Self::None),
                "required" if !tools.is_empty() => return Ok(Self::Required),
                "required" => return Err(bad_choice("needs 'tools' to choose from")),
                _ => return Err(bad_choice("must be 'auto', 'none', 'required' or a function")),
            },
            Some(Value::Object(_)) => fields.object("tool_choice")?,
            Some(_) => return Err(Refusal::wrong_type("tool_choice".to_owned(), "a string or an object")),
        };
        let Some(function) = choice.map(|choice| choice.object("function")).transpose()?.flatten() else {
            // `allowed_tools` and kinds that are yet to come leave the choice open.
            return Ok(Self::Auto);
        };
        let name = function.required_string("name")?;
        if tools.iter().any(|tool| tool.name == name) {
            Ok(Self::Named(name.to_owned()))
        } else {
            Err(bad_choice("names a function that is not among 'tools'"))
        }
    }
}

fn bad_choice(problem: &str) -> Refusal {
    Refusal::bad_value("tool_choice".to_owned(), problem)
}

/// The calls that the answer to `request` consists of; none when it is to be text. `seed` gives the calls their ids.
pub(super) fn calls(request: &ChatRequest, seed: u64) -> Vec<Call> {
    if request.tool_result().is_some() {
        return Vec::new();
    }
    let message = request.last_user_text();
    let mut dice = Dice::new(seed ^ fingerprint("calls"));
    let chosen = chosen(request, &message.to_lowercase());
    let call = |tool: &Tool| Call {
        id: format!("call_{:016x}", dice.next()),
        name: tool.name.clone(),
        arguments: Filler::new(&tool.parameters, message).object().to_string(),
    };
    chosen.into_iter().map(call).collect()
}

fn chosen<'a>(request: &'a ChatRequest, message: &str) -> Vec<&'a Tool> {
    let tools = &request.tools;
    let likeliest = || {
        tools
            .iter()
            .rev()
            .max_by_key(|tool| (tool.is_named_in(message), tool.affinity(message)))
    };
    match &request.tool_choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Named(name) => tools.iter().filter(|tool| tool.name == *name).take(1).collect(),
        ToolChoice::Required => likeliest().into_iter().collect(),
        ToolChoice::Auto => {
            let most = if request.parallel_tool_calls { tools.len() } else { 1 };
            let named: Vec<_> = tools
                .iter()
                .filter(|tool| tool.is_named_in(message))
                .take(most)
                .collect();
            if !named.is_empty() {
                return named;
            }
            let asked = contains_word(message, "call") || contains_word(message, "tool");
            likeliest()
                .filter(|tool| asked || tool.affinity(message) >= 2)
                .into_iter()
                .collect()
        }
    }
}

fn contains_word(message: &str, word: &str) -> bool {
    message
        .split(|char: char| !char.is_alphanumeric())
        .any(|candidate| candidate == word)
}
