//! Damage to the client's log: synced records are not dropped silently, however large the damage
//! is. Only data that a crash can lose may be missing.

use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, SmallVolume};
use oblivio_testkit::crash::{Snapshot, Survival, World};
use oblivio_volume::state_dir::FILLER;
use oblivio_volume::{Recovery, VolumeErrorKind};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use crate::support::appended;

/// The number of accesses. Each has its own record, synced before storage sees the access.
const ACCESSES: u64 = 20;

#[test]
fn damage_to_any_records_but_the_last_is_found() {
    let bench = Bench::new();
    let mut coins = StdRng::seed_from_u64(2);
    for first in 0..bench.ends.len() - 1 {
        // From one record up to all except the last.
        for last in first..bench.ends.len() - 2 {
            let range = bench.ends[first]..bench.ends[last + 1];
            let mut noise = bench.bytes.clone();
            coins.fill_bytes(&mut noise[range.clone()]);
            assert_eq!(
                bench.outcome(&noise),
                Err(VolumeErrorKind::StateDamaged),
                "noise in {range:?}"
            );
            let mut zeros = bench.bytes.clone();
            zeros[range.clone()].fill(0);
            assert_eq!(
                bench.outcome(&zeros),
                Err(VolumeErrorKind::StateDamaged),
                "zeros in {range:?}"
            );
        }
    }
}

#[test]
fn damage_to_any_byte_of_several_records_is_found() {
    let bench = Bench::new();
    let (start, end) = (bench.ends[0], bench.ends[bench.ends.len() - 2]);
    let mut coins = StdRng::seed_from_u64(3);
    for byte in (start..end).step_by(7) {
        let mut changed = bench.bytes.clone();
        changed[byte] ^= 1 << coins.random_range(0..8);
        // And a byte of the next record, unless that is the last.
        let next = bench.ends.iter().find(|end| **end > byte).unwrap();
        if *next < end {
            changed[*next + coins.random_range(0..40)] ^= 0x10;
        }
        assert_eq!(bench.outcome(&changed), Err(VolumeErrorKind::StateDamaged), "byte {byte}");
    }
}

#[test]
fn bytes_that_are_cut_out_or_put_in_are_found() {
    let bench = Bench::new();
    let end = bench.ends[bench.ends.len() - 3];
    for at in (bench.ends[0]..end).step_by(61) {
        let (before, after) = bench.bytes.split_at(at);
        for changed in [[before, &after[1..]].concat(), [before, &[7], after].concat()] {
            assert_eq!(bench.outcome(&changed), Err(VolumeErrorKind::StateDamaged), "byte {at}");
        }
    }
}

/// An opening detects lost records if the last one is left anywhere in the file: the frame of the
/// last record vouches for the earlier ones.
#[test]
fn a_record_is_found_however_far_behind_the_damage() {
    let bench = Bench::new();
    let [.., start, next, end] = bench.ends[..] else { panic!("there are more records") };
    // Files are searched in pieces of 64 KiB: also across the border of two pieces.
    for gap in (1..200).chain((64 << 10) - 50..(64 << 10) + 5) {
        let (prefix, last) = (&bench.bytes[..start], &bench.bytes[next..end]);
        let changed = [prefix, &vec![0; gap], last].concat();
        assert_eq!(bench.outcome(&changed), Err(VolumeErrorKind::StateDamaged), "{gap} bytes");
    }
}

/// A crash may lose the last record, which looks like damage: its bytes are reported as ignored.
/// Filler at the end is not reported, because every file in use has it.
#[test]
fn a_last_record_that_does_not_open_is_left_out_and_counted() {
    let bench = Bench::new();
    for filler in [0, 1, 100_000] {
        let followed = [&bench.bytes[..], &vec![FILLER; filler]].concat();
        let whole = bench.outcome(&followed).unwrap();
        assert_eq!((whole.state_bytes_ignored, whole.accesses), (0, ACCESSES));
    }
    let left_out = |bytes: &[u8]| appended(bytes.to_vec()).len() as u64;
    let [.., start, end] = bench.ends[..] else { panic!("there are more records") };
    for byte in start..end {
        let mut changed = bench.bytes.clone();
        changed[byte] ^= 4;
        let found = bench.outcome(&changed).unwrap();
        let ignored = left_out(&changed[start..end]);
        assert_eq!((found.state_bytes_ignored, found.accesses), (ignored, ACCESSES - 1));
        let prefix = &bench.bytes[..byte];
        let torn = bench.outcome(prefix).unwrap();
        assert_eq!(torn.state_bytes_ignored, left_out(&prefix[start..]));
        // The filler is longer than a piece that is searched at a time.
        let over_filler = [prefix, &vec![FILLER; 100_000]].concat();
        assert_eq!(
            bench.outcome(&over_filler).unwrap().state_bytes_ignored,
            left_out(&prefix[start..])
        );
    }
}

/// Records that became zeros are reported as ignored bytes, not taken for filler: a disk or a file
/// system returns zeros for lost data.
#[test]
fn records_that_became_zeros_are_counted_as_left_out() {
    let bench = Bench::new();
    for lost in 1..4 {
        let [start, end] =
            [bench.ends.len() - 1 - lost, bench.ends.len() - 1].map(|i| bench.ends[i]);
        let zeros = vec![0; end - start];
        let changed = [&bench.bytes[..start], &zeros, &[FILLER; 100]].concat();
        let found = bench.outcome(&changed).unwrap();
        let expected = ((end - start) as u64, ACCESSES - lost as u64);
        assert_eq!((found.state_bytes_ignored, found.accesses), expected);
    }
}

// ───────────────────────────── a volume that was not closed ─────────────────────────────

struct Bench {
    setup: SmallVolume,
    world: World,
    /// The world as the crash left it.
    good: Snapshot,
    name: String,
    /// The bytes of the state file.
    bytes: Vec<u8>,
    /// The offsets of records of accesses in the file, and the end of the last one.
    ends: Vec<usize>,
}

impl Bench {
    fn new() -> Self {
        // All accesses come before the first checkpoint and before the first eviction that could
        // reveal a lost record.
        let setup = SmallVolume { tree_top_levels: 5, ..SmallVolume::default() };
        let world = setup.world();
        let coins = StdRng::seed_from_u64(1);
        let mut volume = setup.create(world.store(), world.dir(), coins).unwrap();
        let state_file = || {
            let snapshot = world.snapshot();
            let files = snapshot.files().iter().filter(|(name, _)| name.starts_with("state-"));
            files.map(|(name, bytes)| (name.clone(), appended(bytes.clone()))).next_back().unwrap()
        };
        let mut ends = vec![state_file().1.len()];
        for address in 0..ACCESSES {
            let data = [address as u8; BLOCK_BYTES as usize];
            let address = address % BLOCKS;
            volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
            ends.push(state_file().1.len());
        }
        world.crash_apart(&mut StdRng::seed_from_u64(1), Survival::None, Survival::None);
        drop(volume);
        let (name, bytes) = state_file();
        assert_eq!(ends.last(), Some(&bytes.len()), "everything was synced");
        Self { good: world.snapshot(), setup, world, name, bytes, ends }
    }

    /// Opens the volume with another state file.
    fn outcome(&self, state: &[u8]) -> Result<Recovery, VolumeErrorKind> {
        self.world.restore_store(&self.good);
        self.world.restore_dir(&self.good);
        self.world.replace_file(&self.name, state);
        let coins = StdRng::seed_from_u64(9);
        let opened = self.setup.open(self.world.store(), self.world.dir(), coins);
        opened.map(|(_, recovery)| recovery).map_err(|error| error.kind())
    }
}
