//! Where an upstream is, and what every request to it carries.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use switchyard_core::error::{Error, Kind};
use switchyard_core::secret::Secret;

/// A setting that cannot become a request.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Unusable(pub(crate) String);

/// A credential as a header's value, `before` it included, which cannot be printed.
pub(crate) fn secret_value(before: &str, secret: &Secret) -> Result<HeaderValue, Unusable> {
    let mut value = HeaderValue::from_str(&format!("{before}{}", secret.expose()))
        .map_err(|_| Unusable("the credential holds a character that no header may hold".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The operator's own headers. They may be secrets too.
pub(crate) fn own_headers(headers: &[(String, String)]) -> Result<HeaderMap, Unusable> {
    let mut own = HeaderMap::new();
    for (name, value) in headers {
        let unusable = || {
            Unusable(format!(
                "header \"{name}\" cannot be sent: wrong characters in its name or value"
            ))
        };
        let name_parsed: HeaderName = name.parse().map_err(|_| unusable())?;
        let mut value: HeaderValue = value.parse().map_err(|_| unusable())?;
        value.set_sensitive(true);
        own.insert(name_parsed, value);
    }
    Ok(own)
}

/// The same headers for a body of JSON whose answer is to be of some type.
pub(crate) fn accepting(own: &HeaderMap, accept: &'static str) -> HeaderMap {
    let mut headers = own.clone();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    headers
}

/// A request with a body. The client's headers of these names go up, unless the operator has set them.
pub(crate) fn post(
    address: Option<Uri>,
    headers: &HeaderMap,
    client: &HeaderMap,
    allowed: &[HeaderName],
    body: Bytes,
) -> Result<http::Request<Bytes>, Error> {
    let address =
        address.ok_or_else(|| Error::new(Kind::Internal, "the provider's base_url makes no valid address"))?;
    let mut request = http::Request::new(body);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = address;
    *request.headers_mut() = headers.clone();
    let headers = request.headers_mut();
    for name in allowed {
        if let Some(value) = client.get(name).filter(|_| !headers.contains_key(name)) {
            headers.insert(name.clone(), value.clone());
        }
    }
    Ok(request)
}

/// Headers of a client that never go up with a request that is passed on as it is: credentials and cookies, what belongs to its
/// connection, what is the gateway's, and what says which way it came.
const KEPT_HERE: [&str; 22] = [
    "accept-encoding",
    "api-key",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
    "x-goog-api-key",
    "x-provider",
    "x-real-ip",
];

/// A request that is passed on as it is, but for whose it is.
pub(crate) fn foreign(
    method: Method,
    address: Option<Uri>,
    own: &HeaderMap,
    client: &HeaderMap,
    body: Bytes,
) -> Result<http::Request<Bytes>, Error> {
    let address =
        address.ok_or_else(|| Error::new(Kind::InvalidRequest, "the path makes no valid address at the upstream"))?;
    let mut request = http::Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = address;
    let headers = request.headers_mut();
    let named_by_connection = connection_names(client);
    for (name, value) in client {
        let word = name.as_str();
        let stays = KEPT_HERE.contains(&word)
            || [
                "x-gateway-",
                "x-forwarded-",
                "x-request-id",
                "x-user-id",
                "x-session-id",
                "sec-",
                "origin",
                "referer",
            ]
            .iter()
            .any(|prefix| word.starts_with(prefix))
            || named_by_connection.iter().any(|named| named == word);
        if !stays {
            headers.append(name.clone(), value.clone());
        }
    }
    for (name, value) in own {
        headers.insert(name.clone(), value.clone());
    }
    Ok(request)
}

/// Headers that a client's `Connection` says are for its own connection.
fn connection_names(client: &HeaderMap) -> Vec<String> {
    let values = client.get_all(header::CONNECTION).iter();
    let names = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    names.map(|name| name.trim().to_ascii_lowercase()).collect()
}
