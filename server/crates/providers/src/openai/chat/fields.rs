//! Members of a request, taken out of it by type, and errors that name them.
//!
//! A path is a chain of steps on the stack: it becomes a text where somebody has to be told, and costs nothing elsewhere.

use crate::Call;
use crate::ir::Stranger;
use serde_json::{Map, Number, Value};
use std::fmt::{self, Display};
use switchyard_core::error::{Error, Kind};

/// Where something stands in a body, such as `messages[2].content[0].image_url`.
#[derive(Clone, Copy)]
pub(in crate::openai) struct At<'a> {
    before: Option<&'a Self>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

impl<'a> At<'a> {
    pub(in crate::openai) const fn top(key: &'a str) -> Self {
        Self {
            before: None,
            step: Step::Key(key),
        }
    }

    pub(in crate::openai) const fn key(&'a self, key: &'a str) -> Self {
        Self {
            before: Some(self),
            step: Step::Key(key),
        }
    }

    pub(in crate::openai) const fn item(&'a self, index: usize) -> Self {
        Self {
            before: Some(self),
            step: Step::Item(index),
        }
    }

    pub(in crate::openai) fn wrong(&self, must: &str) -> Error {
        let path = self.to_string();
        Error::new(Kind::InvalidRequest, format!("`{path}` {must}")).with_param(path)
    }

    pub(in crate::openai) fn text(&self, value: Value) -> Result<String, Error> {
        match value {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong("must be a text")),
        }
    }

    pub(in crate::openai) fn number(&self, value: &Value) -> Result<f64, Error> {
        value.as_f64().ok_or_else(|| self.wrong("must be a number"))
    }

    /// A whole number; `4.0` is one too.
    pub(in crate::openai) fn count(&self, value: &Value) -> Result<u64, Error> {
        let count = value.as_u64().or_else(|| whole(value)?.as_u64());
        count.ok_or_else(|| self.wrong("must be a whole number that is not negative"))
    }

    pub(in crate::openai) fn integer(&self, value: &Value) -> Result<i64, Error> {
        let integer = value.as_i64().or_else(|| whole(value)?.as_i64());
        integer.ok_or_else(|| self.wrong("must be a whole number of 64 bits"))
    }

    pub(in crate::openai) fn flag(&self, value: &Value) -> Result<bool, Error> {
        value.as_bool().ok_or_else(|| self.wrong("must be true or false"))
    }

    pub(in crate::openai) fn object(&self, value: Value) -> Result<Map<String, Value>, Error> {
        match value {
            Value::Object(object) => Ok(object),
            _ => Err(self.wrong("must be an object")),
        }
    }

    pub(in crate::openai) fn list(&self, value: Value) -> Result<Vec<Value>, Error> {
        match value {
            Value::Array(list) => Ok(list),
            _ => Err(self.wrong("must be a list")),
        }
    }

    pub(in crate::openai) fn stranger(&self, value: Value) -> Stranger {
        Stranger {
            field: self.to_string(),
            value,
        }
    }
}

/// A number that was written with a fraction of nothing, or with an exponent.
fn whole(value: &Value) -> Option<Number> {
    let written = value.as_f64().filter(|number| number.fract() == 0.0)?;
    // Without an exponent, up to where a float tells whole numbers apart.
    (written.abs() < 9e15).then(|| format!("{written:.0}").parse().ok())?
}

impl Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            before.fmt(f)?;
        }
        match (self.step, self.before) {
            (Step::Key(key), None) => f.write_str(key),
            (Step::Key(key), Some(_)) => write!(f, ".{key}"),
            (Step::Item(index), _) => write!(f, "[{index}]"),
        }
    }
}

/// The members of a call's body, in their order.
pub(in crate::openai) fn body(call: &Call) -> Result<Map<String, Value>, Error> {
    serde_json::from_slice(&call.body).map_err(|error| {
        let message = format!("the body is not a valid JSON object: {error}");
        Error::new(Kind::InvalidRequest, message)
    })
}

/// What an object says under a key, if it is a text.
pub(in crate::openai) fn word<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::At;
    use serde_json::json;

    #[test]
    fn a_path_is_written_as_a_caller_writes_it() {
        let messages = At::top("messages");
        let message = messages.item(2);
        let content = message.key("content");
        let part = content.item(0);
        let error = part.key("image_url").wrong("must be a text");
        assert_eq!(error.message, "`messages[2].content[0].image_url` must be a text");
        assert_eq!(error.param.as_deref(), Some("messages[2].content[0].image_url"));
    }

    #[test]
    fn whole_numbers_are_read_however_they_are_written() {
        let at = At::top("n");
        assert_eq!(at.count(&json!(4)).ok(), Some(4));
        assert_eq!(at.count(&json!(4.0)).ok(), Some(4));
        assert_eq!(at.count(&json!(4e3)).ok(), Some(4000));
        assert_eq!(at.integer(&json!(-4.0)).ok(), Some(-4));
        for odd in [json!(-1), json!(0.5), json!("4"), json!(1e300), json!([])] {
            assert!(at.count(&odd).is_err(), "{odd}");
        }
    }
}
