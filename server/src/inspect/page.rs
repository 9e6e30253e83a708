//! The page's files, as they are in the source tree.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
};
use axum::http::header::{X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};

/// Only what this server gives may run, be shown or be asked; nothing may frame the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// One file of the page.
pub(super) struct File {
    /// Its route.
    pub(super) path: &'static str,
    kind: &'static str,
    text: &'static str,
}

pub(super) const FILES: [File; 6] = [
    File {
        path: "/inspect",
        kind: "text/html; charset=utf-8",
        text: include_str!("page/index.html"),
    },
    File {
        path: "/inspect/page.css",
        kind: "text/css; charset=utf-8",
        text: include_str!("page/page.css"),
    },
    File { path: "/inspect/page.js", kind: SCRIPT, text: include_str!("page/page.js") },
    File { path: "/inspect/view.js", kind: SCRIPT, text: include_str!("page/view.js") },
    File { path: "/inspect/chart.js", kind: SCRIPT, text: include_str!("page/chart.js") },
    File { path: "/inspect/trace.js", kind: SCRIPT, text: include_str!("page/trace.js") },
];

impl File {
    /// The answer: the text, and headers that keep it to this server.
    pub(super) fn answer(&self) -> ([(HeaderName, &'static str); 6], &'static str) {
        let headers = [
            (CONTENT_TYPE, self.kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
            (REFERRER_POLICY, "no-referrer"),
            // The page is the server's: after an upgrade the old one must not ask the new server.
            (CACHE_CONTROL, "no-cache"),
        ];
        (headers, self.text)
    }
}
