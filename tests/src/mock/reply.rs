//! What the mock says to one request: [`Content`], and how it comes.
//!
//! The two are apart so that they combine: any content can be late, slow, held at a gate, or broken off. In JSON a
//! reply is one flat object, `kind` names the content and everything that is left out has its default:
//!
//! ```json
//! {"kind": "chat", "text": "one two three", "delay_ms": 20, "ending": {"after": 2, "how": "reset"}}
//! ```

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One answer. Made by [`Reply::chat`] and its siblings, refined by the methods that follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    #[serde(flatten)]
    pub content: Content,
    /// The `model` that the answer names; the request's own when absent.
    #[serde(default)]
    pub model: Option<String>,
    /// Added to the answer's own, and in place of those of the same name.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The `retry-after` header.
    #[serde(default)]
    pub retry_after: Option<String>,
    /// Before the head.
    #[serde(default)]
    pub head_delay_ms: u64,
    /// Name of a gate before the head.
    #[serde(default)]
    pub head_gate: Option<String>,
    /// Before each content chunk.
    #[serde(default)]
    pub delay_ms: u64,
    /// Name of a gate before each content chunk.
    #[serde(default)]
    pub gate: Option<String>,
    /// Ends the body early.
    #[serde(default)]
    pub ending: Option<Ending>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// A chat answer: a stream, one chunk a word, when the request has `stream: true`; else one object.
    Chat {
        text: String,
        #[serde(default)]
        usage: Usage,
        #[serde(default)]
        report: Report,
    },
    /// The same with tool calls. A stream has a chunk for each name and two for each call's arguments.
    Tools {
        calls: Vec<Call>,
        #[serde(default)]
        usage: Usage,
        #[serde(default)]
        report: Report,
    },
    /// Whatever a turn can have, in the wire that the path belongs to; the vendor refuses what its documentation forbids.
    Says {
        #[serde(default)]
        reasoning: Option<String>,
        #[serde(default)]
        text: String,
        #[serde(default)]
        calls: Vec<Call>,
        #[serde(default)]
        usage: Usage,
    },
    /// These bytes, split like this.
    Raw {
        status: u16,
        chunks: Vec<Chunk>,
    },
    /// An error in OpenAI's shape. A `status` of 200 makes it an error that claims success.
    Error {
        status: u16,
        message: String,
        #[serde(default = "Content::default_error_type")]
        error_type: String,
        #[serde(default)]
        code: Option<String>,
        #[serde(default)]
        param: Option<String>,
    },
    /// JSON that breaks off; in a stream, one such event and then `[DONE]`.
    MalformedJson,
    /// A chat answer with bytes in its text that are not UTF-8.
    BadUtf8,
    /// Never answers.
    Hang,
    /// Breaks the connection instead of answering.
    Abort {
        how: Cut,
    },
    Embeddings {
        #[serde(default = "Content::default_dimensions")]
        dimensions: usize,
    },
    Models {
        ids: Vec<String>,
    },
}

/// Tokens that an answer reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    pub prompt: u64,
    /// One for each content chunk when absent.
    pub completion: Option<u64>,
    /// `prompt_tokens_details.cached_tokens`.
    pub cached: u64,
}

/// When usage is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// As OpenAI does: always in one object; in a stream only with `stream_options.include_usage`, then `null` in each
    /// chunk and figures in a last one whose `choices` are empty.
    #[default]
    AsAsked,
    /// In a stream even unasked, as some vendors do.
    Always,
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub id: String,
    pub name: String,
    /// JSON, as text.
    pub arguments: String,
}

/// Bytes of a raw body: in JSON a string, or an array of numbers where they are no text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Chunk {
    Text(String),
    Bytes(Vec<u8>),
}

/// Where a body ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// After so many content chunks. A role alone is none; a body that is no stream is two halves when it has an
    /// ending. With as many as there are, what is lost is the rest: the finish chunk, the usage, `[DONE]`.
    pub after: usize,
    pub how: Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Nothing more comes, and the connection stays open.
    Stall,
    /// The connection is reset.
    Reset,
    /// The connection is closed in the middle of the body.
    Close,
    /// The body ends as if it were complete.
    End,
    /// An error event comes, then the body ends. Before the head it is the same as `Close`.
    ErrorEvent,
}

// === impl Reply ===

impl Reply {
    #[must_use]
    pub fn new(content: Content) -> Self {
        Self {
            content,
            model: None,
            headers: Vec::new(),
            retry_after: None,
            head_delay_ms: 0,
            head_gate: None,
            delay_ms: 0,
            gate: None,
            ending: None,
        }
    }

    #[must_use]
    pub fn chat(text: impl Into<String>) -> Self {
        Self::new(Content::Chat {
            text: text.into(),
            usage: Usage::default(),
            report: Report::default(),
        })
    }

