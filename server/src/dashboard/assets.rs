//! The dashboard's files, out of this binary.
//!
//! The web build leaves a brotli and a gzip variant beside every file, so nothing is compressed per request. The id of
//! the whole set is part of every address: what is served under the current id never changes and may be kept for good,
//! and a page of an older server that asks under its own id gets a 404, never a file of another build.

mod encoding;

use axum::{
    body::Bytes,
    extract::Path,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse as _, Response},
};
use rust_embed::{Embed, EmbeddedFile};
use std::borrow::Cow;

/// A release build embeds the folder, a debug build reads it from disk; a server without a dashboard is fine.
#[derive(Embed)]
#[folder = "$CARGO_MANIFEST_DIR/../target/site"]
#[allow_missing = true]
struct Site;

const BUILD_ID: &str = "build-id";

/// The id of the dashboard in this binary; none, if it was compiled without one.
pub(crate) fn build_id() -> Option<String> {
    let file = Site::get(BUILD_ID)?;
    String::from_utf8(file.data.into_owned()).ok()
}

/// `GET` and `HEAD /pkg/{build_id}/{*path}`.
pub(crate) async fn asset(Path((id, path)): Path<(String, String)>, headers: HeaderMap) -> Response {
    if build_id().as_deref() != Some(&*id) {
        return not_found();
    }
    serve(&path, &headers, &|name| Site::get(name).map(File::from))
}

/// What stands in the dashboard's place when there is none.
pub(crate) fn not_built_page() -> &'static str {
    include_str!("assets/not_built.html")
}

/// One variant of one file.
struct File {
    bytes: Bytes,
    sha256: [u8; 32],
}

impl From<EmbeddedFile> for File {
    fn from(file: EmbeddedFile) -> Self {
        let bytes = match file.data {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes),
        };
        Self {
            bytes,
            sha256: file.metadata.sha256_hash(),
        }
    }
}

fn serve(path: &str, headers: &HeaderMap, find: &dyn Fn(&str) -> Option<File>) -> Response {
    // Variants have no address of their own.
    if path == BUILD_ID || path.ends_with(".br") || path.ends_with(".gz") {
        return not_found();
    }
    let variants = encoding::accepted(headers).into_iter();
    let mut found = variants.filter_map(|encoding| Some((encoding, find(&format!("{path}{}", encoding.suffix()))?)));
    let Some((encoding, file)) = found.next() else {
        return not_found();
    };

    let etag = etag(&file);
    let common = [
        (ETAG, etag.as_str()),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (VARY, "accept-encoding"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    if has_already(headers, &etag) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let mut response = (common, [(CONTENT_TYPE, content_type(path))], file.bytes).into_response();
    if let Some(name) = encoding.name() {
        response
            .headers_mut()
            .insert(CONTENT_ENCODING, HeaderValue::from_static(name));
    }
    response
}

/// Strong, because it names the bytes of this variant.
fn etag(file: &File) -> String {
    let hex: String = file.sha256[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}

/// Caches may have marked the tag as weak on its way; for a `GET` that makes no difference.
fn has_already(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// Exact, because browsers compile WASM while it arrives only if it is called so, and sniff nothing.
fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "wasm" => "application/wasm",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

/// Never a page: a browser would take it for the script that it asked for.
fn not_found() -> Response {
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (
        StatusCode::NOT_FOUND,
        headers,
        "no such file in this build of the dashboard\n",
    )
        .into_response()
}

#[cfg(test)]
mod tests;
