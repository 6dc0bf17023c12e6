//! Embeddings without a model: words are hashed into a vector.
//!
//! Each word adds a few signed ones at places that its hash names, longer words more, and the sum is scaled to length
//! one. Texts that share words point in similar directions and others are nearly at right angles, which is all that a
//! demo of a similarity search needs. Order and meaning of the words are lost.

use super::{
    fields::Fields,
    refusal::Refusal,
    text::{Dice, fingerprint},
    tokens, wire,
};
use serde::Serialize;
use serde_json::Value;

const DEFAULT_DIMENSIONS: usize = 256;
const MOST_DIMENSIONS: usize = 4096;
const MOST_INPUTS: usize = 2048;
/// In how many places a word shows.
const PLACES_PER_WORD: usize = 8;
/// Above this, longer words weigh no more.
const HEAVIEST_WORD: usize = 8;

#[derive(Serialize)]
pub(super) struct EmbeddingList {
    object: &'static str,
    data: Vec<Embedding>,
    model: &'static str,
    usage: Usage,
    system_fingerprint: &'static str,
}

#[derive(Serialize)]
struct Embedding {
    object: &'static str,
    index: usize,
    embedding: Vector,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Vector {
    Floats(Vec<f32>),
    Base64(String),
}

#[derive(Serialize)]
struct Usage {
    prompt_tokens: usize,
    total_tokens: usize,
}

/// One text to embed: its words and its price.
struct Input {
    words: Vec<String>,
    tokens: usize,
}

pub(super) fn answer(body: &[u8]) -> Result<EmbeddingList, Refusal> {
    let body: Value = serde_json::from_slice(body).map_err(|_| Refusal::bad_json())?;
    let fields = Fields::of(&body, String::new())?;
    let model = match fields.required_string("model")? {
        "demo-embed" => "demo-embed",
        known if super::MODELS.contains(&known) => return Err(Refusal::wrong_endpoint(known, "/embeddings")),
        unknown => return Err(Refusal::unknown_model(unknown)),
    };
    let inputs = inputs(
        fields
            .get("input")
            .ok_or_else(|| Refusal::missing("input".to_owned()))?,
    )?;
    let dimensions = fields
        .count("dimensions", 1..=MOST_DIMENSIONS)?
        .unwrap_or(DEFAULT_DIMENSIONS);
    let encode = match fields.string("encoding_format")? {
        None | Some("float") => Vector::Floats,
        Some("base64") => |floats: Vec<f32>| Vector::Base64(base64(&little_endian(&floats))),
        Some(_) => {
            return Err(Refusal::bad_value(
                "encoding_format".to_owned(),
                "must be 'float' or 'base64'",
            ));
        }
    };
    let tokens = inputs.iter().map(|input| input.tokens).sum();
    let embedding = |(index, input): (usize, &Input)| Embedding {
        object: "embedding",
        index,
        embedding: encode(embed(&input.words, dimensions)),
    };
    Ok(EmbeddingList {
        object: "list",
        data: inputs.iter().enumerate().map(embedding).collect(),
        model,
        usage: Usage {
            prompt_tokens: tokens,
            total_tokens: tokens,
        },
        system_fingerprint: wire::FINGERPRINT,
    })
}

// === What is to be embedded ===

/// A string, an array of strings, an array of token numbers, or an array of such arrays.
fn inputs(input: &Value) -> Result<Vec<Input>, Refusal> {
    let wrong = || {
        Refusal::wrong_type(
            "input".to_owned(),
            "a string, an array of strings or arrays of integers",
        )
    };
    let list = match input {
        Value::String(text) => return Ok(vec![Input::text(text, "input".to_owned())?]),
        Value::Array(list) if (1..=MOST_INPUTS).contains(&list.len()) || list.iter().all(Value::is_u64) => list,
        Value::Array(_) => {
            let problem = format!("must have between 1 and {MOST_INPUTS} entries");
            return Err(Refusal::bad_value("input".to_owned(), &problem));
        }
        _ => return Err(wrong()),
    };
    if list.iter().all(Value::is_u64) {
        return Ok(vec![Input::numbers(list, "input".to_owned())?]);
    }
    let entry = |(nth, entry): (usize, &Value)| match entry {
        Value::String(text) => Input::text(text, format!("input[{nth}]")),
        Value::Array(numbers) => Input::numbers(numbers, format!("input[{nth}]")),
        _ => Err(wrong()),
    };
    list.iter().enumerate().map(entry).collect()
}

impl Input {
    fn text(text: &str, path: String) -> Result<Self, Refusal> {
        if text.is_empty() {
            return Err(Refusal::bad_value(path, "must not be empty"));
        }
        let words = text
            .split(|char: char| !char.is_alphanumeric())
            .filter(|word| !word.is_empty());
        let mut words: Vec<_> = words.map(str::to_lowercase).collect();
        if words.is_empty() {
            words.push(text.to_owned());
        }
        Ok(Self {
            words,
            tokens: tokens::count(text),
        })
    }

    fn numbers(numbers: &[Value], path: String) -> Result<Self, Refusal> {
        if numbers.is_empty() {
            return Err(Refusal::bad_value(path, "must not be empty"));
        }
        if !numbers.iter().all(Value::is_u64) {
            return Err(Refusal::wrong_type(path, "an array of integers"));
        }
        Ok(Self {
            words: numbers.iter().map(|number| format!("#{number}")).collect(),
            tokens: numbers.len(),
        })
    }
}

// === Vectors ===

#[expect(clippy::cast_possible_truncation, reason = "32 bits are what the wire carries")]
fn embed(words: &[String], dimensions: usize) -> Vec<f32> {
    let mut sums = vec![0.0_f64; dimensions];
    for word in words {
        let weight = u32::try_from(word.chars().count().min(HEAVIEST_WORD)).map_or(1.0, f64::from);
        let mut dice = Dice::new(fingerprint(word));
        for _ in 0..PLACES_PER_WORD {
            let sign = if dice.next() & 1 == 0 { weight } else { -weight };
            let place = dice.below(dimensions);
            if let Some(sum) = sums.get_mut(place) {
                *sum += sign;
            }
        }
    }
    let length = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
    if length == 0.0 {
        // Everything has cancelled out, as it may in few dimensions. A direction is owed all the same.
        if let Some(first) = sums.first_mut() {
            *first = 1.0;
        }
        return sums.into_iter().map(|sum| sum as f32).collect();
    }
    sums.into_iter().map(|sum| (sum / length) as f32).collect()
}

fn little_endian(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

/// RFC 4648, padded. The only base64 of this crate, and too little for a dependency.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |nth: usize| u32::from(group.get(nth).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for nth in 0..4 {
            let sextet = bits >> (18 - 6 * nth) & 63;
            text.push(if nth <= group.len() {
                char::from(ALPHABET[sextet as usize])
            } else {
                '='
            });
        }
    }
    text
}
