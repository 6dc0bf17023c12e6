use super::*;
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Method, Request},
    routing::get,
};
use tower::ServiceExt as _;

/// `app.wasm` in three variants, `small.js` in one.
fn find(name: &str) -> Option<File> {
    let (bytes, first) = match name {
        "app.wasm" => ("plain", 1),
        "app.wasm.br" => ("br", 2),
        "app.wasm.gz" => ("gz", 3),
        "small.js" => ("js", 4),
        _ => return None,
    };
    Some(File {
        bytes: Bytes::from_static(bytes.as_bytes()),
        sha256: [first; 32],
    })
}

fn ask(path: &str, headers: &[(&'static str, &str)]) -> Response {
    let headers = headers
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect();
    serve(path, &headers, &find)
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn the_wanted_variant_is_served_as_what_it_is() {
    let response = ask("app.wasm", &[("accept-encoding", "gzip, br")]);
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(header(&response, "content-encoding"), "br");
    assert_eq!(header(&response, "content-type"), "application/wasm");
    assert_eq!(header(&response, "vary"), "accept-encoding");
    assert_eq!(
        header(&response, "cache-control"),
        "public, max-age=31536000, immutable"
    );
    assert_eq!(header(&response, "x-content-type-options"), "nosniff");
    assert_eq!(to_bytes(response.into_body(), 99).await.unwrap(), "br");
}

#[test]
fn a_missing_variant_gives_way_to_the_next() {
    let response = ask("small.js", &[("accept-encoding", "br, gzip")]);
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!response.headers().contains_key("content-encoding"));
    assert_eq!(header(&response, "content-type"), "text/javascript; charset=utf-8");
}

#[test]
fn every_variant_has_a_tag_of_its_own() {
    let tag = |accept| header(&ask("app.wasm", &[("accept-encoding", accept)]), "etag").to_owned();
    assert_eq!(tag("br"), format!("\"{}\"", "02".repeat(16)));
    assert_eq!(tag("gzip"), format!("\"{}\"", "03".repeat(16)));
    assert_eq!(tag("identity"), format!("\"{}\"", "01".repeat(16)));
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    let tag = format!("\"{}\"", "02".repeat(16));
    for known in [
        tag.clone(),
        format!("W/{tag}"),
        format!("\"other\", {tag}"),
        "*".to_owned(),
    ] {
        let response = ask("app.wasm", &[("accept-encoding", "br"), ("if-none-match", &known)]);
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{known}");
        assert_eq!(header(&response, "etag"), tag);
        assert_eq!(header(&response, "vary"), "accept-encoding");
    }
    let response = ask("app.wasm", &[("accept-encoding", "gzip"), ("if-none-match", &tag)]);
    assert_eq!(response.status(), StatusCode::OK);
}

#[test]
fn what_is_not_there_is_no_page() {
    for path in ["none.js", "app.wasm.br", "small.js.gz", "build-id", "", "../Cargo.toml"] {
        let response = ask(path, &[]);
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(header(&response, "content-type"), "text/plain; charset=utf-8");
        assert_eq!(header(&response, "cache-control"), "no-store");
    }
}

/// Through a router, with whatever dashboard is there.
async fn call(method: Method, address: String) -> Response {
    let router = Router::new().route("/pkg/{build_id}/{*path}", get(asset));
    let request = Request::builder()
        .method(method)
        .uri(address)
        .body(Body::empty())
        .unwrap();
    router.oneshot(request).await.unwrap()
}

#[tokio::test]
async fn another_build_is_not_found() {
    let response = call(Method::GET, "/pkg/0123456789ab/app.js".to_owned()).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn head_has_the_length_and_no_body() {
    let Some(id) = build_id() else { return };
    let response = call(Method::HEAD, format!("/pkg/{id}/boot.js")).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_ne!(header(&response, "content-length"), "");
    assert!(to_bytes(response.into_body(), 99).await.unwrap().is_empty());
}

#[test]
fn the_page_of_a_missing_dashboard_passes_the_content_policy() {
    let page = not_built_page();
    assert!(page.contains("cargo xtask build"));
    assert!(!page.contains("<script") && !page.contains("style"));
}
