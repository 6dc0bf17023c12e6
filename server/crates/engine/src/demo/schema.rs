//! Filling a JSON schema with plausible values.
//!
//! Used for a tool's arguments and for `response_format: json_schema`. Values come from the prompt where that makes
//! sense: a `city` gets its proper names, a number its numbers. What is understood is what function schemas are made
//! of in practice: types, `enum`, `const`, `default`, `required`, `items`, bounds, `$ref` within the document and the
//! first of `anyOf`, `oneOf`, `allOf`. `pattern` and conditions are not: where they matter, the value may not fit.

use super::text::topics;
use serde_json::{Map, Number, Value, json};

/// A schema may refer to itself; below this depth only `null` is filled in.
const DEEPEST: usize = 12;
/// A list is as long as the schema wants, up to this.
const LONGEST_LIST: usize = 16;
/// How much of the prompt a text property may repeat.
const LONGEST_QUOTE: usize = 200;

pub(super) struct Filler<'a> {
    /// The whole document, for `$ref`.
    root: &'a Value,
    prompt: &'a str,
    /// Proper names in the prompt.
    names: Vec<String>,
    topics: Vec<&'a str>,
    numbers: Vec<f64>,
    names_used: usize,
    numbers_used: usize,
}

impl<'a> Filler<'a> {
    pub(super) fn new(root: &'a Value, prompt: &'a str) -> Self {
        Self {
            root,
            prompt,
            names: proper_names(prompt),
            topics: topics(prompt),
            numbers: numbers(prompt),
            names_used: 0,
            numbers_used: 0,
        }
    }

    /// A value for the whole schema. A schema that says nothing about its type is an object's.
    pub(super) fn object(mut self) -> Value {
        match self.value(self.root, "", 0) {
            Value::Null => json!({}),
            value => value,
        }
    }

    fn value(&mut self, schema: &'a Value, name: &str, depth: usize) -> Value {
        if depth > DEEPEST {
            return Value::Null;
        }
        if let Some(fixed) = self.fixed(schema) {
            return fixed;
        }
        if let Some(inner) = self.indirection(schema) {
            return self.value(inner, name, depth + 1);
        }
        match type_of(schema) {
            Some("object") => self.properties(schema, depth),
            Some("array") => self.list(schema, name, depth),
            Some("string") => Value::String(self.string(schema, name)),
            Some("integer") => Value::from(integer(self.number(schema))),
            Some("number") => Number::from_f64(self.number(schema)).map_or(Value::Null, Value::Number),
            Some("boolean") => Value::Bool(true),
            _ => Value::Null,
        }
    }

    /// The value that the schema itself gives; of an `enum`, the one that the prompt mentions.
    fn fixed(&self, schema: &Value) -> Option<Value> {
        let options = schema.get("enum").and_then(Value::as_array);
        let prompt = self.prompt.to_lowercase();
        let mentioned = |option: &&Value| {
            option
                .as_str()
                .is_some_and(|text| prompt.contains(&text.to_lowercase()))
        };
        let option = options.and_then(|options| options.iter().find(mentioned).or_else(|| options.first()));
        schema
            .get("const")
            .or(option)
            .or_else(|| schema.get("default"))
            .cloned()
    }

