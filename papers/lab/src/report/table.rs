//! Tables of a figure's numbers, for the page and for Markdown.

use super::escape::Escaped;
use super::number::short;
use super::prose::Prose;
use super::verdicts;
use super::{Bars, Curves, Figure, Plot, Stated, Verdict};

/// Rows of cells. The first cell names the row.
pub(super) struct Table<'a> {
    pub(super) head: Vec<&'a str>,
    pub(super) rows: Vec<Vec<Cell<'a>>>,
}

/// The contents of a cell.
pub(super) enum Cell<'a> {
    Text(&'a str),
    /// Text that may contain code in backticks.
    Prose(String),
    /// A link to a figure of the report, by its index.
    Link {
        text: &'a str,
        figure: usize,
    },
    /// A number. It is shown as missing if it is not finite.
    Number(f64),
    Verdict(Verdict),
}

impl<'a> Table<'a> {
    /// A table of the plotted values.
    pub(super) fn of_plot(figure: &'a Figure) -> Self {
        match &figure.plot {
            Plot::Bars(bars) => Self::of_bars(bars),
            Plot::Curves(curves) if share_their_places(curves) => Self::of_places(curves),
            Plot::Curves(curves) => Self::of_points(curves),
        }
    }

    /// A table of the stated numbers, with our numbers.
    pub(super) fn of_stated(stated: &'a [Stated]) -> Self {
        let notes: Vec<_> = stated.iter().map(verdicts::in_short).collect();
        let has_notes = notes.iter().any(|note| !note.is_empty());
        let rows = stated.iter().zip(notes).map(|(stated, note)| {
            let note = has_notes.then_some(Cell::Prose(note));
            [Cell::Text(&stated.what)]
                .into_iter()
                .chain(Cell::of_stated(stated))
                .chain(note)
                .collect()
        });
        let head = ["stated", "paper", "band ±", "ours", "verdict"].into_iter();
        let head = head.chain(has_notes.then_some("under which reading, or why"));
        Self { head: head.collect(), rows: rows.collect() }
    }

    fn of_bars(bars: &'a Bars) -> Self {
        let head = [""].into_iter().chain(bars.series.iter().map(|series| series.name.as_str()));
        let rows = bars.labels.iter().enumerate().map(|(number, label)| {
            let values = bars.series.iter().map(|series| series.values.get(number).copied());
            let cells = values.map(|value| Cell::Number(value.flatten().unwrap_or(f64::NAN)));
            [Cell::Text(label)].into_iter().chain(cells).collect()
        });
        Self { head: head.collect(), rows: rows.collect() }
    }

    /// A table of curves with a row per x value and a column per series.
    fn of_places(curves: &'a Curves) -> Self {
        let names = curves.series.iter().map(|series| series.name.as_str());
        let places = curves.series.first().map_or(0, |series| series.values.len());
        let rows = (0..places).map(|number| {
            let heights = curves.series.iter().map(|series| Cell::Number(series.values[number][1]));
            let place = Cell::Number(curves.series[0].values[number][0]);
            [place].into_iter().chain(heights).collect()
        });
        let head = [curves.axes[0].as_str()].into_iter().chain(names);
        Self { head: head.collect(), rows: rows.collect() }
    }

    /// A table of curves with a row per point.
    fn of_points(curves: &'a Curves) -> Self {
        let rows = curves.series.iter().flat_map(|series| {
            series
                .values
                .iter()
                .map(|[x, y]| vec![Cell::Text(&series.name), Cell::Number(*x), Cell::Number(*y)])
        });
        let [x, y] = &curves.axes;
        Self { head: vec!["series", x, y], rows: rows.collect() }
    }

    /// Whether a column contains numbers.
    pub(super) fn is_of_numbers(&self, column: usize) -> bool {
        self.rows.first().is_some_and(|row| matches!(row[column], Cell::Number(_)))
    }

    /// Writes the table as an element of a page, which can be scrolled with the keyboard.
    pub(super) fn html(&self, caption: &str) -> String {
        let head = self.head.iter().enumerate().map(|(column, name)| match *name {
            "" => "<td></td>".to_owned(),
            name if self.is_of_numbers(column) => {
                format!("<th scope=\"col\" class=\"number\">{}</th>", Escaped(name))
            }
            name => format!("<th scope=\"col\">{}</th>", Escaped(name)),
        });
        let rows = self.rows.iter().map(|row| {
            let cells = row.iter().enumerate().map(|(column, cell)| cell.html(column == 0));
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        });
        let caption = Escaped(caption);
        format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\">\n\
             <table>\n<caption>{caption}</caption>\n<thead><tr>{}</tr></thead>\n\
             <tbody>\n{}</tbody>\n</table>\n</div>\n",
            head.collect::<String>(),
            rows.collect::<String>()
        )
    }
}

impl Cell<'_> {
    /// The cells of a stated number: the paper's number, the band, our number, and the verdict.
    pub(super) fn of_stated(stated: &Stated) -> [Self; 4] {
        [
            Self::Number(stated.paper),
            Self::Number(stated.band),
            Self::Number(stated.ours.unwrap_or(f64::NAN)),
            Self::Verdict(stated.verdict()),
        ]
    }

    fn html(&self, names_row: bool) -> String {
        let (start, end) = if names_row { ("th scope=\"row\"", "th") } else { ("td", "td") };
        match self {
            Self::Text(text) => format!("<{start}>{}</{end}>", Escaped(text)),
            Self::Prose(text) => format!("<{start}>{}</{end}>", Prose(text)),
            Self::Link { text, figure } => {
                let number = figure + 1;
                format!("<{start}><a href=\"#figure-{number}\">{}</a></{end}>", Escaped(text))
            }
            Self::Number(number) => {
                format!("<{start} class=\"number\">{}</{end}>", short(*number))
            }
            Self::Verdict(verdict) => {
                let shown = verdicts::shown(*verdict);
                format!(
                    "<{start}><span class=\"verdict {}\">{} {}</span></{end}>",
                    shown.class, shown.sign, shown.words
                )
            }
        }
    }
}

/// Whether all series have the same x values, so that one column of them suffices.
fn share_their_places(curves: &Curves) -> bool {
    let places = |number: usize| curves.series[number].values.iter().map(|[x, _]| x);
    (1..curves.series.len()).all(|number| places(number).eq(places(0)))
}
