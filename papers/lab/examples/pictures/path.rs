//! One access of Path ORAM.

use std::collections::BTreeMap;
use std::error::Error;

use oblivio_core::scheme::{Location, Scheme};
use oblivio_core::view::{Event, Operation, Recorder};
use oblivio_core::{
    BucketId, Front, Geometry, Key, Leaf, MemoryStore, Oram, PathOram, Sealer, TreeConfig,
};
use oblivio_pen::PALETTE;
use plotters::style::RGBColor;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::sheet::{Area, FAINT, PAPER, Point, Sheet, Style, tint};
use super::tree::TreeFrame;

const LEAF_LEVEL: u8 = 3;
const SLOTS: usize = 2;
const BLOCKS: u64 = 16;
const BLOCK_BYTES: usize = 64;
const SEED: u64 = 229;

/// The address of the requested block.
const ADDRESS: u64 = 6;

const HEIGHT: f64 = 620.0;
const PATH: RGBColor = PALETTE[1];
const ASKED: RGBColor = PALETTE[4];

/// Side length of a slot, in pixels.
const SLOT: f64 = 20.0;

/// The blocks of each bucket with their leaves; `None` is the stash. Secret.
type Blocks = BTreeMap<Option<BucketId>, Vec<(u64, Leaf)>>;

/// An access: the client's blocks before and after it, and the view of storage.
struct Recorded {
    before: Blocks,
    after: Blocks,
    view: Vec<Event>,
}

type Watched = PathOram<Recorder<MemoryStore, Vec<Event>>, StdRng>;

fn record() -> Result<Recorded, Box<dyn Error>> {
    let mut coins = StdRng::seed_from_u64(SEED);
    let config =
        TreeConfig::new(BLOCKS, BLOCK_BYTES, Geometry::uniform(LEAF_LEVEL, SLOTS as u16)?, 78);
    let store = MemoryStore::new(&[config.shape()?], MemoryStore::default_layout())?;
    let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree);
    let recorder = Recorder::new(store, Vec::new());
    let mut oram: Watched = PathOram::path(&config, sealer, recorder, coins)?;
    for address in 0..BLOCKS {
        oram.write(address, &[address as u8; BLOCK_BYTES])?;
    }
    let before = blocks(&mut oram)?;
    oram.store_mut().sink_mut().clear();
    oram.read(ADDRESS, &mut [0; BLOCK_BYTES])?;
    let view = std::mem::take(oram.store_mut().sink_mut());
    oram.check_invariants()?;
    Ok(Recorded { before, after: blocks(&mut oram)?, view })
}

fn blocks(oram: &mut Watched) -> Result<Blocks, Box<dyn Error>> {
    let mut blocks = Blocks::new();
    oram.scheme_mut().visit_blocks(&mut |location, address, leaf| {
        let bucket = match location {
            Location::Stash => None,
            Location::Bucket(bucket) => Some(bucket),
        };
        blocks.entry(bucket).or_default().push((address, leaf));
    })?;
    Ok(blocks)
}

fn leaf_of(blocks: &Blocks, address: u64) -> Option<Leaf> {
    blocks.values().flatten().find(|(found, _)| *found == address).map(|(_, leaf)| *leaf)
}

/// Names a block by a letter, to distinguish addresses from leaves.
fn letter(address: u64) -> char {
    char::from(b'A' + address as u8)
}

pub(crate) fn draw() -> Result<String, Box<dyn Error>> {
    let Recorded { before, after, view } = record()?;
    let mapped = |blocks| leaf_of(blocks, ADDRESS).ok_or("the block is nowhere");
    let (from, to) = (mapped(&before)?, mapped(&after)?);
    let name = letter(ADDRESS);
    let mut sheet =
        Sheet::new(HEIGHT, "One access of Path ORAM, as the client and as storage see it");

    let panels = [
        (12.0, &before, from, format!("1. {name} is requested. The map says: leaf {}", from.0)),
        (462.0, &after, to, format!("2. Afterwards {name} is mapped to leaf {}", to.0)),
    ];
    for (left, blocks, mapped, heading) in panels {
        draw_client(&mut sheet, left, blocks, (from, mapped), &heading);
    }
    draw_storage(&mut sheet, &view)?;
    Ok(sheet.finish())
}

