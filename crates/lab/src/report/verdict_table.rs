//! The verdicts on all numbers that papers state, in one table: what a reader wants to know first.

use super::table::{Cell, Table};
use super::{Figure, Stated, Verdict, verdicts};

/// A row for each stated number of all figures, with links to the figure and to the one that shows why.
pub(super) fn of_all(figures: &[Figure]) -> Table<'_> {
    let rows = figures.iter().enumerate().flat_map(|(number, figure)| {
        figure.stated.iter().map(move |stated| row(figures, (number, figure), stated))
    });
    let head = [
        "stated",
        "of",
        "paper",
        "band ±",
        "ours",
        "verdict",
        "under which reading, or why",
        "shown by",
    ];
    Table { head: head.into(), rows: rows.collect() }
}

fn row<'a>(
    figures: &'a [Figure],
    (number, figure): (usize, &'a Figure),
    stated: &'a Stated,
) -> Vec<Cell<'a>> {
    let to = |id: &'a String| match figures.iter().position(|figure| figure.id == *id) {
        Some(figure) => Cell::Link { text: id, figure },
        None => Cell::Text(id),
    };
    let has_a_reason = matches!(stated.verdict(), Verdict::Differs | Verdict::Fitted);
    let shown_by = stated.shown_by.as_ref().filter(|_| has_a_reason);
    let [paper, band, ours, verdict] = Cell::of_stated(stated);
    vec![
        Cell::Link { text: &stated.what, figure: number },
        Cell::Text(&figure.paper),
        paper,
        band,
        ours,
        verdict,
        Cell::Prose(note(figure, stated)),
        shown_by.map_or(Cell::Text(""), to),
    ]
}

/// The note on a number, which gives the reason of its figure if the number has none of its own.
fn note(figure: &Figure, stated: &Stated) -> String {
    let mut reasons = figure.reasons();
    let why = match (stated.verdict(), &stated.why, reasons.next(), reasons.next()) {
        (Verdict::Differs, None, Some(only), None) => Some(only.to_owned()),
        (Verdict::Differs, None, Some(_), Some(_)) => Some("its figure says why".to_owned()),
        _ => stated.why.clone(),
    };
    verdicts::note(&Stated { why, ..stated.clone() })
}
