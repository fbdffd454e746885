//! The owner's accesses and storage's view in one picture.

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use oblivio_lab::pen::{EVICTION, FONT, INK, PALETTE, SEEN};
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

/// Room above the highest address for the names of the phases: four rows of them.
const HEADROOM: f64 = 1.16;

/// Between names, and between a name and the edge of its band, in pixels.
const NAME_GAP: i32 = 4;

/// From row to row of names, in pixels.
const ROW_HEIGHT: i32 = 15;

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

/// A band and a name for each phase. A name that would lie on one before goes below it.
fn draw_phases(panel: &mut Panel<'_, '_>, session: &Session) -> Result<(), Box<dyn Error>> {
    let top = session.blocks as f64 * HEADROOM;
    let right_edge = panel.plotting_area().get_pixel_range().0.end;
    let mut rows = NameRows::default();
    let mut start = 0;
    for (phase, colour) in session.phases.iter().zip(PALETTE) {
        let end = start + phase.blocks.len() as u64;
        let band = Rectangle::new([(start, 0.0), (end, top)], colour.mix(0.08).filled());
        panel.draw_series([band])?;
        let style = (FONT, 14).into_font().color(&colour);
        let width = panel.plotting_area().estimate_text_size(phase.name, &style)?.0 as i32;
        let (band_left, _) = panel.backend_coord(&(start, top));
        let left = (band_left + NAME_GAP).min(right_edge - width - NAME_GAP);
        let offset = (left - band_left, rows.place(left, width));
        let name = EmptyElement::at((start, top)) + Text::new(phase.name, offset, style);
        panel.draw_series([name])?;
        start = end;
    }
    Ok(())
}

/// How far the rows of names are filled, from the left.
#[derive(Default)]
struct NameRows(Vec<i32>);

impl NameRows {
    /// Takes room in the first row that is free from `left` on, and says how far below the top that is.
    fn place(&mut self, left: i32, width: i32) -> i32 {
        let free = self.0.iter().position(|end| *end <= left);
        let row = free.unwrap_or(self.0.len());
        let end = left + width + 2 * NAME_GAP;
        match self.0.get_mut(row) {
            Some(taken) => *taken = end,
            None => self.0.push(end),
        }
        NAME_GAP + row as i32 * ROW_HEIGHT
    }
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
        (true, EVICTION.mix(0.5), "an eviction: the next path, of an order that never changes"),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use oblivio_core::view::Tally;
    use roxmltree::{Document, Node};

    use super::super::diary::Phase;
    use super::super::seen::Visit;
    use super::*;

    /// A character of a usual sans-serif font is narrower, on average.
    const CHARACTER_EMS: f64 = 0.6;

    /// Where a text lies in the picture.
    #[derive(Clone, Copy, Debug)]
    struct TextBox {
        left: f64,
        right: f64,
        top: f64,
        bottom: f64,
    }

    impl TextBox {
        fn of(text: Node<'_, '_>) -> Self {
            let number = |name| text.attribute(name).unwrap().parse::<f64>().unwrap();
            let (x, y, height) = (number("x"), number("y"), number("font-size"));
            let characters = text.text().unwrap().trim().chars().count();
            let width = characters as f64 * height * CHARACTER_EMS;
            let before = |name, ways: [(&str, f64); 3]| {
                let way = text.attribute(name).unwrap();
                ways.into_iter().find(|(known, _)| *known == way).unwrap().1
            };
            let left =
                -width * before("text-anchor", [("start", 0.0), ("middle", 0.5), ("end", 1.0)]);
            let top = -height * before("dy", [("0.76em", 0.0), ("0.5ex", 0.5), ("-0.5ex", 1.0)]);
            let flat = Self { left, right: left + width, top, bottom: top + height };
            let turned = match text.attribute("transform") {
                None => flat,
                Some(turn) => {
                    assert!(turn.starts_with("rotate(270"), "{turn}");
                    let Self { left, right, top, bottom } = flat;
                    Self { left: top, right: bottom, top: -right, bottom: -left }
                }
            };
            let Self { left, right, top, bottom } = turned;
            Self { left: left + x, right: right + x, top: top + y, bottom: bottom + y }
        }

        fn overlaps(&self, other: &Self) -> bool {
            self.left < other.right
                && other.left < self.right
                && self.top < other.bottom
                && other.top < self.bottom
        }

        fn is_in_the_picture(&self) -> bool {
            let (width, height) = SIZE;
            self.left >= 0.0
                && self.right <= f64::from(width)
                && self.top >= 0.0
                && self.bottom <= f64::from(height)
        }
    }

    /// A session with phases of so many requests.
    fn session(requests: [usize; 4]) -> Session {
        let names = ["write the files", "read the disk", "three blocks", "a loop"];
        let phase = |(name, requests)| Phase { name, blocks: vec![7; requests] };
        let visit = |is_eviction| Visit { access: 1, bucket: 5, is_eviction };
        Session {
            phases: names.into_iter().zip(requests).map(phase).collect(),
            blocks: 1 << 20,
            seen: Seen {
                visits: [false, true].map(visit).to_vec(),
                accesses: 10,
                leaf_buckets: 1 << 20,
                tally: Tally::new(),
            },
            writing: Duration::ZERO,
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn no_text_lies_on_another_however_long_the_phases_are() {
        for requests in [
            [5000, 5000, 5000, 5000],
            [600, 16_384, 3000, 3000],
            [1, 1_000_000, 3000, 3000],
            [1_000_000, 1, 1, 1],
            [1, 1, 1, 1_000_000],
            [1, 1, 1, 1],
        ] {
            let mut svg = String::new();
            draw_both(&mut svg, &session(requests)).unwrap();
            let picture = Document::parse(&svg).unwrap();
            let texts: Vec<_> = picture
                .descendants()
                .filter(|node| node.has_tag_name("text"))
                .map(|node| (node.text().unwrap().trim(), TextBox::of(node)))
                .collect();
            assert!(texts.len() > 20, "names, numbers and phases: {texts:?}");
            for (i, (text, place)) in texts.iter().enumerate() {
                assert!(place.is_in_the_picture(), "{requests:?}: {text} at {place:?}");
                for (other, other_place) in &texts[..i] {
                    let overlap = place.overlaps(other_place);
                    assert!(!overlap, "{requests:?}: {text:?} lies on {other:?}");
                }
            }
        }
    }
}
