//! Panels shared by all pictures of this program, and a panel that shows what storage saw.

use std::error::Error;
use std::ops::Range;

use oblivio_pen::{EVICTION, FONT, INK, SEEN};
use plotters::coord::Shift;
use plotters::coord::types::{RangedCoordf64, RangedCoordu64};
use plotters::prelude::*;

use crate::view::{BucketVisit, TreeSummary};

/// Maximum number of points in a panel. More points would be indistinguishable.
pub(crate) const POINTS_MAX: usize = 4000;

/// Ratio of the height of a panel to its highest point, which leaves room for labels.
pub(crate) const HEADROOM: f64 = 1.16;

/// Right margin in pixels. The last number of the x axis may reach beyond the end of the axis.
const RIGHT_MARGIN: i32 = 40;

pub(crate) type Area<'b> = DrawingArea<SVGBackend<'b>, Shift>;
pub(crate) type Panel<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordu64, RangedCoordf64>>;

/// The step with which a sequence of `len` items is sampled down to at most [`POINTS_MAX`].
pub(crate) fn stride(len: usize) -> usize {
    len.div_ceil(POINTS_MAX).max(1)
}

/// A function that returns the label at a position of an axis.
pub(crate) type AxisLabel<'l> = dyn Fn(&u64) -> String + 'l;

/// A panel with a title and axes. Labels of the x axis are plain numbers.
pub(crate) fn panel<'a, 'b>(
    area: &'a Area<'b>,
    title: &str,
    names: [&str; 2],
    x: Range<u64>,
    y_max: f64,
) -> Result<Panel<'a, 'b>, Box<dyn Error>>
where
    'b: 'a,
{
    labelled_panel(area, title, names, x, y_max, &u64::to_string)
}

/// A panel with a title, axes, and the given labels at the x axis.
pub(crate) fn labelled_panel<'a, 'b>(
    area: &'a Area<'b>,
    title: &str,
    [x_name, y_name]: [&str; 2],
    x: Range<u64>,
    y_max: f64,
    x_label: &AxisLabel<'_>,
) -> Result<Panel<'a, 'b>, Box<dyn Error>>
where
    'b: 'a,
{
    let mut panel = ChartBuilder::on(area)
        .caption(title, (FONT, 24).into_font().color(&INK))
        .margin(16)
        .margin_right(RIGHT_MARGIN)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(x, 0.0..y_max * HEADROOM)?;
    panel
        .configure_mesh()
        .disable_mesh()
        .x_desc(x_name)
        .y_desc(y_name)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|x| x_label(x))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style((FONT, 15).into_font().color(&INK))
        .axis_style(INK)
        .draw()?;
    Ok(panel)
}

/// Draws the legend of the series in the upper right corner of the panel.
pub(crate) fn draw_legend<'a, 'b: 'a>(panel: &mut Panel<'a, 'b>) -> Result<(), Box<dyn Error>> {
    panel
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .label_font((FONT, 14).into_font().color(&INK))
        .draw()?;
    Ok(())
}

/// Draws a panel of the buckets that storage saw on the level of the leaves: those that accesses
/// read, and those that evictions wrote.
pub(crate) fn draw_summary(
    area: &Area<'_>,
    title: &str,
    summary: &TreeSummary,
) -> Result<(), Box<dyn Error>> {
    let accesses = 0..summary.accesses.max(1);
    let names = ["access", "bucket on the level of the leaves"];
    let mut storage = panel(area, title, names, accesses, summary.leaf_buckets as f64)?;
    draw_visits(&mut storage, &summary.visits)
}

fn draw_visits<'a, 'b: 'a>(
    panel: &mut Panel<'a, 'b>,
    visits: &[BucketVisit],
) -> Result<(), Box<dyn Error>> {
    let kinds = [
        (false, SEEN.mix(0.7), "an access: a random path"),
        (true, EVICTION.mix(0.5), "an eviction: the next path, of an order that never changes"),
    ];
    for (is_eviction, colour, label) in kinds {
        let visits: Vec<_> =
            visits.iter().filter(|visit| visit.is_eviction == is_eviction).collect();
        if visits.is_empty() {
            continue;
        }
        let dots = visits.iter().step_by(stride(visits.len()));
        panel
            .draw_series(
                dots.map(|visit| {
                    Circle::new((visit.access, visit.bucket as f64), 2, colour.filled())
                }),
            )?
            .label(label)
            .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
    }
    draw_legend(panel)
}

#[cfg(test)]
pub(crate) mod text_boxes;
