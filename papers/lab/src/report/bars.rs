//! Bars as a picture: a group for each label, side by side or one on top of the other.

use super::axis::Axis;
use super::escape::Escaped;
use super::frame::{Frame, LINE_HEIGHT, NUMBERS_WIDTH, colour, shortened, text_width};
use super::number::{drawable, short};
use super::placing::Placed;
use super::{Bars, Series};

/// Characters of a label, at most; the rest is told when it is pointed at.
const LABEL_MAX: usize = 24;

/// Width of what is drawn, before it has to be scrolled.
const COMFORTABLE: f64 = 860.0;

/// The sine and cosine of labels that do not fit side by side.
const SLANT: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Where everything stands.
struct Layout<'a> {
    bars: &'a Bars,
    frame: Frame,
    axis: Axis,
    /// From label to label.
    pitch: f64,
    /// Of a bar.
    width: f64,
    is_slanted: bool,
}

/// The picture of bars, with stated numbers.
pub(super) fn svg(name: &str, title: &str, bars: &Bars, placed: &[Placed<'_>]) -> String {
    let layout = Layout::new(bars, placed);
    let description = format!(
        "Bars of {} for {} labels, {} series{}. The table below has all values.",
        bars.value,
        bars.labels.len(),
        bars.series.len(),
        if bars.stacked { ", stacked" } else { "" }
    );
    let numbered = || bars.series.iter().enumerate();
    let stated = placed.iter().map(|placed| layout.stated(placed));
    let inside: String = [layout.frame.vertical(&layout.axis, &bars.value)]
        .into_iter()
        .chain(numbered().map(|(number, series)| layout.series(number, series)))
        .chain([layout.frame.base(layout.height(0.0)), layout.labels()])
        .chain(stated)
        .collect();
    layout.frame.svg(name, title, &description, &inside)
}

impl<'a> Layout<'a> {
    fn new(bars: &'a Bars, placed: &[Placed<'_>]) -> Self {
        let groups = bars.labels.len().max(1) as f64;
        let side_by_side = if bars.stacked { 1 } else { bars.series.len().max(1) } as f64;
        let width = (COMFORTABLE / (groups * (side_by_side + 1.0))).clamp(6.0, 32.0);
        let pitch = (side_by_side * width + width.max(10.0)).max(360.0 / groups);
        let labels = || bars.labels.iter().map(|label| text_width(&shortened(label, LABEL_MAX)));
        let longest = labels().fold(0.0, f64::max);
        let is_slanted = longest > pitch - 6.0;
        // A slanted label ends under its group and may begin left of the axis.
        let overhang = labels()
            .zip(0..)
            .map(|(width, number)| width * SLANT + 8.0 - (f64::from(number) + 0.5) * pitch);
        let overhang = if is_slanted { overhang.fold(0.0, f64::max) } else { 0.0 };
        let left = overhang.max(NUMBERS_WIDTH + 4.0);
        let bottom = if is_slanted { longest * SLANT } else { 0.0 } + LINE_HEIGHT + 12.0;
        let frame = Frame {
            width: left + groups * pitch + 16.0,
            height: 300.0 + bottom,
            left,
            right: 16.0,
            top: 34.0,
            bottom,
        };
        let paper = placed.iter().map(|placed| placed.stated.paper);
        let axis = Axis::linear(heights(bars).chain(paper).chain([0.0]));
        Self { bars, frame, axis, pitch, width, is_slanted }
    }

    /// The left end of a bar, or of a stack if it is of no series.
    fn left(&self, label: usize, series: Option<usize>) -> f64 {
        let side_by_side = if self.bars.stacked { 1 } else { self.bars.series.len() };
        let number = if self.bars.stacked { 0 } else { series.unwrap_or(0) };
        self.frame.left
            + (label as f64 + 0.5) * self.pitch
            + (number as f64 - side_by_side as f64 / 2.0) * self.width
    }

    /// Where a value is. What has no place is not asked for.
    fn height(&self, value: f64) -> f64 {
        self.frame.y(self.axis.part(value).unwrap_or(0.0))
    }

    fn series(&self, number: usize, series: &Series<Option<f64>>) -> String {
        let marks = (0..self.bars.labels.len()).map(|label| self.mark(number, series, label));
        format!(
            "<g class=\"series {}\" data-series=\"{number}\">\n{}</g>\n",
            colour(number),
            marks.collect::<String>()
        )
    }

    /// A bar, or a cross where nothing was measured.
    fn mark(&self, number: usize, series: &Series<Option<f64>>, label: usize) -> String {
        let x = self.left(label, Some(number));
        let value = series.values.get(label).copied().flatten().filter(|value| value.is_finite());
        let shown = value.map_or("not measured".to_owned(), short);
        let name = format!("{}, {}: {shown}", self.bars.labels[label], series.name);
        let start = if self.bars.stacked {
            below(self.bars, number, label, value.unwrap_or(0.0))
        } else {
            0.0
        };
        let shape = match value {
            Some(value) => {
                let ends = [self.height(start), self.height(start + value)];
                format!(
                    "<rect class=\"bar\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                    ends[0].min(ends[1]),
                    self.width,
                    (ends[0] - ends[1]).abs()
                )
            }
            None => format!(
                "<path class=\"missing\" d=\"M{:.1} {:.1}l5 -5m0 5l-5 -5\"/>",
                x + self.width / 2.0 - 2.5,
                self.height(start) - 2.0
            ),
        };
        format!("<g class=\"mark\"><title>{}</title>{shape}</g>\n", Escaped(&name))
    }

    fn labels(&self) -> String {
        let y = self.frame.y(0.0) + LINE_HEIGHT;
        let label = |(number, label): (usize, &String)| {
            let x = self.frame.left + (number as f64 + 0.5) * self.pitch;
            let (anchor, turn) = match self.is_slanted {
                true => ("end", format!(" transform=\"rotate(-45 {x:.1} {y:.1})\"")),
                false => ("middle", String::new()),
            };
            let text = shortened(label, LABEL_MAX);
            format!(
                "<text class=\"label\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\"{turn}>\
                 <title>{}</title>{}</text>\n",
                Escaped(label),
                Escaped(&text)
            )
        };
        self.bars.labels.iter().enumerate().map(label).collect()
    }

    fn stated(&self, placed: &Placed<'_>) -> String {
        let span = match placed.label {
            Some(label) => [self.left(label, placed.series) - 2.0, self.width + 4.0],
            None => [self.frame.x(0.0), self.frame.x(1.0) - self.frame.x(0.0)],
        };
        self.frame.stated(placed, &self.axis, span)
    }
}

/// All ends of bars.
fn heights(bars: &Bars) -> impl Iterator<Item = f64> {
    let ends = |(number, series): (usize, &'_ Series<Option<f64>>)| {
        let values = series.values.iter().take(bars.labels.len()).enumerate();
        let ends = values.filter_map(|(label, value)| {
            let value = (*value)?;
            let start = if bars.stacked { below(bars, number, label, value) } else { 0.0 };
            Some(start + drawable(value)?)
        });
        ends.collect::<Vec<_>>()
    };
    bars.series.iter().enumerate().flat_map(ends)
}

/// Where a part of a stack begins: values above zero grow up, the others down.
fn below(bars: &Bars, series: usize, label: usize, value: f64) -> f64 {
    let parts = bars.series[..series].iter();
    let values = parts.filter_map(|part| drawable(part.values.get(label).copied().flatten()?));
    values.filter(|part| (*part < 0.0) == (value < 0.0)).sum()
}
