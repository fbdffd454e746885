//! The owner's accesses and storage's view in one picture.

use std::error::Error;
use std::ops::Range;

use oblivio_lab::pen::{FONT, INK, PALETTE};
use plotters::coord::types::{RangedCoordf64, RangedCoordu64};
use plotters::prelude::*;

use super::onlooker::Seen;
use super::owner::Diary;
use crate::error::CliError;

const SIZE: (u32, u32) = (1400, 640);

/// More points than this in one panel tell no more.
pub(super) const POINTS_MAX: usize = 4000;

/// Room above the highest address for the names of the phases.
const HEADROOM: f64 = 1.14;

const SEEN: RGBColor = RGBColor(0x55, 0x5d, 0x68);

type Panel<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordu64, RangedCoordf64>>;

/// The picture as SVG.
pub(super) fn svg(diary: &Diary, seen: &Seen) -> Result<String, CliError> {
    let mut svg = String::new();
    draw(&mut svg, diary, seen)
        .map_err(|error| CliError::Engine(format!("the picture could not be drawn: {error}")))?;
    Ok(svg)
}

/// Of a sequence of `len`, every how-manieth makes a sample of [`POINTS_MAX`] at most.
pub(super) fn stride(len: usize) -> usize {
    len.div_ceil(POINTS_MAX).max(1)
}

fn draw(svg: &mut String, diary: &Diary, seen: &Seen) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(SIZE.0 / 2);
    let time = 0..diary.accesses().max(1);

    let mut owner = panel(&left, "What the owner did", "block", time.clone(), diary.blocks)?;
    draw_phases(&mut owner, diary)?;
    draw_addresses(&mut owner, diary)?;

    let mut storage =
        panel(&right, "What storage saw", "leaf of the path", time, 1 << seen.leaf_level)?;
    draw_visits(&mut storage, seen)?;
    root.present()?;
    Ok(())
}

fn panel<'a, 'b>(
    area: &'a DrawingArea<SVGBackend<'b>, plotters::coord::Shift>,
    title: &str,
    y_name: &str,
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
        .x_desc("access")
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
fn draw_phases(panel: &mut Panel<'_, '_>, diary: &Diary) -> Result<(), Box<dyn Error>> {
    let top = diary.blocks as f64 * HEADROOM;
    let mut start = 0;
    for (phase, colour) in diary.phases.iter().zip(PALETTE) {
        let end = start + phase.len() as u64;
        let band = Rectangle::new([(start, 0.0), (end, top)], colour.mix(0.08).filled());
        let name = (FONT, 14).into_font().color(&colour);
        let name = EmptyElement::at((start, top)) + Text::new(phase.name, (4, 10), name);
        panel.draw_series([band])?;
        panel.draw_series([name])?;
        start = end;
    }
    Ok(())
}

fn draw_addresses(panel: &mut Panel<'_, '_>, diary: &Diary) -> Result<(), Box<dyn Error>> {
    let colours = diary
        .phases
        .iter()
        .zip(PALETTE)
        .flat_map(|(phase, colour)| std::iter::repeat_n(colour, phase.len()));
    let points = (0..).zip(diary.addresses()).zip(colours);
    panel.draw_series(points.step_by(stride(diary.accesses() as usize)).map(
        |((access, address), colour)| {
            Circle::new((access, address as f64), 2, colour.mix(0.8).filled())
        },
    ))?;
    Ok(())
}

fn draw_visits<'a, 'b: 'a>(panel: &mut Panel<'a, 'b>, seen: &Seen) -> Result<(), Box<dyn Error>> {
    let kinds = [
        (false, SEEN.mix(0.7), "an access: a random path"),
        (true, PALETTE[3].mix(0.5), "an eviction: the next path of an order that never changes"),
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
                    Circle::new((visit.access, visit.leaf as f64), 2, colour.filled())
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
