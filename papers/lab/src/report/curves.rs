//! Curves as a picture: a line and signs of its own for each series.

use super::axis::Axis;
use super::escape::Escaped;
use super::frame::{Frame, LINE_HEIGHT, NUMBERS_WIDTH, colour};
use super::number::short;
use super::placing::Placed;
use super::{Curves, Series};

/// Points of a series that can be told apart. Of more, some have signs, so that the curve is known,
/// and those of the others are seen when pointed at.
const SIGNS_MAX: usize = 60;
const SIGNS_OF_MANY: usize = 10;

/// Points of a series that can be pointed at, at most.
const POINTED_MAX: usize = 500;

/// Signs around the origin, so that curves are told apart without colours.
const SIGNS: [&str; 6] = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M-3.5 -3.5h7v7h-7z",
    "M0 -4.5l4.5 8h-9z",
    "M0 -5l5 5l-5 5l-5 -5z",
    "M0 4.5l4.5 -8h-9z",
    "M-1.5 -4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
];

/// The picture of curves, with stated numbers.
pub(super) fn svg(name: &str, title: &str, curves: &Curves, placed: &[Placed<'_>]) -> String {
    let frame = Frame {
        width: 800.0,
        height: 380.0,
        left: NUMBERS_WIDTH + 4.0,
        right: 24.0,
        top: 34.0,
        bottom: 2.0 * LINE_HEIGHT + 18.0,
    };
    let points = || curves.series.iter().flat_map(|series| series.values.iter());
    let heights = points().map(|[_, y]| *y).chain(placed.iter().map(|placed| placed.stated.paper));
    let vertical = if curves.is_log { Axis::log(heights) } else { Axis::linear(heights) };
    let horizontal = Axis::linear(points().map(|[x, _]| *x));
    let place = |[x, y]: [f64; 2]| Some([frame.x(horizontal.part(x)?), frame.y(vertical.part(y)?)]);
    let series = curves.series.iter().enumerate();
    let series = series.map(|(number, series)| drawn(number, series, &place));
    let span = [frame.x(0.0), frame.x(1.0) - frame.x(0.0)];
    let stated = placed.iter().map(|placed| frame.stated(placed, &vertical, span));
    let inside: String = [
        frame.vertical(&vertical, &curves.axes[1]),
        frame.horizontal(&horizontal, &curves.axes[0]),
    ]
    .into_iter()
    .chain(stated)
    .chain(series)
    .collect();
    let description = format!(
        "Curves of {} over {}, {} series{}. The table below has all values.",
        curves.axes[1],
        curves.axes[0],
        curves.series.len(),
        if curves.is_log { ", on a logarithmic axis" } else { "" }
    );
    frame.svg(name, title, &description, &inside)
}

/// How many points have no place, and why: a sentence, if there are any.
pub(super) fn left_out(curves: &Curves) -> Option<String> {
    let points = || curves.series.iter().flat_map(|series| series.values.iter());
    let no_number = |[x, y]: &[f64; 2]| !x.is_finite() || !y.is_finite();
    let missing = points().filter(|point| no_number(point)).count();
    let low = |point: &&[f64; 2]| curves.is_log && !no_number(point) && point[1] <= 0.0;
    let reasons = [
        (points().filter(low).count(), "zero or less, on a logarithmic axis"),
        (missing, "no number"),
    ];
    let reasons: Vec<_> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} ({why})"))
        .collect();
    (!reasons.is_empty()).then(|| format!("Points that cannot be drawn: {}.", reasons.join(", ")))
}

/// The sign of a series.
pub(super) fn sign(series: usize) -> &'static str {
    SIGNS[series % SIGNS.len()]
}

fn drawn(
    number: usize,
    series: &Series<[f64; 2]>,
    place: &impl Fn([f64; 2]) -> Option<[f64; 2]>,
) -> String {
    let places: Vec<_> = series.values.iter().map(|point| place(*point)).collect();
    // A point without a place ends the line; the next one begins another.
    let lines = places.split(Option::is_none).filter(|line| !line.is_empty()).map(|line| {
        let points = line.iter().flatten().map(|[x, y]| format!("{x:.1} {y:.1}"));
        format!("M{}", points.collect::<Vec<_>>().join("L"))
    });
    let stride = places.len() / POINTED_MAX + 1;
    let signed = if places.len() > SIGNS_MAX { places.len() / stride / SIGNS_OF_MANY } else { 1 };
    let pointed = series.values.iter().zip(&places).step_by(stride).enumerate();
    let marks = pointed.filter_map(|(at, (value, place))| {
        let [x, y] = (*place)?;
        let quiet = if at % signed == 0 { "" } else { " quiet" };
        let text = format!("{}\n{}: {}", series.name, short(value[0]), short(value[1]));
        Some(format!(
            "<g class=\"mark{quiet}\" transform=\"translate({x:.1} {y:.1})\"><title>{}</title>\
             <path class=\"sign\" d=\"{}\"/></g>\n",
            Escaped(&text),
            sign(number)
        ))
    });
    format!(
        "<g class=\"series {}\" data-series=\"{number}\">\n<path class=\"line\" d=\"{}\"/>\n{}</g>\n",
        colour(number),
        lines.collect::<String>(),
        marks.collect::<String>()
    )
}
