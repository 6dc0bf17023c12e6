//! The dry run's question.

use serde_json::json;

/// A call to try out: `POST /v1/route/explain`. Texts that are empty were not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExplainCall {
    pub model: String,
    /// The user's one message.
    pub prompt: String,
    pub stream: bool,
    pub max_tokens: Option<u32>,
    /// `X-Gateway-Route`.
    pub route: String,
    /// `X-Gateway-Only`.
    pub only: String,
}

impl ExplainCall {
    /// The body of the call, as an application would send it.
    #[must_use]
    pub fn body(&self) -> String {
        let mut body = json!({
            "model": self.model,
            "messages": [{"role": "user", "content": self.prompt}],
            "stream": self.stream,
        });
        if let Some(most) = self.max_tokens {
            body["max_tokens"] = most.into();
        }
        body.to_string()
    }

    /// The headers that go along; one whose value is empty does not.
    #[must_use]
    pub fn headers(&self) -> [(&'static str, &str); 2] {
        [("x-gateway-route", &self.route), ("x-gateway-only", &self.only)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_a_chat_call_without_what_was_not_given() {
        let call = ExplainCall {
            model: "smart".to_owned(),
            prompt: "Which \"track\"?".to_owned(),
            ..ExplainCall::default()
        };
        // The order of its fields is nobody's business, and not the same everywhere.
        let body: serde_json::Value = serde_json::from_str(&call.body()).unwrap();
        let messages = serde_json::json!([{ "role": "user", "content": "Which \"track\"?" }]);
        assert_eq!(
            body,
            serde_json::json!({ "model": "smart", "messages": messages, "stream": false })
        );
        let limited = ExplainCall {
            max_tokens: Some(64),
            ..call
        };
        assert!(limited.body().contains(r#""max_tokens":64"#));
    }
}
