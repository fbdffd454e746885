//! The owner's accesses and storage's view in one picture.

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use oblivio_lab::pen::{FONT, INK, PALETTE};
use plotters::coord::types::{RangedCoordf64, RangedCoordu64};
use plotters::prelude::*;

use super::seen::Seen;
use super::session::Session;
use super::stage::Stage;
use crate::error::CliError;
use crate::files;

const SIZE: (u32, u32) = (1400, 640);

/// More points than this in one panel tell no more.
pub(super) const POINTS_MAX: usize = 4000;

/// Room above the highest address for the names of the phases.
const HEADROOM: f64 = 1.14;

const SEEN: RGBColor = RGBColor(0x55, 0x5d, 0x68);

type Panel<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordu64, RangedCoordf64>>;

/// The files of a demonstration.
pub(super) struct Pictures {
    pub(super) svg: PathBuf,
    pub(super) view: PathBuf,
}

/// Draws the picture into the stage's directory.
pub(super) fn draw(stage: &Stage, session: &Session) -> Result<Pictures, CliError> {
    let mut picture = String::new();
    draw_both(&mut picture, session)
        .map_err(|error| CliError::Engine(format!("the picture could not be drawn: {error}")))?;
    let svg = stage.path("demo.svg");
    fs::write(&svg, picture).map_err(|error| files::cannot_write(&svg, &error))?;
    Ok(Pictures { svg, view: stage.path("demo.view") })
}

/// Of a sequence of `len`, every how-manieth makes a sample of [`POINTS_MAX`] at most.
pub(super) fn stride(len: usize) -> usize {
    len.div_ceil(POINTS_MAX).max(1)
}

fn draw_both(svg: &mut String, session: &Session) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(SIZE.0 / 2);

    let requests = 0..session.requests().max(1);
    let mut owner = panel(
        &left,
        "What the owner did",
        ["request", "block of the disk"],
        requests,
        session.blocks,
    )?;
    draw_phases(&mut owner, session)?;
    draw_addresses(&mut owner, session)?;

    let seen = &session.seen;
    let accesses = 0..seen.accesses.max(1);
    let names = ["access", "bucket on the level of the leaves"];
    let mut storage = panel(&right, "What storage saw", names, accesses, seen.leaf_buckets)?;
    draw_visits(&mut storage, seen)?;
    root.present()?;
    Ok(())
}

fn panel<'a, 'b>(
    area: &'a DrawingArea<SVGBackend<'b>, plotters::coord::Shift>,
    title: &str,
    [x_name, y_name]: [&str; 2],
    time: Range<u64>,
    y_count: u64,
) -> Result<Panel<'a, 'b>, Box<dyn Error>>
where
    'b: 'a,
{
    let mut panel = ChartBuilder::on(area)
        .caption(title, (FONT, 24).into_font().color(&INK))
        .margin(16)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(time, 0.0..y_count as f64 * HEADROOM)?;
    panel
        .configure_mesh()
        .disable_mesh()
        .x_desc(x_name)
        .y_desc(y_name)
        .x_labels(6)
        .y_labels(6)
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style((FONT, 15).into_font().color(&INK))
        .axis_style(INK)
        .draw()?;
    Ok(panel)
}

/// A band and a name for each phase.
fn draw_phases(panel: &mut Panel<'_, '_>, session: &Session) -> Result<(), Box<dyn Error>> {
    let top = session.blocks as f64 * HEADROOM;
    let mut start = 0;
    for (phase, colour) in session.phases.iter().zip(PALETTE) {
        let end = start + phase.blocks.len() as u64;
        let band = Rectangle::new([(start, 0.0), (end, top)], colour.mix(0.08).filled());
        let name = (FONT, 14).into_font().color(&colour);
        let name = EmptyElement::at((start, top)) + Text::new(phase.name, (4, 10), name);
        panel.draw_series([band])?;
        panel.draw_series([name])?;
        start = end;
    }
    Ok(())
}

fn draw_addresses(panel: &mut Panel<'_, '_>, session: &Session) -> Result<(), Box<dyn Error>> {
    let colours = session
        .phases
        .iter()
        .zip(PALETTE)
        .flat_map(|(phase, colour)| std::iter::repeat_n(colour, phase.blocks.len()));
    let points = (0..).zip(session.addresses()).zip(colours);
    panel.draw_series(points.step_by(stride(session.requests() as usize)).map(
        |((access, address), colour)| {
            Circle::new((access, address as f64), 2, colour.mix(0.8).filled())
        },
    ))?;
    Ok(())
}

fn draw_visits<'a, 'b: 'a>(panel: &mut Panel<'a, 'b>, seen: &Seen) -> Result<(), Box<dyn Error>> {
    let kinds = [
        (false, SEEN.mix(0.7), "an access: a random path"),
        (true, PALETTE[3].mix(0.5), "an eviction: the next path, of an order that never changes"),
    ];
    for (is_eviction, colour, label) in kinds {
        let visits: Vec<_> =
            seen.visits.iter().filter(|visit| visit.is_eviction == is_eviction).collect();
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
    panel
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .label_font((FONT, 14).into_font().color(&INK))
        .draw()?;
    Ok(())
}
