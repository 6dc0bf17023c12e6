use super::*;

fn tools() -> Value {
    json!([
        {"type": "function", "function": {
            "name": "get_weather", "description": "Current weather for a place",
            "parameters": {"type": "object", "required": ["city", "days"], "properties": {
                "city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["c", "f"]}}},
        }},
        {"type": "function", "function": {
            "name": "find_wagon", "description": "Locate freight by its identifier",
            "parameters": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}},
        }},
        {"type": "custom", "custom": {"name": "not_a_function"}},
    ])
}

async fn calls(text: &str, more: Value) -> Vec<(String, Value)> {
    let mut body = ask_with(text, json!({"tools": tools()}));
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = post(CHAT, body).await;
    assert_eq!(status, 200, "{answer}");
    let choice = &answer["choices"][0];
    let Some(calls) = choice["message"]["tool_calls"].as_array() else {
        assert_eq!(choice["finish_reason"], "stop");
        return Vec::new();
    };
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["content"], Value::Null);
    let read = |call: &Value| {
        let arguments = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        (call["function"]["name"].as_str().unwrap().to_owned(), arguments)
    };
    calls.iter().map(read).collect()
}

#[tokio::test]
async fn a_tool_is_called_when_the_message_sounds_like_it() {
    let weather = [("get_weather".to_owned(), json!({"city": "Oslo", "days": 3}))];
    assert_eq!(
        calls("What is the weather in Oslo for 3 days?", json!({})).await,
        weather
    );
    let wagon = |query: &str| [("find_wagon".to_owned(), json!({"query": query}))];
    assert_eq!(
        calls("Please use find_wagon", json!({})).await,
        wagon("Please use find_wagon")
    );
    assert_eq!(
        calls("locate the freight", json!({})).await,
        wagon("locate the freight")
    );
    assert_eq!(calls("How are you?", json!({})).await, []);
}

#[tokio::test]
async fn tool_choice_decides() {
    assert_eq!(calls("get_weather in Oslo", json!({"tool_choice": "none"})).await, []);
    assert_eq!(
        calls("How are you?", json!({"tool_choice": "required"})).await[0].0,
        "get_weather"
    );
    let named = json!({"tool_choice": {"type": "function", "function": {"name": "find_wagon"}}});
    assert_eq!(calls("How are you?", named).await[0].0, "find_wagon");
    let both = calls("get_weather and find_wagon", json!({})).await;
    assert_eq!(
        both.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["get_weather", "find_wagon"]
    );
    assert_eq!(
        calls("get_weather and find_wagon", json!({"parallel_tool_calls": false}))
            .await
            .len(),
        1
    );
}

#[tokio::test]
async fn calls_are_streamed_as_a_name_and_fragments() {
    let body = ask_with(
        "get_weather and find_wagon for Oslo",
        json!({"tools": tools(), "stream_options": {"include_usage": true}}),
    );
    let read = stream(body.clone()).await;
    let deltas: Vec<_> = read.deltas(0).collect();
    assert_eq!(*deltas[0], json!({"role": "assistant", "content": null}));
    let mut unasked = body;
    unasked.as_object_mut().unwrap().remove("stream_options");
    let (_, unary) = post(CHAT, unasked).await;

    for (index, whole) in unary["choices"][0]["message"]["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
    {
        let parts = deltas
            .iter()
            .filter_map(|delta| delta.get("tool_calls"))
            .map(|calls| &calls[0]);
        let parts: Vec<_> = parts.filter(|part| part["index"] == index).collect();
        let start = json!({"index": index, "id": whole["id"], "type": "function", "function": {"name": whole["function"]["name"], "arguments": ""}});
        assert_eq!(*parts[0], start);
        assert!(parts.len() > 2 && parts[1..].iter().all(|part| part.get("id").is_none()));
        let arguments: String = parts
            .iter()
            .filter_map(|part| part["function"]["arguments"].as_str())
            .collect();
        assert_eq!(arguments, whole["function"]["arguments"].as_str().unwrap());
    }
    let finish: Vec<_> = read
        .chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str())
        .collect();
    assert_eq!(finish, ["tool_calls"]);
    assert_eq!(read.chunks.last().unwrap()["usage"], unary["usage"]);
}

#[tokio::test]
async fn a_tool_result_is_answered_with_text_that_uses_it() {
    let body = json!({"model": "demo", "tools": tools(), "tool_choice": "required", "messages": [
        {"role": "user", "content": "What is the weather in Oslo?"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "{\"degrees\": 4}"},
    ]});
    let (_, answer) = post(CHAT, body).await;
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(
        text.starts_with("(simulated) The tool returned: {\"degrees\": 4}\n\n"),
        "{text}"
    );
}

#[tokio::test]
async fn max_tokens_cuts_arguments_too() {
    let (_, answer) = post(CHAT, ask_with("find_wagon", json!({"tools": tools(), "max_tokens": 2}))).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(
        answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"],
        "{\"que"
    );
    assert_eq!(answer["usage"]["completion_tokens"], 2);
}
