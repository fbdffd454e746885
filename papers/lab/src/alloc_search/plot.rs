//! Draws the plot of a search: the utilisation of each level, and the slots per bucket.

use oblivio_pen::{FONT, INK, PALETTE};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::{Candidate, Search};
use crate::LabError;

const SIZE: (u32, u32) = (1240, 460);

type Area<'b> = DrawingArea<SVGBackend<'b>, plotters::coord::Shift>;
type Panel<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Draws the plot of a search, as SVG.
pub(super) fn svg(search: &Search) -> Result<String, LabError> {
    let mut svg = String::new();
    draw(search, &mut svg).map_err(|error| LabError::Plot(error.to_string()))?;
    Ok(svg)
}

fn draw(search: &Search, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(SIZE.0 / 2);
    let percent = |candidate: &Candidate| {
        candidate.utilisation().into_iter().map(|part| 100.0 * part).collect()
    };
    let slots =
        |candidate: &Candidate| candidate.profile.slots().iter().map(|z| f64::from(*z)).collect();
    draw_panel(search, &left, "Slots that hold a block, in %", 100.0, &percent)?;
    let slots_max = f64::from(search.plan.slots) + 0.5;
    draw_panel(search, &right, "Slots of a bucket", slots_max, &slots)?;
    root.present()?;
    Ok(())
}

fn draw_panel(
    search: &Search,
    area: &Area<'_>,
    title: &str,
    max: f64,
    figures: &dyn Fn(&Candidate) -> Vec<f64>,
) -> Result<(), Box<dyn std::error::Error>> {
    let last_level = f64::from(search.plan.leaf_level);
    let mut panel = ChartBuilder::on(area)
        .caption(title, (FONT, 20).into_font().color(&INK))
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(44)
        .build_cartesian_2d(-0.5..last_level + 0.5, 0.0..max)?;
    panel
        .configure_mesh()
        .x_desc("level, from the root to the leaves")
        .label_style((FONT, 14).into_font().color(&INK))
        .axis_style(INK)
        .light_line_style(TRANSPARENT)
        .bold_line_style(INK.mix(0.1))
        .x_label_formatter(&|level| format!("{level:.0}"))
        .y_label_formatter(&|figure| format!("{figure:.0}"))
        .draw()?;
    let mut series = vec![("uniform", &search.baseline), ("found", search.found())];
    series.extend(search.paper.iter().map(|paper| (paper.name.as_str(), paper)));
    for ((name, candidate), colour) in series.into_iter().zip(PALETTE.iter().cycle()) {
        draw_series(&mut panel, name, figures(candidate), *colour)?;
    }
    panel
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.9))
        .border_style(INK.mix(0.3))
        .label_font((FONT, 14).into_font().color(&INK))
        .draw()?;
    Ok(())
}

fn draw_series(
    panel: &mut Panel<'_, '_>,
    name: &str,
    figures: Vec<f64>,
    colour: RGBColor,
) -> Result<(), Box<dyn std::error::Error>> {
    let points: Vec<_> = figures.into_iter().enumerate().map(|(x, y)| (x as f64, y)).collect();
    let dots = points.iter().map(|point| Circle::new(*point, 3, colour.filled()));
    panel
        .draw_series(dots)?
        .label(name)
        .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
    panel.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
    Ok(())
}
