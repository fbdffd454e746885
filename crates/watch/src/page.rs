//! The page, and what browsers are told to do with it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use sha2::{Digest, Sha256};

const FRAME: &str = include_str!("page/watch.html");
const STYLE: &str = include_str!("page/watch.css");
const SCRIPT: &str = include_str!("page/watch.js");

/// One document, with style and script in it. It asks for nothing but events.
pub(super) struct Page {
    pub(super) html: Bytes,
    /// What it may do: run this script, use this style, and ask the server that it came from for more.
    pub(super) policy: String,
}

impl Page {
    pub(super) fn new() -> Self {
        let html = FRAME.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", SCRIPT).into();
        let policy = format!(
            "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
            digest(SCRIPT),
            digest(STYLE)
        );
        Self { html, policy }
    }
}

/// How a policy names a text.
fn digest(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}
