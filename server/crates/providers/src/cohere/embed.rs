//! Embeddings of version 2, of texts.

use super::failed;
use crate::bedrock::embed::{input_type, note_user, texts};
use crate::codec::{Ask, EmbedBack};
use crate::failure::bad_answer;
use crate::ir::{Embed, Vectors};
use crate::notes::Notes;
use serde::Deserialize;
use serde_json::{Map, json};
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

/// Most texts of a call.
const MOST: usize = 96;

pub(super) struct Embeddings;

#[derive(Deserialize)]
struct ReplyView {
    #[serde(default)]
    embeddings: Option<FloatView>,
    #[serde(default)]
    meta: Option<MetaView>,
    #[serde(default)]
    message: Option<String>,
}

#[derive(Deserialize)]
struct FloatView {
    #[serde(default)]
    float: Option<Vec<Vec<f32>>>,
}

#[derive(Deserialize)]
struct MetaView {
    #[serde(default)]
    billed_units: Option<CountView>,
    #[serde(default)]
    tokens: Option<CountView>,
}

#[derive(Deserialize)]
struct CountView {
    #[serde(default)]
    input_tokens: Option<f64>,
}

impl EmbedBack for Embeddings {
    fn write(&self, embed: &Embed, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
        let texts = texts(embed, "Cohere")?;
        if texts.len() > MOST {
            let message = format!("`input`: Cohere embeds {MOST} texts a call at most; send them in several calls");
            return Err(Error::new(Kind::Unsupported, message).with_param("input"));
        }
        note_user(embed, notes, "cohere");
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(ask.model));
        body.insert("texts".to_owned(), json!(texts));
        body.insert("input_type".to_owned(), json!(input_type(embed, notes)));
        body.insert("embedding_types".to_owned(), json!(["float"]));
        if let Some(dimensions) = embed.dimensions {
            notes.mapped("dimensions", "output_dimension");
            body.insert("output_dimension".to_owned(), json!(dimensions));
        }
        serde_json::to_vec(&body).map_err(|error| Error::new(Kind::Internal, error.to_string()))
    }

    fn read(&self, body: &[u8]) -> Result<Vectors, Error> {
        let view: ReplyView = serde_json::from_slice(body)
            .map_err(|error| bad_answer(format!("the upstream's answer holds no vectors: {error}")))?;
        let Some(vectors) = view.embeddings.and_then(|embeddings| embeddings.float) else {
            return Err(match view.message {
                Some(message) => failed(&message, Some(200)),
                None => bad_answer("the upstream's answer has no `embeddings.float`"),
            });
        };
        let count = |counts: Option<CountView>| super::chat::count(counts?.input_tokens);
        let prompt = view
            .meta
            .and_then(|meta| count(meta.tokens).or_else(|| count(meta.billed_units)));
        Ok(Vectors {
            model: None,
            vectors,
            usage: Usage {
                prompt,
                total: prompt,
                ..Usage::default()
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Embeddings;
    use crate::Surface;
    use crate::codec::{Ask, EmbedBack};
    use crate::ir::{Embed, EmbedInput};
    use crate::notes::Notes;
    use switchyard_core::error::Kind;

    const ASK: Ask<'_> = Ask {
        model: "embed-v4.0",
        surface: Surface::Embeddings,
        stream: false,
    };

    #[test]
    fn texts_are_asked_for_as_documents_unless_the_caller_says_what_they_are() {
        let mut embed = Embed {
            inputs: vec![EmbedInput::Text("a".to_owned())],
            dimensions: Some(256),
            ..Embed::default()
        };
        let mut notes = Notes::default();
        let body = Embeddings.write(&embed, &ASK, &mut notes).unwrap();
        let want = r#"{"model":"embed-v4.0","texts":["a"],"input_type":"search_document","embedding_types":["float"],"output_dimension":256}"#;
        assert_eq!(String::from_utf8(body).unwrap(), want);
        assert_eq!(notes.to_string(), "approximated=1, mapped=1");
        embed.input_type = Some("search_query".to_owned());
        let body = Embeddings.write(&embed, &ASK, &mut Notes::default()).unwrap();
        assert!(String::from_utf8(body).unwrap().contains("search_query"));
        embed.inputs = vec![EmbedInput::Text("a".to_owned()); 97];
        let error = Embeddings.write(&embed, &ASK, &mut Notes::default()).unwrap_err();
        assert_eq!((error.kind, error.param.as_deref()), (Kind::Unsupported, Some("input")));
        embed.inputs = vec![EmbedInput::Tokens(vec![1])];
        assert!(Embeddings.write(&embed, &ASK, &mut Notes::default()).is_err());
    }

    #[test]
    fn vectors_and_failures_are_read() {
        let body = br#"{"id":"x","embeddings":{"float":[[0.5,1]]},"texts":["a"],"meta":{"billed_units":{"input_tokens":2.0}}}"#;
        let vectors = Embeddings.read(body).unwrap();
        assert_eq!((vectors.vectors, vectors.usage.prompt), (vec![vec![0.5, 1.0]], Some(2)));
        let error = Embeddings.read(br#"{"message":"too many tokens: 9"}"#).unwrap_err();
        assert_eq!(error.kind, Kind::ContextLength);
        assert_eq!(Embeddings.read(b"[]").unwrap_err().kind, Kind::BadAnswer);
        assert_eq!(Embeddings.read(b"{}").unwrap_err().kind, Kind::BadAnswer);
    }
}
