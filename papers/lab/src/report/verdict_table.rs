//! Tables of all verdicts, at the top of a report.

use super::table::{Cell, Table};
use super::{Figure, Stated, Verdict, verdicts};

/// A table of the stated numbers of all figures, one per row. Each row links to its figure, and, if
/// the verdict needs a reason that another figure shows, to that figure.
pub(super) fn table_of(figures: &[Figure]) -> Table<'_> {
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
    let verdict = stated.verdict();
    let has_a_reason = matches!(verdict, Verdict::Differs | Verdict::Fitted);
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

/// A table with a row per reading: how many stated numbers agree under that reading alone, and how
/// many were measured under it. Numbers with a fitted parameter or with too few programs do not
/// count. With many readings, every number agrees under some reading; only a reading under which
/// most numbers agree is meaningful.
pub(super) fn by_reading(figures: &[Figure]) -> Table<'_> {
    let mut readings: Vec<(&str, [u32; 2])> = Vec::new();
    let all = figures
        .iter()
        .flat_map(|figure| &figure.stated)
        .filter(|stated| !stated.fitted && stated.of.is_none());
    for (stated, (name, ours)) in
        all.flat_map(|stated| taken(stated).map(move |taken| (stated, taken)))
    {
        let Some(ours) = ours else { continue };
        let place = readings.iter().position(|(known, _)| *known == name);
        let place = place.unwrap_or_else(|| {
            readings.push((name, [0; 2]));
            readings.len() - 1
        });
        let [agree, measured] = &mut readings[place].1;
        *agree += u32::from(stated.agrees(ours));
        *measured += 1;
    }
    let rows = readings.into_iter().map(|(name, counts)| {
        let counts = counts.map(|count| Cell::Number(count.into()));
        [Cell::Text(name)].into_iter().chain(counts).collect()
    });
    Table { head: vec!["reading", "numbers that agree under it", "of"], rows: rows.collect() }
}

/// The name of each reading of the paper, and our number under it. The first is the reading that
/// the figure itself uses.
fn taken(stated: &Stated) -> impl Iterator<Item = (&str, Option<f64>)> {
    let first = stated.taken.as_deref().unwrap_or("as the figure has it");
    let others = stated.readings.iter().map(|reading| (reading.name.as_str(), reading.ours));
    [(first, stated.ours)].into_iter().chain(others)
}

/// A short note on a number. If the number differs and has no reason of its own, the note has the
/// figure's reason, or refers to the figure if that has several.
fn note(figure: &Figure, stated: &Stated) -> String {
    let mut reasons = figure.reasons();
    let why = match (stated.verdict(), &stated.why, reasons.next(), reasons.next()) {
        (Verdict::Differs, None, Some(only), None) => Some(only.to_owned()),
        (Verdict::Differs, None, Some(_), Some(_)) => Some("its figure says why".to_owned()),
        _ => stated.why.clone(),
    };
    let has_limits = stated.limits.is_some() && stated.verdict() == Verdict::AgreesUnderReading;
    let line = verdicts::in_short(&Stated { why, ..stated.clone() });
    if has_limits { format!("{line}; limits below its figure") } else { line }
}
