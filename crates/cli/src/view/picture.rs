//! A picture of a view: accesses, levels, leaves and times.

use std::error::Error;
use std::path::Path;

use oblivio_core::view::Operation;
use oblivio_pen::{FONT, INK, PALETTE};
use plotters::prelude::*;

use super::counts::TreeCounts;
use super::evaluation::ViewEvaluation;
use super::rates::Rates;
use super::summary::TreeSummary;
use super::uniformity::Uniformity;
use crate::drawing::{Area, Panel, draw_legend, draw_summary, labelled_panel};
use crate::error::CliError;
use crate::files::{FileKind, OutputTarget};

const SIZE: (u32, u32) = (1400, 1100);

/// Left and right edge of a bar relative to its position on the x axis, in percent of the distance
/// between positions. These values put bars of two kinds side by side.
const PAIR: [(i32, i32); 2] = [(-40, 0), (0, 40)];
const SINGLE: (i32, i32) = (-40, 40);

/// Maximum number of points on the time axis.
const SPANS_MAX: usize = 240;

/// Draws a view to a file.
pub(super) fn draw(
    evaluation: &ViewEvaluation,
    named: Option<u16>,
    path: &Path,
) -> Result<(), CliError> {
    let Some((summary, tree)) = evaluation
        .summary
        .as_ref()
        .and_then(|summary| Some((summary, evaluation.counts.trees.get(&summary.tree.0)?)))
    else {
        return Err(nothing_to_draw(evaluation, named));
    };
    let mut svg = String::new();
    draw_panels(&mut svg, evaluation, summary, tree)
        .map_err(|error| CliError::Engine(format!("cannot draw the picture: {error}")))?;
    OutputTarget::with(path, FileKind::PICTURE, &svg)?.finish()
}

/// The error if there is nothing to draw, for the `named` tree or for any.
fn nothing_to_draw(evaluation: &ViewEvaluation, named: Option<u16>) -> CliError {
    let trees: Vec<_> = evaluation.counts.trees.keys().map(u16::to_string).collect();
    let trees = trees.join(", ");
    CliError::Input(match named {
        _ if trees.is_empty() => "storage saw no bucket of any tree, so there is nothing to draw: \
                                  record a view while the volume is used"
            .into(),
        Some(tree) => {
            format!("there is no tree {tree} in the view: choose another with --tree, of {trees}")
        }
        None => format!(
            "no tree of this view shows which leaves were accessed: choose a tree to draw with \
             --tree, of {trees}"
        ),
    })
}

fn draw_panels(
    svg: &mut String,
    evaluation: &ViewEvaluation,
    summary: &TreeSummary,
    tree: &TreeCounts,
) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let areas = root.split_evenly((2, 2));
    let title = format!("What storage saw of tree {}", summary.tree.0);
    draw_summary(&areas[0], &title, summary)?;
    draw_levels(&areas[1], tree)?;
    match evaluation.leaves.get(&summary.tree.0).and_then(|leaves| Uniformity::of(leaves.bins())) {
        Some(tested) => draw_leaves(&areas[2], &tested)?,
        None => say(&areas[2], "Too few accesses to test whether leaves are uniform")?,
    }
    match &evaluation.counts.rates {
        Some(rates) => draw_rates(&areas[3], rates)?,
        None => say(&areas[3], "Times of trips were not recorded")?,
    }
    root.present()?;
    Ok(())
}

fn draw_levels(area: &Area<'_>, tree: &TreeCounts) -> Result<(), Box<dyn Error>> {
    let levels: Vec<_> = tree.levels().collect();
    let names = ["level", "buckets, or parts of them"];
    let first = levels.first().map_or(0, |level| level.0);
    let last = levels.last().map_or(0, |level| level.0);
    let most = levels.iter().map(|(_, counts)| counts.read.max(counts.written)).max();
    // Each bar is centred on a number, one to the right of the number of its level.
    let label = |x: &u64| match x.checked_sub(1) {
        Some(level) if (u64::from(first)..=u64::from(last)).contains(&level) => level.to_string(),
        _ => String::new(),
    };
    let range = u64::from(first)..u64::from(last) + 2;
    let most = most.unwrap_or(0).max(1) as f64;
    let mut panel = labelled_panel(area, "Each level", names, range, most, &label)?;
    let kinds = [("read", PALETTE[1], PAIR[0]), ("written", PALETTE[3], PAIR[1])];
    for (i, (name, colour, around)) in kinds.into_iter().enumerate() {
        let bars = levels.iter().map(|(level, counts)| {
            let count = [counts.read, counts.written][i];
            (u64::from(*level) + 1, count)
        });
        draw_bars(&mut panel, bars, colour, around, name)?;
    }
    draw_legend(&mut panel)
}

