use super::*;

const EMBEDDINGS: &str = "/v1/embeddings";

async fn embed(more: Value) -> Value {
    let mut body = json!({"model": "demo-embed"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, list) = post(EMBEDDINGS, body).await;
    assert_eq!(status, 200, "{list}");
    list
}

fn vector(list: &Value, nth: usize) -> Vec<f64> {
    list["data"][nth]["embedding"]
        .as_array()
        .unwrap()
        .iter()
        .map(|number| number.as_f64().unwrap())
        .collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn texts_that_share_words_are_closer() {
    let list = embed(json!({"input": [
        "the freight train leaves the yard", "A freight train left the yard", "pasta with basil and cheese",
    ]}))
    .await;
    let vectors: Vec<_> = (0..3).map(|nth| vector(&list, nth)).collect();
    assert_eq!(vectors[0].len(), 256);
    assert!(vectors.iter().all(|vector| (dot(vector, vector) - 1.0).abs() < 1e-5));
    let (near, far) = (dot(&vectors[0], &vectors[1]), dot(&vectors[0], &vectors[2]));
    assert!(near > 0.6 && far.abs() < 0.3, "near {near}, far {far}");
    assert_eq!(list["data"][2]["index"], 2);
    assert_eq!(list["usage"]["prompt_tokens"], 8 + 7 + 6);
    assert_eq!(list["usage"]["total_tokens"], 21);
}

#[tokio::test]
async fn base64_holds_the_same_floats() {
    let floats = vector(&embed(json!({"input": "yard", "dimensions": 8})).await, 0);
    let list = embed(json!({"input": "yard", "dimensions": 8, "encoding_format": "base64"})).await;
    let bytes = decode(list["data"][0]["embedding"].as_str().unwrap());
    assert_eq!(bytes.len(), 32);
    let decoded: Vec<_> = bytes
        .chunks(4)
        .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
        .collect();
    assert!(
        decoded
            .iter()
            .zip(&floats)
            .all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6),
        "{decoded:?} {floats:?}"
    );
}

/// The reverse of what is under test, written another way: bit by bit.
fn decode(text: &str) -> Vec<u8> {
    let alphabet = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .chain(['+', '/'])
        .collect::<Vec<_>>();
    let value = |char: char| alphabet.iter().position(|known| *known == char).unwrap();
    let bits: Vec<_> = text
        .trim_end_matches('=')
        .chars()
        .flat_map(|char| (0..6).rev().map(move |bit| value(char) >> bit & 1))
        .collect();
    bits.chunks_exact(8)
        .map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | *bit as u8))
        .collect()
}

#[tokio::test]
async fn token_arrays_are_inputs_too() {
    let one = embed(json!({"input": [1, 2, 3]})).await;
    assert_eq!(
        (one["data"].as_array().unwrap().len(), &one["usage"]["prompt_tokens"]),
        (1, &json!(3))
    );
    let two = embed(json!({"input": [[1, 2, 3], [4]]})).await;
    assert_eq!(vector(&two, 0), vector(&one, 0));
    assert_eq!(two["usage"]["prompt_tokens"], 4);
}

#[tokio::test]
async fn what_cannot_be_embedded_is_named() {
    let cases = [
        (json!({}), "input", "missing_required_parameter"),
        (json!({"input": ""}), "input", "invalid_value"),
        (json!({"input": []}), "input", "invalid_value"),
        (json!({"input": ["a", ""]}), "input[1]", "invalid_value"),
        (json!({"input": [[1], ["a"]]}), "input[1]", "invalid_type"),
        (json!({"input": {"text": "a"}}), "input", "invalid_type"),
        (json!({"input": "a", "dimensions": 0}), "dimensions", "invalid_value"),
        (
            json!({"input": "a", "encoding_format": "hex"}),
            "encoding_format",
            "invalid_value",
        ),
    ];
    for (more, param, code) in cases {
        let mut body = json!({"model": "demo-embed"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, error) = post(EMBEDDINGS, body).await;
        assert_eq!(
            (status.as_u16(), &error["error"]["param"], &error["error"]["code"]),
            (400, &json!(param), &json!(code)),
            "{more}"
        );
    }
    let (status, error) = post(EMBEDDINGS, json!({"model": "demo", "input": "a"})).await;
    assert_eq!((status.as_u16(), &error["error"]["param"]), (404, &json!("model")));
}
