//! The plot of the study: the probability that more than `n` blocks are left, on a logarithmic
//! scale.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::{SECURITY_BITS, Scheme, SetupResult, Study};
use crate::LabError;
use oblivio_pen::{FONT, INK, PALETTE};

const SIZE: (u32, u32) = (1240, 620);

/// The lower end of the axis is two to the power of minus this number. It is below 2^-80, so that
/// the line at 2^-80 is not at the edge.
const BITS_MAX: f64 = 88.0;

const BLOCKS_MAX: f64 = 110.0;

type Panel<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

impl Study {
    /// Draws the plot as SVG: measurements as points, fits as lines to the end of the axes, and the
    /// paper's bound.
    ///
    /// # Errors
    /// [`LabError::Plot`] if the plot cannot be drawn.
    pub fn svg(&self) -> Result<String, LabError> {
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|error| LabError::Plot(error.to_string()))?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (left, right) = root.split_horizontally(SIZE.0 / 2);
        for (area, scheme) in [(left, Scheme::PathZ4), (right, Scheme::RawZ5A5)] {
            let title = format!("{scheme}: blocks left in the stash, {}", self.plan.workload);
            let mut panel = ChartBuilder::on(&area)
                .caption(title, (FONT, 20).into_font().color(&INK))
                .margin(14)
                .x_label_area_size(44)
                .y_label_area_size(56)
                .build_cartesian_2d(0.0..BLOCKS_MAX, -BITS_MAX..0.0)?;
            panel
                .configure_mesh()
                .x_desc("n")
                .y_desc("log2 P(more than n blocks are left)")
                .label_style((FONT, 14).into_font().color(&INK))
                .axis_style(INK)
                .light_line_style(TRANSPARENT)
                .bold_line_style(INK.mix(0.1))
                .x_label_formatter(&|n| format!("{n:.0}"))
                .y_label_formatter(&|bits| format!("{bits:.0}"))
                .draw()?;
            draw_bounds(&mut panel, scheme)?;
            let of_scheme = self.results.iter().filter(|result| result.setup.scheme == scheme);
            for (result, colour) in of_scheme.zip(PALETTE.iter().cycle()) {
                draw_setup(&mut panel, result, *colour)?;
            }
            panel
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .background_style(WHITE.mix(0.9))
                .border_style(INK.mix(0.3))
                .label_font((FONT, 14).into_font().color(&INK))
                .draw()?;
        }
        root.present()?;
        Ok(())
    }
}

/// Draws the target probability 2^-80, and the bound that the paper states for it.
fn draw_bounds(
    panel: &mut Panel<'_, '_>,
    scheme: Scheme,
) -> Result<(), Box<dyn std::error::Error>> {
    let stated = f64::from(scheme.stated_stash_blocks_max());
    let asked = [(0.0, -SECURITY_BITS), (BLOCKS_MAX, -SECURITY_BITS)];
    panel.draw_series(LineSeries::new(asked, INK.mix(0.7)))?;
    let bound = [(stated, -BITS_MAX), (stated, 0.0)];
    panel.draw_series(DashedLineSeries::new(bound, 6, 5, INK.mix(0.7).into()))?;
    let style = (FONT, 14).into_font().color(&INK);
    panel.draw_series([
        Text::new("2^-80".to_owned(), (2.0, -SECURITY_BITS + 3.5), style.clone()),
        Text::new(format!("the paper: C = {stated}"), (stated + 1.5, -62.0), style),
    ])?;
    Ok(())
}

fn draw_setup(
    panel: &mut Panel<'_, '_>,
    result: &SetupResult,
    colour: RGBColor,
) -> Result<(), Box<dyn std::error::Error>> {
    let setup = &result.setup;
    let points = result.survival().log2().map(|(n, log2)| (n as f64, log2)).collect::<Vec<_>>();
    let dots = points.iter().map(|point| Circle::new(*point, 3, colour.mix(0.75).filled()));
    let label = format!(
        "{:.2} blocks a leaf, L = {}{}",
        setup.blocks_per_leaf(),
        setup.leaf_level,
        if result.ran_away() { ": ran away" } else { "" }
    );
    panel
        .draw_series(dots)?
        .label(label)
        .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
    if let Some(fit) = result.fit() {
        let end = fit.line.blocks_for(BITS_MAX).min(BLOCKS_MAX);
        let line = [fit.from_blocks as f64, end].map(|n| (n, fit.line.at(n)));
        panel.draw_series(LineSeries::new(line, colour.stroke_width(1)))?;
    }
    Ok(())
}
