//! Four workloads, with the view of storage for each.

use std::error::Error;

use oblivio_pen::{EVICTION, PALETTE, SEEN};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::raw::{Visit, Watched};
use super::sheet::{Area, FAINT, Point, Sheet, Style};

const BLOCKS: u64 = 512;
const REQUESTS: u64 = 640;

/// The seed of the first workload. Each workload has its own seed, since equal seeds would give
/// equal views of storage.
const FIRST_SEED: u64 = 21;

const PANEL: (f64, f64) = (404.0, 112.0);
const LEFTS: [f64; 2] = [32.0, 484.0];
const TOP: f64 = 70.0;
const ROW: f64 = 162.0;
const HEIGHT: f64 = TOP + 4.0 * ROW - 20.0;

/// The requests of an owner. Secret.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// The block number of each request, and whether the request is a write.
    pub(crate) requests: Vec<(u64, bool)>,
}

/// The view of storage under a workload.
pub(crate) struct Watching {
    pub(crate) workload: Workload,
    pub(crate) view: Vec<Visit>,
    pub(crate) leaves: u64,
}

fn workloads() -> [Workload; 4] {
    let mut coins = StdRng::seed_from_u64(FIRST_SEED - 1);
    let mut each = |block: &mut dyn FnMut(u64, &mut StdRng) -> (u64, bool)| -> Vec<_> {
        (0..REQUESTS).map(|request| block(request, &mut coins)).collect()
    };
    [
        Workload {
            name: "reads one block again and again",
            requests: each(&mut |_, _| (300, false)),
        },
        Workload {
            name: "reads all blocks in turn",
            requests: each(&mut |request, _| (request % BLOCKS, false)),
        },
        Workload {
            name: "reads blocks at random",
            requests: each(&mut |_, coins| (coins.random_range(0..BLOCKS), false)),
        },
        Workload {
            name: "only writes: a log, and its length in block 0",
            requests: each(&mut |request, _| match request % 2 {
                0 => (100 + request / 2, true),
                _ => (0, true),
            }),
        },
    ]
}

/// Runs each workload on an ORAM whose blocks have all been written, and records the view of
/// storage.
pub(crate) fn record() -> Result<Vec<Watching>, Box<dyn Error>> {
    let watching = (FIRST_SEED..).zip(workloads()).map(|(seed, workload)| {
        let mut oram = Watched::new(BLOCKS, None, seed)?;
        (0..BLOCKS).try_for_each(|address| oram.ask(address, true))?;
        oram.take_view();
        for (address, is_write) in &workload.requests {
            oram.ask(*address, *is_write)?;
        }
        Ok(Watching { workload, view: oram.take_view(), leaves: oram.leaves() })
    });
    watching.collect()
}

pub(crate) fn draw() -> Result<String, Box<dyn Error>> {
    let mut sheet = Sheet::new(HEIGHT, "Four workloads, each beside what storage saw of it");
    for (left, heading) in LEFTS.into_iter().zip(["What the owner did", "What storage saw"]) {
        sheet.words((left, 28.0), heading, Style::HEADING);
    }
    let colours = [("read", PALETTE[1]), ("written", PALETTE[4])];
    let keys = [
        (LEFTS[0] + 238.0, colours[0].1, "block read"),
        (LEFTS[0] + 346.0, colours[1].1, "written"),
        (LEFTS[1] + 220.0, SEEN, "an access"),
        (LEFTS[1] + 312.0, EVICTION, "an eviction"),
    ];
    for (x, colour, name) in keys {
        sheet.dots([(x, 24.0)], 8.0, colour);
        sheet.words((x + 8.0, 28.0), name, Style::SMALL);
    }
    for (i, watching) in (0..).zip(record()?) {
        let top = TOP + ROW * f64::from(i);
        draw_one(&mut sheet, top, &watching);
    }
    Ok(sheet.finish())
}

fn draw_one(sheet: &mut Sheet, top: f64, Watching { workload, view, leaves }: &Watching) {
    let [left, right] = LEFTS;
    sheet.words((left, top - 8.0), workload.name, Style::LABEL.bold());
    panel(sheet, (left, top), "block", "request", (BLOCKS, REQUESTS));
    for is_write in [false, true] {
        let asked = workload.requests.iter().enumerate().filter(|(_, (_, it))| *it == is_write);
        let dots: Vec<_> = asked
            .map(|(i, (block, _))| place((left, top), (i as u64, REQUESTS), (*block, BLOCKS)))
            .collect();
        if !dots.is_empty() {
            sheet.dots(dots, 3.0, if is_write { PALETTE[4] } else { PALETTE[1] });
        }
    }
    let accesses = view.iter().filter(|visit| !visit.is_eviction).count() as u64;
    panel(sheet, (right, top), "leaf", "access", (*leaves, accesses));
    for (is_eviction, diameter, colour) in [(true, 4.0, EVICTION), (false, 3.0, SEEN)] {
        let mut before = 0;
        let mut dots = Vec::new();
        for visit in view {
            if visit.is_eviction == is_eviction {
                dots.push(place((right, top), (before, accesses), (visit.leaf.0, *leaves)));
            }
            before += u64::from(!visit.is_eviction);
        }
        sheet.dots(dots, diameter, colour);
    }
}

/// The point of a value in a panel: item `time.0` of `time.1` items on the time axis, and item
/// `height.0` of `height.1` items on the vertical axis.
fn place((left, top): Point, time: (u64, u64), height: (u64, u64)) -> Point {
    let x = (time.0 as f64 + 0.5) / time.1 as f64;
    let y = (height.0 as f64 + 0.5) / height.1 as f64;
    (left + PANEL.0 * x, top + PANEL.1 * (1.0 - y))
}

fn panel(
    sheet: &mut Sheet,
    (left, top): Point,
    y_name: &str,
    x_name: &str,
    (y_count, x_count): (u64, u64),
) {
    sheet.area((left, top), PANEL, Area { edge: FAINT, ..Area::EMPTY });
    let (right, bottom) = (left + PANEL.0, top + PANEL.1);
    sheet.words((left - 4.0, top + 10.0), &(y_count - 1).to_string(), Style::SMALL.end());
    sheet.words((left - 4.0, bottom), "0", Style::SMALL.end());
    sheet.words((left, bottom + 15.0), &format!("{y_name} over {x_name}"), Style::SMALL);
    sheet.words((right, bottom + 15.0), &x_count.to_string(), Style::SMALL.end());
}
