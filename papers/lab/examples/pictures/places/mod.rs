//! Draws the places in storage of a durable volume's buckets, and the volume's log.

mod diary;
mod log;
mod rings;

use std::error::Error;

use oblivio_pen::{EVICTION, INK, PALETTE};
use plotters::style::{RGBColor, WHITE};

use self::diary::{TREE_TOP_LEVELS, VolumeStep};
use self::log::LOG;
use self::rings::{Role, SlotContents};
use super::sheet::{Area, FAINT, PAPER, Sheet, Style, tint};

const HEIGHT: f64 = 768.0;
const NEEDED: RGBColor = PALETTE[0];
const STORAGE: RGBColor = PALETTE[1];

pub(crate) fn draw() -> Result<String, Box<dyn Error>> {
    let steps = diary::record()?;
    let checkpoint = steps.iter().rposition(|step| *step == VolumeStep::WriteAnchor);
    let checkpoint = checkpoint.ok_or("there was no checkpoint")?;
    // Steps before the anchor is written: a flush, a read of the anchor, an append of the state,
    // and a sync.
    let begin = checkpoint.checked_sub(4).ok_or("a checkpoint begins with a flush")?;
    let mut sheet = Sheet::new(HEIGHT, "The places of a volume's buckets, and its log");
    draw_places(&mut sheet, &steps);
    log::draw(&mut sheet, &steps[begin..])?;
    draw_order(&mut sheet, &steps[begin..], checkpoint + 2 - begin);
    Ok(sheet.finish())
}

fn colour(role: Role) -> (RGBColor, RGBColor) {
    match role {
        Role::Needed => (tint(NEEDED, 0.35), NEEDED),
        Role::Newer => (tint(EVICTION, 0.55), EVICTION),
        Role::Free => (WHITE, FAINT),
    }
}

/// Draws one row of places per level.
fn draw_places(sheet: &mut Sheet, steps: &[VolumeStep]) {
    const LEFT: f64 = 166.0;
    const CELL: (f64, f64) = (36.0, 34.0);
    let (places, next) = rings::slot_contents(steps);
    sheet.area((12.0, 10.0), (876.0, 300.0), Area::filled(PAPER));
    let heading = "In storage: each level has more places than buckets";
    sheet.words((26.0, 38.0), heading, Style::HEADING);
    let numbers = "The number in a place says which eviction wrote it last.";
    sheet.words((26.0, 62.0), numbers, Style::LABEL);
    for (row, level) in (0..).zip(rings::levels()) {
        let top = 92.0 + 60.0 * f64::from(row);
        let buckets = 1u64 << level;
        let count = buckets + (1 << TREE_TOP_LEVELS);
        sheet.words((26.0, top + 14.0), &format!("level {level}"), Style::LABEL.bold());
        let sizes = format!("{buckets} buckets, {count} places");
        sheet.words((26.0, top + 31.0), &sizes, Style::SMALL);
        let x_of = |index: u64| LEFT + CELL.0 * index as f64;
        let on_level = places.iter().filter(|held| held.place.level == level);
        for SlotContents { place, eviction, role } in on_level {
            let (fill, edge) = colour(*role);
            let at = (x_of(place.index), top);
            sheet.area(at, (CELL.0 - 4.0, CELL.1), Area { fill, edge, width: 1.4 });
            let style = match role {
                Role::Free => Style::SMALL.in_colour(RGBColor(0x8a, 0x8f, 0x98)),
                Role::Needed | Role::Newer => Style::LABEL,
            };
            let middle = (at.0 + (CELL.0 - 4.0) / 2.0, top + 22.0);
            sheet.words(middle, &eviction.to_string(), style.middle());
        }
        let next_x = x_of(next % count) + (CELL.0 - 4.0) / 2.0;
        sheet.arrow((next_x, top - 15.0), (next_x, top - 2.0), INK);
    }
    let keys = [
        (Role::Needed, 26.0, "the last checkpoint needs it"),
        (Role::Newer, 268.0, "written since"),
        (Role::Free, 404.0, "free"),
    ];
    for (role, x, name) in keys {
        let (fill, edge) = colour(role);
        sheet.area((x, 278.0), (16.0, 16.0), Area { fill, edge, width: 1.4 });
        sheet.words((x + 23.0, 291.0), name, Style::LABEL);
    }
    sheet.arrow((478.0, 278.0), (478.0, 295.0), INK);
    let arrow = format!("where the next eviction, {next}, will write");
    sheet.words((488.0, 291.0), &arrow, Style::LABEL);
}

/// Draws the steps of the client and of storage, in order, in two columns: the checkpoint (the
/// first `checkpoint_ends` steps), and the latest batch.
fn draw_order(sheet: &mut Sheet, steps: &[VolumeStep], checkpoint_ends: usize) {
    const TOP: f64 = 462.0;
    sheet.area((12.0, TOP), (876.0, 296.0), Area::filled(PAPER));
    let (checkpoint, batches) = steps.split_at(checkpoint_ends);
    // The latest batch starts with the append of its moves.
    let last =
        batches.iter().rposition(|step| matches!(step, VolumeStep::Append { .. })).unwrap_or(0);
    let columns = [
        (26.0, "A checkpoint, step by step", checkpoint),
        (466.0, "A batch of three requests", &batches[last..]),
    ];
    for (left, heading, steps) in columns {
        sheet.words((left, TOP + 28.0), heading, Style::HEADING);
        for (x, side) in [(left, "client's directory"), (left + 206.0, "storage")] {
            sheet.words((x, TOP + 54.0), side, Style::SMALL);
        }
        for (row, step) in (0..).zip(steps) {
            let (on_client, name) = describe_step(step);
            let x = if on_client { left } else { left + 206.0 };
            let colour = if on_client { LOG } else { STORAGE };
            let top = TOP + 64.0 + 36.0 * f64::from(row);
            let area = Area { fill: tint(colour, 0.2), edge: colour, width: 1.2 };
            sheet.area((x, top), (200.0, 28.0), area);
            sheet.words((x + 100.0, top + 19.0), &name, Style::LABEL.middle());
        }
    }
    let lines = [
        "No path is read before its move is durable. No",
        "place is written that the last checkpoint needs.",
        "So a crash, at any moment, leaves a whole state.",
    ];
    for (i, line) in (0..).zip(lines) {
        sheet.words((466.0, TOP + 232.0 + 21.0 * f64::from(i)), line, Style::LABEL);
    }
}

/// Whether a step is on the client, and its description.
fn describe_step(step: &VolumeStep) -> (bool, String) {
    let on_client = |name: &str| (true, name.to_owned());
    let in_storage = |name: &str| (false, name.to_owned());
    match step {
        VolumeStep::Append { records: 1, .. } => on_client("moves and data appended"),
        VolumeStep::Append { .. } => on_client("the state is appended"),
        VolumeStep::SyncLog => on_client("sync"),
        VolumeStep::ReadAnchor => in_storage("anchor is looked at"),
        VolumeStep::WriteAnchor => in_storage("anchor is written"),
        VolumeStep::Flush => in_storage("flush"),
        VolumeStep::ReadPaths(1) => in_storage("a path is read"),
        VolumeStep::ReadPaths(count) => (false, format!("{count} paths are read")),
        VolumeStep::WritePath(places) => (false, format!("path written, {} places", places.len())),
    }
}
