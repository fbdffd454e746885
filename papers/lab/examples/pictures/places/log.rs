//! Draws the log of a volume, from a checkpoint on.

use std::error::Error;

use oblivio_pen::PALETTE;
use oblivio_testkit::crash::small_volume::BLOCK_BYTES;
use plotters::style::RGBColor;

use super::NEEDED;
use super::diary::VolumeStep;
use crate::sheet::{Area, PAPER, Sheet, Style, tint};

/// The colour of data on the client.
pub(super) const LOG: RGBColor = PALETTE[2];

/// One append to the log, with the view of storage until the next append.
#[derive(Default)]
struct Logged {
    bytes: usize,
    paths: usize,
    evictions: usize,
}

impl Logged {
    /// Number of accesses. Each access and each eviction reads one path, so this is the number of
    /// paths minus the evictions.
    fn moves(&self) -> usize {
        self.paths - self.evictions
    }

    /// Number of blocks in the append, computed from its bytes: all other data is much shorter than
    /// a block.
    fn blocks(&self) -> usize {
        self.bytes / BLOCK_BYTES as usize
    }
}

fn logged(steps: &[VolumeStep]) -> Vec<Logged> {
    let mut logged: Vec<Logged> = Vec::new();
    for step in steps {
        if let VolumeStep::Append { bytes, .. } = step {
            logged.push(Logged { bytes: *bytes, ..Logged::default() });
        }
        match (step, logged.last_mut()) {
            (VolumeStep::ReadPaths(paths), Some(last)) => last.paths += paths,
            (VolumeStep::WritePath(_), Some(last)) => last.evictions += 1,
            _ => {}
        }
    }
    logged
}

/// Draws the appends in `steps`, which start with a checkpoint.
pub(super) fn draw(sheet: &mut Sheet, steps: &[VolumeStep]) -> Result<(), Box<dyn Error>> {
    const TOP: f64 = 322.0;
    sheet.area((12.0, TOP), (876.0, 128.0), Area::filled(PAPER));
    let heading = "On the client: the log, from the last checkpoint on";
    sheet.words((26.0, TOP + 28.0), heading, Style::HEADING);
    let logged = logged(steps);
    let (state, batches) = logged.split_first().ok_or("the log is empty")?;
    let checkpoint = "checkpoint: stash, tree top, counters".to_owned();
    let state = (330.0, tint(NEEDED, 0.35), checkpoint, state.bytes);
    let batches = batches.iter().map(|batch| {
        let data = match batch.blocks() {
            0 => String::new(),
            blocks => format!(", {}", counted(blocks, "block")),
        };
        let name = counted(batch.moves(), "move") + &data;
        let width = if data.is_empty() { 110.0 } else { 190.0 };
        (width, tint(LOG, 0.25), name, batch.bytes)
    });
    let mut x = 26.0;
    for (width, fill, name, bytes) in std::iter::once(state).chain(batches) {
        sheet.area((x, TOP + 46.0), (width, 46.0), Area { fill, edge: LOG, width: 1.4 });
        let middle = x + width / 2.0;
        sheet.words((middle, TOP + 65.0), &name, Style::LABEL.middle());
        sheet.words((middle, TOP + 83.0), &bytes_of(bytes), Style::LABEL.middle());
        x += width + 6.0;
    }
    let moves = "A move: the block, the leaf that storage will see, and the block's new leaf. \
                 A write logs its data, too.";
    sheet.words((26.0, TOP + 114.0), moves, Style::LABEL);
    Ok(())
}

fn counted(count: usize, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

fn bytes_of(bytes: usize) -> String {
    match (bytes / 1000, bytes % 1000) {
        (0, bytes) => format!("{bytes} bytes"),
        (thousands, rest) => format!("{thousands},{rest:03} bytes"),
    }
}
