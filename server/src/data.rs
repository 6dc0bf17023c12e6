//! `/v1` and `/v1beta`: what applications call.
//!
//! A surface is a path and a word. Every one of them goes through [`surface::answer`] into the same pipeline. A door is a path
//! by which calls come in, with what the path says about them: Gemini's names the model and what is wanted of it.

mod capabilities;
mod explain;
mod foreign;
mod models;
pub(crate) mod responses;
mod surface;

use crate::auth::{require_data, require_invoke};
use crate::http::fallback;
use crate::state::AppState;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, post};
pub(crate) use responses::Kept;
pub(crate) use surface::call;
use switchyard_providers::{Dialect, FromPath, Surface};

/// The paths where calls are made. They are on their own, because every request passes here.
const SURFACES: [(&str, Surface); 6] = [
    ("/v1/chat/completions", Surface::Chat),
    ("/v1/completions", Surface::Completions),
    ("/v1/embeddings", Surface::Embeddings),
    ("/v1/responses", Surface::Responses),
    ("/v1/messages", Surface::Messages),
    ("/v1/messages/count_tokens", Surface::CountTokens),
];

/// Below these, Gemini's clients name a model and a verb: `/v1beta/models/gemini-3-pro:generateContent`.
const GEMINI: [&str; 2] = ["/v1beta/models/", "/v1/models/"];

const GEMINI_VERBS: [(&str, Surface, bool); 3] = [
    ("generateContent", Surface::Generate, false),
    ("streamGenerateContent", Surface::Generate, true),
    ("countTokens", Surface::GeminiCountTokens, false),
];

/// Where a call comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Door {
    pub(crate) surface: Surface,
    pub(crate) path: Option<FromPath>,
}

/// The door that is there.
pub(crate) fn door_at(path: &str) -> Option<Door> {
    if let Some((_, surface)) = SURFACES.iter().find(|(at, _)| *at == path) {
        return Some(Door {
            surface: *surface,
            path: None,
        });
    }
    let rest = GEMINI.iter().find_map(|prefix| path.strip_prefix(prefix))?;
    // A model's id may hold colons too.
    let (model, verb) = rest.rsplit_once(':')?;
    let (_, surface, stream) = GEMINI_VERBS.iter().find(|(name, ..)| *name == verb)?;
    let model = percent_encoding::percent_decode_str(model).decode_utf8().ok()?;
    Some(Door {
        surface: *surface,
        path: Some(FromPath {
            model: model.into_owned(),
            stream: *stream,
        }),
    })
}

/// How whoever calls this path writes, as far as the path tells.
pub(crate) fn dialect_at(path: &str) -> Dialect {
    match path.strip_prefix("/v1") {
        Some(rest) if rest.starts_with("beta/") => Dialect::Gemini,
        Some(rest) if rest.starts_with("/messages") => Dialect::Anthropic,
        Some(rest) if rest.starts_with("/models/") && rest.contains(':') => {
            door_at(path).map_or(Dialect::OpenAi, |door| door.surface.dialect())
        }
        _ => Dialect::OpenAi,
    }
}

/// Everything but the calls themselves. Runs on the cores, where its connections live.
pub(crate) fn router(state: &AppState) -> Router {
    let spending = Router::new()
        // Nothing is spent, and whoever may call may ask what a call would do.
        .route("/v1/route/explain", post(explain::explain))
        .method_not_allowed_fallback(fallback::wrong_method)
        // What nobody here knows may be something that an upstream knows.
        .route("/v1/{*rest}", any(foreign::pass_on))
        .route_layer(from_fn_with_state(state.clone(), require_invoke));
    let reading = Router::new()
        .route("/v1/capabilities", get(capabilities::list))
        // Those of them that change something ask for more than to be let in.
        .route("/v1/responses/input_tokens", post(responses::input_tokens))
        .route("/v1/responses/compact", post(responses::compact))
        .route("/v1/responses/{id}", get(responses::get).delete(responses::delete))
        .route("/v1/responses/{id}/cancel", post(responses::cancel))
        .route("/v1/responses/{id}/input_items", get(responses::input_items))
        .route("/v1/models", get(models::list))
        // A model's id may hold slashes.
        .route("/v1/models/{*id}", get(models::one))
        .route("/v1beta/models", get(models::gemini_list))
        .route("/v1beta/models/{*id}", get(models::gemini_one))
        .method_not_allowed_fallback(fallback::wrong_method)
        .route_layer(from_fn_with_state(state.clone(), require_data));
    spending.merge(reading).with_state(state.clone())
}

#[cfg(test)]
mod tests {
    use super::{Door, door_at};
    use switchyard_providers::{FromPath, Surface};

    #[test]
    fn a_path_tells_surface_model_and_stream() {
        let gemini = |surface, model: &str, stream| {
            Some(Door {
                surface,
                path: Some(FromPath {
                    model: model.to_owned(),
                    stream,
                }),
            })
        };
        for (path, want) in [
            (
                "/v1/messages",
                Some(Door {
                    surface: Surface::Messages,
                    path: None,
                }),
            ),
            (
                "/v1beta/models/m:generateContent",
                gemini(Surface::Generate, "m", false),
            ),
            (
                "/v1beta/models/m:streamGenerateContent",
                gemini(Surface::Generate, "m", true),
            ),
            (
                "/v1beta/models/m:countTokens",
                gemini(Surface::GeminiCountTokens, "m", false),
            ),
            (
                "/v1beta/models/openai/gpt-5:2026:generateContent",
                gemini(Surface::Generate, "openai/gpt-5:2026", false),
            ),
            (
                "/v1beta/models/openai%2Fgpt-5:generateContent",
                gemini(Surface::Generate, "openai/gpt-5", false),
            ),
            ("/v1/models/m:generateContent", gemini(Surface::Generate, "m", false)),
            ("/v1beta/models/m", None),
            ("/v1beta/models/m:embedContent", None),
            ("/v1/models/m", None),
            ("/v1/messages/", None),
        ] {
            assert_eq!(door_at(path), want, "{path}");
        }
    }
}
