//! Escapes untrusted text for HTML and SVG.

use std::fmt::{self, Display, Write};

/// Displays text, escaped for use inside an element or a quoted attribute.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            '\n' | '\t' => f.write_char(character),
            _ if is_forbidden(character) => f.write_char('\u{fffd}'),
            _ => f.write_char(character),
        })
    }
}

/// Whether the character is a control character, changes the direction of text, or is forbidden in
/// XML.
pub(super) fn is_forbidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_contains_no_markup() {
        let shown = Escaped("<b a=\"1\" c='2'>&amp;\0\u{1b}\u{85}\u{202e}\u{ffff}\nü").to_string();
        assert_eq!(
            shown,
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;\
             \u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\nü"
        );
    }
}