fn draw_leaves(area: &Area<'_>, tested: &Uniformity) -> Result<(), Box<dyn Error>> {
    let names = ["run of leaves", "accesses"];
    let most = tested.bins.iter().copied().max().unwrap_or(0).max(1) as f64;
    let runs = tested.bins.len() as u64;
    let label = |x: &u64| if (1..=runs).contains(x) { x.to_string() } else { String::new() };
    let title = format!("Leaves: p = {:.3}", tested.p);
    let mut panel = labelled_panel(area, &title, names, 0..runs + 1, most, &label)?;
    draw_bars(&mut panel, (1..).zip(tested.bins.iter().copied()), PALETTE[0], SINGLE, "accesses")?;
    let mean = tested.bins.iter().sum::<u64>() as f64 / runs as f64;
    panel
        .draw_series(LineSeries::new([(0, mean), (runs + 1, mean)], INK))?
        .label("uniform")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], INK));
    draw_legend(&mut panel)
}

/// Draws a bar for each position on the x axis with its count. `left` and `right` are the edges of
/// a bar, in the unit of [`PAIR`].
fn draw_bars<'a, 'b: 'a>(
    panel: &mut Panel<'a, 'b>,
    bars: impl Iterator<Item = (u64, u64)>,
    colour: RGBColor,
    (left, right): (i32, i32),
    label: &str,
) -> Result<(), Box<dyn Error>> {
    let (zero, _) = panel.backend_coord(&(0, 0.0));
    let apart = panel.backend_coord(&(1, 0.0)).0 - zero;
    let bars = bars.map(|(x, count)| {
        let height = panel.backend_coord(&(x, count as f64)).1 - panel.backend_coord(&(x, 0.0)).1;
        let corners = [(apart * left / 100, 0), (apart * right / 100, height)];
        EmptyElement::at((x, 0.0)) + Rectangle::new(corners, colour.filled())
    });
    let bars: Vec<_> = bars.collect();
    panel
        .draw_series(bars)?
        .label(label)
        .legend(move |(x, y)| Rectangle::new([(x + 3, y - 5), (x + 13, y + 5)], colour.filled()));
    Ok(())
}

fn draw_rates(area: &Area<'_>, rates: &Rates) -> Result<(), Box<dyn Error>> {
    let of = |operation| rates.per_second(operation, SPANS_MAX);
    let (span, _) = of(Operation::Read);
    let lines: Vec<_> = Operation::ALL
        .into_iter()
        .zip([PALETTE[5], PALETTE[1], PALETTE[3], PALETTE[4]])
        .map(|(operation, colour)| (operation, colour, of(operation).1))
        .filter(|(_, _, rates)| rates.iter().any(|rate| *rate > 0.0))
        .collect();
    let most = lines.iter().flat_map(|(_, _, rates)| rates).copied().fold(1.0, f64::max);
    let end = lines.iter().map(|(_, _, rates)| rates.len()).max().unwrap_or(0).max(1) as u64;
    let seconds = |x: &u64| {
        format!("{:.*}", decimals(span.as_secs_f64() * end as f64), span.as_secs_f64() * *x as f64)
    };
    let names = ["seconds", "trips per second"];
    // Leave space above the lines for their names.
    let mut panel = labelled_panel(area, "When", names, 0..end, most * 1.2, &seconds)?;
    for (operation, colour, rates) in lines {
        let points = (0..).zip(rates);
        panel
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            .label(operation.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    draw_legend(&mut panel)
}

/// Number of decimals that labels on an axis from 0 to `end` need to differ.
fn decimals(end: f64) -> usize {
    if end < 1.0 {
        3
    } else if end < 100.0 {
        1
    } else {
        0
    }
}

/// Draws a text in place of a panel.
fn say(area: &Area<'_>, what: &str) -> Result<(), Box<dyn Error>> {
    let style = (FONT, 18).into_font().color(&INK);
    area.draw(&Text::new(what.to_owned(), (90, 40), style))?;
    Ok(())
}

#[cfg(test)]
mod tests;