/// Draws the client's view of the tree, before or after the access. The path to the leaf `shown`,
/// which the access reads, is highlighted. The requested block has the leaf `mapped`.
fn draw_client(
    sheet: &mut Sheet,
    left: f64,
    blocks: &Blocks,
    (shown, mapped): (Leaf, Leaf),
    heading: &str,
) {
    sheet.area((left, 10.0), (426.0, 400.0), Area::filled(PAPER));
    sheet.words((left + 14.0, 38.0), heading, Style::HEADING);
    let frame =
        TreeFrame { leaf_level: LEAF_LEVEL, top: 78.0, left: left + 5.0, width: 416.0, row: 64.0 };
    frame.edges(sheet, |bucket| match bucket.is_on_path(shown) {
        true => (PATH, 3.0),
        false => (FAINT, 1.5),
    });
    for bucket in frame.buckets() {
        let inside = blocks.get(&Some(bucket)).map_or(&[][..], Vec::as_slice);
        let edge = if bucket.is_on_path(shown) { (PATH, 2.5) } else { (FAINT, 1.0) };
        draw_slots(sheet, frame.centre(bucket), (inside, SLOTS), edge);
    }
    frame.leaf_labels(sheet, 32.0, |leaf| match leaf {
        _ if leaf == mapped => Style::LABEL.bold().in_colour(ASKED),
        _ if leaf == shown => Style::LABEL.bold().in_colour(PATH),
        _ => Style::LABEL,
    });
    sheet.words((left + 213.0, 322.0), "leaves", Style::SMALL.middle());
    let stash = blocks.get(&None).map_or(&[][..], Vec::as_slice);
    sheet.words((left + 14.0, 372.0), "stash, on the client", Style::LABEL);
    draw_slots(sheet, (left + 285.0, 367.0), (stash, 5), (FAINT, 1.0));
}

/// Draws a row of slots centred at `centre`. Slots without a block are drawn as dummies.
fn draw_slots(
    sheet: &mut Sheet,
    centre: Point,
    (blocks, slots): (&[(u64, Leaf)], usize),
    (edge, width): (RGBColor, f64),
) {
    let row = slots as f64 * SLOT;
    sheet.area_around(centre, (row + 6.0, SLOT + 8.0), Area { edge, width, ..Area::EMPTY });
    for slot in 0..slots {
        let x = centre.0 - row / 2.0 + SLOT * (slot as f64 + 0.5);
        let size = (SLOT - 3.0, SLOT - 1.0);
        let Some((address, _)) = blocks.get(slot) else {
            sheet.area_around((x, centre.1), size, Area::filled(PAPER));
            continue;
        };
        let colour = if *address == ADDRESS { ASKED } else { tint(PATH, 0.25) };
        sheet.area_around((x, centre.1), size, Area::filled(colour));
        let style = match *address == ADDRESS {
            true => Style::LABEL.bold().in_colour(RGBColor(255, 255, 255)),
            false => Style::LABEL,
        };
        sheet.words((x, centre.1 + 5.0), &letter(*address).to_string(), style.middle());
    }
}

/// Draws the two trips to storage: reading the path, and writing it.
fn draw_storage(sheet: &mut Sheet, view: &[Event]) -> Result<(), Box<dyn Error>> {
    const TOP: f64 = 425.0;
    sheet.area((12.0, TOP), (876.0, 184.0), Area::filled(PAPER));
    sheet.words((26.0, TOP + 28.0), "What storage saw of it", Style::HEADING);
    let bytes = view.first().ok_or("storage saw nothing")?.bytes;
    let trips = [(Operation::Read, "read", PATH), (Operation::Write, "written", PALETTE[3])];
    for (i, (operation, name, colour)) in (0..).zip(trips) {
        let left = 26.0 + 440.0 * f64::from(i);
        sheet.words((left, TOP + 82.0), name, Style::LABEL.bold().in_colour(colour));
        for (j, event) in (0..).zip(view.iter().filter(|event| event.operation == operation)) {
            let bucket = event.piece.ok_or("a bucket has a name")?.bucket;
            let centre = (left + 108.0 + 84.0 * f64::from(j), TOP + 77.0);
            let area = Area { fill: tint(colour, 0.3), edge: colour, width: 2.0 };
            sheet.area_around(centre, (68.0, 36.0), area);
            let name = format!("{}.{}", bucket.level(), bucket.index());
            sheet.words((centre.0, centre.1 + 5.0), &name, Style::LABEL.middle());
        }
    }
    let lines = [
        format!(
            "level.bucket: the four on the path to one leaf, {bytes} bytes each, and rewritten in \
             other bytes."
        ),
        "Which block it was about, and whether that was read or written, does not show.".to_owned(),
        "The new leaf is random. It shows when the block is accessed again, and then no more."
            .to_owned(),
    ];
    for (i, line) in (0..).zip(lines) {
        sheet.words((26.0, TOP + 124.0 + 21.0 * f64::from(i)), &line, Style::LABEL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "all of this is tests")]

    use super::*;

    #[test]
    fn storage_sees_the_path_to_the_old_leaf() {
        let Recorded { before, after, view } = record().unwrap();
        let [from, to] = [&before, &after].map(|blocks| leaf_of(blocks, ADDRESS).unwrap());
        assert_ne!(from, to);
        let path: Vec<_> = (0..=LEAF_LEVEL).map(|level| BucketId::on_path(from, level)).collect();
        for operation in [Operation::Read, Operation::Write] {
            let seen = view.iter().filter(|event| event.operation == operation);
            let seen: Vec<_> = seen.map(|event| event.piece.unwrap().bucket).collect();
            assert_eq!(seen, path, "{operation:?}");
        }
        assert_eq!(view.len(), 2 * path.len(), "and nothing else");
        // The picture matches the page: some blocks find a free slot, and some stay in the stash.
        let stash = |blocks: &Blocks| blocks.get(&None).map_or(0, Vec::len);
        assert!(stash(&before) > stash(&after) && stash(&after) > 0);
    }
}
