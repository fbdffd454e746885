//! The report as Markdown, for a repository.

use super::number::short;
use super::prose::{Piece, pieces};
use super::table::{Cell, Table};
use super::{About, Figure, summary, verdict_table, verdicts};

/// Writes the report as GitHub Markdown, without plots. Texts of figures are escaped.
pub fn markdown(figures: &[Figure], about: &About) -> String {
    let facts = about.facts().map(|(name, text)| format!("- {name}: {}\n", plain(text)));
    let facts = facts.collect::<String>();
    let rows = figures.iter().map(|figure| {
        let shown = verdicts::of_figure(figure);
        let cells = [&figure.title, &figure.paper].map(|text| plain(text)).join(" | ");
        let sum = verdicts::sentence(&figure.stated);
        format!("| {cells} | {} {} | {sum} |\n", shown.sign, shown.words)
    });
    let contents = format!(
        "| figure | of | verdict | stated numbers |\n| --- | --- | --- | --- |\n{}",
        rows.collect::<String>()
    );
    let contents = if figures.is_empty() { "No figures.\n".to_owned() } else { contents };
    let figures_text = figures
        .iter()
        .zip(1..)
        .map(|(figure, number)| format!("\n<a id=\"figure-{number}\"></a>\n\n{}", section(figure)));
    let figures_text = figures_text.collect::<String>();
    let verdicts = verdict_table::table_of(figures);
    let verdicts = match verdicts.rows.is_empty() {
        true => String::new(),
        false => format!(
            "## Verdicts\n\n{}\nHow many agree under one reading alone:\n\n{}\n## Figures\n\n",
            table(&verdicts),
            table(&verdict_table::by_reading(figures))
        ),
    };
    let facts = if facts.is_empty() { facts } else { format!("{facts}\n") };
    format!(
        "# {}\n\n{facts}{}.\n\n{verdicts}{contents}{figures_text}",
        plain(&about.title),
        summary(figures),
    )
}

/// Writes one figure: its values, stated numbers and remarks.
pub fn section(figure: &Figure) -> String {
    let shown = verdicts::of_figure(figure);
    let stated = match figure.stated.is_empty() {
        true => String::new(),
        false => format!("\n{}{}", table(&Table::of_stated(&figure.stated)), notes(figure)),
    };
    let remarks = figure.remarks.iter().map(|remark| format!("\n{}\n", prose(remark)));
    format!(
        "## {}\n\n{} ({}): {} {}.\n\n{}{stated}{}\nOrigin: {}\n",
        plain(&figure.title),
        plain(&figure.paper),
        plain(&figure.id),
        shown.sign,
        shown.words,
        table(&Table::of_plot(figure)),
        remarks.collect::<String>(),
        prose(&figure.origin),
    )
}

/// Notes that are too long for the table of stated numbers.
fn notes(figure: &Figure) -> String {
    let notes = verdicts::longer_notes(&figure.stated);
    let notes = notes
        .map(|(what, note)| format!("- *{}*: {}\n", plain(what), prose(&note)))
        .collect::<String>();
    if notes.is_empty() { notes } else { format!("\n{notes}") }
}

/// The maximum width to which cells are padded. Padding to longer cells would push other cells out
/// of view.
const WIDTH_MAX: usize = 60;

/// Writes a table with padded columns, so that its source is readable.
fn table(table: &Table<'_>) -> String {
    let head = table.head.iter().map(|name| plain(name)).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(shown).collect());
    let lines: Vec<Vec<String>> = [head].into_iter().chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<_> =
        (0..table.head.len()).map(|at| width(at).unwrap_or(0).clamp(4, WIDTH_MAX)).collect();

    let line = |cells: &Vec<String>| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if table.is_of_numbers(column) {
                format!(" {cell:>width$} |")
            } else {
                format!(" {cell:<width$} |")
            }
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let rules = widths.iter().enumerate().map(|(column, width)| {
        let end = if table.is_of_numbers(column) { ":" } else { "-" };
        format!(" {}{end} |", "-".repeat(width - 1))
    });
    let body = lines[1..].iter().map(line).collect::<String>();
    format!("{}|{}\n{body}", line(&lines[0]), rules.collect::<String>())
}

fn shown(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Text(text) => plain(text),
        Cell::Prose(text) => prose(text),
        Cell::Link { text, figure } => format!("[{}](#figure-{})", plain(text), figure + 1),
        Cell::Number(number) => short(*number),
        Cell::Verdict(verdict) => {
            let shown = verdicts::shown(*verdict);
            format!("{} {}", shown.sign, shown.words)
        }
    }
}

/// Puts text on one line, and escapes it except for code in backticks.
fn prose(text: &str) -> String {
    let line = one_line(text);
    let pieces = pieces(&line).into_iter().map(|piece| match piece {
        Piece::Text(text) => escaped(text),
        Piece::Code(code) => format!("`{code}`"),
    });
    pieces.collect()
}

/// Puts text on one line, and escapes it.
fn plain(text: &str) -> String {
    escaped(&one_line(text))
}

fn one_line(text: &str) -> String {
    let words = text.split(|character: char| character.is_whitespace() || character.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn escaped(line: &str) -> String {
    line.chars().fold(String::with_capacity(line.len()), |mut text, character| {
        match character {
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '&' => text.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                text.extend(['\\', character])
            }
            _ => text.push(character),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_one_line_and_no_markup() {
        assert_eq!(
            plain(" <b> & `c` |\n# *x* [a](b) \\ _y_ ~z~ "),
            "&lt;b&gt; &amp; \\`c\\` \\| \\# \\*x\\* \\[a\\](b) \\\\ \\_y\\_ \\~z\\~"
        );
    }

    #[test]
    fn prose_keeps_the_code_in_it() {
        assert_eq!(prose("see  `a_b<c>`,\nand *d*"), "see `a_b<c>`, and \\*d\\*");
        assert_eq!(prose("`a|b` `"), "\\`a\\|b\\` \\`");
    }
}
