//! Tables in Markdown.

/// Makes a table from its header, which ends with a newline, and its rows.
pub(crate) fn table(head: &str, rows: impl IntoIterator<Item = String>) -> String {
    rows.into_iter().fold(head.to_owned(), |table, row| table + &row + "\n")
}
