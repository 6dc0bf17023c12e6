//! Embeddings of Google's models.
//!
//! The Gemini API embeds a batch of contents; Vertex AI has `predict` for the models that came before, and `embedContent`, which
//! takes one content, for those that came after.

use super::GoogleService;
use super::address::bare;
use super::failure;
use super::told::usage;
use crate::codec::{Ask, EmbedBack};
use crate::failure::bad_answer;
use crate::ir::{Embed, EmbedInput, Vectors};
use crate::notes::Notes;
use serde_json::{Map, Value, json};
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

/// How a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Embedding {
    Batch,
    Predict,
    One,
}

impl Embedding {
    pub(super) fn of(service: GoogleService, model: &str) -> &'static Self {
        let model = bare(model);
        match service {
            GoogleService::Gemini => &Self::Batch,
            GoogleService::Vertex if model.starts_with("gemini-") && model != "gemini-embedding-001" => &Self::One,
            GoogleService::Vertex => &Self::Predict,
        }
    }

    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Batch => "batchEmbedContents",
            Self::Predict => "predict",
            Self::One => "embedContent",
        }
    }
}

/// What the vectors are for, in Google's words.
fn task(input_type: &str) -> Option<&'static str> {
    const TASKS: [&str; 8] = [
        "RETRIEVAL_QUERY",
        "RETRIEVAL_DOCUMENT",
        "SEMANTIC_SIMILARITY",
        "CLASSIFICATION",
        "CLUSTERING",
        "QUESTION_ANSWERING",
        "FACT_VERIFICATION",
        "CODE_RETRIEVAL_QUERY",
    ];
    match input_type {
        "search_document" | "document" | "passage" => Some("RETRIEVAL_DOCUMENT"),
        "search_query" | "query" => Some("RETRIEVAL_QUERY"),
        other => TASKS.into_iter().find(|task| task.eq_ignore_ascii_case(other)),
    }
}

impl EmbedBack for Embedding {
    fn write(&self, embed: &Embed, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
        let unsupported = |field: &str, why: &str| {
            let message = format!("`{field}` cannot be sent to {}: {why}", ask.model);
            Error::new(Kind::Unsupported, message).with_param(field)
        };
        let mut texts = Vec::with_capacity(embed.inputs.len());
        for input in &embed.inputs {
            match input {
                EmbedInput::Text(text) => texts.push(text.as_str()),
                EmbedInput::Tokens(_) => {
                    return Err(unsupported("input", "it takes texts and no tokens: send the text"));
                }
            }
        }
        let task = embed.input_type.as_deref().and_then(|input_type| {
            let task = task(input_type);
            match task {
                Some(task) => notes.mapped("input_type", format!("taskType {task}")),
                None => notes.dropped("input_type", "gemini has no such task"),
            }
            task
        });
        if embed.user.is_some() {
            notes.dropped("user", "gemini has no such field");
        }
        if embed.dimensions.is_some() {
            notes.mapped("dimensions", "outputDimensionality");
        }
        let with_config = |mut made: Map<String, Value>| {
            if let Some(task) = task {
                made.insert("taskType".to_owned(), task.into());
            }
            if let Some(dimensions) = embed.dimensions {
                made.insert("outputDimensionality".to_owned(), dimensions.into());
            }
            Value::Object(made)
        };
        let content = |text: &str| ("content".to_owned(), json!({"parts": [{"text": text}]}));
        let body = match self {
            Self::Batch => {
                let model = format!("models/{}", ask.model.strip_prefix("models/").unwrap_or(ask.model));
                let request = |text: &&str| {
                    let named = ("model".to_owned(), Value::from(model.as_str()));
                    with_config(Map::from_iter([named, content(text)]))
                };
                json!({"requests": texts.iter().map(request).collect::<Vec<_>>()})
            }
            Self::Predict => {
                let instance = |text: &&str| {
                    let mut made = json!({ "content": text });
                    if let (Some(task), Some(made)) = (task, made.as_object_mut()) {
                        made.insert("task_type".to_owned(), task.into());
                    }
                    made
                };
                // What is too long is an error, as it is for everybody else, and not cut in silence.
                let mut parameters = json!({"autoTruncate": false});
                if let (Some(dimensions), Some(made)) = (embed.dimensions, parameters.as_object_mut()) {
                    made.insert("outputDimensionality".to_owned(), dimensions.into());
                }
                json!({"instances": texts.iter().map(instance).collect::<Vec<_>>(), "parameters": parameters})
            }
            Self::One => match texts.as_slice() {
                [text] => with_config(Map::from_iter([content(text)])),
                _ => {
                    return Err(unsupported(
                        "input",
                        "it takes one text at a time: send them one by one",
                    ));
                }
            },
        };
        serde_json::to_vec(&body).map_err(|wrong| Error::new(Kind::Internal, wrong.to_string()))
    }

    fn read(&self, body: &[u8]) -> Result<Vectors, Error> {
        if let Some(error) = failure::of_stray(body, Some(200)) {
            return Err(error);
        }
        let answer: Value = serde_json::from_slice(body)
            .map_err(|wrong| bad_answer(format!("the upstream's answer is not valid JSON: {wrong}")))?;
        let list = |name: &str| answer.get(name).and_then(Value::as_array);
        let embeddings: Vec<&Value> = if let Some(embeddings) = list("embeddings") {
            embeddings.iter().collect()
        } else if let Some(embedding) = answer.get("embedding") {
            vec![embedding]
        } else if let Some(predictions) = list("predictions") {
            predictions
                .iter()
                .filter_map(|prediction| prediction.get("embeddings"))
                .collect()
        } else {
            return Err(bad_answer("the upstream's answer has no `embeddings`"));
        };
        let mut vectors = Vec::with_capacity(embeddings.len());
        let mut tokens = None;
        for embedding in embeddings {
            let values = embedding.get("values").and_then(Value::as_array);
            let values = values.ok_or_else(|| bad_answer("one of the upstream's embeddings has no `values`"))?;
            let vector: Option<Vec<f32>> = values.iter().map(number).collect();
            vectors.push(vector.ok_or_else(|| bad_answer("one of the upstream's embeddings is not of numbers"))?);
            let statistics = embedding.get("statistics");
            let count = |name: &str| statistics.and_then(|statistics| statistics.get(name)?.as_f64());
            if let Some(count) = count("token_count").or_else(|| count("tokenCount")) {
                tokens = Some(tokens.unwrap_or(0.0) + count);
            }
        }
        let counted = answer.get("usageMetadata").and_then(usage);
        let usage = counted.or_else(|| {
            let prompt = Some(whole(tokens?));
            Some(Usage {
                prompt,
                total: prompt,
                ..Usage::default()
            })
        });
        Ok(Vectors {
            model: None,
            vectors,
            usage: usage.unwrap_or_default(),
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "vectors are of 32-bit numbers, written with more digits"
)]
fn number(value: &Value) -> Option<f32> {
    Some(value.as_f64()? as f32)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count, written with a fraction of 0"
)]
const fn whole(count: f64) -> u64 {
    count.max(0.0) as u64
}
