//! Draws plots as SVG, with the legend to the right of each plot.

use std::error::Error;

use oblivio_pen::{FONT, INK, PALETTE};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::PointCollection;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::escape::Escaped;
use super::number::{drawable, short};
use super::placing::Placed;
use super::{Bars, Curves, Series};

type Area<'b> = DrawingArea<SVGBackend<'b>, Shift>;
type Panel<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type DrawResult = Result<(), Box<dyn Error>>;

/// Height of the axes, in pixels.
const HEIGHT: u32 = 300;

/// Target width of all bars of a figure together, in pixels. A bar is 6 to 32 pixels wide, so the
/// actual width can differ.
const BARS_WIDTH: f64 = 760.0;

/// Width of the legend, in pixels.
pub(super) const LEGEND_WIDTH: u32 = 250;

/// Height of a line of text, in pixels.
const LINE_HEIGHT: u32 = 18;

/// Approximate width of a character of a label, in pixels.
const CHARACTER_WIDTH: u32 = 7;

/// The maximum length of the label of a group of bars, in characters. The tables have the complete
/// label.
const LABEL_MAX: usize = 48;

/// The maximum length of a line of a legend entry, in characters.
const ENTRY_LINE_MAX: usize = 32;

/// The maximum number of points of a curve with one marker per point. Longer curves have about
/// `SIGNS_OF_MANY` markers.
const SIGNS_MAX: usize = 60;
pub(super) const SIGNS_OF_MANY: usize = 10;

