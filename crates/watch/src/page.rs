//! The page, and its content security policy.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use sha2::{Digest, Sha256};

const FRAME: &str = include_str!("page/watch.html");
const STYLE: &str = include_str!("page/watch.css");
const SCRIPT: &str = include_str!("page/watch.js");

/// The page: one HTML document with inline style and script. The script fetches only events.
pub(super) struct Page {
    pub(super) html: Bytes,
    /// The content security policy: only this script, only this style, and requests only to the
    /// page's own server.
    pub(super) policy: String,
}

impl Page {
    pub(super) fn new() -> Self {
        let html = FRAME.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", SCRIPT).into();
        let policy = format!(
            "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            digest(SCRIPT),
            digest(STYLE)
        );
        Self { html, policy }
    }
}

/// The hash of an inline text, in the form that a content security policy uses.
fn digest(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}
