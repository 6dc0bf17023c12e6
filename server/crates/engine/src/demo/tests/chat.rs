use super::*;
use crate::demo::tokens;

fn content(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap()
}

#[tokio::test]
async fn an_answer_is_labelled_and_about_the_question() {
    let (status, answer) = post(CHAT, ask("How do I plan a locomotive rota?")).await;
    assert_eq!(status, 200);
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["model"], "demo");
    assert_eq!(answer["system_fingerprint"], "simulated");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["choices"][0]["message"]["role"], "assistant");
    assert!(content(&answer).starts_with("(simulated) "), "{answer}");
    assert!(
        content(&answer).contains("locomotive") || content(&answer).contains("rota"),
        "{answer}"
    );
    assert!(!content(&answer).contains("{}"), "{answer}");
}

#[tokio::test]
async fn the_same_question_gets_the_same_words_and_another_seed_gets_others() {
    let texts = [
        ask("Why do trains wait?"),
        ask("Why do trains wait?"),
        ask_with("Why do trains wait?", json!({"seed": -7})),
    ];
    let mut answers = Vec::new();
    for body in texts {
        answers.push(content(&post(CHAT, body).await.1).to_owned());
    }
    assert_eq!(answers[0], answers[1]);
    assert_ne!(answers[0], answers[2]);
}

#[tokio::test]
async fn a_stream_says_and_counts_what_the_unary_answer_does() {
    let body = ask_with("Tell me about freight", json!({"n": 2}));
    let (_, unary) = post(CHAT, body.clone()).await;
    let mut asking = body;
    asking["stream_options"] = json!({"include_usage": true});
    let read = stream(asking).await;
    assert!(read.done);
    for choice in 0..2 {
        let nth = usize::try_from(choice).unwrap();
        assert_eq!(
            read.text(choice),
            unary["choices"][nth]["message"]["content"].as_str().unwrap()
        );
    }
    let (last, earlier) = read.chunks.split_last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"], unary["usage"]);
    assert!(
        earlier
            .iter()
            .all(|chunk| chunk.as_object().unwrap()["usage"].is_null())
    );
    let tokens: usize = (0..2).map(|choice| tokens::count(&read.text(choice))).sum();
    assert_eq!(last["usage"]["completion_tokens"], tokens);
    assert_eq!(
        unary["usage"]["total_tokens"],
        tokens as u64 + unary["usage"]["prompt_tokens"].as_u64().unwrap()
    );
}

#[tokio::test]
async fn a_stream_begins_with_a_role_alone_and_has_no_usage_unasked() {
    let read = stream(ask("Hello")).await;
    assert_eq!(
        read.chunks[0]["choices"][0]["delta"],
        json!({"role": "assistant", "content": ""})
    );
    assert_eq!(read.chunks[1]["choices"][0]["delta"], json!({"content": "(simu"}));
    let last = read.chunks.last().unwrap();
    assert_eq!(
        last["choices"][0],
        json!({"index": 0, "delta": {}, "logprobs": null, "finish_reason": "stop"})
    );
    assert!(read.chunks.iter().all(|chunk| chunk.get("usage").is_none()));
    assert!(read.done);
}

#[tokio::test]
async fn max_tokens_cuts_at_exactly_that_many() {
    for limit in [
        json!({"max_tokens": 5}),
        json!({"max_completion_tokens": 5}),
        json!({"max_tokens": 9, "max_completion_tokens": 5}),
    ] {
        let (_, answer) = post(CHAT, ask_with("Write a long report", limit)).await;
        assert_eq!(answer["choices"][0]["finish_reason"], "length");
        assert_eq!(answer["usage"]["completion_tokens"], 5);
        assert_eq!(tokens::count(content(&answer)), 5);
    }
    let (_, whole) = post(CHAT, ask_with("Briefly", json!({"max_tokens": 100_000}))).await;
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn a_stop_sequence_ends_the_text_before_it() {
    let (_, whole) = post(CHAT, ask("Tell me about signals")).await;
    let (before, _) = content(&whole).split_once(". ").unwrap();
    for stop in [json!(". "), json!(["never said", ". ", ""])] {
        let (_, answer) = post(CHAT, ask_with("Tell me about signals", json!({"stop": stop}))).await;
        assert_eq!(content(&answer), before);
        assert_eq!(answer["choices"][0]["finish_reason"], "stop");
        assert_eq!(answer["usage"]["completion_tokens"], tokens::count(before));
    }
    let (_, at_once) = post(CHAT, ask_with("Tell me about signals", json!({"stop": "(sim"}))).await;
    assert_eq!(content(&at_once), "");
    assert_eq!(at_once["usage"]["completion_tokens"], 0);
}

#[tokio::test]
async fn json_is_answered_where_json_is_wanted() {
    let (_, answer) = post(
        CHAT,
        ask_with(
            "Describe the depot",
            json!({"response_format": {"type": "json_object"}}),
        ),
    )
    .await;
    let object: Value = serde_json::from_str(content(&answer)).unwrap();
    assert_eq!(object, json!({"simulated": true, "topics": ["depot"]}));

    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"}, "mode": {"enum": ["air", "rail"]}, "wagons": {"type": "integer", "minimum": 2},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 2}, "note": {"type": ["string", "null"]},
            "unneeded": {"type": "string"},
        },
        "required": ["city", "mode", "wagons", "tags", "note"],
        "$defs": {"tag": {"type": "boolean"}},
    });
    let format = json!({"type": "json_schema", "json_schema": {"name": "trip", "schema": schema}});
    let body = ask_with(
        "Send 14 crates by rail to New York please",
        json!({"response_format": format}),
    );
    let object: Value = serde_json::from_str(content(&post(CHAT, body).await.1)).unwrap();
    let expected = json!({"city": "New York", "mode": "rail", "wagons": 14, "tags": [true, true], "note": "New York"});
    assert_eq!(object, expected);
}

#[tokio::test]
async fn a_schema_that_refers_to_itself_comes_to_an_end() {
    let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "chain", "schema": schema}});
    let (status, answer) = post(CHAT, ask_with("Go", json!({"response_format": format}))).await;
    assert_eq!(status, 200);
    assert!(serde_json::from_str::<Value>(content(&answer)).unwrap().is_object());
}

#[test]
fn tokens_join_to_the_text_and_stay_in_their_words() {
    let text = " Überlast  ist\n\nklärbar 🚂🚃🚃🚃🚃🚃 ";
    let pieces: Vec<_> = tokens::split(text).collect();
    assert_eq!(
        pieces,
        [" Überl", "ast", "  ist", "\n\nklärb", "ar", " 🚂🚃🚃🚃🚃", "🚃", " "]
    );
    assert_eq!(pieces.concat(), text);
    assert_eq!(tokens::truncated("one two", 2), None);
    assert_eq!(tokens::truncated("one two", 1), Some("one"));
    assert_eq!(tokens::count(""), 0);
}