/// Draws bars with stated numbers, one group per label.
pub(super) fn bars(bars: &Bars, placed: &[Placed<'_>]) -> String {
    // The horizontal unit is a bar. A gap of one bar follows each group.
    let groups = bars.labels.len().max(1) as u32;
    let side_by_side = if bars.stacked { 1 } else { bars.series.len().max(1) as u32 };
    let units = groups * (side_by_side + 1);
    let bar = (BARS_WIDTH / f64::from(units)).clamp(6.0, 32.0);
    let width = (f64::from(units) * bar).max(360.0) as u32;
    let labels: Vec<_> = bars.labels.iter().map(|label| shortened(label, LABEL_MAX)).collect();
    let longest = labels.iter().map(|label| label.chars().count() as u32 * CHARACTER_WIDTH).max();
    let longest = longest.unwrap_or(0);
    let is_turned = longest > width / groups;
    let below = 12 + if is_turned { longest } else { LINE_HEIGHT };

    let stated = placed.iter().flat_map(|placed| ends(placed.stated.paper, placed.stated.band));
    let (low, high) = range(heights(bars).chain(stated).chain([0.0]));
    let names = bars.series.iter().map(|series| series.name.as_str()).collect();
    let legend = Legend { names, is_of_curves: false, has_stated: !placed.is_empty() };
    picture(width, below, &legend, |area| {
        let mut panel = panel(area, 0.0..f64::from(units), low..high, below)?;
        panel
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .y_desc(clean(&bars.value))
            .y_label_formatter(&|value| short(*value))
            .axis_style(INK)
            .light_line_style(TRANSPARENT)
            .bold_line_style(INK.mix(0.1))
            .label_style((FONT, 13).into_font().color(&INK))
            .draw()?;
        let left = |label: usize, series: Option<usize>| {
            let number = if bars.stacked { 0 } else { series.unwrap_or(0) };
            0.5 + (label * (side_by_side as usize + 1) + number) as f64
        };
        for (number, series) in bars.series.iter().enumerate() {
            for label in 0..bars.labels.len() {
                let x = left(label, Some(number));
                match series.values.get(label).copied().flatten().and_then(drawable) {
                    Some(value) => {
                        let start = start(bars, number, label, value);
                        let corners = [(x, start), (x + 1.0, start + value)];
                        add(&mut panel, Rectangle::new(corners, fill(number)))?;
                    }
                    None => {
                        let start = start(bars, number, label, 0.0);
                        add(&mut panel, Cross::new((x + 0.5, start), 3, INK))?;
                    }
                }
            }
        }
        for placed in placed {
            let span = match placed.label {
                Some(label) => {
                    let left = left(label, placed.series);
                    (left - 0.1, left + 1.1)
                }
                None => (0.0, f64::from(units)),
            };
            draw_stated(&mut panel, placed, span, Some)?;
        }
        add(&mut panel, PathElement::new([(0.0, 0.0), (f64::from(units), 0.0)], INK))?;
        let (pos, turn) = match is_turned {
            true => (Pos::new(HPos::Right, VPos::Center), FontTransform::Rotate270),
            false => (Pos::new(HPos::Center, VPos::Top), FontTransform::None),
        };
        let style = (FONT, 12).into_font().transform(turn).color(&INK).pos(pos);
        for (number, label) in labels.iter().enumerate() {
            let middle = left(number, None) + f64::from(side_by_side) / 2.0;
            let (x, y) = panel.backend_coord(&(middle, low));
            area.draw(&Text::new(label.clone(), (x, y + 6), style.clone()))?;
        }
        Ok(())
    })
}

/// Draws curves, with stated numbers as horizontal lines.
pub(super) fn curves(curves: &Curves, placed: &[Placed<'_>]) -> String {
    // A logarithmic axis is drawn as a linear axis of base-10 logarithms.
    let height = |y: f64| {
        let y = drawable(y)?;
        if curves.is_log { (y > 0.0).then(|| y.log10()) } else { Some(y) }
    };
    let place = |[x, y]: &[f64; 2]| Some((drawable(*x)?, height(*y)?));
    let points = || curves.series.iter().flat_map(|series| &series.values).filter_map(place);
    let stated = placed.iter().flat_map(|placed| ends(placed.stated.paper, placed.stated.band));
    let (low, high) = range(points().map(|(_, y)| y).chain(stated.filter_map(height)));
    let (first, last) = range(points().map(|(x, _)| x));
    let names = curves.series.iter().map(|series| series.name.as_str()).collect();
    let legend = Legend { names, is_of_curves: true, has_stated: !placed.is_empty() };
    picture(640, 50, &legend, |area| {
        let mut panel = panel(area, first..last, low..high, 44)?;
        panel
            .configure_mesh()
            .x_desc(clean(&curves.axes[0]))
            .y_desc(clean(&curves.axes[1]))
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| match curves.is_log {
                true => short(10f64.powf(*value)),
                false => short(*value),
            })
            .axis_style(INK)
            .light_line_style(TRANSPARENT)
            .bold_line_style(INK.mix(0.1))
            .label_style((FONT, 13).into_font().color(&INK))
            .draw()?;
        for placed in placed {
            draw_stated(&mut panel, placed, (first, last), height)?;
        }
        for (number, series) in curves.series.iter().enumerate() {
            let places: Vec<_> = series.values.iter().map(place).collect();
            // A point that cannot be drawn interrupts the line.
            for line in places.split(Option::is_none) {
                let line: Vec<_> = line.iter().flatten().copied().collect();
                if line.is_empty() {
                    continue;
                }
                add(&mut panel, PathElement::new(line, fill(number).stroke_width(2)))?;
            }
            let many = places.len() > SIGNS_MAX;
            let stride = if many { places.len() / SIGNS_OF_MANY } else { 1 };
            for at in places.iter().step_by(stride).flatten() {
                match number % 3 {
                    0 => add(&mut panel, Circle::new(*at, 4, fill(number)))?,
                    1 => add(&mut panel, TriangleMarker::new(*at, 5, fill(number)))?,
                    _ => add(&mut panel, Cross::new(*at, 4, fill(number).stroke_width(2)))?,
                }
            }
        }
        Ok(())
    })
}

/// A sentence that counts the points that cannot be drawn, with reasons. `None` if all points can
/// be drawn.
pub(super) fn left_out(curves: &Curves) -> Option<String> {
    let points = || curves.series.iter().flat_map(|series| &series.values);
    let is_drawable = |[x, y]: &&[f64; 2]| drawable(*x).and(drawable(*y)).is_some();
    let low = points().filter(|point| curves.is_log && is_drawable(point) && point[1] <= 0.0);
    let reasons = [
        (low.count(), "zero or less, on a logarithmic axis"),
        (points().filter(|point| !is_drawable(point)).count(), "no number, or too large"),
    ];
    let reasons: Vec<_> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} ({why})"))
        .collect();
    (!reasons.is_empty()).then(|| format!("Points that cannot be drawn: {}.", reasons.join(", ")))
}

