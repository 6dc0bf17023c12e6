//! What the simulated upstream says when it does not answer, in the shape of OpenAI's errors.

use super::wire;
use crate::ports::UpstreamBody;
use http::{HeaderValue, Method, Response, StatusCode, header};
use serde::Serialize;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    status: StatusCode,
    message: String,
    kind: &'static str,
    /// The request's field that is at fault.
    param: Option<String>,
    code: Option<&'static str>,
    retry_after_seconds: Option<u16>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    message: &'a str,
    r#type: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

impl Refusal {
    fn invalid(status: StatusCode, message: String, param: Option<String>, code: Option<&'static str>) -> Self {
        Self {
            status,
            message,
            kind: "invalid_request_error",
            param,
            code,
            retry_after_seconds: None,
        }
    }

    pub(super) fn bad_json() -> Self {
        let message = "We could not parse the JSON body of your request. (simulated)".to_owned();
        Self::invalid(StatusCode::BAD_REQUEST, message, None, None)
    }

    pub(super) fn missing(param: String) -> Self {
        let message = format!("Missing required parameter: '{param}'. (simulated)");
        Self::invalid(
            StatusCode::BAD_REQUEST,
            message,
            Some(param),
            Some("missing_required_parameter"),
        )
    }

    /// `expected` completes the sentence: "an integer".
    pub(super) fn wrong_type(param: String, expected: &str) -> Self {
        let message = format!("Invalid type for '{param}': expected {expected}. (simulated)");
        Self::invalid(StatusCode::BAD_REQUEST, message, Some(param), Some("invalid_type"))
    }

    /// `problem` completes the sentence: "must be at least 1".
    pub(super) fn bad_value(param: String, problem: &str) -> Self {
        let message = format!("Invalid value for '{param}': it {problem}. (simulated)");
        Self::invalid(StatusCode::BAD_REQUEST, message, Some(param), Some("invalid_value"))
    }

    pub(super) fn unknown_model(model: &str) -> Self {
        let message = format!("The model '{model}' does not exist here. (simulated)");
        Self::invalid(StatusCode::NOT_FOUND, message, None, Some("model_not_found"))
    }

    /// The model exists, but does something else.
    pub(super) fn wrong_endpoint(model: &str, endpoint: &str) -> Self {
        let message = format!("The model '{model}' is not served at {endpoint}. (simulated)");
        Self::invalid(StatusCode::NOT_FOUND, message, Some("model".to_owned()), None)
    }

    pub(super) fn unknown_path(method: &Method, path: &str) -> Self {
        Self::invalid(
            StatusCode::NOT_FOUND,
            format!("Invalid URL ({method} {path}) (simulated)"),
            None,
            None,
        )
    }

    pub(super) fn wrong_method(method: &Method, path: &str) -> Self {
        let message = format!("{method} is not allowed at {path}. (simulated)");
        Self::invalid(StatusCode::METHOD_NOT_ALLOWED, message, None, None)
    }

    pub(super) fn rate_limited() -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            message: "Rate limit reached for demo-429 (simulated). Please try again in 7s.".to_owned(),
            kind: "requests",
            param: None,
            code: Some("rate_limit_exceeded"),
            retry_after_seconds: Some(7),
        }
    }

    pub(super) fn server_error() -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            message: "The server had an error while processing your request. (simulated)".to_owned(),
            kind: "server_error",
            param: None,
            code: None,
            retry_after_seconds: None,
        }
    }

    pub(super) fn into_response(self) -> Response<UpstreamBody> {
        let detail = Detail {
            message: &self.message,
            r#type: self.kind,
            param: self.param.as_deref(),
            code: self.code,
        };
        let mut response = wire::json_response(&Envelope { error: detail });
        *response.status_mut() = self.status;
        if let Some(seconds) = self.retry_after_seconds {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