    fn indirection(&self, schema: &'a Value) -> Option<&'a Value> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.root.pointer(reference.strip_prefix('#')?);
        }
        let options = ["anyOf", "oneOf", "allOf"]
            .iter()
            .find_map(|name| schema.get(*name)?.as_array())?;
        options.iter().find(|option| type_of(option) != Some("null"))
    }

    /// The required properties; all of them when none is required.
    fn properties(&mut self, schema: &'a Value, depth: usize) -> Value {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return json!({});
        };
        let required: Vec<&str> = match schema.get("required").and_then(Value::as_array) {
            Some(names) if !names.is_empty() => names.iter().filter_map(Value::as_str).collect(),
            _ => properties.keys().map(String::as_str).collect(),
        };
        let mut object = Map::new();
        for name in required {
            let schema = properties.get(name).unwrap_or(&Value::Null);
            object.insert(name.to_owned(), self.value(schema, name, depth + 1));
        }
        Value::Object(object)
    }

    fn list(&mut self, schema: &'a Value, name: &str, depth: usize) -> Value {
        let Some(items) = schema.get("items") else {
            return json!([]);
        };
        let bound = |bound: &str| {
            schema
                .get(bound)
                .and_then(Value::as_u64)
                .and_then(|items| usize::try_from(items).ok())
        };
        let length = bound("minItems")
            .unwrap_or(1)
            .max(1)
            .min(bound("maxItems").unwrap_or(LONGEST_LIST))
            .min(LONGEST_LIST);
        (0..length).map(|_| self.value(items, name, depth + 1)).collect()
    }

    fn string(&mut self, schema: &Value, name: &str) -> String {
        let text = match schema.get("format").and_then(Value::as_str) {
            Some("date") => "2030-01-15".to_owned(),
            Some("time") => "09:30:00Z".to_owned(),
            Some("date-time") => "2030-01-15T09:30:00Z".to_owned(),
            Some("email") => "simulated@example.com".to_owned(),
            Some("uri" | "url") => "https://example.com/simulated".to_owned(),
            Some("uuid") => "00000000-0000-4000-8000-000000000000".to_owned(),
            _ => self.words(&name.to_lowercase()),
        };
        let bound = |bound: &str| {
            schema
                .get(bound)
                .and_then(Value::as_u64)
                .and_then(|chars| usize::try_from(chars).ok())
        };
        let padding = bound("minLength")
            .unwrap_or(0)
            .min(LONGEST_QUOTE)
            .saturating_sub(text.chars().count());
        let padded = text.chars().chain(std::iter::repeat_n('.', padding));
        padded.take(bound("maxLength").unwrap_or(usize::MAX)).collect()
    }

    /// Words of the prompt for the property `name`.
    fn words(&mut self, name: &str) -> String {
        let named_like = |hints: &[&str]| hints.iter().any(|hint| name.contains(hint));
        if named_like(&[
            "query", "text", "question", "prompt", "message", "content", "summary", "answer",
        ]) {
            return self.prompt.trim().chars().take(LONGEST_QUOTE).collect();
        }
        if !self.names.is_empty() {
            self.names_used += 1;
            return self.names[(self.names_used - 1) % self.names.len()].clone();
        }
        self.topics
            .first()
            .map_or_else(|| "simulated".to_owned(), |topic| (*topic).to_owned())
    }

    fn number(&mut self, schema: &Value) -> f64 {
        let mentioned = self.numbers.get(self.numbers_used).copied();
        self.numbers_used += usize::from(mentioned.is_some());
        let bound = |inclusive: &str, exclusive: &str, step: f64| {
            let exclusive = schema.get(exclusive).and_then(Value::as_f64).map(|bound| bound + step);
            schema.get(inclusive).and_then(Value::as_f64).or(exclusive)
        };
        let low = bound("minimum", "exclusiveMinimum", 1.0).unwrap_or(f64::MIN);
        let high = bound("maximum", "exclusiveMaximum", -1.0).unwrap_or(f64::MAX);
        mentioned.unwrap_or(1.0).max(low).min(high)
    }
}

fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        _ if schema.get("properties").is_some() => Some("object"),
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float too large for an integer saturates, which will do"
)]
fn integer(number: f64) -> i64 {
    number.round() as i64
}

fn numbers(prompt: &str) -> Vec<f64> {
    let pieces = prompt.split(|char: char| !char.is_ascii_digit() && char != '.' && char != '-');
    pieces
        .filter_map(|piece| piece.trim_end_matches(['.', '-']).parse().ok())
        .filter(|n: &f64| n.is_finite())
        .collect()
}

/// Quoted words, and runs of capitalised words that do not begin a sentence: `New York` in "Is it cold in New York?".
fn proper_names(prompt: &str) -> Vec<String> {
    let mut names: Vec<String> = prompt.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let mut run: Vec<&str> = Vec::new();
    let mut at_start = true;
    for word in prompt.split_whitespace() {
        let bare = word.trim_matches(|char: char| !char.is_alphanumeric());
        let capitalised = bare.len() > 1 && bare.chars().next().is_some_and(char::is_uppercase);
        if capitalised && !at_start {
            run.push(bare);
        }
        let ends_run = !capitalised || !word.ends_with(char::is_alphanumeric);
        if ends_run && !run.is_empty() {
            names.push(run.join(" "));
            run.clear();
        }
        at_start = word.ends_with(['.', '!', '?', ':']);
    }
    if !run.is_empty() {
        names.push(run.join(" "));
    }
    names.retain(|name| !name.trim().is_empty());
    names
}
