//! Amazon Bedrock's wire: `Converse`, `ConverseStream`, and `InvokeModel` for embeddings.
//!
//! The model stands in the path, an ARN's slashes and all, and every request is signed over its final bytes (`SigV4`) unless
//! there is a key that is sent as it is. Nobody calls here in this dialect, so every call is translated.

pub(crate) mod common;
mod converse;
pub(crate) mod embed;
mod errors;
mod frames;
mod model;

use crate::notes::Notes;
use crate::params::WireKind;
use crate::site::{self, Unusable, accepting, own_headers, secret_value};
use crate::{Call, Encoded, Reply, StreamDecoder, Surface, Takes, Task, Terms, Wire, translate};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningError, SigningSettings, sign};
use aws_sigv4::sign::v4;
use bytes::Bytes;
use converse::Converse;
use http::{HeaderMap, StatusCode, header};
use std::fmt::Write as _;
use std::time::SystemTime;
use switchyard_core::error::{Error, Kind};
use switchyard_core::secret::Secret;

/// How AWS knows whose call it is.
#[derive(Clone)]
pub enum AwsAuth {
    /// A Bedrock API key, sent as a bearer token.
    Bearer(Secret),
    /// Requests are signed (`SigV4`).
    Keys {
        access_key_id: String,
        secret_access_key: Secret,
        session_token: Option<Secret>,
    },
    /// Neither: for a proxy that signs by itself.
    None,
}

/// The name that requests are signed for, which is not that of the host.
const SERVICE: &str = "bedrock";

/// Bedrock's wire.
pub struct Bedrock {
    base_url: String,
    region: String,
    credentials: Option<Credentials>,
    headers_for_answers: HeaderMap,
    headers_for_streams: HeaderMap,
}

impl Bedrock {
    /// Without a `base_url` it is the region's own.
    ///
    /// # Errors
    /// When the credential or a header holds a character that no header may hold.
    pub fn new(base_url: &str, region: &str, auth: AwsAuth, headers: &[(String, String)]) -> Result<Self, Unusable> {
        let mut own = HeaderMap::new();
        let credentials = match auth {
            AwsAuth::Bearer(key) => {
                own.insert(header::AUTHORIZATION, secret_value("Bearer ", &key)?);
                None
            }
            AwsAuth::Keys {
                access_key_id,
                secret_access_key,
                session_token,
            } => {
                // It goes into a header as it is.
                secret_value("", &Secret::new(access_key_id.clone()))?;
                let token = session_token
                    .as_ref()
                    .map(|token| secret_value("", token).map(|_| token.expose().to_owned()));
                let token = token.transpose()?;
                let secret = secret_access_key.expose();
                Some(Credentials::new(access_key_id, secret, token, None, "switchyard"))
            }
            AwsAuth::None => None,
        };
        own.extend(own_headers(headers)?);
        let base_url = match base_url.trim_end_matches('/') {
            "" => format!("https://bedrock-runtime.{region}.amazonaws.com"),
            given => given.to_owned(),
        };
        Ok(Self {
            base_url,
            region: region.to_owned(),
            credentials,
            headers_for_answers: accepting(&own, "application/json"),
            headers_for_streams: accepting(&own, "application/vnd.amazon.eventstream"),
        })
    }

    fn sign(&self, request: &mut http::Request<Bytes>, now: SystemTime) -> Result<(), Error> {
        let Some(credentials) = &self.credentials else {
            return Ok(());
        };
        let signed = signed(request, &self.region, credentials, now);
        let instructions = signed.map_err(|error| {
            let message = format!("the request could not be signed: {error}");
            Error::new(Kind::Internal, message)
        })?;
        instructions.apply_to_request_http1x(request);
        Ok(())
    }
}

type Instructions = aws_sigv4::http_request::SigningInstructions;

fn signed(
    request: &http::Request<Bytes>,
    region: &str,
    credentials: &Credentials,
    now: SystemTime,
) -> Result<Instructions, Box<dyn std::error::Error>> {
    let identity = credentials.clone().into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(SERVICE)
        .time(now)
        .settings(SigningSettings::default())
        .build()?
        .into();
    // Values that are no text are left out here and sent all the same.
    let text = |value: &'_ http::HeaderValue| std::str::from_utf8(value.as_bytes()).map(str::to_owned);
    let headers: Vec<(&str, String)> = request
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), text(value).ok()?)))
        .collect();
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
    let uri = request.uri().to_string();
    let signable = SignableRequest::new(
        request.method().as_str(),
        uri,
        headers,
        SignableBody::Bytes(request.body()),
    )?;
    let output = sign(signable, &params).map_err(|error: SigningError| Box::new(error))?;
    Ok(output.into_parts().0)
}

/// A model's id as one step of a path.
fn path_step(model: &str) -> String {
    let mut out = String::with_capacity(model.len());
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

impl Wire for Bedrock {
    fn kind(&self) -> WireKind {
        WireKind::Bedrock
    }

    fn takes(&self, _surface: Surface) -> Takes {
        Takes::Translated
    }

    fn encode(&self, call: &Call, model: &str, client: &HeaderMap, terms: &Terms) -> Result<Encoded, Error> {
        let mut notes = Notes::default();
        let policy = terms.on_unsupported;
        let (body, action) = match call.surface.task() {
            Task::Converse => {
                let back = Converse::default();
                let body = translate::conversation(call, model, WireKind::Bedrock, &back, policy, &mut notes)?;
                (body, if call.stream { "converse-stream" } else { "converse" })
            }
            Task::Embed => {
                let back = embed::back(model)?;
                let body = translate::embedding(call, model, WireKind::Bedrock, back, policy, &mut notes)?;
                (body, "invoke")
            }
            // They are answered here.
            Task::Count => return Err(Error::new(Kind::Unsupported, "Bedrock is not asked to count tokens")),
        };
        let address = format!("{}/model/{}/{action}", self.base_url, path_step(model));
        let headers = if call.stream {
            &self.headers_for_streams
        } else {
            &self.headers_for_answers
        };
        let mut request = site::post(address.parse().ok(), headers, client, &[], body.into())?;
        self.sign(&mut request, terms.now)?;
        Ok(Encoded { request, notes })
    }

    fn answer_here(&self, call: &Call) -> Option<Reply> {
        translate::count_here(call)
    }

    /// Models are listed by another service of AWS's, at another address.
    fn list_models(&self) -> Option<http::Request<Bytes>> {
        None
    }

    fn decode(&self, call: &Call, model: &str, body: Bytes) -> Result<Reply, Error> {
        match call.surface.task() {
            Task::Embed => translate::vectors(call, embed::back(model)?, &body),
            Task::Converse | Task::Count => translate::answer(call, &Converse::answering(call), &body),
        }
    }

    fn decoder(&self, call: &Call, _model: &str) -> Box<dyn StreamDecoder> {
        translate::stream(call, &Converse::answering(call))
    }

    fn failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error {
        errors::failure(status, headers, body, now)
    }
}

#[cfg(test)]
mod tests;
