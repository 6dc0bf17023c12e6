//! A browser sends its cookie along whoever asked it to. A change must come from our own pages.

use http::{HeaderMap, Method, header};

/// Whether the browser says that one of our own pages asks. Clients that are no browsers carry no cookie and are not
/// asked; one that carries the cookie and says nothing about its origin is refused.
pub(crate) fn is_same_origin(method: &Method, headers: &HeaderMap) -> bool {
    if method.is_safe() {
        return true;
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    match (text(header::ORIGIN.as_str()), text(header::HOST.as_str())) {
        (Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, origin)| origin == host),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_same_origin;
    use http::{HeaderMap, HeaderName, Method};

    #[test]
    fn a_change_must_come_from_our_own_pages() {
        for (method, headers, want) in [
            (Method::GET, &[][..], true),
            (Method::POST, &[], false),
            (Method::POST, &[("sec-fetch-site", "same-origin")], true),
            (Method::POST, &[("sec-fetch-site", "same-site")], false),
            (
                Method::POST,
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("origin", "http://a:1"),
                    ("host", "a:1"),
                ],
                false,
            ),
            (Method::DELETE, &[("origin", "http://a:1"), ("host", "a:1")], true),
            (Method::DELETE, &[("origin", "http://b"), ("host", "a:1")], false),
            (Method::DELETE, &[("origin", "null"), ("host", "null")], false),
        ] {
            let map: HeaderMap = headers
                .iter()
                .map(|(n, v)| (HeaderName::from_static(n), v.parse().unwrap()))
                .collect();
            assert_eq!(is_same_origin(&method, &map), want, "{method} {headers:?}");
        }
    }
}
