//! The call to try out, between an address and the API.
//!
//! It stands in the address, as the filters of the request log do: a link, the back button and a page without code all
//! mean the same.

use crate::api::{ExplainCall, query::Query};

/// Reads each field by its name, from an address or from a form.
pub fn from_fields(field: impl Fn(&str) -> Option<String>) -> ExplainCall {
    let text = |name| field(name).unwrap_or_default().trim().to_owned();
    ExplainCall {
        model: text("model"),
        prompt: text("prompt"),
        stream: field("stream").is_some(),
        max_tokens: text("max_tokens").parse().ok(),
        route: text("route"),
        only: text("only"),
    }
}

/// The address that asks for it.
pub fn address(call: &ExplainCall) -> String {
    Query::default()
        .with("model", Some(&call.model))
        .with("prompt", Some(&call.prompt))
        .with("stream", call.stream.then_some("on"))
        .with("max_tokens", call.max_tokens.map(|most| most.to_string()))
        .with("route", Some(&call.route))
        .with("only", Some(&call.only))
        .on("/routing")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)]) -> ExplainCall {
        from_fields(|name| {
            fields
                .iter()
                .find(|(field, _)| *field == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_address_says_the_whole_call_and_nothing_that_was_not_given() {
        let call = of(&[
            ("model", " smart "),
            ("prompt", "Which track?"),
            ("stream", "on"),
            ("max_tokens", "64"),
            ("route", ""),
            ("only", "openai, groq"),
        ]);
        assert_eq!(
            address(&call),
            "/routing?model=smart&prompt=Which%20track%3F&stream=on&max_tokens=64&only=openai%2C%20groq"
        );
        assert_eq!(address(&of(&[("max_tokens", "many")])), "/routing");
    }
}
