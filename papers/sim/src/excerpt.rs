//! Shortens parsers' messages, which quote lines of any length.

/// The maximum number of characters shown of a line. Lines written by people are shorter.
const SHOWN: usize = 200;

/// Cuts each line of `message` after 200 characters, and marks the cut with `…`. Parsers name the
/// position in the file before the quoted text, so the position remains.
#[must_use]
pub fn cut_lines(message: &str) -> String {
    let cut = |line: &str| match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    };
    message.lines().map(cut).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_overlong_lines_are_cut() {
        assert_eq!(cut_lines("one\n  | two\n"), "one\n  | two");
        let long = "é".repeat(SHOWN);
        assert_eq!(cut_lines(&long), long);
        assert_eq!(cut_lines(&format!("{long}é\nthree")), format!("{long}…\nthree"));
    }
}
