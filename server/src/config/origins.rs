//! Syntax of host names and web origins in a configuration.

use std::net::{IpAddr, Ipv4Addr};

use axum::http::uri::Authority;

/// Parses a host as an IP address, with or without the brackets of IPv6.
pub(crate) fn parse_address(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok()
}

/// Parses the address that a server listens on: an IP address, or `localhost`.
///
/// # Errors
///
/// What it must be.
pub fn parse_host(text: &str) -> Result<IpAddr, String> {
    if text == "localhost" {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let advice = "must be an IP address, such as 127.0.0.1, or 0.0.0.0 for all of this machine";
    parse_address(text).ok_or_else(|| advice.to_owned())
}

/// The error in an `allowed_hosts` entry, if it is invalid.
pub(crate) fn host_fault(name: &str) -> Option<String> {
    let is_name = name
        .parse::<Authority>()
        .is_ok_and(|authority| authority.host() == name && !name.contains('*'));
    (!is_name && parse_address(name).is_none())
        .then(|| format!("{name:?} is not a host name or address without a port"))
}

/// The error in a `cors_origins` entry, if it is invalid.
pub(crate) fn origin_fault(origin: &str) -> Option<String> {
    let authority = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let is_origin = authority.is_some_and(|text| {
        let is_host_and_port = |authority: Authority| !authority.as_str().contains(['@', '*']);
        text.parse::<Authority>().is_ok_and(is_host_and_port)
    });
    (!is_origin).then(|| format!("{origin:?} is not an origin such as \"https://app.example\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_and_origins_are_checked() {
        assert_eq!(parse_host("localhost"), Ok(Ipv4Addr::LOCALHOST.into()));
        assert!(parse_host("models.example").unwrap_err().contains("127.0.0.1"));
        for (name, is_good) in
            [("a.example", true), ("10.0.0.1", true), ("::1", true), ("[fd00::1]", true)]
                .into_iter()
                .chain(["", " ", "a:80", "http://a", "a/b", "u@a", "*"].map(|name| (name, false)))
        {
            assert_eq!(host_fault(name).is_none(), is_good, "{name:?}");
        }
        for (origin, is_good) in
            [("https://a.example", true), ("http://localhost:3000", true)].into_iter().chain(
                ["", "*", "null", "a.example", "https://", "https://a/b", "https://*.a", "ftp://a"]
                    .map(|o| (o, false)),
            )
        {
            assert_eq!(origin_fault(origin).is_none(), is_good, "{origin:?}");
        }
    }
}
