//! Prose with names in backticks, which a page shows as code.

use std::fmt::{self, Display};

use super::escape::Escaped;

/// A piece of prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Code(&'a str),
}

/// Splits `text` at backticks into text and code. Returns all of it as one piece of text if a
/// backtick has no partner, or if some code cannot be written in a Markdown table.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let parts: Vec<_> = text.split('`').collect();
    let is_whole = parts.len() % 2 == 1;
    if !is_whole || !parts.iter().skip(1).step_by(2).all(|part| is_code(part)) {
        return vec![Piece::Text(text)];
    }
    let kinds = [Piece::Text, Piece::Code].into_iter().cycle();
    parts.into_iter().zip(kinds).map(|(part, kind)| kind(part)).collect()
}

fn is_code(part: &str) -> bool {
    !part.is_empty()
        && part.trim() == part
        && !part.contains(|character: char| character == '|' || character.is_control())
}

/// Displays prose as the contents of an element.
pub(super) struct Prose<'a>(pub(super) &'a str);

impl Display for Prose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pieces(self.0).into_iter().try_for_each(|piece| match piece {
            Piece::Text(text) => write!(f, "{}", Escaped(text)),
            Piece::Code(code) => write!(f, "<code>{}</code>", Escaped(code)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_backticks_are_code_and_the_rest_is_text() {
        for (text, html) in [
            ("see `near` & `a<b`.", "see <code>near</code> &amp; <code>a&lt;b</code>."),
            ("`whole`", "<code>whole</code>"),
            ("none", "none"),
            ("a ` alone, `two`", "a ` alone, `two`"),
            ("`` and ` x`", "`` and ` x`"),
            ("`a|b`", "`a|b`"),
            ("`a\nb`", "`a\nb`"),
        ] {
            assert_eq!(Prose(text).to_string(), html);
        }
    }
}
