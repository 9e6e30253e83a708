//! Origin checks: which host names and which web pages may send requests to this server.
//!
//! A web page can send requests to any address that its browser reaches. It cannot choose the
//! headers `Host`, `Origin` and `Sec-Fetch-Site`, so these are checked:
//!
//! * Without API keys, `Host` must be a name of this machine or a configured one. A page that
//!   resolves its own name to this address (DNS rebinding) sends its own name.
//! * `Origin` must be this server's or a configured one, and `Sec-Fetch-Site` not `cross-site`.
//!
//! Configured origins get CORS headers (Fetch standard, section 3.3), including preflight
//! responses.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::config::Config;
use crate::config::origins::parse_address;
use crate::error::{ApiError, ErrorKind};
use crate::http::routes;
use crate::state::App;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static("x-request-id, retry-after");
/// How long a browser may cache a preflight response, in seconds.
const PREFLIGHT_MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Middleware that rejects requests with foreign host names or from foreign web pages, answers
/// preflight requests, and adds CORS headers.
pub(crate) async fn check_origin(State(app): State<App>, request: Request, next: Next) -> Response {
    let config = app.config();
    let origin = allowed_origin(config, request.headers()).cloned();
    let mut response = match rejection(config, &request) {
        Some(error) => error.into_response(),
        None if is_preflight(&request) => preflight(request.headers()),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    if !config.cors_origins.is_empty() {
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    }
    response
}

/// The request's origin, if it is a configured one.
fn allowed_origin<'r>(config: &Config, headers: &'r HeaderMap) -> Option<&'r HeaderValue> {
    let origin = single_value(headers, header::ORIGIN)?;
    let is_known = |known: &String| known.as_bytes().eq_ignore_ascii_case(origin.as_bytes());
    config.cors_origins.iter().any(is_known).then_some(origin)
}

/// The value of a header that occurs exactly once.
fn single_value(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// The reason to reject the request, if there is one.
fn rejection(config: &Config, request: &Request) -> Option<ApiError> {
    let (uri, headers) = (request.uri(), request.headers());
    // Health probes may use any host name.
    if routes::is_health(uri.path()) {
        return None;
    }
    let forbidden = |code, message| Some(ApiError::general(ErrorKind::Forbidden, code, message));
    let authority = authority(uri, headers);
    let is_checked = config.api_keys.is_empty() || !config.allowed_hosts.is_empty();
    if is_checked
        && !authority.as_ref().is_some_and(|authority| is_allowed_host(authority.host(), config))
    {
        let message = "the Host header does not name this server; `allowed_hosts` in its \
                       configuration lists further names";
        return forbidden("host_not_allowed", message);
    }
    if allowed_origin(config, headers).is_some() {
        return None;
    }
    let is_same =
        |origin: &HeaderValue| authority.as_ref().is_some_and(|own| is_same_origin(origin, own));
    if headers.get_all(header::ORIGIN).iter().any(|origin| !is_same(origin)) {
        let message = "requests from web pages of other origins are rejected; `cors_origins` in \
                       the server's configuration lists the allowed ones";
        return forbidden("origin_not_allowed", message);
    }
    if headers
        .get_all(SEC_FETCH_SITE)
        .iter()
        .any(|site| site.as_bytes().eq_ignore_ascii_case(b"cross-site"))
    {
        return forbidden("cross_site", "requests from web pages of other sites are rejected");
    }
    None
}

/// The host that the request addresses: the authority of an absolute URI, or else the `Host`
/// header.
fn authority(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let named = uri
        .authority()
        .cloned()
        .or_else(|| single_value(headers, header::HOST)?.to_str().ok()?.parse().ok());
    named.filter(|authority| !authority.as_str().contains('@'))
}

/// Whether a host name is a loopback name or a configured one.
fn is_allowed_host(host: &str, config: &Config) -> bool {
    is_loopback(host) || config.allowed_hosts.iter().any(|name| same_host(name, host))
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || parse_address(host).is_some_and(|address| address.to_canonical().is_loopback())
}

fn same_host(one: &str, other: &str) -> bool {
    match (parse_address(one), parse_address(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.eq_ignore_ascii_case(other),
    }
}

/// Whether an `Origin` header names the server that the request addresses. A proxy may terminate
/// TLS, so the scheme only decides the default port.
fn is_same_origin(origin: &HeaderValue, own: &Authority) -> bool {
    let Some((scheme, other)) = origin.to_str().ok().and_then(|origin| origin.split_once("://"))
    else {
        return false;
    };
    let Ok(other) = other.parse::<Authority>() else { return false };
    let default = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(default);
    same_host(other.host(), own.host()) && port(&other) == port(own)
}

/// Whether this is a CORS preflight request.
fn is_preflight(request: &Request) -> bool {
    let has = |name| request.headers().contains_key(name);
    request.method() == Method::OPTIONS
        && has(header::ORIGIN)
        && has(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The response to an accepted preflight. API keys are headers, so any header is allowed.
fn preflight(request_headers: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE);
    if let Some(names) = single_value(request_headers, header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    headers.append(header::VARY, HeaderValue::from_static("Access-Control-Request-Headers"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_and_same_origins() {
        for (host, is_local) in [
            ("localhost", true),
            ("LocalHost", true),
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("0.0.0.0", false),
            ("[::]", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(host), is_local, "{host}");
        }
        for (origin, own, is_same) in [
            ("http://localhost:8080", "localhost:8080", true),
            ("http://localhost:3000", "localhost:8080", false),
            ("http://127.0.0.1:8080", "localhost:8080", false),
            ("https://app.example", "app.example", true),
            ("https://app.example", "app.example:443", true),
            ("http://app.example", "app.example:443", false),
            ("http://[::1]:80", "[::1]", true),
            ("null", "localhost", false),
            ("", "localhost", false),
        ] {
            let (origin, own) = (HeaderValue::from_static(origin), Authority::from_static(own));
            assert_eq!(is_same_origin(&origin, &own), is_same, "{origin:?} {own}");
        }
    }
}
