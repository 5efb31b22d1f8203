//! Checks a request and makes the response.

use super::listener::Client;
use super::{Site, Token, events};
use crate::{SCRIPT, STYLE, shell};
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Largest length of a document name, bytes.
const MAX_DOCUMENT_NAME: usize = 64;
/// The page's title until its script has loaded the session.
const TITLE: &str = "placement";

/// Security headers of every response: own scripts and styles only, no other origins, no framing, no caching.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("x-frame-options", "DENY"),
];

/// Handles every request. A request without the token, or with a foreign host or origin, gets status 404 for any path.
/// Every error closes the connection.
pub async fn respond(
    State(site): State<Arc<Site>>,
    ConnectInfo(Client(connection)): ConnectInfo<Client>,
    request: Request,
) -> Response {
    // The body is not read, because no request needs one.
    let (request, _) = request.into_parts();
    let name = entered(&site, &request);
    connection.request_completed(name.is_some());
    let mut response = match name {
        Some(name) => inside(&site, name, &request).await,
        None => StatusCode::NOT_FOUND.into_response(),
    };
    if !response.status().is_success() {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The name of the requested document, if the token is correct, and host and origin are this server's.
fn entered<'a>(site: &Site, request: &'a Parts) -> Option<&'a str> {
    let path = request.uri.path().strip_prefix('/')?;
    let (token, name) = path.as_bytes().split_at_checked(Token::DIGITS)?;
    let authenticated = site.token.is(token) && site.origin.admits(&request.uri, &request.headers);
    let name = std::str::from_utf8(name).ok()?.strip_prefix('/')?;
    (authenticated && is_name(name)).then_some(name)
}

/// Whether a text can be a document's name: lower-case letters, digits, `.` and `/` only.
fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"./".contains(&b);
    text.len() <= MAX_DOCUMENT_NAME && text.bytes().all(plain) && !text.contains("..") && !text.contains("//")
}

async fn inside(site: &Site, name: &str, request: &Parts) -> Response {
    if !matches!(request.method, Method::GET | Method::HEAD) {
        let allowed = [(header::ALLOW, "GET, HEAD")];
        return (StatusCode::METHOD_NOT_ALLOWED, allowed).into_response();
    }
    if has_body(&request.headers) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    match name {
        "" => of_kind("text/html; charset=utf-8", shell::served(TITLE)),
        "page.js" => of_kind("text/javascript; charset=utf-8", SCRIPT),
        "page.css" => of_kind("text/css; charset=utf-8", STYLE),
        "events" => events::events(site).unwrap_or_else(|| StatusCode::SERVICE_UNAVAILABLE.into_response()),
        _ => document(site, name.to_owned()).await,
    }
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|l| l.as_bytes() != b"0")
}

/// Making a document may take long, so it runs on the blocking pool.
async fn document(site: &Site, name: String) -> Response {
    let snapshot = site.store.snapshot();
    let kind = if name.ends_with(".json") {
        "application/json"
    } else {
        "application/octet-stream"
    };
    let make = move || {
        snapshot
            .documents
            .document(&name)
            .map(std::borrow::Cow::into_owned)
    };
    match tokio::task::spawn_blocking(make).await {
        Ok(Some(bytes)) => of_kind(kind, bytes),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn of_kind(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

#[cfg(test)]
mod tests {
    use super::is_name;
    use proptest::prelude::*;

    #[test]
    fn names_are_those_of_documents() {
        for name in [
            "",
            "page.js",
            "session.json",
            "p/0/tile/12/3",
            "p/0/film",
            "events",
        ] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "../etc/passwd",
            "p/..",
            "%2e%2e",
            "p//0",
            "p\\0",
            "p/0\0",
            "P/0",
            " ",
            &"p".repeat(65),
        ] {
            assert!(!is_name(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_name_leaves_its_folder(text in "[a-z./%\\\\]{0,20}") {
            prop_assert!(!is_name(&text) || text.split('/').all(|part| part != ".."));
        }
    }
}
