//! What a browser may do with the page: load nothing, and run nothing but our own script.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The content security policy of a page with this text in its style element and this in its script
/// element. Whatever else might get into the page as a script does not run.
pub(super) fn of(style: &str, script: &str) -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; \
         form-action 'none'",
        hash(style),
        hash(script)
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_names_the_texts_by_their_hashes() {
        let empty = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        let abc = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";
        assert_eq!(
            super::of("", "abc"),
            format!(
                "default-src 'none'; style-src 'sha256-{empty}'; script-src 'sha256-{abc}'; \
                 base-uri 'none'; form-action 'none'"
            )
        );
    }
}
