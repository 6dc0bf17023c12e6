//! Members of a JSON object, taken out one by one: what is left at the end is what nobody knew.

use crate::ir::Stranger;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use switchyard_core::error::{Error, Kind};

pub(super) fn wrong(field: &str, must: &str) -> Error {
    Error::new(Kind::InvalidRequest, format!("`{field}` {must}")).with_param(field)
}

/// An object, and its path in the body.
pub(super) struct Fields<'a> {
    path: String,
    members: BTreeMap<String, &'a RawValue>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(raw: &'a RawValue, path: String) -> Result<Self, Error> {
        let members = serde_json::from_str(raw.get()).map_err(|_| wrong(&path, "must be an object"))?;
        Ok(Self { path, members })
    }

    pub(super) fn of_body(body: &'a [u8]) -> Result<Self, Error> {
        let members = serde_json::from_slice(body).map_err(|error| {
            Error::new(
                Kind::InvalidRequest,
                format!("the body is not a valid JSON object: {error}"),
            )
        })?;
        Ok(Self {
            path: String::new(),
            members,
        })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn field(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// The member as it is written; `null` is none.
    pub(super) fn raw(&mut self, key: &str) -> Option<&'a RawValue> {
        self.members.remove(key).filter(|raw| raw.get() != "null")
    }

    pub(super) fn take<T: Deserialize<'a>>(&mut self, key: &str, must: &str) -> Result<Option<T>, Error> {
        let Some(raw) = self.raw(key) else {
            return Ok(None);
        };
        serde_json::from_str(raw.get())
            .map(Some)
            .map_err(|_| wrong(&self.field(key), must))
    }

    pub(super) fn need<T: Deserialize<'a>>(&mut self, key: &str, must: &str) -> Result<T, Error> {
        let value = self.take(key, must)?;
        value.ok_or_else(|| wrong(&self.field(key), &format!("is required, and {must}")))
    }

    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, Error> {
        self.take(key, "must be a text")
    }

    pub(super) fn need_text(&mut self, key: &str) -> Result<String, Error> {
        self.need(key, "must be a text")
    }

    pub(super) fn value(&mut self, key: &str) -> Result<Option<Value>, Error> {
        self.take(key, "must be valid JSON")
    }

    pub(super) fn object(&mut self, key: &str) -> Result<Option<Self>, Error> {
        let path = self.field(key);
        self.raw(key).map(|raw| Self::of(raw, path)).transpose()
    }

    /// What is left, with where it stands.
    pub(super) fn strangers(self) -> Vec<Stranger> {
        let path = &self.path;
        let stranger = |(key, raw): (String, &RawValue)| Stranger {
            field: if path.is_empty() { key } else { format!("{path}.{key}") },
            value: serde_json::from_str(raw.get()).unwrap_or_default(),
        };
        self.members.into_iter().map(stranger).collect()
    }
}
