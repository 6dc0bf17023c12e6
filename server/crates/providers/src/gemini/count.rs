//! Counting tokens at Google: the Gemini API takes a whole request inside, Vertex AI the parts of one that count.

use super::GoogleService;
use super::failure;
use crate::codec::{Ask, CountBack};
use crate::failure::bad_answer;
use serde_json::{Map, Value, json};
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

pub(super) struct Count(pub(super) GoogleService);

impl Count {
    pub(super) const fn at(service: GoogleService) -> &'static Self {
        match service {
            GoogleService::Gemini => &Self(GoogleService::Gemini),
            GoogleService::Vertex => &Self(GoogleService::Vertex),
        }
    }
}

impl CountBack for Count {
    fn write(&self, conversation: Vec<u8>, ask: &Ask<'_>) -> Result<Vec<u8>, Error> {
        let internal = |wrong: serde_json::Error| Error::new(Kind::Internal, wrong.to_string());
        let mut conversation: Map<String, Value> = serde_json::from_slice(&conversation).map_err(internal)?;
        let body = match self.0 {
            GoogleService::Gemini => {
                let model = format!("models/{}", ask.model.strip_prefix("models/").unwrap_or(ask.model));
                let mut request = Map::from_iter([("model".to_owned(), Value::from(model))]);
                request.append(&mut conversation);
                json!({ "generateContentRequest": request })
            }
            GoogleService::Vertex => {
                conversation.retain(|name, _| {
                    matches!(
                        name.as_str(),
                        "contents" | "systemInstruction" | "tools" | "generationConfig"
                    )
                });
                Value::Object(conversation)
            }
        };
        serde_json::to_vec(&body).map_err(internal)
    }

    fn read(&self, body: &[u8]) -> Result<Usage, Error> {
        if let Some(error) = failure::of_stray(body, Some(200)) {
            return Err(error);
        }
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let count = |name: &str| answer.get(name).and_then(Value::as_u64);
        let total = count("totalTokens").ok_or_else(|| bad_answer("the upstream's answer has no `totalTokens`"))?;
        Ok(Usage {
            prompt: Some(total),
            cached: count("cachedContentTokenCount"),
            ..Usage::default()
        })
    }
}