    /// A turn with reasoning, text and calls, each of which may be nothing.
    #[must_use]
    pub fn says<'a>(reasoning: Option<&str>, text: &str, calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let Content::Tools { calls, .. } = Self::tools(calls).content else {
            unreachable!("it was just made")
        };
        Self::new(Content::Says {
            reasoning: reasoning.map(str::to_owned),
            text: text.to_owned(),
            calls,
            usage: Usage::default(),
        })
    }

    /// Calls as `(name, arguments)`; their ids are `call_0`, `call_1`, …
    #[must_use]
    pub fn tools<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let call = |(nth, (name, arguments)): (usize, (&str, Value))| Call {
            id: format!("call_{nth}"),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        };
        let calls = calls.into_iter().enumerate().map(call).collect();
        Self::new(Content::Tools {
            calls,
            usage: Usage::default(),
            report: Report::default(),
        })
    }

    #[must_use]
    pub fn raw<T: Into<Chunk>>(status: u16, chunks: impl IntoIterator<Item = T>) -> Self {
        Self::new(Content::Raw {
            status,
            chunks: chunks.into_iter().map(Into::into).collect(),
        })
    }

    /// A stream of exactly these bytes, split like this.
    #[must_use]
    pub fn sse<T: Into<Chunk>>(chunks: impl IntoIterator<Item = T>) -> Self {
        Self::raw(200, chunks).header("content-type", "text/event-stream")
    }

    #[must_use]
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        Self::new(Content::Error {
            status,
            message: message.to_owned(),
            error_type: Content::default_error_type(),
            code: Some(code.to_owned()),
            param: None,
        })
    }

    #[must_use]
    pub fn malformed_json() -> Self {
        Self::new(Content::MalformedJson)
    }

    #[must_use]
    pub fn bad_utf8() -> Self {
        Self::new(Content::BadUtf8)
    }

    #[must_use]
    pub fn hang() -> Self {
        Self::new(Content::Hang)
    }

    #[must_use]
    pub fn abort(how: Cut) -> Self {
        Self::new(Content::Abort { how })
    }

    #[must_use]
    pub fn embeddings(dimensions: usize) -> Self {
        Self::new(Content::Embeddings { dimensions })
    }

    #[must_use]
    pub fn models<T: Into<String>>(ids: impl IntoIterator<Item = T>) -> Self {
        Self::new(Content::Models {
            ids: ids.into_iter().map(Into::into).collect(),
        })
    }

    // === How it comes ===

    #[must_use]
    pub fn model(mut self, name: &str) -> Self {
        self.model = Some(name.to_owned());
        self
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn retry_after(mut self, value: &str) -> Self {
        self.retry_after = Some(value.to_owned());
        self
    }

    #[must_use]
    pub fn head_delay_ms(mut self, delay_ms: u64) -> Self {
        self.head_delay_ms = delay_ms;
        self
    }

    #[must_use]
    pub fn head_gate(mut self, name: &str) -> Self {
        self.head_gate = Some(name.to_owned());
        self
    }

    #[must_use]
    pub fn delay_ms(mut self, delay_ms: u64) -> Self {
        self.delay_ms = delay_ms;
        self
    }

    #[must_use]
    pub fn gate(mut self, name: &str) -> Self {
        self.gate = Some(name.to_owned());
        self
    }

    #[must_use]
    pub fn ending(mut self, after: usize, how: Cut) -> Self {
        self.ending = Some(Ending { after, how });
        self
    }

    #[must_use]
    pub fn stall_after(self, chunks: usize) -> Self {
        self.ending(chunks, Cut::Stall)
    }

    #[must_use]
    pub fn reset_after(self, chunks: usize) -> Self {
        self.ending(chunks, Cut::Reset)
    }

    #[must_use]
    pub fn close_after(self, chunks: usize) -> Self {
        self.ending(chunks, Cut::Close)
    }

    #[must_use]
    pub fn end_after(self, chunks: usize) -> Self {
        self.ending(chunks, Cut::End)
    }

    #[must_use]
    pub fn error_event_after(self, chunks: usize) -> Self {
        self.ending(chunks, Cut::ErrorEvent)
    }

    /// Of a chat or of tool calls; nothing else reports usage.
    #[must_use]
    pub fn usage(mut self, tokens: Usage) -> Self {
        if let Content::Chat { usage, .. } | Content::Tools { usage, .. } | Content::Says { usage, .. } =
            &mut self.content
        {
            *usage = tokens;
        }
        self
    }

    /// As [`Reply::usage`].
    #[must_use]
    pub fn report(mut self, when: Report) -> Self {
        if let Content::Chat { report, .. } | Content::Tools { report, .. } = &mut self.content {
            *report = when;
        }
        self
    }
}

impl Content {
    fn default_error_type() -> String {
        "mock_error".to_owned()
    }

    const fn default_dimensions() -> usize {
        4
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            prompt: 9,
            completion: None,
            cached: 0,
        }
    }
}

impl Chunk {
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl From<&str> for Chunk {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Chunk {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<&[u8]> for Chunk {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}
