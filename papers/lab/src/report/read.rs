//! Reads figures from untrusted files.
//!
//! The tables of a page have a cell per pair of label and series, so a small file could make a huge
//! page. Limits prevent this; they are far above the sizes of the papers' figures.

use super::{Figure, Plot};

/// The maximum size in bytes of a file of figures.
pub const BYTES_MAX: u64 = 16 << 20;

const FIGURES_MAX: usize = 200;
const SERIES_MAX: usize = 100;
const LABELS_MAX: usize = 1000;
const POINTS_MAX: usize = 100_000;
const STATED_MAX: usize = 1000;
const READINGS_MAX: usize = 100;

/// The reason why a text is not a list of figures, and how to fix it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotFigures(String);

/// Reads the figures of a JSON text, a list of [`Figure`].
///
/// # Errors
/// [`NotFigures`] if `json` is not such a list; the message has line and column. Also if there are
/// too many figures. Also if the bars of a figure do not match its labels, or a figure exceeds a
/// limit; the message has the figure's number and id.
pub fn read(json: &str) -> Result<Vec<Figure>, NotFigures> {
    let figures: Vec<Figure> = serde_json::from_str(json).map_err(|error| {
        NotFigures(format!("it is no list of figures: {error}; give a file that the lab wrote"))
    })?;
    at_most(FIGURES_MAX, figures.len(), "figures").map_err(NotFigures)?;
    for (figure, number) in figures.iter().zip(1..) {
        check(figure).map_err(|why| {
            NotFigures(format!("figure {number} ({:?}) cannot be drawn: {why}", figure.id))
        })?;
    }
    Ok(figures)
}

fn check(figure: &Figure) -> Result<(), String> {
    at_most(STATED_MAX, figure.stated.len(), "stated numbers")?;
    let readings = figure.stated.iter().map(|stated| stated.readings.len());
    at_most(READINGS_MAX, readings.max().unwrap_or(0), "readings of a number")?;
    match &figure.plot {
        Plot::Bars(bars) => {
            at_most(LABELS_MAX, bars.labels.len(), "labels")?;
            at_most(SERIES_MAX, bars.series.len(), "series")?;
            let labels = bars.labels.len();
            match bars.series.iter().find(|series| series.values.len() != labels) {
                None => Ok(()),
                Some(series) => Err(format!(
                    "series {:?} has {} values for {labels} labels; give each label a value, or \
                     null",
                    series.name,
                    series.values.len(),
                )),
            }
        }
        Plot::Curves(curves) => {
            at_most(SERIES_MAX, curves.series.len(), "series")?;
            let points = curves.series.iter().map(|series| series.values.len()).sum();
            at_most(POINTS_MAX, points, "points")
        }
    }
}

fn at_most(most: usize, count: usize, what: &str) -> Result<(), String> {
    if count <= most {
        Ok(())
    } else {
        Err(format!("there are {count} {what}, but a page has at most {most}; remove some"))
    }
}
