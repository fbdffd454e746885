//! Text tables.

/// Formats rows as a text table with right-aligned columns.
pub fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let widths: [usize; COLUMNS] =
        std::array::from_fn(|i| rows.iter().map(|row| row[i].len()).max().unwrap_or(0));
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}"));
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "long"], ["wide", "b"]].map(|row| row.map(str::to_owned));
        assert_eq!(aligned(&rows), "   a  long\nwide     b\n");
    }
}
