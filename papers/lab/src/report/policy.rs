//! The content security policy of a page.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// A policy that allows only a style element with the text `style`, and no scripts.
pub(super) fn for_style(style: &str) -> String {
    let hash = STANDARD.encode(Sha256::digest(style));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_policy_names_the_style_by_its_hash() {
        let abc = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";
        let expected = format!(
            "default-src 'none'; style-src 'sha256-{abc}'; base-uri 'none'; form-action 'none'"
        );
        assert_eq!(super::for_style("abc"), expected);
    }
}
