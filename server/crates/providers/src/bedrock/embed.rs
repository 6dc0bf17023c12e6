//! Embeddings. Converse has none, so each family is asked in its own words, by `InvokeModel`.

use super::errors::Exception;
use crate::codec::{Ask, EmbedBack};
use crate::failure::bad_answer;
use crate::ir::{Embed, EmbedInput, Vectors};
use crate::notes::Notes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

/// The words of a model's family.
pub(super) fn back(model: &str) -> Result<&'static dyn EmbedBack, Error> {
    let model = model.to_ascii_lowercase();
    if model.contains("titan-embed-text-v1") || model.contains("titan-embed-g1") {
        Ok(&Titan { version: 1 })
    } else if model.contains("titan-embed-image") {
        Ok(&Titan { version: 0 })
    } else if model.contains("titan-embed") {
        Ok(&Titan { version: 2 })
    } else if model.contains("cohere.embed") {
        Ok(&Cohere)
    } else {
        let message = "`model`: on Bedrock this gateway knows embeddings of amazon.titan-embed and cohere.embed models only; \
                       ask for one of these";
        Err(Error::new(Kind::Unsupported, message).with_param("model"))
    }
}

/// The inputs as texts.
pub(crate) fn texts<'a>(embed: &'a Embed, whose: &str) -> Result<Vec<&'a str>, Error> {
    let text = |input: &'a EmbedInput| match input {
        EmbedInput::Text(text) => Ok(text.as_str()),
        EmbedInput::Tokens(_) => {
            let message = format!("`input`: {whose} takes texts and no tokens of another vendor's; send the text");
            Err(Error::new(Kind::Unsupported, message).with_param("input"))
        }
    };
    embed.inputs.iter().map(text).collect()
}

/// What nobody there asks for.
pub(crate) fn note_user(embed: &Embed, notes: &mut Notes, whose: &str) {
    if embed.user.is_some() {
        notes.dropped("user", format!("{whose} does not ask who it is for"));
    }
}

/// What the inputs are for, which has to be said.
pub(crate) fn input_type<'a>(embed: &'a Embed, notes: &mut Notes) -> &'a str {
    embed.input_type.as_deref().unwrap_or_else(|| {
        notes.approximated(
            "input_type",
            "search_document: it has to be said there what they are for",
        );
        "search_document"
    })
}

/// What an answer means that has no vectors.
fn without_vectors(body: &[u8], error: Option<&serde_json::Error>) -> Error {
    let exception = Exception::read(body);
    if exception.is_one() {
        return exception.into_error(Some(200));
    }
    match error {
        Some(error) => bad_answer(format!("the upstream's answer holds no vectors: {error}")),
        None => bad_answer("the upstream's answer holds no vectors"),
    }
}

/// Amazon's Titan: one text a call. Version 0 is the one for pictures too.
struct Titan {
    version: u8,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TitanView {
    #[serde(default)]
    embedding: Option<Vec<f32>>,
    #[serde(default)]
    input_text_token_count: Option<u64>,
}

impl EmbedBack for Titan {
    fn write(&self, embed: &Embed, _ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
        /// The one length of the first version.
        const FIRST_LENGTH: u64 = 1536;
        let [text] = texts(embed, "Titan")?[..] else {
            let message = "`input`: Titan embeds one text a call; send each of the texts in a call of its own";
            return Err(Error::new(Kind::Unsupported, message).with_param("input"));
        };
        note_user(embed, notes, "titan");
        if embed.input_type.is_some() {
            notes.dropped("input_type", "titan embeds all texts alike");
        }
        let mut body = Map::new();
        body.insert("inputText".to_owned(), json!(text));
        match (embed.dimensions, self.version) {
            (None, _) => {}
            (Some(dimensions), 1) if dimensions != FIRST_LENGTH => {
                let message = format!(
                    "`dimensions`: vectors of this model have {FIRST_LENGTH}; leave it out or ask for titan-embed-text-v2"
                );
                return Err(Error::new(Kind::Unsupported, message).with_param("dimensions"));
            }
            (Some(_), 1) => {}
            (Some(dimensions), 0) => {
                notes.mapped("dimensions", "embeddingConfig.outputEmbeddingLength");
                body.insert(
                    "embeddingConfig".to_owned(),
                    json!({ "outputEmbeddingLength": dimensions }),
                );
            }
            (Some(dimensions), _) => {
                notes.kept("dimensions");
                body.insert("dimensions".to_owned(), json!(dimensions));
            }
        }
        serde_json::to_vec(&body).map_err(|error| Error::new(Kind::Internal, error.to_string()))
    }

