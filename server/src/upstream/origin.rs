//! Where a request goes: what decides which connections it may use.

use super::fault;
use http::uri::{Authority, PathAndQuery, Uri};
use std::hash::{Hash, Hasher};
use switchyard_engine::ports::TransportError;

/// Scheme and authority. The way there, direct or through a proxy, follows from it: the proxies of one transport never
/// change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) secure: bool,
    /// In small letters.
    authority: Authority,
}

/// In one piece: the authority's own goes byte by byte, so that letters of either size are the same to it.
impl Hash for Origin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.secure.hash(state);
        self.authority.as_str().hash(state);
    }
}

impl Origin {
    pub(super) fn of(uri: &Uri) -> Result<Self, TransportError> {
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(fault::connect("the address begins with neither http:// nor https://")),
        };
        let authority = uri
            .authority()
            .ok_or_else(|| fault::connect("the address names no host"))?;
        // A user's name and password are no part of where something is, and travel in headers only.
        let place = match authority.as_str().rsplit_once('@') {
            None => authority.as_str(),
            Some((_, place)) => place,
        };
        let authority = if place.len() == authority.as_str().len() && !place.contains(|c: char| c.is_ascii_uppercase())
        {
            authority.clone()
        } else {
            Authority::try_from(place.to_ascii_lowercase()).map_err(|_| fault::connect("the address names no host"))?
        };
        Ok(Self { secure, authority })
    }

    /// A name or an address, as the resolver takes it: IPv6 without brackets.
    pub(super) fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        let usual = if self.secure { 443 } else { 80 };
        self.authority.port_u16().unwrap_or(usual)
    }

    /// With its port, always: the form in which a proxy is asked for a tunnel.
    pub(super) fn with_port(&self) -> String {
        format!("{}:{}", self.authority.host(), self.port())
    }

    /// As a `Host` header has it: without the port where it is the usual one.
    pub(super) fn name(&self) -> &str {
        let usual = if self.secure { 443 } else { 80 };
        match self.authority.port_u16() {
            Some(port) if port != usual => self.authority.as_str(),
            _ => self.authority.host(),
        }
    }

    /// The whole address again, as HTTP/2 and proxies of plain HTTP want it.
    pub(super) fn absolute(&self, uri: &Uri) -> Uri {
        let scheme = if self.secure { "https" } else { "http" };
        let built = Uri::builder()
            .scheme(scheme)
            .authority(self.authority.clone())
            .path_and_query(path(uri))
            .build();
        built.unwrap_or_else(|_| uri.clone())
    }
}

fn path(uri: &Uri) -> PathAndQuery {
    let path = uri.path_and_query().cloned();
    path.unwrap_or_else(|| PathAndQuery::from_static("/"))
}
