//! Tables in Markdown.

/// A head, which ends its lines, and a line for each row.
pub(crate) fn table(head: &str, rows: impl IntoIterator<Item = String>) -> String {
    rows.into_iter().fold(head.to_owned(), |table, row| table + &row + "\n")
}
