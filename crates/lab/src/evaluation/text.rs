//! Figures for a terminal, as Markdown.

use crate::report::{Bars, Figure, Plot, Stated, Verdict};

/// What was measured, and what is stated beside it.
pub fn text(figure: &Figure) -> String {
    let Figure { id, title, paper, plot, stated, remarks, .. } = figure;
    let values = match plot {
        Plot::Bars(bars) => values(bars),
        Plot::Curves(_) => String::new(),
    };
    let stated = if stated.is_empty() { String::new() } else { format!("\n{}", numbers(stated)) };
    let remarks: String = remarks.iter().map(|remark| format!("\n{remark}\n")).collect();
    format!("## {id}: {title} ({paper})\n\n{values}{stated}{remarks}")
}

fn values(bars: &Bars) -> String {
    let names = bars.series.iter().map(|series| series.name.clone());
    let head = [bars.value.clone()].into_iter().chain(names).collect();
    let row = |(place, label): (usize, &String)| {
        let values = bars.series.iter().map(|series| number(series.values[place]));
        [label.clone()].into_iter().chain(values).collect()
    };
    table([head].into_iter().chain(bars.labels.iter().enumerate().map(row)).collect())
}

fn numbers(stated: &[Stated]) -> String {
    let head = ["stated", "paper", "ours", "band", "verdict"].map(str::to_owned).to_vec();
    let row = |number_stated: &Stated| {
        let verdict = match number_stated.verdict() {
            Verdict::Agrees => "agrees",
            Verdict::Differs => "differs",
            Verdict::Open => "open",
        };
        let Stated { what, paper, band, ours } = number_stated;
        let numbers = [number(Some(*paper)), number(*ours), format!("±{band:.2}")];
        [what.clone()].into_iter().chain(numbers).chain([verdict.to_owned()]).collect()
    };
    table([head].into_iter().chain(stated.iter().map(row)).collect())
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

/// A head and rows; the first column is of words.
fn table(rows: Vec<Vec<String>>) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column == 0 { format!(" {cell:<width$} |") } else { format!(" {cell:>width$} |") }
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let rules = widths.iter().enumerate().map(|(column, width)| {
        if column == 0 {
            format!("{}|", "-".repeat(width + 2))
        } else {
            format!("{}:|", "-".repeat(width + 1))
        }
    });
    let rule = format!("|{}\n", rules.collect::<String>());
    let (head, body) = rows.split_at(1.min(rows.len()));
    let lines = |rows: &[Vec<String>]| rows.iter().map(line).collect::<String>();
    format!("{}{rule}{}", lines(head), lines(body))
}
