//! One picture of the owner's requests and of what storage saw.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use oblivio_pen::{FONT, PALETTE};
use plotters::prelude::*;

use super::demo_dir::DemoDir;
use super::session::DemoSession;
use crate::drawing::{HEADROOM, Panel, draw_summary, panel, stride};
use crate::error::CliError;
use crate::files;

const SIZE: (u32, u32) = (1400, 640);

/// Pixels between names, and between a name and the edge of its band.
const NAME_GAP: i32 = 4;

/// Pixels between rows of names.
const ROW_HEIGHT: i32 = 15;

/// The paths of the picture and the view that a demonstration writes.
pub(super) struct Pictures {
    pub(super) svg: PathBuf,
    pub(super) view: PathBuf,
}

/// Draws the picture into the directory of the demonstration.
pub(super) fn draw(demo_dir: &DemoDir, session: &DemoSession) -> Result<Pictures, CliError> {
    let mut picture = String::new();
    draw_both(&mut picture, session)
        .map_err(|error| CliError::Engine(format!("cannot draw the picture: {error}")))?;
    let svg = demo_dir.path("demo.svg");
    fs::write(&svg, picture).map_err(|error| files::cannot_write(&svg, &error))?;
    Ok(Pictures { svg, view: demo_dir.path("demo.view") })
}

fn draw_both(svg: &mut String, session: &DemoSession) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(SIZE.0 / 2);

    let requests = 0..session.requests().max(1);
    let mut owner = panel(
        &left,
        "What the owner did",
        ["request", "block of the disk"],
        requests,
        session.blocks as f64,
    )?;
    draw_phases(&mut owner, session)?;
    draw_addresses(&mut owner, session)?;

    draw_summary(&right, "What storage saw", &session.summary)?;
    root.present()?;
    Ok(())
}

/// Draws a band and a name for each phase. A name that would overlap a previous one goes below it.
fn draw_phases(panel: &mut Panel<'_, '_>, session: &DemoSession) -> Result<(), Box<dyn Error>> {
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

/// The right end of each row of names, in pixels.
#[derive(Default)]
struct NameRows(Vec<i32>);

impl NameRows {
    /// Reserves `width` pixels for a name, in the first row that is free from `left` on, or in a
    /// new row. Returns the distance of that row from the top, in pixels.
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

fn draw_addresses(panel: &mut Panel<'_, '_>, session: &DemoSession) -> Result<(), Box<dyn Error>> {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use oblivio_core::store::TreeId;
    use oblivio_core::view::Tally;

    use super::super::request_log::Phase;
    use super::*;
    use crate::drawing::text_boxes::texts_apart;
    use crate::view::{BucketVisit, TreeSummary};

    /// A session whose phases have these numbers of requests.
    fn session(requests: [usize; 4]) -> DemoSession {
        let names = ["write the files", "read the disk", "three blocks", "a loop"];
        let phase = |(name, requests)| Phase { name, blocks: vec![7; requests] };
        let visit = |is_eviction| BucketVisit { access: 1, bucket: 5, is_eviction };
        DemoSession {
            phases: names.into_iter().zip(requests).map(phase).collect(),
            blocks: 1 << 20,
            summary: TreeSummary {
                tree: TreeId(2),
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
    fn no_text_overlaps_another_however_long_the_phases_are() {
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
            let texts = texts_apart(&svg, SIZE);
            assert!(texts.len() > 20, "names, numbers and phases: {texts:?}");
        }
    }
}
