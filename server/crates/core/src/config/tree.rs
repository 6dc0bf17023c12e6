//! The document as written: values with the place where each stands.
//!
//! YAML and JSON (a subset of it) go through the same parser, so that both show duplicate keys and both know their lines.
//! Nothing is judged here but syntax; [`super::reader`] walks the tree and collects every fault at once.

use super::issue::Issue;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::fmt;

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) line: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Seq(Vec<Node>),
    /// In the order written, duplicates included.
    Map(Vec<(String, Node)>),
}

impl Value {
    /// What it is, for a message: "a list".
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Str(_) => "a text",
            Self::Seq(_) => "a list",
            Self::Map(_) => "a block of keys",
        }
    }
}

/// Parses one document.
pub(super) fn parse(text: &str) -> Result<Node, Issue> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options::<Option<Node>>(text, options)
        .map_err(|error| {
            let line = error.location().map_or(1, |place| place.line());
            let message = error.to_string();
            Issue::new(
                "",
                line,
                message.lines().next().unwrap_or("not valid YAML or JSON").to_owned(),
            )
        })
        .map(|node| {
            node.unwrap_or(Node {
                value: Value::Map(Vec::new()),
                line: 1,
            })
        })
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self {
            value: spanned.value,
            line: spanned.referenced.line(),
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a number this large is refused by every field's bounds"
        )]
        Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Str(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Str(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Seq(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(Spanned {
            value: key, referenced, ..
        }) = map.next_key::<Spanned<String>>()?
        {
            let mut node: Node = map.next_value()?;
            // A block's own line is that of its key: "line 7" means where `targets:` stands.
            if matches!(node.value, Value::Map(_) | Value::Seq(_) | Value::Null) {
                node.line = referenced.line();
            }
            entries.push((key, node));
        }
        Ok(Value::Map(entries))
    }
}
