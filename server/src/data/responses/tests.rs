use super::{Asked, Last, Listing, Made, Settling, is_ours, may_end};
use bytes::Bytes;
use serde_json::{Value, json};

#[test]
fn a_call_says_what_it_goes_on_from() {
    let read = |body: &str| Asked::read(body.as_bytes());
    let asked = read(r#"{"model":"m","previous_response_id":"resp_1","store":false}"#).unwrap();
    assert_eq!(asked.previous().unwrap(), Some("resp_1"));
    assert_eq!(asked.store, json!(false));
    assert_eq!(read(r#"{"model":"m","input":"hi"}"#).unwrap().previous().unwrap(), None);
    // The same key, and a vendor reads it so.
    let escaped = read(r#"{"previous_response\u005fid":"resp_1"}"#).unwrap();
    assert_eq!(escaped.previous().unwrap(), Some("resp_1"));
    // Two of them: nobody can tell which a vendor would take.
    assert!(read(r#"{"previous_response_id":"a","previous_response_id":"b"}"#).is_err());
    let odd = read(r#"{"previous_response_id":7}"#).unwrap();
    assert_eq!(
        odd.previous().unwrap_err().param.as_deref(),
        Some("previous_response_id")
    );
    for (written, id) in [
        (r#""conv_1""#, Some("conv_1")),
        (r#"{"id":"conv_1"}"#, Some("conv_1")),
        ("null", None),
    ] {
        let asked = read(&format!(r#"{{"conversation":{written}}}"#)).unwrap();
        assert_eq!(asked.conversation(), id, "{written}");
    }
}

fn page(query: &str) -> Value {
    let items = (1..=5).map(|n| json!({ "id": format!("item_{n}") })).collect();
    Listing::read(query).unwrap().page(items).unwrap()
}

#[test]
fn items_are_listed_page_by_page() {
    for (query, ids, more) in [
        ("", "54321", false),
        ("order=asc", "12345", false),
        ("order=asc&limit=2", "12", true),
        ("order=asc&limit=2&after=item_2", "34", true),
        ("order=asc&limit=2&after=item_4", "5", false),
        ("order=asc&after=item_5", "", false),
        ("limit=2&after=item_4", "32", true),
        ("order=asc&limit=2&before=item_4", "23", true),
        ("order=asc&after=item_1&before=item_4", "23", false),
        ("order=asc&after=item_4&before=item_2", "", false),
    ] {
        let page = page(query);
        let found: String = page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().trim_start_matches("item_"))
            .collect();
        assert_eq!((found.as_str(), &page["has_more"]), (ids, &json!(more)), "{query}");
        let first = ids.get(..1).map(|id| format!("item_{id}"));
        assert_eq!(page["first_id"], json!(first), "{query}");
    }
    for wrong in ["limit=0", "limit=101", "limit=x", "order=up"] {
        assert!(Listing::read(wrong).is_err(), "{wrong}");
    }
    assert!(Listing::read("after=nobody").unwrap().page(Vec::new()).is_err());
}

#[test]
fn paths_about_answers_are_told_however_they_are_written() {
    for ours in [
        "/v1/responses/a/b",
        "/v1/responses",
        "/v1//responses/a",
        "/v1/%72esponses/a",
        "/v1/responses%2Fa",
        "/v1/Responses/a",
        "/v1/%2572esponses",
    ] {
        assert!(is_ours(ours), "{ours}");
    }
    for other in ["/v1/files", "/v1/responsesx/a", "/v1/fine_tuning/responses"] {
        assert!(!is_ours(other), "{other}");
    }
}

#[test]
fn the_end_of_an_answer_is_not_what_only_speaks_of_it() {
    assert!(may_end(br#"data: {"type":"response.completed"}"#));
    assert!(!may_end(br#"data: {"delta":"\"response.completed\""}"#));
}

fn settling() -> Settling {
    Settling {
        owner: "ann".to_owned(),
        target: Some("b".to_owned()),
        is_native: false,
        previous: Some("resp_1".to_owned()),
        is_merged: true,
        body: Some(Bytes::from_static(
            br#"{"model":"m","input":"and then?","previous_response_id":"resp_1"}"#,
        )),
        at_ms: 7,
    }
}

#[test]
fn an_answer_is_kept_without_its_output_and_names_what_it_goes_on_from() {
    let answer = br#"{"id":"resp_2","model":"m","previous_response_id":null,"output":[{"type":"message"}]}"#;
    let Made { row, instead } = settling().make(answer);
    let row = row.unwrap().unwrap();
    assert_eq!(
        row.response,
        r#"{"id":"resp_2","model":"m","previous_response_id":"resp_1","output":[]}"#
    );
    assert_eq!(row.output, r#"[{"type":"message"}]"#);
    let input: Value = serde_json::from_str(&row.input).unwrap();
    assert_eq!(input[0]["content"][0]["text"], "and then?");
    let out = r#"{"id":"resp_2","model":"m","previous_response_id":"resp_1","output":[{"type":"message"}]}"#;
    assert_eq!(instead.unwrap(), out);
}

#[test]
fn what_is_no_answer_is_not_kept_and_said() {
    assert!(settling().make(b"oops").row.unwrap().is_err());
    assert!(settling().make(b"{}").row.unwrap().is_err());
    let unasked = Settling {
        body: None,
        ..settling()
    };
    assert!(unasked.make(b"oops").row.is_none());
}

#[test]
fn the_last_event_is_found_and_replaced_among_others() {
    let completed =
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"a\"}}\n\n";
    let frames = Bytes::from(format!("event: x\ndata: {{}}\n\n{completed}: end\n\n"));
    let last = Last::find(&frames).unwrap();
    assert_eq!(last.response(), Some(&json!({ "id": "a" })));
    let replaced = last.replaced(&frames, br#"{"id":"b"}"#).unwrap();
    assert_eq!(replaced, String::from_utf8_lossy(&frames).replace("\"a\"", "\"b\""));
    // Without its blank line it is the last one all the same.
    let cut = Bytes::from(completed.trim_end().to_owned());
    assert!(Last::find(&cut).is_some());
    assert!(Last::find(&Bytes::from_static(b"data: {\"delta\":\"hi\"}\n\n")).is_none());
}
