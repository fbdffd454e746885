//! What parsers say of a file, for people: such a message quotes a line of it, however long that is.

/// Characters of a line that are shown: more than any line that somebody wrote has.
const SHOWN: usize = 200;

/// `message` with each of its lines cut after 200 characters. Where in the file it is stands before what is quoted.
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
    fn only_lines_that_nobody_wrote_are_cut() {
        assert_eq!(cut_lines("one\n  | two\n"), "one\n  | two");
        let long = "é".repeat(SHOWN);
        assert_eq!(cut_lines(&long), long);
        assert_eq!(cut_lines(&format!("{long}é\nthree")), format!("{long}…\nthree"));
    }
}
