//! OpenAI's embeddings, as callers ask for them and as other wires' are answered.
//!
//! What is to be embedded is a text or the ids of a model's own tokens, one of them or a list. Vectors go out as numbers, or as
//! base64 of 32-bit floats, little-endian, which is what OpenAI's own libraries ask for where their users say nothing.

use super::chat::{At, Object, body, json};
use crate::Call;
use crate::ir::{Embed, EmbedInput, Encoding, Vectors};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use switchyard_core::error::Error;

/// Reads a request.
///
/// # Errors
/// `InvalidRequest` that names the field.
pub(crate) fn read(call: &Call) -> Result<Embed, Error> {
    let mut embed = Embed::default();
    for (name, value) in body(call)? {
        let at = &At::top(&name);
        match name.as_str() {
            _ if value.is_null() => {}
            "model" => {}
            "input" => embed.inputs = inputs(at, value)?,
            "dimensions" => embed.dimensions = Some(dimensions(at, &value)?),
            "encoding_format" => embed.encoding = encoding(at, &value)?,
            "input_type" => embed.input_type = Some(at.text(value)?),
            "user" => embed.user = Some(at.text(value)?),
            _ => embed.strangers.push(at.stranger(value)),
        }
    }
    if embed.inputs.is_empty() {
        return Err(At::top("input").wrong("is required: a text, or a list of texts"));
    }
    Ok(embed)
}

fn inputs(at: &At<'_>, value: Value) -> Result<Vec<EmbedInput>, Error> {
    let list = match value {
        Value::String(text) => return Ok(vec![EmbedInput::Text(text)]),
        Value::Array(list) => list,
        _ => return Err(at.wrong("must be a text, a list of texts, or a list of tokens")),
    };
    // A list of tokens is one input; a list of such lists is as many.
    if list.first().is_some_and(Value::is_number) {
        return Ok(vec![EmbedInput::Tokens(tokens(at, &list)?)]);
    }
    let input = |(index, value)| match value {
        Value::String(text) => Ok(EmbedInput::Text(text)),
        Value::Array(list) if !list.is_empty() => Ok(EmbedInput::Tokens(tokens(&at.item(index), &list)?)),
        _ => Err(at
            .item(index)
            .wrong("must be a text, or a list of tokens that is not empty")),
    };
    list.into_iter().enumerate().map(input).collect()
}

fn tokens(at: &At<'_>, list: &[Value]) -> Result<Vec<u64>, Error> {
    let token = |(index, token)| at.item(index).count(token);
    list.iter().enumerate().map(token).collect()
}

fn dimensions(at: &At<'_>, value: &Value) -> Result<u64, Error> {
    match at.count(value)? {
        0 => Err(at.wrong("must be at least 1")),
        dimensions => Ok(dimensions),
    }
}

fn encoding(at: &At<'_>, value: &Value) -> Result<Encoding, Error> {
    match value.as_str() {
        Some("float") => Ok(Encoding::Floats),
        Some("base64") => Ok(Encoding::Base64),
        _ => Err(at.wrong("must be \"float\" or \"base64\"")),
    }
}

/// Writes an answer, under the name of the model that the caller asked for.
pub(crate) fn write(vectors: &Vectors, encoding: Encoding, model: &str) -> Vec<u8> {
    let numbers: usize = vectors.vectors.iter().map(Vec::len).sum();
    let mut out = Vec::with_capacity(256 + 64 * vectors.vectors.len() + 12 * numbers);
    let mut body = Object::open(&mut out);
    body.put("object", "list");
    let mut list = body.list("data");
    for (index, vector) in vectors.vectors.iter().enumerate() {
        let mut item = list.object();
        item.put("object", "embedding");
        item.put("index", &index);
        match encoding {
            Encoding::Floats => json(item.name("embedding"), vector),
            Encoding::Base64 => {
                let bytes: Vec<u8> = vector.iter().flat_map(|float| float.to_le_bytes()).collect();
                item.put("embedding", &STANDARD.encode(bytes));
            }
        }
        item.close();
    }
    list.close();
    body.put("model", model);
    // Libraries with types take no answer without these two; where the vendor does not count they are 0.
    let prompt = vectors.usage.prompt.or(vectors.usage.total).unwrap_or(0);
    let mut usage = body.object("usage");
    usage.put("prompt_tokens", &prompt);
    usage.put("total_tokens", &vectors.usage.total.unwrap_or(prompt));
    usage.close();
    body.close();
    out
}

#[cfg(test)]
mod tests {
    use super::{read, write};
    use crate::ir::{EmbedInput, Encoding, Vectors};
    use crate::{Call, Surface};
    use switchyard_core::error::{Error, Kind};
    use switchyard_core::usage::Usage;

    fn reading(members: &str) -> Result<crate::ir::Embed, Error> {
        let body = format!(r#"{{"model":"m",{members}}}"#);
        read(&Call::parse(Surface::Embeddings, body.into()).unwrap())
    }

    #[test]
    fn inputs_come_in_four_shapes() {
        let text = |text: &str| EmbedInput::Text(text.to_owned());
        for (input, want) in [
            (r#""a""#, vec![text("a")]),
            (r#"["a","b"]"#, vec![text("a"), text("b")]),
            ("[1,2]", vec![EmbedInput::Tokens(vec![1, 2])]),
            (
                "[[1],[2,3]]",
                vec![EmbedInput::Tokens(vec![1]), EmbedInput::Tokens(vec![2, 3])],
            ),
        ] {
            assert_eq!(reading(&format!(r#""input":{input}"#)).unwrap().inputs, want, "{input}");
        }
        for (members, param) in [
            (r#""input":[]"#, "input"),
            (r#""input":{}"#, "input"),
            (r#""input":[[]]"#, "input[0]"),
            (r#""input":["a",7]"#, "input[1]"),
            (r#""input":[1,-2]"#, "input[1]"),
            (r#""input":"a","encoding_format":"hex""#, "encoding_format"),
            (r#""input":"a","dimensions":0"#, "dimensions"),
        ] {
            let error = reading(members).unwrap_err();
            assert_eq!(
                (error.kind, error.param.as_deref()),
                (Kind::InvalidRequest, Some(param)),
                "{members}"
            );
        }
    }

    #[test]
    fn what_else_is_asked_for_is_read() {
        let embed = reading(
            r#""input":"a","dimensions":256,"encoding_format":"base64","user":"u","input_type":"search_query","truncate":"END","odd":null"#,
        )
        .unwrap();
        assert_eq!((embed.dimensions, embed.encoding), (Some(256), Encoding::Base64));
        assert_eq!(
            (embed.user.as_deref(), embed.input_type.as_deref()),
            (Some("u"), Some("search_query"))
        );
        assert_eq!(embed.strangers.len(), 1);
        assert_eq!(embed.strangers[0].field, "truncate");
    }

    #[test]
    fn vectors_go_out_as_numbers_or_as_base64() {
        let vectors = Vectors {
            model: None,
            vectors: vec![vec![0.5, -1.0], vec![0.1, 3e-9]],
            usage: Usage {
                prompt: Some(4),
                ..Usage::default()
            },
        };
        let text = |encoding| String::from_utf8(write(&vectors, encoding, "m")).unwrap();
        assert_eq!(
            text(Encoding::Floats),
            r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1.0]},{"object":"embedding","index":1,"embedding":[0.1,3e-9]}],"model":"m","usage":{"prompt_tokens":4,"total_tokens":4}}"#
        );
        assert!(text(Encoding::Base64).contains(r#""index":0,"embedding":"AAAAPwAAgL8="}"#));
    }
}
