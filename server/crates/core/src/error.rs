//! What went wrong with a request, as three facts: what kind, whose fault, and whether trying again can help.
//!
//! The status a caller gets, the step the pipeline takes next and the word in the log are each one `match` over these
//! facts, so that they cannot drift apart.

use std::time::Duration;

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Client,
    Gateway,
    Upstream,
}

/// The widest thing that may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same request fails everywhere.
    Never,
    /// Another target may answer; this one will not.
    Next,
    /// The same target may answer if asked again.
    Same,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    // === the client's ===
    InvalidRequest,
    RequestTooLarge,
    ModelNotFound,
    /// Its project may not use what would answer.
    NotAllowed,
    /// It asks for something that a target's wire cannot express. Another's may.
    Unsupported,
    // === the gateway's ===
    /// The request's own deadline passed.
    Deadline,
    /// Every candidate is out of service before it was asked.
    NoTarget,
    /// A target's circuit breaker does not let the call through.
    BreakerOpen,
    /// A target has as many calls as it may have, and as many wait.
    Saturated,
    /// What the operator allows to be sent to a target is used up.
    OverQuota,
    /// A fault of this program.
    Internal,
    // === the upstream's ===
    /// Never reached: refused, unknown name, TLS.
    Connect,
    /// No answer within the attempt's bound, or its own 408 or 504.
    Timeout,
    /// The connection broke.
    Broken,
    RateLimit,
    /// What the gateway's account may spend there is used up: 402, or a body that says so under any status.
    Quota,
    /// 401 or 403: the gateway's credential, never the caller's.
    Auth,
    NotFound,
    /// 400 or 422.
    Refused,
    /// The prompt does not fit this model.
    ContextLength,
    ServerError,
    /// An answer that is none: not JSON, not what was asked for.
    BadAnswer,
    /// A stream ended before its end.
    Cut,
    /// Any other status.
    Unexpected,
}

impl Kind {
    /// The word for logs, metrics and pages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::RequestTooLarge => "request_too_large",
            Self::ModelNotFound => "model_not_found",
            Self::NotAllowed => "not_allowed",
            Self::Unsupported => "unsupported",
            Self::Deadline => "gateway_timeout",
            Self::NoTarget => "no_target",
            Self::BreakerOpen => "breaker_open",
            Self::Saturated => "saturated",
            Self::OverQuota => "over_quota",
            Self::Internal => "internal",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
            Self::RateLimit => "rate_limit",
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::NotFound => "not_found",
            Self::Refused => "refused",
            Self::ContextLength => "context_length",
            Self::ServerError => "server_error",
            Self::BadAnswer => "bad_answer",
            Self::Cut => "cut",
            Self::Unexpected => "unexpected_status",
        }
    }

    #[must_use]
    pub const fn source(self) -> Source {
        match self {
            Self::InvalidRequest
            | Self::RequestTooLarge
            | Self::ModelNotFound
            | Self::NotAllowed
            | Self::Unsupported => Source::Client,
            Self::Deadline
            | Self::NoTarget
            | Self::BreakerOpen
            | Self::Saturated
            | Self::OverQuota
            | Self::Internal => Source::Gateway,
            Self::Connect
            | Self::Timeout
            | Self::Broken
            | Self::RateLimit
            | Self::Quota
            | Self::Auth
            | Self::NotFound
            | Self::Refused
            | Self::ContextLength
            | Self::ServerError
            | Self::BadAnswer
            | Self::Cut
            | Self::Unexpected => Source::Upstream,
        }
    }

    #[must_use]
    pub const fn retry(self) -> Retry {
        match self {
            Self::Connect | Self::Timeout | Self::Broken | Self::RateLimit | Self::ServerError => Retry::Same,
            Self::Unsupported
            | Self::ContextLength
            | Self::BadAnswer
            | Self::Cut
            | Self::Quota
            | Self::BreakerOpen
            | Self::Saturated
            | Self::OverQuota => Retry::Next,
            Self::InvalidRequest
            | Self::RequestTooLarge
            | Self::ModelNotFound
            | Self::NotAllowed
            | Self::Deadline
            | Self::NoTarget
            | Self::Internal
            | Self::Auth
            | Self::NotFound
            | Self::Refused
            | Self::Unexpected => Retry::Never,
        }
    }
}

/// How a failure is told to a caller: status, the dialect's type and the stable code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face {
    pub status: u16,
    pub kind: &'static str,
    pub code: &'static str,
}

/// A failed request, or a failed attempt of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: Kind,
    /// For the caller. Names no credential.
    pub message: String,
    /// The upstream's HTTP status, where it answered.
    pub status: Option<u16>,
    /// How long the upstream asked to be left alone.
    pub retry_after: Option<Duration>,
    /// The field of the request that is wrong, where one is named.
    pub param: Option<String>,
    /// The upstream's own code, such as `context_length_exceeded`.
    pub upstream_code: Option<String>,
    /// Where callers know a failure by something more exact than its kind.
    pub told_as: Option<Box<Face>>,
}

impl Error {
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            param: None,
            upstream_code: None,
            told_as: None,
        }
    }

    /// What the caller is told. An upstream that refuses the gateway's credential is no fault of the caller's key, so it
    /// shows as a bad gateway.
    #[must_use]
    pub fn face(&self) -> Face {
        const fn face(status: u16, kind: &'static str, code: &'static str) -> Face {
            Face { status, kind, code }
        }
        if let Some(face) = &self.told_as {
            return **face;
        }
        match self.kind {
            Kind::InvalidRequest => face(400, "invalid_request_error", "invalid_request"),
            Kind::RequestTooLarge => face(413, "invalid_request_error", "request_too_large"),
            Kind::ModelNotFound | Kind::NotFound => face(404, "invalid_request_error", "model_not_found"),
            Kind::NotAllowed => face(403, "permission_error", "target_not_allowed"),
            Kind::Unsupported => face(400, "invalid_request_error", "unsupported_parameter"),
            Kind::Deadline => face(504, "timeout_error", "gateway_timeout"),
            Kind::NoTarget | Kind::BreakerOpen => face(503, "server_error", "upstream_unavailable"),
            Kind::Saturated => face(429, "rate_limit_error", "provider_saturated"),
            Kind::OverQuota => face(429, "rate_limit_error", "rate_limit_exceeded"),
            Kind::Internal => face(500, "server_error", "routing_error"),
            Kind::Timeout => face(504, "timeout_error", "upstream_timeout"),
            Kind::RateLimit | Kind::Quota => face(429, "rate_limit_error", "rate_limit_exceeded"),
            Kind::Auth => face(502, "upstream_error", "upstream_auth_error"),
            Kind::Refused => match self.status {
                Some(422) => face(422, "invalid_request_error", "invalid_request"),
                _ => face(400, "invalid_request_error", "invalid_request"),
            },
            Kind::ContextLength => face(400, "invalid_request_error", "context_length_exceeded"),
            Kind::Connect | Kind::Broken | Kind::ServerError | Kind::BadAnswer | Kind::Unexpected => {
                face(502, "upstream_error", "upstream_error")
            }
            Kind::Cut => face(502, "upstream_error", "stream_error"),
        }
    }

    /// The same, told to callers in these words.
    #[must_use]
    pub fn told_as(mut self, status: u16, kind: &'static str, code: &'static str) -> Self {
        self.told_as = Some(Box::new(Face { status, kind, code }));
        self
    }

    #[must_use]
    pub fn with_param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }
}
