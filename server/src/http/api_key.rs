//! API keys: how requests carry them, and their comparison.

use axum::http::{HeaderMap, HeaderName, header};

use crate::error::{ApiError, ErrorKind};
use crate::hash::fnv1a;

/// The header in which clients of Anthropic's API send their key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The API key of a request: its index in the configuration. Requests have it as an extension, if
/// the server has keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ApiKey(pub(crate) usize);

/// The valid key of a request, in either of the headers in which clients send it.
pub(super) fn valid_key(keys: &[String], headers: &HeaderMap) -> Result<ApiKey, ApiError> {
    let supplied = |name: HeaderName| headers.get(name)?.to_str().ok();
    let bearer = supplied(header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let tokens: Vec<&str> = bearer.into_iter().chain(supplied(API_KEY)).collect();
    // Compares every key in full, so that timing reveals nothing.
    let known = tokens.iter().find_map(|token| {
        let keys = keys.iter().enumerate();
        keys.fold(None, |known, (k, key)| keys_equal(token, key).then_some(ApiKey(k)).or(known))
    });
    let (code, message) = match (tokens.is_empty(), headers.contains_key(header::AUTHORIZATION)) {
        (true, false) => (
            "missing_api_key",
            "an API key is required: Authorization: Bearer KEY, or x-api-key: KEY",
        ),
        (true, true) => ("invalid_api_key", "the header `authorization` must be `Bearer KEY`"),
        (false, _) => ("invalid_api_key", "the API key is invalid"),
    };
    known.ok_or_else(|| ApiError::general(ErrorKind::Unauthorized, code, message))
}

/// Constant-time comparison of keys: the time does not depend on where they differ. Lengths, hashes
/// and all bytes are compared.
fn keys_equal(supplied: &str, key: &str) -> bool {
    let (supplied, key) = (supplied.as_bytes(), key.as_bytes());
    let mut difference =
        u8::from(supplied.len() != key.len()) | u8::from(fnv1a(supplied) != fnv1a(key));
    for (i, byte) in supplied.iter().enumerate() {
        difference |= byte ^ key[i % key.len().max(1)];
    }
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn errors_say_what_the_headers_lack() {
        let keys = ["secret".to_owned()];
        let error = |name: HeaderName, value: &'static str| {
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
            valid_key(&keys, &headers).map_err(|error| error.to_string())
        };
        let scheme = || Err("the header `authorization` must be `Bearer KEY`".to_owned());
        assert_eq!(error(header::AUTHORIZATION, "bearer secret"), Ok(ApiKey(0)));
        assert_eq!(error(API_KEY, "secret"), Ok(ApiKey(0)));
        for value in ["secret", "Basic secret", "Bearer"] {
            assert_eq!(error(header::AUTHORIZATION, value), scheme(), "{value}");
        }
        let invalid = "the API key is invalid".to_owned();
        assert_eq!(error(header::AUTHORIZATION, "Bearer other"), Err(invalid));
        assert!(error(header::HOST, "a").unwrap_err().starts_with("an API key is required"));
    }

    #[test]
    fn keys_are_compared_in_full() {
        for (supplied, key, same) in [
            ("secret", "secret", true),
            ("secret", "secreT", false),
            ("secre", "secret", false),
            ("secretsecret", "secret", false),
            ("", "secret", false),
        ] {
            assert_eq!(keys_equal(supplied, key), same, "{supplied} {key}");
        }
    }
}
