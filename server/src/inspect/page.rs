//! Static files of the inspector page, embedded from the source tree.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
};
use axum::http::header::{X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};

use crate::http::routes;

/// The content security policy: only this server's resources may be loaded or run, and no other
/// page may frame this one.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// One file of the page.
pub(super) struct PageFile {
    /// Its route.
    pub(super) path: &'static str,
    kind: &'static str,
    text: &'static str,
}

pub(super) const FILES: [PageFile; 6] = [
    PageFile {
        path: routes::INSPECT,
        kind: "text/html; charset=utf-8",
        text: include_str!("page/index.html"),
    },
    PageFile {
        path: "/inspect/page.css",
        kind: "text/css; charset=utf-8",
        text: include_str!("page/page.css"),
    },
    PageFile { path: "/inspect/page.js", kind: JAVASCRIPT, text: include_str!("page/page.js") },
    PageFile { path: "/inspect/view.js", kind: JAVASCRIPT, text: include_str!("page/view.js") },
    PageFile { path: "/inspect/chart.js", kind: JAVASCRIPT, text: include_str!("page/chart.js") },
    PageFile { path: "/inspect/trace.js", kind: JAVASCRIPT, text: include_str!("page/trace.js") },
];

impl PageFile {
    /// The response: the file's text and security headers.
    pub(super) fn response(&self) -> ([(HeaderName, &'static str); 6], &'static str) {
        let headers = [
            (CONTENT_TYPE, self.kind),
            (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
            (REFERRER_POLICY, "no-referrer"),
            // Not cached: after an upgrade, an old page must not talk to the new server.
            (CACHE_CONTROL, "no-cache"),
        ];
        (headers, self.text)
    }
}
