//! Tests of resumed studies, and of invalid files.

use std::ops::Range;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::controller::Initial;
use crate::functional::{Phase, Requests, Snapshot};

const SEED: u64 = 7;
const NOTE: &str = "a note — in UTF-8";

fn baseline() -> OramSpec {
    OramSpec { tree_top_levels: 3, initial: Initial::EachOnce, ..OramSpec::paper(9) }
}

/// A specification with few slots in the middle levels, to cause evictions.
fn alloc() -> OramSpec {
    let slots = vec![4, 4, 4, 1, 1, 1, 2, 3, 4, 4];
    OramSpec { slots, data_blocks: 1500, stash_blocks_max: 5, ..baseline() }
}

fn in_sets() -> OramSpec {
    OramSpec { tree_top_ways: Some(4), ..baseline() }
}

fn study(spec: &OramSpec) -> Study {
    Study::new(spec, SEED, &mut |_| ()).unwrap()
}

fn file(study: &Study) -> Vec<u8> {
    let mut file = Vec::new();
    study.save(NOTE, &mut file).unwrap();
    file
}

fn resumed(spec: &OramSpec, file: &[u8]) -> Result<Study, SimError> {
    let (study, note) = Study::resume(spec, SEED, file)?;
    assert_eq!(note, NOTE);
    Ok(study)
}

fn refused(spec: &OramSpec, file: &[u8]) -> String {
    let error = resumed(spec, file).err().unwrap();
    assert!(matches!(error, SimError::Saved(_)), "{error}");
    error.to_string()
}

fn run(study: &mut Study, paths: u64) -> Vec<Snapshot> {
    let phases = [Phase { requests: Requests::Uniform, paths }; 2];
    study.run(&phases, &[paths / 2, paths, 2 * paths], &mut |_| ()).unwrap()
}

#[test]
fn a_resumed_study_continues_unchanged() {
    for spec in [baseline(), alloc(), in_sets(), OramSpec { plb_blocks: 0, ..baseline() }] {
        let (mut without, mut with) = (study(&spec), study(&spec));
        for paths in [500, 3000, 20_000] {
            let before = file(&with);
            with = resumed(&spec, &before).unwrap();
            assert!(file(&with) == before, "a restored study saves the same bytes");
            assert_eq!(run(&mut with, paths), run(&mut without, paths));
        }
        let Snapshot { paths, .. } = without.snapshot().unwrap();
        assert!(paths.evictions > 0 || spec != alloc(), "{paths:?}");
        with.check_invariants().unwrap();
    }
}

#[test]
fn counts_of_migration_continue() {
    let (mut without, mut with) = (study(&baseline()), study(&baseline()));
    without.watch_migration();
    with.watch_migration();
    for paths in [500, 3000] {
        with = resumed(&baseline(), &file(&with)).unwrap();
        let snapshots = run(&mut with, paths);
        assert!(snapshots[2].migration.is_some());
        assert_eq!(snapshots, run(&mut without, paths));
    }
}

#[test]
fn another_study_is_refused() {
    let saved = file(&study(&baseline()));
    assert!(refused(&in_sets(), &saved).contains("another ORAM"));
    let placed = OramSpec { initial: Initial::Placed, ..baseline() };
    assert!(refused(&placed, &saved).contains("another ORAM"));
    let error = Study::resume(&baseline(), 8, &saved[..]).err().unwrap().to_string();
    assert!(error.contains("another seed"), "{error}");
    // A file whose header names another seed.
    let mut forged = saved.clone();
    let at = saved.windows(8).position(|window| window == b"\"seed\":7").unwrap() + 7;
    forged[at] = b'8';
    sum_up(&mut forged);
    let error = Study::resume(&baseline(), 8, &forged[..]).err().unwrap().to_string();
    assert!(error.contains("other keys"), "{error}");
}

#[test]
fn invalid_files_are_refused() {
    let spec = baseline();
    let saved = file(&study(&spec));
    let with = |at: usize, byte: u8| {
        let mut file = saved.clone();
        file[at] = byte;
        refused(&spec, &file)
    };
    assert!(with(0, b'X').contains("no study"));
    assert!(with(8, 1).contains("another version"));
    assert!(with(saved.len() - 1, !saved[saved.len() - 1]).contains("checksum"));
    for bytes in (0..saved.len()).step_by(97).chain(saved.len() - 5..saved.len()) {
        assert!(refused(&spec, &saved[..bytes]).contains("too early"), "{bytes}");
    }
    assert!(refused(&spec, &[&saved[..], b"."].concat()).contains("after the end"));
    let error = study(&spec).save(&"x".repeat((1 << 24) + 1), Vec::new()).unwrap_err();
    assert!(error.to_string().contains("16 MiB"));
}

#[test]
fn every_flipped_bit_is_found() {
    let spec = OramSpec { tree_top_levels: 2, ..OramSpec::paper(6) };
    let mut saved = file(&study(&spec));
    let mut coins = StdRng::seed_from_u64(SEED);
    for _ in 0..3000 {
        let (at, bit) = (coins.random_range(0..saved.len()), 1u8 << coins.random_range(0..8));
        saved[at] ^= bit;
        assert!(Study::resume(&spec, SEED, &saved[..]).is_err(), "bit {bit} of {at}");
        saved[at] ^= bit;
    }
    resumed(&spec, &saved).unwrap();
}

