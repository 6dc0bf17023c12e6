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
    /// Says the same, wherever it stands and in whatever order its keys are.
    pub(super) fn says(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b).is_eq(),
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Seq(a), Self::Seq(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.value.says(&b.value)),
            (Self::Map(a), Self::Map(b)) => {
                let found = |(key, a): &(String, Node)| b.iter().any(|(k, b)| k == key && a.value.says(&b.value));
                a.len() == b.len() && a.iter().all(found)
            }
            _ => false,
        }
    }

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
            let message = match message.lines().next() {
                Some(said) if said.starts_with("multiple YAML documents") => "a second document begins here; keep one",
                Some(said) => said,
                None => "not valid YAML or JSON",
            };
            Issue::new("", line, message)
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
