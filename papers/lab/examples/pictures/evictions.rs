//! The order of evictions of RAW ORAM.

use std::collections::BTreeMap;
use std::error::Error;

use oblivio_core::geometry::evictions_of_bucket;
use oblivio_core::{BucketId, Leaf};
use oblivio_pen::{EVICTION, SEEN};

use super::raw::{Visit, Watched};
use super::sheet::{Area, FAINT, PAPER, Sheet, Style, tint};
use super::tree::{TreeFrame, column};

const LEAF_LEVEL: u8 = 3;
const BLOCKS: u64 = 20;
const SEED: u64 = 1;

/// Number of evictions. It equals the number of leaves, so every path is written once.
const EVICTIONS: usize = 8;

const HEIGHT: f64 = 706.0;

/// Records the view of storage from the first access to the last of `EVICTIONS` evictions.
fn record() -> Result<Vec<Visit>, Box<dyn Error>> {
    let mut oram = Watched::new(BLOCKS, Some(LEAF_LEVEL), SEED)?;
    let mut view: Vec<Visit> = Vec::new();
    let mut requests = 0..;
    while view.iter().filter(|visit| visit.is_eviction).count() < EVICTIONS {
        let request = requests.next().ok_or("there is always another")?;
        oram.ask(request % BLOCKS, request % 3 == 0)?;
        view.append(&mut oram.take_view());
    }
    Ok(view)
}

pub(crate) fn draw() -> Result<String, Box<dyn Error>> {
    let view = record()?;
    let evicted: Vec<_> =
        view.iter().filter(|visit| visit.is_eviction).map(|visit| visit.leaf).collect();
    let mut sheet =
        Sheet::new(HEIGHT, "RAW ORAM: accesses to random paths, and evictions in a fixed order");
    draw_time(&mut sheet, &view);
    draw_order(&mut sheet, &evicted);
    draw_counts(&mut sheet, &evicted)?;
    Ok(sheet.finish())
}

/// Plots leaves over time: accesses are dots, evictions are squares.
fn draw_time(sheet: &mut Sheet, view: &[Visit]) {
    const TOP: f64 = 62.0;
    const ROW: f64 = 18.0;
    let leaves = 1 << LEAF_LEVEL;
    sheet.area((12.0, 10.0), (876.0, 232.0), Area::filled(PAPER));
    let period = view.iter().position(|visit| visit.is_eviction).unwrap_or(0);
    let heading = format!(
        "After {period} accesses to random paths, one eviction: the next path of a fixed order"
    );
    sheet.words((26.0, 38.0), &heading, Style::HEADING);
    sheet.words((26.0, TOP + ROW * 4.0), "leaf", Style::LABEL);
    let step = 800.0 / view.len() as f64;
    let at = |i: usize, leaf: Leaf| {
        let row = column(leaf, LEAF_LEVEL) as f64;
        (84.0 + step * (i as f64 + 0.5), TOP + ROW * (row + 0.5))
    };
    for leaf in (0..leaves).map(Leaf) {
        let (_, y) = at(0, leaf);
        sheet.words((74.0, y + 4.0), &leaf.0.to_string(), Style::SMALL.end());
        sheet.line((84.0, y), (884.0, y), FAINT, 0.7);
    }
    for (i, visit) in view.iter().enumerate().filter(|(_, visit)| visit.is_eviction) {
        sheet.area_around(at(i, visit.leaf), (14.0, 14.0), Area::filled(EVICTION));
    }
    let accesses = view.iter().enumerate().filter(|(_, visit)| !visit.is_eviction);
    sheet.dots(accesses.map(|(i, visit)| at(i, visit.leaf)), 9.0, SEEN);
    let below = TOP + ROW * leaves as f64 + 20.0;
    sheet.dots([(96.0, below - 4.0)], 9.0, SEEN);
    sheet.words((106.0, below), "an access: its path is read", Style::SMALL);
    sheet.area_around((318.0, below - 4.0), (13.0, 13.0), Area::filled(EVICTION));
    sheet.words(
        (330.0, below),
        "an eviction: its path is read, filled from the stash and written",
        Style::SMALL,
    );
    sheet.words((884.0, below), "time", Style::SMALL.end());
}

