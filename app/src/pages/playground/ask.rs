//! Writing the request.

use super::dialect::Dialect;
use serde_json::{Map, Value, json};

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

/// The body of a call in `dialect`. What is left empty is left out, so the upstream's own default holds.
///
/// # Errors
/// A sentence that names the field and what it takes.
pub fn body(dialect: Dialect, settings: &Settings, said: &[Said<'_>]) -> Result<String, String> {
    let model = settings.model.trim();
    if model.is_empty() {
        return Err("Choose a model first.".to_owned());
    }
    let temperature = temperature(&settings.temperature, dialect.hottest())?;
    let most = most_tokens(&settings.most_tokens)?.or(dialect.most_tokens_unsaid());
    let tools = tools(&settings.tools)?;
    let system = Some(settings.system.trim()).filter(|system| !system.is_empty());

    let mut body = conversation(dialect, system, said);
    // Gemini's path says both.
    if dialect != Dialect::Gemini {
        body["model"] = model.into();
        body["stream"] = true.into();
    }
    let bounds = [
        ("temperature", temperature.map(Value::from)),
        (dialect.most_tokens(), most.map(Value::from)),
    ];
    for (name, value) in bounds {
        match (dialect, value) {
            (_, None) => {}
            (Dialect::Gemini, Some(value)) => body["generationConfig"][name] = value,
            (_, Some(value)) => body[name] = value,
        }
    }
    if let Some(tools) = tools {
        body["tools"] = Value::Array(in_words_of(dialect, tools));
    }
    Ok(body.to_string())
}

/// What was said, and what goes before it.
fn conversation(dialect: Dialect, system: Option<&str>, said: &[Said<'_>]) -> Value {
    let said = said.iter().map(|said| match said {
        Said::User(text) => ("user", *text),
        Said::Assistant(text) => ("assistant", *text),
    });
    let plain = |(role, text)| json!({"role": role, "content": text});
    let parts = |text| json!([{"text": text}]);
    let mut body = Value::Object(Map::new());
    match dialect {
        Dialect::Chat => {
            let first = system.map(|text| ("system", text));
            body["messages"] = first.into_iter().chain(said).map(plain).collect();
            body["stream_options"] = json!({"include_usage": true});
        }
        Dialect::Responses => {
            body["input"] = said.map(plain).collect();
            // The conversation is kept here, and all of it goes along each time.
            body["store"] = false.into();
            if let Some(text) = system {
                body["instructions"] = text.into();
            }
        }
        Dialect::Messages => {
            body["messages"] = said.map(plain).collect();
            if let Some(text) = system {
                body["system"] = text.into();
            }
        }
        Dialect::Gemini => {
            let content = |(role, text)| {
                let role = if role == "assistant" { "model" } else { role };
                json!({"role": role, "parts": parts(text)})
            };
            body["contents"] = said.map(content).collect();
            if let Some(text) = system {
                body["systemInstruction"] = json!({"parts": parts(text)});
            }
        }
    }
    body
}

/// A function as OpenAI's chat describes it is told in the dialect's own words. Anything else is sent as it was typed.
fn in_words_of(dialect: Dialect, tools: Vec<Value>) -> Vec<Value> {
    if dialect == Dialect::Chat {
        return tools;
    }
    let (mut told, mut declared) = (Vec::new(), Vec::new());
    for mut tool in tools {
        let function = tool.get_mut("function").filter(|function| function.is_object());
        let Some(Value::Object(mut function)) = function.map(Value::take) else {
            told.push(tool);
            continue;
        };
        match dialect {
            Dialect::Messages => {
                let schema = function.remove("parameters");
                function.insert(
                    "input_schema".to_owned(),
                    schema.unwrap_or_else(|| json!({"type": "object"})),
                );
            }
            Dialect::Gemini => {
                if let Some(schema) = function.remove("parameters") {
                    function.insert("parametersJsonSchema".to_owned(), schema);
                }
                // There is no such thing there.
                function.remove("strict");
                declared.push(Value::Object(function));
                continue;
            }
            Dialect::Responses | Dialect::Chat => {
                function.insert("type".to_owned(), "function".into());
                // It would be strict there if nothing were said.
                function.entry("strict").or_insert(false.into());
            }
        }
        told.push(Value::Object(function));
    }
    if !declared.is_empty() {
        told.push(json!({"functionDeclarations": declared}));
    }
    told
}

fn temperature(typed: &str, hottest: u8) -> Result<Option<f64>, String> {
    let typed = typed.trim();
    if typed.is_empty() {
        return Ok(None);
    }
    match typed.replace(',', ".").parse::<f64>() {
        Ok(value) if (0.0..=f64::from(hottest)).contains(&value) => Ok(Some(value)),
        _ => Err(format!("Temperature is a number from 0 to {hottest}, or empty.")),
    }
}

fn most_tokens(typed: &str) -> Result<Option<u32>, String> {
    let typed = typed.trim();
    if typed.is_empty() {
        return Ok(None);
    }
    match typed.parse::<u32>() {
        Ok(most) if most > 0 => Ok(Some(most)),
        _ => Err("Most tokens is a whole number above 0, or empty.".to_owned()),
    }
}

fn tools(typed: &str) -> Result<Option<Vec<Value>>, String> {
    if typed.trim().is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(typed) {
        Ok(Value::Array(tools)) => Ok(Some(tools)),
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
        written_in(Dialect::Chat, settings, said)
    }

    fn written_in(dialect: Dialect, settings: &Settings, said: &[Said<'_>]) -> Value {
        serde_json::from_str(&body(dialect, settings, said).unwrap()).unwrap()
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
    fn each_dialect_is_written_as_its_own_clients_write_it() {
        let all = Settings {
            system: "Be brief.".to_owned(),
            temperature: "0.5".to_owned(),
            most_tokens: "64".to_owned(),
            ..settings()
        };
        let said = [Said::User("a"), Said::Assistant("b"), Said::User("c")];
        let plain = json!([
            {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
        ]);
        assert_eq!(
            written_in(Dialect::Messages, &all, &said),
            json!({
                "model": "smart", "stream": true, "system": "Be brief.", "messages": plain, "temperature": 0.5,
                "max_tokens": 64,
            })
        );
        assert_eq!(
            written_in(Dialect::Responses, &all, &said),
            json!({
                "model": "smart", "stream": true, "store": false, "instructions": "Be brief.", "input": plain,
                "temperature": 0.5, "max_output_tokens": 64,
            })
        );
        assert_eq!(
            written_in(Dialect::Gemini, &all, &said),
            json!({
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "contents": [
                    {"role": "user", "parts": [{"text": "a"}]},
                    {"role": "model", "parts": [{"text": "b"}]},
                    {"role": "user", "parts": [{"text": "c"}]},
                ],
                "generationConfig": {"temperature": 0.5, "maxOutputTokens": 64},
            })
        );
        // The one dialect that must be told.
        assert_eq!(written_in(Dialect::Messages, &settings(), &said)["max_tokens"], 4096);
        assert_eq!(
            written_in(Dialect::Gemini, &settings(), &said)["generationConfig"],
            Value::Null
        );
    }

    #[test]
    fn a_function_is_told_in_the_dialects_words_and_other_tools_as_typed() {
        let all = Settings {
            tools: json!([
                {"type": "function", "function": {"name": "stock", "parameters": {"type": "object"}}},
                {"type": "web_search"},
            ])
            .to_string(),
            ..settings()
        };
        let tools = |dialect| written_in(dialect, &all, &[])["tools"].take();
        assert_eq!(tools(Dialect::Chat)[0]["function"]["name"], "stock");
        assert_eq!(
            tools(Dialect::Responses),
            json!([
                {"type": "function", "name": "stock", "parameters": {"type": "object"}, "strict": false},
                {"type": "web_search"},
            ])
        );
        assert_eq!(
            tools(Dialect::Messages),
            json!([{"name": "stock", "input_schema": {"type": "object"}}, {"type": "web_search"}])
        );
        assert_eq!(
            tools(Dialect::Gemini),
            json!([
                {"type": "web_search"},
                {"functionDeclarations": [{"name": "stock", "parametersJsonSchema": {"type": "object"}}]},
            ])
        );
    }

    #[test]
    fn what_is_no_object_is_sent_as_it_was_typed() {
        let all = Settings {
            tools: r#"[7, "x", [1]]"#.to_owned(),
            ..settings()
        };
        for dialect in Dialect::ALL {
            assert_eq!(written_in(dialect, &all, &[])["tools"], json!([7, "x", [1]]));
        }
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        let refused = |settings: Settings| body(Dialect::Chat, &settings, &[]).unwrap_err();
        assert_eq!(refused(Settings::default()), "Choose a model first.");
        let warm = Settings {
            temperature: "1.5".to_owned(),
            ..settings()
        };
        assert!(body(Dialect::Gemini, &warm, &[]).is_ok());
        assert!(body(Dialect::Messages, &warm, &[]).unwrap_err().contains("from 0 to 1"));
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
