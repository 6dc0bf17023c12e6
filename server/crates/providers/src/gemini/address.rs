//! Where Google's models are.
//!
//! A model is a path, and the method hangs on it with a colon: `{base}/models/gemini-2.5-pro:generateContent`. Vertex AI has
//! its models below their publisher. So a model's name may hold more than one segment, and what it holds must not become another
//! address: all but the separators of a known form is encoded, and a name of dots alone is none.

use super::GoogleService;
use http::Uri;
use std::fmt::Write as _;
use switchyard_core::error::{Error, Kind};

/// The address of one of a model's methods.
///
/// # Errors
/// When the name is no model's.
pub(super) fn of_method(base: &str, service: GoogleService, model: &str, method: &str) -> Result<Uri, Error> {
    let unusable = || {
        let message = format!("`model` is no name of a model: {model}");
        Error::new(Kind::InvalidRequest, message).with_param("model")
    };
    let (base, segments) = place(base, service, model);
    let mut address = base.to_owned();
    for segment in &segments {
        if segment.is_empty() || segment.bytes().all(|byte| byte == b'.') {
            return Err(unusable());
        }
        address.push('/');
        encode(segment, &mut address);
    }
    address.push(':');
    address.push_str(method);
    address.parse().map_err(|_| unusable())
}

/// The listing of models.
pub(super) fn of_listing(base: &str, service: GoogleService) -> Option<Uri> {
    let address = match service {
        GoogleService::Gemini => format!("{base}/models"),
        // What Google publishes is no project's, and only the newer version of the API lists it.
        GoogleService::Vertex => match base.split_once("/projects/") {
            Some((root, _)) => {
                let root = root
                    .strip_suffix("/v1")
                    .map_or_else(|| root.to_owned(), |host| format!("{host}/v1beta1"));
                format!("{root}/publishers/google/models")
            }
            None => format!("{base}/publishers/google/models"),
        },
    };
    address.parse().ok()
}

fn place<'a>(base: &'a str, service: GoogleService, model: &'a str) -> (&'a str, Vec<&'a str>) {
    let parts: Vec<&str> = model.split('/').collect();
    match (service, parts.as_slice()) {
        (GoogleService::Gemini, ["models" | "tunedModels", _]) => (base, parts),
        (GoogleService::Gemini, _) => (base, vec!["models", model]),
        (GoogleService::Vertex, ["publishers", _, "models", _] | ["endpoints", _]) => (base, parts),
        (GoogleService::Vertex, ["projects", ..]) if parts.len() > 2 => {
            let root = base.split_once("/projects/").map_or(base, |(root, _)| root);
            (root, parts)
        }
        (GoogleService::Vertex, ["models", name]) => (base, vec!["publishers", "google", "models", name]),
        (GoogleService::Vertex, [publisher, name]) => (base, vec!["publishers", publisher, "models", name]),
        (GoogleService::Vertex, _) => (base, vec!["publishers", "google", "models", model]),
    }
}

fn encode(segment: &str, out: &mut String) {
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            out.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// A model's bare name, for what depends on its kind.
pub(super) fn bare(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// The first number in the name of one of Google's models, such as 2 of `gemini-2.5-flash`. Nothing where it says none:
/// `gemini-flash-latest`.
pub(super) fn generation(model: &str) -> Option<u32> {
    let rest = bare(model).strip_prefix("gemini-")?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

/// Before the generation that thinks in levels and checks signatures. The names that say no number are newer.
pub(super) fn is_older(model: &str) -> bool {
    match generation(model) {
        Some(generation) => generation < 3,
        None => !bare(model).starts_with("gemini-"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::GoogleService::{Gemini, Vertex};
    use super::{generation, of_listing, of_method};

    const VERTEX: &str = "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu";

    #[test]
    fn a_model_is_found_by_any_of_its_names() {
        for (service, model, want) in [
            (Gemini, "gemini-2.5-pro", "https://x/v1beta/models/gemini-2.5-pro:m"),
            (
                Gemini,
                "models/gemini-2.5-pro",
                "https://x/v1beta/models/gemini-2.5-pro:m",
            ),
            (Gemini, "tunedModels/mine-1", "https://x/v1beta/tunedModels/mine-1:m"),
            (
                Gemini,
                "a/b?c#d:e é",
                "https://x/v1beta/models/a%2Fb%3Fc%23d%3Ae%20%C3%A9:m",
            ),
            (Gemini, "../keys", "https://x/v1beta/models/..%2Fkeys:m"),
            (Vertex, "gemini-2.5-pro", "{}/publishers/google/models/gemini-2.5-pro:m"),
            (
                Vertex,
                "gemini-2.5-pro@001",
                "{}/publishers/google/models/gemini-2.5-pro@001:m",
            ),
            (
                Vertex,
                "models/gemini-2.5-pro",
                "{}/publishers/google/models/gemini-2.5-pro:m",
            ),
            (
                Vertex,
                "google/gemini-2.5-pro",
                "{}/publishers/google/models/gemini-2.5-pro:m",
            ),
            (
                Vertex,
                "publishers/meta/models/llama",
                "{}/publishers/meta/models/llama:m",
            ),
            (Vertex, "endpoints/123", "{}/endpoints/123:m"),
            (
                Vertex,
                "projects/q/locations/us/endpoints/7",
                "https://eu-aiplatform.googleapis.com/v1/projects/q/locations/us/endpoints/7:m",
            ),
            (Vertex, "a/b/c", "{}/publishers/google/models/a%2Fb%2Fc:m"),
        ] {
            let base = if service == Gemini { "https://x/v1beta" } else { VERTEX };
            let made = of_method(base, service, model, "m").unwrap();
            assert_eq!(made.to_string(), want.replace("{}", VERTEX), "{model}");
        }
        for model in [
            "",
            "..",
            ".",
            "models/",
            "models/..",
            "publishers/../models/x",
            "a//b/../c",
        ] {
            let made = of_method(VERTEX, Vertex, model, "m");
            assert!(model == "a//b/../c" || made.is_err(), "{model}: {made:?}");
        }
        for model in ["", "..", "models/.."] {
            assert!(of_method("https://x", Gemini, model, "m").is_err(), "{model}");
        }
    }

    #[test]
    fn listings_are_where_each_service_has_them() {
        assert_eq!(
            of_listing("https://x/v1beta", Gemini).unwrap().to_string(),
            "https://x/v1beta/models"
        );
        assert_eq!(
            of_listing(VERTEX, Vertex).unwrap().to_string(),
            "https://eu-aiplatform.googleapis.com/v1beta1/publishers/google/models"
        );
    }

    #[test]
    fn a_name_says_which_generation_it_is() {
        assert_eq!(generation("models/gemini-2.5-flash"), Some(2));
        assert_eq!(generation("gemini-3-pro-preview"), Some(3));
        assert_eq!(generation("gemini-flash-latest"), None);
        assert_eq!(generation("gemma-3-27b-it"), None);
    }
}