/// Overwrites one random number of a file, and corrects the checksum. Each such file must be
/// refused, or give a study that runs or fails without a panic.
#[test]
fn impossible_contents_never_panic() {
    for spec in [baseline(), in_sets()] {
        let mut original = study(&spec);
        run(&mut original, 200);
        let saved = file(&original);
        let first = state_of(&saved);
        let tags = saved.len() - 4 - 4 * 8 * ((1 << spec.slots.len()) - 1);
        let mut coins = StdRng::seed_from_u64(SEED);
        let (mut refusals, mut went_on) = (0, 0);
        for round in 0..4000 {
            let mut file = saved.clone();
            // Three rounds in four overwrite a number that is not a tag.
            let places = if round % 4 == 0 { first..saved.len() - 12 } else { first..tags };
            let at = coins.random_range(places);
            let number: u64 = match round % 3 {
                0 => coins.random(),
                1 => coins.random_range(0..5000),
                _ => [0, 1, u64::MAX, u64::MAX >> 1, 1 << 56][round % 5],
            };
            file[at..at + 8].copy_from_slice(&number.to_le_bytes());
            sum_up(&mut file);
            match resumed(&spec, &file) {
                Err(_) => refusals += 1,
                Ok(mut study) => {
                    let phase = Phase { requests: Requests::Uniform, paths: 50 };
                    let _ = study.run(&[phase], &[50], &mut |_| ());
                    let _ = study.snapshot();
                    went_on += 1;
                }
            }
        }
        assert!(refusals > 300 && went_on > 300, "{refusals} {went_on}");
    }
}

#[test]
fn impossible_contents_are_named() {
    let spec = baseline();
    let saved = file(&study(&spec));
    let parts = SavedOffsets::locate(&spec, &saved);
    let with = |at: usize, number: u64| {
        let mut file = saved.clone();
        file[at..at + 8].copy_from_slice(&number.to_le_bytes());
        sum_up(&mut file);
        refused(&spec, &file)
    };
    // Counts of this file and of the frontend that would overflow.
    for count in [0, 1, 8, 13] {
        for number in [1 << 56, u64::MAX - 1, u64::MAX] {
            assert!(with(parts.counts + 8 * count, number).contains("impossibly large count"));
        }
    }
    assert!(with(parts.counts + 16, 1 << 40).contains("before counting began"));
    assert!(with(parts.counts + 48, 2).contains("neither 0 nor 1"));
    assert!(with(parts.counts + 48, 1).contains("levels"));
    assert!(with(parts.table.start, (1 << 9) + 1).contains("outside the tree"));
    assert!(with(parts.plb, u64::MAX).contains("impossibly large count"));
    assert!(with(parts.plb + 8, 1 << 50).contains("after the present"));
    assert!(with(parts.plb + 16, 2).contains("neither empty nor full"));
    // A data block in the right line, a leaf that does not exist, and a counter past its end.
    assert_eq!(number(&saved, parts.plb + 16), 1, "the first line holds a block");
    assert!(with(parts.plb + 24, 0).contains("does not belong to the position map"));
    assert!(with(parts.plb + 24, u64::MAX).contains("of another set"));
    assert!(with(parts.plb + 32, 1 << 9).contains("does not belong to the position map"));
    assert!(with(parts.plb + 48, 1 << 24).contains("past its maximum"));
    assert!(with(parts.found + 16, 1 << 40).contains("more levels"));
    assert!(with(parts.found + 16, 11).contains("image holds"));
}

/// The offset of the state, after the note.
fn state_of(file: &[u8]) -> usize {
    let what = 16;
    let note = what + 8 + number(file, what) as usize;
    note + 8 + number(file, note) as usize
}

fn number(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap())
}

fn sum_up(file: &mut [u8]) {
    let end = file.len() - 4;
    let sum = crc32fast::hash(&file[..end]);
    file[end..].copy_from_slice(&sum.to_le_bytes());
}

/// Offsets of the parts of a file.
struct SavedOffsets {
    counts: usize,
    /// The position table. It has 4 bytes per entry: the leaf plus one.
    table: Range<usize>,
    plb: usize,
    found: usize,
}

impl SavedOffsets {
    fn locate(spec: &OramSpec, file: &[u8]) -> Self {
        let counts = state_of(file) + 49;
        let frontend = spec.frontend().unwrap();
        let levels = frontend.level_addresses().unwrap();
        let last = levels.last().unwrap();
        let table = counts + 6 * 8 + 8 + 8 + 6 * 8;
        let table = table..table + 4 * (last.end - last.start) as usize;
        let plb = table.end;
        let full = |at: usize| number(file, at + 8) == 1;
        let end = (0..spec.plb_blocks)
            .fold(plb + 8, |at, _| at + 16 + if full(at) { 4 * 8 + 64 } else { 0 });
        Self { counts, table, plb, found: end + 49 }
    }
}
