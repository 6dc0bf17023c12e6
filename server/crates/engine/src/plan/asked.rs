//! What a request says about routing: in its model's name, its headers, and through its key.

use super::Asked;
use crate::request::Caller;
use crate::snapshot::Snapshot;
use http::{HeaderMap, HeaderName};
use std::collections::BTreeMap;
use std::sync::Arc;
use switchyard_core::error::{Error, Kind};
use switchyard_core::routing::{Fields, RouteId, is_virtual};

const ROUTE_HEADER: HeaderName = HeaderName::from_static("x-gateway-route");
const ONLY_HEADER: HeaderName = HeaderName::from_static("x-gateway-only");
const METADATA_HEADER: HeaderName = HeaderName::from_static("x-gateway-metadata");
pub(super) const SESSION_HEADER: HeaderName = HeaderName::from_static("x-session-id");
pub(super) const USER_HEADER: HeaderName = HeaderName::from_static("x-user-id");
/// Longest identity that a caller may assert; longer ones are ignored.
const LONGEST_IDENTITY: usize = 256;
const MOST_METADATA: usize = 32;
const LONGEST_METADATA: usize = 4 << 10;

pub(super) fn route_of(snapshot: &Snapshot, asked: &Asked<'_>, model: &str) -> Result<(RouteId, &'static str), Error> {
    let names = || some_of(snapshot.route_names());
    if let Some(name) = is_virtual(model) {
        return snapshot.router.find(name).map(|route| (route, "model")).ok_or_else(|| {
            let message = format!("there is no route {name}; routes here: {}", names());
            Error::new(Kind::ModelNotFound, message).with_param("model")
        });
    }
    if let Some(value) = asked.headers.get(ROUTE_HEADER) {
        let name = value.to_str().unwrap_or_default().trim();
        let name = is_virtual(name).unwrap_or(name);
        return snapshot
            .router
            .find(name)
            .map(|route| (route, "header"))
            .ok_or_else(|| {
                let message = format!("X-Gateway-Route names no route: {name:?}; routes here: {}", names());
                Error::new(Kind::InvalidRequest, message).with_param("X-Gateway-Route")
            });
    }
    let project = asked
        .caller
        .project
        .as_ref()
        .and_then(|name| snapshot.projects.get(name));
    let bound = [
        (asked.caller.route.as_ref(), "key"),
        (project.and_then(|project| project.route.as_ref()), "project"),
    ];
    for (name, by) in bound {
        let Some(name) = name else { continue };
        return snapshot.router.find(name).map(|route| (route, by)).ok_or_else(|| {
            let message = format!(
                "this key is bound to route {name}, which is not configured; routes here: {}",
                names()
            );
            Error::new(Kind::NoTarget, message)
        });
    }
    Ok((RouteId::DEFAULT, "default"))
}

/// The targets that `X-Gateway-Only` lists, by position.
pub(super) fn only_of(snapshot: &Snapshot, headers: &HeaderMap) -> Result<Option<Arc<[bool]>>, Error> {
    let values: Vec<&str> = headers
        .get_all(ONLY_HEADER)
        .iter()
        .map(|value| value.to_str().unwrap_or_default())
        .collect();
    if values.is_empty() {
        return Ok(None);
    }
    let wrong = |message: String| Error::new(Kind::InvalidRequest, message).with_param("X-Gateway-Only");
    let mut only = vec![false; snapshot.targets.len()];
    let names = values.iter().flat_map(|value| value.split(',')).map(str::trim);
    for name in names.filter(|name| !name.is_empty()) {
        let position = snapshot.position(name);
        let Some(allowed) = position.and_then(|position| only.get_mut(position)) else {
            let message = format!(
                "X-Gateway-Only names no configured target: {name:?}; targets here: {}",
                some_of(snapshot.targets.iter().map(|target| &*target.name))
            );
            return Err(wrong(message));
        };
        *allowed = true;
    }
    if !only.contains(&true) {
        let message = "X-Gateway-Only is empty: list the targets that may answer, or leave it out";
        return Err(wrong(message.to_owned()));
    }
    Ok(Some(only.into()))
}

/// Names for a message: there may be thousands.
pub(super) fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let mut names = names.peekable();
    let shown = names.by_ref().take(SHOWN).collect::<Vec<_>>().join(", ");
    let more = if names.peek().is_some() { ", …" } else { "" };
    shown + more
}

/// Where projects are configured, a key of another one is not let through: its allow-list may just have been renamed.
pub(super) fn known_project(snapshot: &Snapshot, caller: &Caller) -> Result<(), Error> {
    match &caller.project {
        Some(name) if !snapshot.takes_project(name) => {
            let message = format!("this key belongs to project {name}, which is not configured");
            Err(Error::new(Kind::NotAllowed, message))
        }
        Some(_) | None => Ok(()),
    }
}

/// The targets that the caller's project may use, by position.
pub(super) fn project_only(snapshot: &Snapshot, caller: &Caller) -> Option<Arc<[bool]>> {
    snapshot.allowed(caller.project.as_ref()?)
}

/// `X-Gateway-Metadata`: a small flat JSON object.
pub(super) fn metadata(headers: &HeaderMap) -> Result<BTreeMap<String, String>, Error> {
    let Some(value) = headers.get(METADATA_HEADER) else {
        return Ok(BTreeMap::new());
    };
    let wrong = |must: &str| {
        Error::new(Kind::InvalidRequest, format!("X-Gateway-Metadata {must}")).with_param("X-Gateway-Metadata")
    };
    if value.len() > LONGEST_METADATA {
        return Err(wrong(&format!("must not be longer than {LONGEST_METADATA} bytes")));
    }
    let fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(value.as_bytes()).map_err(|_| wrong("must be a JSON object"))?;
    if fields.len() > MOST_METADATA {
        return Err(wrong(&format!("must not have more than {MOST_METADATA} entries")));
    }
    let mut metadata = BTreeMap::new();
    for (name, value) in fields {
        let text = match value {
            serde_json::Value::String(text) => text,
            serde_json::Value::Bool(_) | serde_json::Value::Number(_) => value.to_string(),
            serde_json::Value::Null => continue,
            serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
                return Err(wrong(&format!("must hold plain values only; \"{name}\" is none")));
            }
        };
        metadata.insert(name, text);
    }
    Ok(metadata)
}

/// What a caller says about itself; ignored when it cannot be a name.
pub(super) fn identity(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    let plain = !value.is_empty() && value.len() <= LONGEST_IDENTITY && !value.chars().any(char::is_control);
    plain.then_some(value)
}

pub(super) struct Headers<'a>(pub(super) &'a HeaderMap);

impl Fields for Headers<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }
}
