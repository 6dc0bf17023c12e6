//! What the caller calls what it wrote.
//!
//! A note or a refusal is of use to whoever wrote the request, so it names the caller's own field, whatever wire the request
//! goes to: the same turn is `messages[2]` here and `contents[1]` there, and the arguments of a call have a name in each
//! dialect. Where a message or a tool stands its reader has told (`at`); what is inside of it is found here.

use crate::Surface;
use crate::ir::{Message, Tool};

/// Something of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    /// The message itself.
    Message,
    Name,
    Role,
    /// All of what it says,
    Content,
    /// and one piece of it.
    Part,
    Image,
    Detail,
    File,
    /// What a file is called.
    Title,
    /// What is said about a file.
    Context,
    /// That a file is to be cited.
    Cite,
    Audio,
    /// Where something that was said is from.
    Citations,
    Refusal,
    Thought,
    /// What the vendor wants to see again with a thought,
    Seal,
    /// and with a call.
    CallSeal,
    CallId,
    Arguments,
    Result,
    IsError,
    Cache,
}

impl Thing {
    /// Its path within the message.
    const fn inside(self, surface: Surface) -> &'static str {
        match surface {
            // A prompt is a text, or a few.
            Surface::Completions | Surface::Embeddings => "",
            Surface::Chat => self.in_chat(),
            Surface::Responses => self.in_responses(),
            Surface::Messages | Surface::CountTokens => self.in_messages(),
            Surface::Generate | Surface::GeminiCountTokens => self.in_contents(),
        }
    }

    const fn in_chat(self) -> &'static str {
        match self {
            Self::Message => "",
            Self::Name => ".name",
            Self::Role => ".role",
            Self::Content | Self::Result | Self::IsError => ".content",
            Self::Part => ".content[]",
            Self::Image => ".content[].image_url",
            Self::Detail => ".content[].image_url.detail",
            Self::File | Self::Context | Self::Cite => ".content[].file",
            Self::Title => ".content[].file.filename",
            Self::Audio => ".content[].input_audio",
            Self::Citations => ".annotations",
            Self::Refusal => ".refusal",
            Self::Thought => ".reasoning_content",
            Self::Seal => ".reasoning_details[].signature",
            Self::CallSeal => ".tool_calls[].extra_content.google.thought_signature",
            Self::CallId => ".tool_calls[].id",
            Self::Arguments => ".tool_calls[].function.arguments",
            Self::Cache => ".content[].cache_control",
        }
    }

    /// Calls, results and thoughts are items here, as messages are.
    const fn in_responses(self) -> &'static str {
        match self {
            Self::Message | Self::Thought => "",
            Self::Name => ".name",
            Self::Role => ".role",
            Self::Content => ".content",
            Self::Part => ".content[]",
            Self::Image => ".content[].image_url",
            Self::Detail => ".content[].detail",
            Self::File | Self::Context | Self::Cite => ".content[].file_data",
            Self::Title => ".content[].filename",
            Self::Audio => ".content[].input_audio",
            Self::Citations => ".content[].annotations",
            Self::Refusal => ".content[].refusal",
            Self::Seal | Self::CallSeal => ".encrypted_content",
            Self::CallId => ".call_id",
            Self::Arguments => ".arguments",
            Self::Result | Self::IsError => ".output",
            Self::Cache => ".content[].cache_control",
        }
    }

    const fn in_messages(self) -> &'static str {
        match self {
            Self::Message => "",
            Self::Name => ".name",
            Self::Role => ".role",
            Self::Content => ".content",
            Self::Part | Self::Refusal => ".content[]",
            Self::Image | Self::Detail | Self::File | Self::Audio => ".content[].source",
            Self::Title => ".content[].title",
            Self::Context => ".content[].context",
            Self::Cite | Self::Citations => ".content[].citations",
            Self::Thought => ".content[].thinking",
            Self::Seal | Self::CallSeal => ".content[].signature",
            Self::CallId => ".content[].id",
            Self::Arguments => ".content[].input",
            Self::Result => ".content[].content",
            Self::IsError => ".content[].is_error",
            Self::Cache => ".content[].cache_control",
        }
    }

    const fn in_contents(self) -> &'static str {
        match self {
            Self::Message => "",
            Self::Name => ".name",
            Self::Role => ".role",
            Self::Content => ".parts",
            Self::Part | Self::Context | Self::Cite | Self::Citations | Self::Refusal | Self::Cache => ".parts[]",
            Self::Image | Self::Detail | Self::File | Self::Audio => ".parts[].inlineData",
            Self::Title => ".parts[].inlineData.displayName",
            Self::Thought => ".parts[].thought",
            Self::Seal | Self::CallSeal => ".parts[].thoughtSignature",
            Self::CallId => ".parts[].functionCall.id",
            Self::Arguments => ".parts[].functionCall.args",
            Self::Result | Self::IsError => ".parts[].functionResponse.response",
        }
    }
}

/// What the caller's dialect calls the list of messages.
pub(crate) const fn list(surface: Surface) -> &'static str {
    match surface {
        Surface::Chat | Surface::Messages | Surface::CountTokens => "messages",
        Surface::Completions => "prompt",
        Surface::Embeddings | Surface::Responses => "input",
        Surface::Generate | Surface::GeminiCountTokens => "contents",
    }
}

/// Where a message stands: `messages[2]`.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    surface: Surface,
    at: String,
}

impl Spot {
    /// Of a message that nobody has shown yet.
    pub(crate) fn anywhere(surface: Surface) -> Self {
        let at = match surface {
            Surface::Completions | Surface::Embeddings => list(surface).to_owned(),
            _ => format!("{}[]", list(surface)),
        };
        Self { surface, at }
    }

