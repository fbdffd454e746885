//! Tests of the reference implementation of range ORAM: it behaves like an array, has rORAM's
//! properties, and reveals only the class (the logarithm of the length) of each range.

use oblivio_core::reference::{RangeForm, RangesRead, ReadCopies, ReferenceRange, Run};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

fn pick<T: Copy>(among: &[T], coins: &mut StdRng) -> T {
    *among.choose(coins).expect("the choices must not be empty")
}

fn any_form(coins: &mut StdRng) -> RangeForm {
    let leaf_level = pick(&[3, 4, 6], coins);
    let ell = pick(&[0, 1, 2, leaf_level], coins);
    let all: Vec<u8> = (0..=ell).collect();
    let ends = if ell == 0 { vec![0] } else { vec![0, ell] };
    RangeForm {
        leaf_level: leaf_level - pick(&[0, 1], coins),
        classes: if coins.random() { all } else { ends },
        ranges: pick(&[RangesRead::Two, RangesRead::One], coins),
        copies: pick(&[ReadCopies::Removed, ReadCopies::Left], coins),
        evict_period: pick(&[1, 1, 2, 3], coins),
        slots: pick(&[4, 5], coins),
        ..RangeForm::of_the_paper(leaf_level, ell)
    }
}

/// Draws an address and a number of blocks that the form allows.
fn any_range(form: &RangeForm, coins: &mut StdRng) -> (u64, u64) {
    let class = pick(&form.classes, coins);
    let blocks = coins.random_range(1..=1 << class);
    let address = coins.random_range(0..form.blocks);
    match form.ranges {
        RangesRead::Two => (address, blocks),
        // Within the range in which these blocks are read.
        RangesRead::One => {
            let class = *form.classes.iter().find(|class| 1 << **class >= blocks).unwrap();
            let base = address >> class << class;
            (base + coins.random_range(0..=(1 << class) - blocks), blocks)
        }
    }
}

#[test]
fn a_range_oram_is_an_array() {
    for seed in 0..300 {
        let mut coins = StdRng::seed_from_u64(seed);
        let form = any_form(&mut coins);
        let mut array = vec![vec![0]; form.blocks as usize];
        let mut oram = ReferenceRange::new(form.clone(), 1, StdRng::seed_from_u64(seed + 1000));
        for step in 0..60u8 {
            let (address, blocks) = any_range(&form, &mut coins);
            let places = (address..address + blocks).map(|a| (a % form.blocks) as usize);
            let expected: Vec<_> = places.clone().map(|place| array[place].clone()).collect();
            let data: Vec<_> = (0..blocks).map(|k| vec![step.wrapping_add(k as u8)]).collect();
            let is_write: bool = coins.random();
            let held = oram.access(address, blocks, is_write.then_some(&data[..]));
            assert_eq!(held, expected, "seed {seed}, step {step}: {form:?}");
            if is_write {
                places.zip(data).for_each(|(place, data)| array[place] = data);
            }
            oram.check();
        }
    }
}

/// The shape of a view: everything except the random paths of reads.
fn shape(runs: &[Run]) -> Vec<(u8, bool, u64, Option<u64>)> {
    let shown = |run: &Run| run.is_eviction.then_some(run.first);
    runs.iter().map(|run| (run.class, run.is_eviction, run.paths, shown(run))).collect()
}

/// Tests that the view depends only on the classes of the ranges. Compares two traces with the same
/// classes, whose ranges differ in address, operation, whether they wrap around, and whether their
/// blocks were written before.
#[test]
fn the_view_depends_only_on_the_classes() {
    for seed in 0..100 {
        let mut coins = StdRng::seed_from_u64(seed);
        let form = any_form(&mut coins);
        let mut orams = [0, 1]
            .map(|i| ReferenceRange::new(form.clone(), 1, StdRng::seed_from_u64(seed * 2 + i)));
        for _ in 0..30 {
            let class = pick(&form.classes, &mut coins);
            let least = form
                .classes
                .iter()
                .rev()
                .find(|it| **it < class)
                .map_or(1, |below| (1 << below) + 1);
            for oram in &mut orams {
                let blocks = coins.random_range(least..=1 << class);
                let room = if form.ranges == RangesRead::One {
                    (1 << class) - blocks
                } else {
                    (1 << class) - 1
                };
                let range = coins.random_range(0..form.blocks >> class) << class;
                let address = range + coins.random_range(0..=room);
                let data = vec![vec![7]; blocks as usize];
                oram.access(address, blocks, coins.random::<bool>().then_some(&data[..]));
            }
        }
        assert_eq!(shape(&orams[0].runs), shape(&orams[1].runs), "{form:?}");
    }
}

/// Tests that every read is on a fresh, uniform path. Only the paths of evictions are predictable.
#[test]
fn every_range_is_read_on_a_fresh_path() {
    let form = RangeForm::of_the_paper(6, 3);
    let mut oram = ReferenceRange::new(form.clone(), 0, StdRng::seed_from_u64(3));
    let mut counts = vec![0u32; form.blocks as usize];
    const ACCESSES: u32 = 8000;
    for _ in 0..ACCESSES {
        oram.access(9, 5, None);
    }
    oram.runs.iter().filter(|run| !run.is_eviction).for_each(|run| counts[run.first as usize] += 1);
    let expected = f64::from(2 * ACCESSES) / counts.len() as f64;
    let chi_square: f64 =
        counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    // 63 degrees of freedom: a value above 120 occurs by chance once in 50,000 runs, and the coins
    // are fixed.
    assert!(chi_square < 120.0, "{chi_square}");
}

/// Tests that the buckets of a run on a level form at most two sequences of neighbours, and that no
/// bucket is read twice.
#[test]
fn a_run_of_paths_is_a_run_of_neighbours_on_every_level() {
    for (first, paths, level) in
        (0..16).flat_map(|f| (1..=16).flat_map(move |p| (0..=4).map(move |l| (f, p, l))))
    {
        let buckets: Vec<_> =
            Run { class: 0, is_eviction: false, first, paths }.buckets(level).collect();
        let steps = buckets.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        assert!(steps <= 1, "{buckets:?}");
        let mut each_once = buckets.clone();
        each_once.sort_unstable();
        each_once.dedup();
        assert_eq!(each_once.len(), buckets.len());
        let all: std::collections::BTreeSet<_> =
            (first..first + paths).map(|path| path % (1 << level)).collect();
        assert!(all.into_iter().eq(each_once));
    }
}