/// Draws one small tree per eviction.
fn draw_order(sheet: &mut Sheet, evicted: &[Leaf]) {
    const TOP: f64 = 254.0;
    sheet.area((12.0, TOP), (876.0, 150.0), Area::filled(PAPER));
    sheet.words(
        (26.0, TOP + 28.0),
        "The first eight evictions: each path shares as little as can be with those before",
        Style::HEADING,
    );
    for (i, evicted) in (0..).zip(evicted) {
        let left = 22.0 + 107.0 * f64::from(i);
        let frame =
            TreeFrame { leaf_level: LEAF_LEVEL, top: TOP + 52.0, left, width: 100.0, row: 20.0 };
        let is_evicted = |bucket: BucketId| bucket.is_on_path(*evicted);
        frame.edges(sheet, |bucket| match is_evicted(bucket) {
            true => (EVICTION, 2.5),
            false => (FAINT, 1.0),
        });
        let (on_path, others): (Vec<_>, Vec<_>) =
            frame.buckets().partition(|bucket| is_evicted(*bucket));
        sheet.dots(others.into_iter().map(|bucket| frame.centre(bucket)), 7.0, FAINT);
        sheet.dots(on_path.into_iter().map(|bucket| frame.centre(bucket)), 9.0, EVICTION);
        let name = format!("{}: leaf {}", i, evicted.0);
        sheet.words((left + 50.0, TOP + 138.0), &name, Style::LABEL.middle());
    }
}

/// Draws how many times each bucket is written. Storage sees these numbers, but they reveal
/// nothing: anyone can compute them. Fails if a count differs from [`evictions_of_bucket`].
fn draw_counts(sheet: &mut Sheet, evicted: &[Leaf]) -> Result<(), Box<dyn Error>> {
    const TOP: f64 = 416.0;
    sheet.area((12.0, TOP), (876.0, 278.0), Area::filled(PAPER));
    sheet.words((26.0, TOP + 28.0), "How often each bucket was written, so far", Style::HEADING);
    let mut written: BTreeMap<BucketId, u64> = BTreeMap::new();
    for leaf in evicted {
        for level in 0..=LEAF_LEVEL {
            *written.entry(BucketId::on_path(*leaf, level)).or_default() += 1;
        }
    }
    let frame =
        TreeFrame { leaf_level: LEAF_LEVEL, top: TOP + 62.0, left: 22.0, width: 616.0, row: 54.0 };
    frame.edges(sheet, |_| (FAINT, 1.5));
    for bucket in frame.buckets() {
        let count = written.get(&bucket).copied().unwrap_or(0);
        let known = evictions_of_bucket(evicted.len() as u64, Leaf(bucket.index()), bucket.level());
        if count != known {
            return Err(format!("{bucket} was written {count} times and not {known}").into());
        }
        let share = 0.15 + 0.85 * count as f64 / evicted.len() as f64;
        let area = Area { fill: tint(EVICTION, share), edge: EVICTION, width: 1.2 };
        let centre = frame.centre(bucket);
        sheet.area_around(centre, (54.0, 30.0), area);
        sheet.words((centre.0, centre.1 + 5.0), &count.to_string(), Style::LABEL.bold().middle());
    }
    frame.leaf_labels(sheet, 34.0, |_| Style::SMALL);
    let lines = [
        "A bucket on level j is written",
        "by every 2ʲ-th eviction. The",
        "owner cannot change that. So",
        "the client counts evictions,",
        "and knows which version of a",
        "bucket is the latest, without",
        "asking storage.",
    ];
    for (i, line) in (0..).zip(lines) {
        sheet.words((652.0, TOP + 88.0 + 21.0 * f64::from(i)), line, Style::LABEL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "all of this is tests")]

    use super::*;

    #[test]
    fn evictions_are_regular_and_share_least_with_earlier_ones() {
        let view = record().unwrap();
        let at: Vec<_> = (0..view.len()).filter(|i| view[*i].is_eviction).collect();
        assert_eq!(at, (1..=EVICTIONS).map(|n| 6 * n - 1).collect::<Vec<_>>());
        for (n, i) in at.iter().enumerate().skip(1) {
            // The paths of the latest 2^j - 1 evictions share only buckets above level j with this
            // path.
            for (back, other) in at[..n].iter().rev().enumerate() {
                let apart = (1..=LEAF_LEVEL).find(|level| {
                    !BucketId::on_path(view[*other].leaf, *level).is_on_path(view[*i].leaf)
                });
                let level_max = (back as u64 + 2).next_power_of_two().ilog2() as u8;
                assert!(apart.unwrap() <= level_max, "{n}: {back} before it");
            }
        }
    }
}