    pub(crate) fn of(message: &Message, surface: Surface) -> Self {
        match message.at.path() {
            Some(at) => Self {
                surface,
                at: at.to_owned(),
            },
            None => Self::anywhere(surface),
        }
    }

    pub(crate) fn name(&self, thing: Thing) -> String {
        // What the system says beside the messages is a text, or a list of parts.
        let is_beside = matches!(self.at.as_str(), "system" | "instructions");
        let inside = thing.inside(self.surface);
        let inside = if is_beside {
            inside.strip_prefix(".content").unwrap_or(inside)
        } else {
            inside
        };
        format!("{}{inside}", self.at)
    }
}

/// Something of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfTool {
    Tool,
    Parameters,
    Strict,
    Cache,
}

/// What the caller calls a tool, or something of it.
pub(crate) fn tool(tool: &Tool, index: usize, surface: Surface, what: OfTool) -> String {
    let at = tool
        .at
        .path()
        .map_or_else(|| crate::notes::item("tools", index), str::to_owned);
    // The older surface has functions, without a wrapper.
    let function = if surface == Surface::Chat && at.starts_with("tools") {
        ".function"
    } else {
        ""
    };
    match (what, surface) {
        (OfTool::Tool, _) => at,
        (OfTool::Cache, _) => at + ".cache_control",
        (OfTool::Strict, _) => at + function + ".strict",
        (OfTool::Parameters, Surface::Messages | Surface::CountTokens) => at + ".input_schema",
        (OfTool::Parameters, _) => at + function + ".parameters",
    }
}

/// What the caller calls something of the format that it wants its answer in: `name`, `description` or `schema`.
pub(crate) fn of_format(surface: Surface, what: &str) -> String {
    match surface {
        Surface::Generate | Surface::GeminiCountTokens => "generationConfig.responseSchema".to_owned(),
        Surface::Messages | Surface::CountTokens => format!("output_config.format.{what}"),
        Surface::Responses => format!("text.format.{what}"),
        _ => format!("response_format.json_schema.{what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{OfTool, Spot, Thing, tool};
    use crate::{Call, FromPath, Origin, Surface};
    use bytes::Bytes;

    fn prompt(surface: Surface, body: &'static str) -> crate::ir::Prompt {
        let path = (surface == Surface::Generate).then(|| FromPath {
            model: "m".to_owned(),
            stream: false,
        });
        let call = Call::read(surface, Bytes::from_static(body.as_bytes()), path, Origin::default()).unwrap();
        std::sync::Arc::unwrap_or_clone(call.prompt().unwrap())
    }

    #[test]
    fn messages_are_called_as_the_caller_counts_them() {
        for (surface, body, want) in [
            (
                Surface::Chat,
                r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"r"}]}"#,
                vec![
                    "messages[0].content",
                    "messages[1].content",
                    "messages[2].content",
                    "messages[3].content",
                ],
            ),
            (
                Surface::Messages,
                r#"{"model":"m","max_tokens":9,"system":"s","messages":[{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"},{"type":"text","text":"t"}]}]}"#,
                vec![
                    "system",
                    "messages[0].content",
                    "messages[1].content",
                    "messages[2].content",
                    "messages[2].content",
                ],
            ),
            (
                Surface::Generate,
                r#"{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"role":"user","parts":[{"text":"u"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}},{"text":"t"}]}]}"#,
                vec![
                    "systemInstruction.parts",
                    "contents[0].parts",
                    "contents[1].parts",
                    "contents[2].parts",
                    "contents[2].parts",
                ],
            ),
            (
                Surface::Responses,
                r#"{"model":"m","instructions":"s","input":[{"role":"user","content":"u"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call","call_id":"b","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"r"},{"role":"user","content":"t"}]}"#,
                // Items that are one turn of the model have no place of their own.
                vec![
                    "instructions",
                    "input[0].content",
                    "input[].content",
                    "input[3].content",
                    "input[4].content",
                ],
            ),
            (Surface::Completions, r#"{"model":"m","prompt":"p"}"#, vec!["prompt"]),
        ] {
            let prompt = prompt(surface, body);
            let named = |message| Spot::of(message, surface).name(Thing::Content);
            assert_eq!(prompt.messages.iter().map(named).collect::<Vec<_>>(), want, "{body}");
        }
    }

    #[test]
    fn tools_are_called_as_the_caller_counts_them() {
        for (surface, body, want) in [
            (
                Surface::Chat,
                r#"{"model":"m","messages":[{"role":"user","content":"u"}],"functions":[{"name":"g"}],"tools":[{"type":"function","function":{"name":"f"}}]}"#,
                ["functions[0].parameters", "tools[0].function.parameters"],
            ),
            (
                Surface::Generate,
                r#"{"contents":[{"parts":[{"text":"u"}]}],"tools":[{"functionDeclarations":[{"name":"f"},{"name":"g"}]}]}"#,
                [
                    "tools[0].functionDeclarations[0].parameters",
                    "tools[0].functionDeclarations[1].parameters",
                ],
            ),
            (
                Surface::Messages,
                r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"u"}],"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"g","input_schema":{"type":"object"}}]}"#,
                ["tools[0].input_schema", "tools[1].input_schema"],
            ),
            (
                Surface::Responses,
                r#"{"model":"m","input":"u","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}]}"#,
                ["tools[0].parameters", "tools[1].parameters"],
            ),
        ] {
            let prompt = prompt(surface, body);
            let named = |(index, one)| tool(one, index, surface, OfTool::Parameters);
            assert_eq!(
                prompt.tools.iter().enumerate().map(named).collect::<Vec<_>>(),
                want,
                "{body}"
            );
        }
    }
}