/// The entries of a legend.
struct Legend<'a> {
    /// The names of the series.
    names: Vec<&'a str>,
    is_of_curves: bool,
    /// Whether the chart has numbers that the paper states.
    has_stated: bool,
}

/// Draws axes of `width` pixels, with `below` pixels under them, and the legend to the right.
/// Returns SVG, or an HTML paragraph with the error.
fn picture(
    width: u32,
    below: u32,
    legend: &Legend<'_>,
    draw: impl FnOnce(&Area<'_>) -> DrawResult,
) -> String {
    let stated = legend.has_stated.then_some("stated in the paper, ± band");
    let entries: Vec<_> = legend.names.iter().copied().chain(stated).map(wrapped).collect();
    let lines: usize = entries.iter().map(Vec::len).sum();
    let legend_height = (lines as u32 + 1) * LINE_HEIGHT;
    let (left, height) = (width + 90, (HEIGHT + below).max(legend_height));
    let mut svg = String::new();
    let drawn = || -> DrawResult {
        let root = SVGBackend::with_string(&mut svg, (left + LEGEND_WIDTH, height));
        let root = root.into_drawing_area();
        root.fill(&WHITE)?;
        let (axes, area) = root.split_horizontally(left);
        draw(&axes)?;
        let style = (FONT, 13).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        let mut y = 0;
        for (number, entry) in entries.iter().enumerate() {
            let middle = (15, y + LINE_HEIGHT as i32);
            let corners = [(8, middle.1 - 6), (22, middle.1 + 6)];
            match number % 3 {
                _ if number == legend.names.len() => {
                    area.draw(&Rectangle::new(corners, INK.mix(0.2).filled()))?;
                    area.draw(&PathElement::new(
                        [(8, middle.1), (22, middle.1)],
                        INK.stroke_width(2),
                    ))?;
                }
                _ if !legend.is_of_curves => area.draw(&Rectangle::new(corners, fill(number)))?,
                0 => area.draw(&Circle::new(middle, 4, fill(number)))?,
                1 => area.draw(&TriangleMarker::new(middle, 5, fill(number)))?,
                _ => area.draw(&Cross::new(middle, 4, fill(number).stroke_width(2)))?,
            }
            for line in entry {
                y += LINE_HEIGHT as i32;
                area.draw(&Text::new(line.clone(), (28, y), style.clone()))?;
            }
        }
        Ok(root.present()?)
    };
    match drawn() {
        // The attribute is only needed in separate files.
        Ok(()) => svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", ""),
        Err(error) => format!("<p>{}</p>\n", Escaped(&format!("No chart: {error}"))),
    }
}

fn panel<'a, 'b>(
    area: &'a Area<'b>,
    x: std::ops::Range<f64>,
    y: std::ops::Range<f64>,
    below: u32,
) -> Result<Panel<'a, 'b>, Box<dyn Error>> {
    let mut builder = ChartBuilder::on(area);
    builder.margin_top(12).margin_right(12).margin_left(8);
    Ok(builder.x_label_area_size(below).y_label_area_size(70).build_cartesian_2d(x, y)?)
}

/// Draws one element.
fn add<'b, E>(panel: &mut Panel<'_, 'b>, element: E) -> DrawResult
where
    for<'e> &'e E: PointCollection<'e, (f64, f64)>,
    E: plotters::element::Drawable<SVGBackend<'b>>,
{
    panel.draw_series([element])?;
    Ok(())
}

/// Draws a stated number over the width `span`: a line at its height, and a rectangle for its band.
fn draw_stated(
    panel: &mut Panel<'_, '_>,
    placed: &Placed<'_>,
    span: (f64, f64),
    height: impl Fn(f64) -> Option<f64>,
) -> DrawResult {
    let (paper, band) = (placed.stated.paper, placed.stated.band.abs());
    let Some(y) = drawable(paper).and_then(&height) else { return Ok(()) };
    let end = |value: f64| drawable(value).and_then(&height);
    let (bottom, top) = (end(paper - band).unwrap_or(y), end(paper + band).unwrap_or(y));
    let corners = [(span.0, bottom), (span.1, top)];
    add(panel, Rectangle::new(corners, INK.mix(0.16).filled()))?;
    add(panel, PathElement::new([(span.0, y), (span.1, y)], INK.stroke_width(2)))
}

/// The colour of a series. After the last colour, paler versions follow.
fn fill(number: usize) -> ShapeStyle {
    let share = [1.0, 0.6, 0.35][(number / PALETTE.len()).min(2)];
    PALETTE[number % PALETTE.len()].mix(share).filled()
}

/// The stated number `paper` and the ends of its band, without the values that cannot be drawn.
fn ends(paper: f64, band: f64) -> impl Iterator<Item = f64> {
    [paper, paper - band, paper + band].into_iter().filter(|end| drawable(*end).is_some())
}

/// The values at which bars end, for all bars of a plot.
fn heights(bars: &Bars) -> impl Iterator<Item = f64> {
    let ends = |(number, series): (usize, &Series<Option<f64>>)| {
        let values = series.values.iter().take(bars.labels.len()).enumerate();
        let ends = values.filter_map(|(label, value)| {
            let value = drawable((*value)?)?;
            Some(start(bars, number, label, value) + value)
        });
        ends.collect::<Vec<_>>()
    };
    bars.series.iter().enumerate().flat_map(ends)
}

/// The value at which a bar starts. In a stack, positive bars are stacked upwards, and negative
/// bars downwards.
fn start(bars: &Bars, series: usize, label: usize, value: f64) -> f64 {
    let below = if bars.stacked { &bars.series[..series] } else { &[] };
    let values = below.iter().filter_map(|part| drawable(part.values.get(label).copied()??));
    values.filter(|part| (*part < 0.0) == (value < 0.0)).sum()
}

/// The ends of an axis that contains all `values`, with a margin.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let size = low.abs().max(high.abs());
    match high - low {
        room if !room.is_finite() => (0.0, 1.0),
        room if room > 1e-6 * size => {
            let end = |value: f64, room: f64| if value == 0.0 { 0.0 } else { value + room };
            (end(low, -0.03 * room), end(high, 0.03 * room))
        }
        _ if size == 0.0 => (0.0, 1.0),
        _ => (low - 0.1 * size, high + 0.1 * size),
    }
}

/// Shortens text to at most `most` characters.
fn shortened(text: &str, most: usize) -> String {
    let text = clean(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Splits a legend entry into lines. A word longer than a line has a line of its own.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in clean(text).split_whitespace() {
        let line = lines.last_mut().expect("at least one line");
        if line.is_empty() {
            *line = word.to_owned();
        } else if line.chars().count() + 1 + word.chars().count() <= ENTRY_LINE_MAX {
            *line = format!("{line} {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Replaces control characters and other forbidden characters. The library `plotters` escapes
/// markup.
fn clean(text: &str) -> String {
    let is_bad = super::escape::is_forbidden;
    text.chars().map(|character| if is_bad(character) { '\u{fffd}' } else { character }).collect()
}