    fn read(&self, body: &[u8]) -> Result<Vectors, Error> {
        let view: TitanView = serde_json::from_slice(body).map_err(|error| without_vectors(body, Some(&error)))?;
        let vector = view.embedding.ok_or_else(|| without_vectors(body, None))?;
        Ok(Vectors {
            model: None,
            vectors: vec![vector],
            usage: Usage {
                prompt: view.input_text_token_count,
                total: view.input_text_token_count,
                ..Usage::default()
            },
        })
    }
}

/// Cohere's, by way of Bedrock: much as Cohere has it. What was used stands in a header only.
struct Cohere;

#[derive(Deserialize)]
struct CohereView {
    #[serde(default)]
    embeddings: Option<Embeddings>,
}

/// Without types they are a list; with types they are lists by type.
#[derive(Deserialize)]
#[serde(untagged)]
enum Embeddings {
    Floats(Vec<Vec<f32>>),
    ByType { float: Vec<Vec<f32>> },
}

impl EmbedBack for Cohere {
    fn write(&self, embed: &Embed, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
        const MOST: usize = 96;
        let texts = texts(embed, "Cohere")?;
        if texts.len() > MOST {
            let message = format!("`input`: Cohere embeds {MOST} texts a call at most; send them in several calls");
            return Err(Error::new(Kind::Unsupported, message).with_param("input"));
        }
        note_user(embed, notes, "cohere");
        let mut body = Map::new();
        body.insert("texts".to_owned(), json!(texts));
        body.insert("input_type".to_owned(), json!(input_type(embed, notes)));
        body.insert("embedding_types".to_owned(), json!(["float"]));
        if let Some(dimensions) = embed.dimensions {
            // Only the fourth version has several lengths.
            if ask.model.contains("embed-v4") {
                notes.mapped("dimensions", "output_dimension");
                body.insert("output_dimension".to_owned(), json!(dimensions));
            } else {
                let message =
                    "`dimensions`: vectors of this model have one length; leave it out or ask for cohere.embed-v4";
                return Err(Error::new(Kind::Unsupported, message).with_param("dimensions"));
            }
        }
        serde_json::to_vec(&Value::Object(body)).map_err(|error| Error::new(Kind::Internal, error.to_string()))
    }

    fn read(&self, body: &[u8]) -> Result<Vectors, Error> {
        let view: CohereView = serde_json::from_slice(body).map_err(|error| without_vectors(body, Some(&error)))?;
        let vectors = match view.embeddings.ok_or_else(|| without_vectors(body, None))? {
            Embeddings::Floats(vectors) | Embeddings::ByType { float: vectors } => vectors,
        };
        Ok(Vectors {
            vectors,
            ..Vectors::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::back;
    use crate::Surface;
    use crate::codec::Ask;
    use crate::ir::{Embed, EmbedInput};
    use crate::notes::Notes;
    use switchyard_core::error::Kind;

    fn embed(texts: &[&str]) -> Embed {
        Embed {
            inputs: texts.iter().map(|text| EmbedInput::Text((*text).to_owned())).collect(),
            ..Embed::default()
        }
    }

    fn written(model: &str, embed: &Embed) -> Result<String, Kind> {
        let ask = Ask {
            model,
            surface: Surface::Embeddings,
            stream: false,
        };
        let body = back(model).and_then(|back| back.write(embed, &ask, &mut Notes::default()));
        body.map(|body| String::from_utf8(body).unwrap())
            .map_err(|error| error.kind)
    }

    #[test]
    fn each_family_is_asked_in_its_words() {
        let mut one = embed(&["a"]);
        assert_eq!(
            written("amazon.titan-embed-text-v1", &one).unwrap(),
            r#"{"inputText":"a"}"#
        );
        one.dimensions = Some(256);
        assert_eq!(
            written("amazon.titan-embed-text-v2:0", &one).unwrap(),
            r#"{"inputText":"a","dimensions":256}"#
        );
        assert_eq!(written("amazon.titan-embed-text-v1", &one), Err(Kind::Unsupported));
        assert_eq!(written("cohere.embed-english-v3", &one), Err(Kind::Unsupported));
        assert_eq!(
            written("us.cohere.embed-v4:0", &one).unwrap(),
            r#"{"texts":["a"],"input_type":"search_document","embedding_types":["float"],"output_dimension":256}"#
        );
        for several in [embed(&["a", "b"]), embed(&[])] {
            assert_eq!(
                written("amazon.titan-embed-text-v2:0", &several),
                Err(Kind::Unsupported)
            );
        }
        assert_eq!(written("anthropic.claude-3", &embed(&["a"])), Err(Kind::Unsupported));
        let tokens = Embed {
            inputs: vec![EmbedInput::Tokens(vec![1])],
            ..Embed::default()
        };
        assert_eq!(written("cohere.embed-v4:0", &tokens), Err(Kind::Unsupported));
    }

    #[test]
    fn vectors_and_failures_are_read() {
        let titan = back("amazon.titan-embed-text-v2:0").unwrap();
        let vectors = titan
            .read(br#"{"embedding":[0.5,-1],"inputTextTokenCount":3}"#)
            .unwrap();
        assert_eq!(
            (vectors.vectors, vectors.usage.prompt),
            (vec![vec![0.5, -1.0]], Some(3))
        );
        let cohere = back("cohere.embed-english-v3").unwrap();
        for body in [
            r#"{"embeddings":[[1,2],[3,4]],"response_type":"embeddings_floats"}"#,
            r#"{"embeddings":{"float":[[1,2],[3,4]]},"response_type":"embeddings_by_type"}"#,
        ] {
            let vectors = cohere.read(body.as_bytes()).unwrap();
            assert_eq!(vectors.vectors, [[1.0, 2.0], [3.0, 4.0]]);
        }
        let throttled = br#"{"__type":"ThrottlingException","message":"slow"}"#;
        assert_eq!(titan.read(throttled).unwrap_err().kind, Kind::RateLimit);
        assert_eq!(cohere.read(b"{}").unwrap_err().kind, Kind::BadAnswer);
        assert_eq!(cohere.read(b"<html>").unwrap_err().kind, Kind::BadAnswer);
    }
}
