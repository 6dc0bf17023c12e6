//! Reading a request's fields by name, so that an error can name the field.
//!
//! Derived deserialisation would be shorter, but it reports a byte offset where OpenAI reports a parameter. As there,
//! `null` is the same as absent and unknown fields are no error.

use super::refusal::Refusal;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// An object of the request, and where it stands in it.
pub(super) struct Fields<'a> {
    object: &'a Map<String, Value>,
    /// Empty for the body itself.
    path: String,
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, path: String) -> Result<Self, Refusal> {
        match value.as_object() {
            Some(object) => Ok(Self { object, path }),
            None if path.is_empty() => Err(Refusal::bad_json()),
            None => Err(Refusal::wrong_type(path, "an object")),
        }
    }

    /// The full name of one of this object's fields: `messages[0].role`.
    pub(super) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    fn typed<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value)
            .map(Some)
            .ok_or_else(|| Refusal::wrong_type(self.path_of(name), expected))
    }

    pub(super) fn string(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        self.typed(name, "a string", Value::as_str)
    }

    pub(super) fn required_string(&self, name: &str) -> Result<&'a str, Refusal> {
        self.string(name)?.ok_or_else(|| Refusal::missing(self.path_of(name)))
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, Refusal> {
        Ok(self.typed(name, "a boolean", Value::as_bool)?.unwrap_or(default))
    }

    pub(super) fn array(&self, name: &str) -> Result<Option<&'a Vec<Value>>, Refusal> {
        self.typed(name, "an array", Value::as_array)
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<Self>, Refusal> {
        self.get(name)
            .map(|value| Self::of(value, self.path_of(name)))
            .transpose()
    }

    /// Any integer; a negative one keeps its bits.
    pub(super) fn seed(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.typed(name, "an integer", |value| {
            value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned))
        })
    }

    pub(super) fn count(&self, name: &str, range: RangeInclusive<usize>) -> Result<Option<usize>, Refusal> {
        let Some(count) = self.typed(name, "an integer", |value| value.as_i64())? else {
            return Ok(None);
        };
        match usize::try_from(count) {
            Ok(count) if range.contains(&count) => Ok(Some(count)),
            _ if *range.end() == usize::MAX => Err(Refusal::bad_value(
                self.path_of(name),
                &format!("must be at least {}", range.start()),
            )),
            _ => {
                let problem = format!("must be between {} and {}", range.start(), range.end());
                Err(Refusal::bad_value(self.path_of(name), &problem))
            }
        }
    }

    pub(super) fn number(&self, name: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, Refusal> {
        match self.typed(name, "a number", Value::as_f64)? {
            Some(number) if !range.contains(&number) => {
                let problem = format!("must be between {} and {}", range.start(), range.end());
                Err(Refusal::bad_value(self.path_of(name), &problem))
            }
            number => Ok(number),
        }
    }
}
