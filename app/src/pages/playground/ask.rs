//! Writing the request.

use serde_json::{Value, json};

/// What is set beside the conversation, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub model: String,
    pub system: String,
    pub temperature: String,
    pub most_tokens: String,
    pub tools: String,
}

/// What was said before, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    User(&'a str),
    Assistant(&'a str),
}

/// The body of a call. What is left empty is left out, so the upstream's own default holds.
///
/// # Errors
/// A sentence that names the field and what it takes.
pub fn body(settings: &Settings, said: &[Said<'_>]) -> Result<String, String> {
    let model = settings.model.trim();
    if model.is_empty() {
        return Err("Choose a model first.".to_owned());
    }
    let system = Some(settings.system.trim()).filter(|system| !system.is_empty());
    let system = system.map(|text| json!({"role": "system", "content": text}));
    let said = said.iter().map(|said| match said {
        Said::User(text) => json!({"role": "user", "content": text}),
        Said::Assistant(text) => json!({"role": "assistant", "content": text}),
    });
    let mut body = json!({
        "model": model,
        "messages": system.into_iter().chain(said).collect::<Vec<_>>(),
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(temperature) = temperature(&settings.temperature)? {
        body["temperature"] = temperature;
    }
    if let Some(most) = most_tokens(&settings.most_tokens)? {
        body["max_tokens"] = most;
    }
    if let Some(tools) = tools(&settings.tools)? {
        body["tools"] = tools;
    }
    Ok(body.to_string())
}

fn temperature(typed: &str) -> Result<Option<Value>, String> {
    let typed = typed.trim();
    if typed.is_empty() {
        return Ok(None);
    }
    match typed.replace(',', ".").parse::<f64>() {
        Ok(value) if (0.0..=2.0).contains(&value) => Ok(Some(json!(value))),
        _ => Err("Temperature is a number from 0 to 2, or empty.".to_owned()),
    }
}

fn most_tokens(typed: &str) -> Result<Option<Value>, String> {
    let typed = typed.trim();
    if typed.is_empty() {
        return Ok(None);
    }
    match typed.parse::<u32>() {
        Ok(most) if most > 0 => Ok(Some(json!(most))),
        _ => Err("Most tokens is a whole number above 0, or empty.".to_owned()),
    }
}

fn tools(typed: &str) -> Result<Option<Value>, String> {
    if typed.trim().is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(typed) {
        Ok(tools @ Value::Array(_)) => Ok(Some(tools)),
        Ok(_) => Err("Tools is a JSON array, as the API takes it.".to_owned()),
        Err(fault) => Err(format!("Tools is no JSON: {fault}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            model: "smart".to_owned(),
            ..Settings::default()
        }
    }

    fn written(settings: &Settings, said: &[Said<'_>]) -> Value {
        serde_json::from_str(&body(settings, said).unwrap()).unwrap()
    }

    #[test]
    fn the_conversation_goes_along_and_empty_fields_do_not() {
        let said = [Said::User("a"), Said::Assistant("b"), Said::User("c")];
        let expected = json!({
            "model": "smart", "stream": true, "stream_options": {"include_usage": true},
            "messages": [
                {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
            ],
        });
        assert_eq!(written(&settings(), &said), expected);
    }

    #[test]
    fn settings_are_sent_as_their_types() {
        let all = Settings {
            system: " Be brief. ".to_owned(),
            temperature: "0,2".to_owned(),
            most_tokens: "64".to_owned(),
            tools: "[]".to_owned(),
            ..settings()
        };
        let body = written(&all, &[]);
        assert_eq!(body["messages"], json!([{"role": "system", "content": "Be brief."}]));
        assert_eq!(
            (&body["temperature"], &body["max_tokens"], &body["tools"]),
            (&json!(0.2), &json!(64), &json!([]))
        );
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        let refused = |settings: Settings| body(&settings, &[]).unwrap_err();
        assert_eq!(refused(Settings::default()), "Choose a model first.");
        assert!(
            refused(Settings {
                temperature: "hot".to_owned(),
                ..settings()
            })
            .starts_with("Temperature")
        );
        assert!(
            refused(Settings {
                most_tokens: "0".to_owned(),
                ..settings()
            })
            .starts_with("Most tokens")
        );
        assert!(
            refused(Settings {
                tools: "{}".to_owned(),
                ..settings()
            })
            .starts_with("Tools")
        );
    }
}
