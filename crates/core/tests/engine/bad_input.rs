//! Tests of invalid requests and faulty stores. The result must be an error of the right kind,
//! never a panic. An ORAM that has detected false contents of storage must give no further answer.

use oblivio_core::store::{Part, Piece, Span, TreeId};
use oblivio_core::view::Operation;
use oblivio_core::{
    Access, BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, BucketId, CAPACITY_MAX, Error, ErrorKind, Front,
    Geometry, Key, LayoutKind, MemoryStore, NoSecrecy, Op, Oram, PathOram, RawConfig, RawOram,
    Sealer, StoreError, StoreErrorKind, TreeConfig, TreeTopKind,
};
use oblivio_testkit::{Call, Faulty, Rule};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

// ───────────────────────────── the caller: configurations ─────────────────────────────

#[test]
fn impossible_trees_are_invalid_configs() {
    let fitting = TreeConfig::path(100, 64).unwrap();
    let no_levels = [u8::MAX, fitting.geometry.leaf_level() + 1];
    let no_ways = [0, 257];
    let invalid = [0, CAPACITY_MAX + 1, u64::MAX]
        .map(|capacity| fitting.clone().with_capacity(capacity))
        .into_iter()
        .chain(
            [1, BLOCK_BYTES_MIN - 1, BLOCK_BYTES_MAX + 1, usize::MAX]
                .map(|block_bytes| fitting.clone().with_block_bytes(block_bytes)),
        )
        .chain(
            [0, usize::MAX]
                .map(|stash_blocks_max| fitting.clone().with_stash_blocks_max(stash_blocks_max)),
        )
        .chain(
            no_levels.map(|tree_top_levels| fitting.clone().with_tree_top_levels(tree_top_levels)),
        )
        .chain(
            no_ways.map(|ways| fitting.clone().with_tree_top(TreeTopKind::SetAssociative { ways })),
        );
    for config in invalid {
        assert_eq!(kind(config.shape()), ErrorKind::InvalidConfig, "{config:?}");
        assert_eq!(
            kind(path_on(&config, faulty(&fitting, StoreFault::None))),
            ErrorKind::InvalidConfig
        );
        let raw = RawConfig::of_tree(config, 5);
        assert_eq!(
            kind(raw_on(&raw, faulty(&fitting, StoreFault::None))),
            ErrorKind::InvalidConfig
        );
    }
}

#[test]
fn capacities_without_a_tree_are_invalid_configs() {
    for capacity in [CAPACITY_MAX + 1, u64::MAX] {
        assert_eq!(kind(TreeConfig::path(capacity, 64)), ErrorKind::InvalidConfig);
    }
    assert_eq!(kind(RawConfig::new(u64::MAX, 64)), ErrorKind::InvalidConfig);
    for capacity in [0, CAPACITY_MAX + 1] {
        let shape = RawConfig::new(capacity, 64).and_then(|config| config.tree.shape());
        assert_eq!(kind(shape), ErrorKind::InvalidConfig);
    }
}

#[test]
fn a_tree_larger_than_memory_is_an_invalid_config() {
    let config = TreeConfig::path(CAPACITY_MAX, BLOCK_BYTES_MAX).unwrap();
    let store = MemoryStore::new(&[config.shape().unwrap()], LayoutKind::Heap);
    assert_eq!(kind(store), ErrorKind::InvalidConfig);
}

#[test]
fn evict_periods_out_of_range_are_invalid_configs() {
    let tree = TreeConfig::path(100, 64).unwrap();
    for evict_period in [0, u32::MAX] {
        let config = RawConfig::of_tree(tree.clone(), evict_period);
        assert_eq!(
            kind(raw_on(&config, faulty(&tree, StoreFault::None))),
            ErrorKind::InvalidConfig
        );
        let config = RawConfig::with_z_a(100, 64, 5, evict_period, 64);
        assert_eq!(kind(config), ErrorKind::InvalidConfig);
    }
}

#[test]
fn a_store_of_another_shape_is_a_mismatch() {
    let config = TreeConfig::path(100, 64).unwrap();
    let raw = RawConfig::of_tree(config.clone(), 5);
    let others = [
        config.clone().with_block_bytes(65),
        config.clone().with_geometry(Geometry::uniform(8, 4).unwrap()),
        config.clone().with_geometry(Geometry::uniform(7, 5).unwrap()),
    ];
    for other in others {
        assert_eq!(
            kind(path_on(&config, faulty(&other, StoreFault::None))),
            ErrorKind::StoreMismatch,
            "{other:?}"
        );
        assert_eq!(
            kind(raw_on(&raw, faulty(&other, StoreFault::None))),
            ErrorKind::StoreMismatch,
            "{other:?}"
        );
    }
    let missing = config.clone().with_tree(TreeId(1));
    assert_eq!(
        kind(path_on(&missing, faulty(&config, StoreFault::None))),
        ErrorKind::StoreMismatch
    );
}

// ───────────────────────────── the caller: requests ─────────────────────────────

#[test]
fn a_bad_request_anywhere_in_a_batch_touches_nothing() {
    for mut oram in small_orams(StoreFault::None) {
        write_all(&mut *oram).unwrap();
        let before = oram.store().store.contents().to_vec();
        let calls = oram.store().rule.calls;
        let end = oram.capacity();
        for (address, bytes) in [(end, 16), (u64::MAX, 16), (1, 15), (1, 17), (1, 0)] {
            for reads in [true, false] {
                let mut buffer = vec![9; bytes];
                let op = if reads { Op::Read(&mut buffer) } else { Op::Write(&buffer) };
                let (mut first, mut updated) = ([0xA5; 16], false);
                let outcome = oram.access(&mut [
                    Access { address: 0, op: Op::Read(&mut first) },
                    Access { address: 1, op: Op::Update(&mut |_| updated = true) },
                    Access { address, op },
                    Access { address: 2, op: Op::Write(&[9; 16]) },
                ]);
                assert_eq!(kind(outcome), ErrorKind::InvalidRequest);
                assert_eq!((first, updated), ([0xA5; 16], false), "part of the batch was served");
            }
        }
        assert_eq!(oram.store().rule.calls, calls, "storage was accessed");
        assert_eq!(oram.store().store.contents(), before, "storage was written");
        for address in 0..end {
            let mut block = [0; 16];
            oram.read(address, &mut block).unwrap();
            assert_eq!(block, [address as u8; 16]);
        }
    }
}

#[test]
fn an_empty_batch_does_not_access_storage() {
    for mut oram in small_orams(StoreFault::None) {
        oram.access(&mut []).unwrap();
        assert_eq!(oram.store().rule.calls, 0);
    }
}

#[test]
fn messages_never_hold_an_address() {
    const ADDRESS: u64 = 54_321;
    let config = TreeConfig::path(60_000, 16).unwrap();
    let mut errors = Vec::new();
    for fault in [StoreFault::Call(5), StoreFault::None] {
        let mut oram = path_on(&config, faulty(&config, fault)).unwrap();
        errors.extend(oram.read(ADDRESS * 1000, &mut [0; 16]).err());
        errors.extend(oram.read(ADDRESS, &mut [0; 15]).err());
        errors.extend(oram.write(ADDRESS, &[1; 17]).err());
        errors.extend((0..4).filter_map(|_| oram.write(ADDRESS, &[1; 16]).err()));
        oram.store().store.contents_mut().fill(0xFE);
        errors.extend(oram.check_invariants().err());
        errors.extend((0..2).filter_map(|_| oram.read(ADDRESS, &mut [0; 16]).err()));
    }
    for kind in
        [ErrorKind::InvalidRequest, ErrorKind::Store, ErrorKind::Corrupt, ErrorKind::MustReopen]
    {
        assert!(errors.iter().any(|error| error.kind() == kind), "{kind:?} did not occur");
    }
    for error in errors {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(&ADDRESS.to_string()), "{shown}");
    }
}

// ───────────────────────────── the store: failures ─────────────────────────────

/// Tests that an ORAM refuses all work after any call to storage has failed, before or after the
/// call took effect. Lets the first call fail, then, on a new ORAM, the second, and so on, until
/// all calls were tried.
#[test]
fn after_any_failed_call_an_oram_refuses_all_work() {
    for build in SMALL_ORAMS {
        let mut healthy = build(StoreFault::None);
        write_all(&mut *healthy).unwrap();
        for call in 0..healthy.store().rule.calls {
            for fault in [StoreFault::Call(call), StoreFault::TornCall(call)] {
                let mut oram = build(fault);
                let error = write_all(&mut *oram).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Store);
                let source = std::error::Error::source(&error).expect("the store's own error");
                assert_eq!(source.to_string(), FAILURE);
                assert_must_reopen(&mut *oram);
            }
        }
    }
}

#[test]
fn after_a_failed_scan_an_oram_refuses_all_work() {
    for mut oram in small_orams(StoreFault::None) {
        write_all(&mut *oram).unwrap();
        oram.store().rule.fault = StoreFault::Call(oram.store().rule.calls);
        assert_eq!(kind(oram.check_invariants()), ErrorKind::Store);
        assert_must_reopen(&mut *oram);
    }
}

#[test]
fn frames_of_wrong_number_or_length_are_corrupt() {
    let bends: [Bend; 7] = [
        |frames| frames.clear(),
        |frames| frames.truncate(frames.len() - 1),
        |frames| frames.push(frames[0]),
        |frames| frames[0].bytes -= 1,
        |frames| frames[0].bytes += 1,
        |frames| *frames.last_mut().unwrap() = Span { start: 0, bytes: 0 },
        |frames| frames.iter_mut().for_each(|frame| frame.bytes = 0),
    ];
    for bend in bends {
        is_corrupt_at_once(bend);
    }
}

#[test]
fn frames_past_the_end_of_their_buffer_are_corrupt() {
    let bends: [Bend; 3] = [
        |frames| frames[0].start = 1 << 20,
        |frames| frames[0].start = usize::MAX,
        |frames| frames[0].bytes = usize::MAX,
    ];
    for bend in bends {
        is_corrupt_at_once(bend);
    }
}

fn is_corrupt_at_once(bend: Bend) {
    for mut oram in small_orams(StoreFault::None) {
        write_all(&mut *oram).unwrap();
        oram.store().rule.fault = StoreFault::Frames(bend);
        assert_eq!(kind(oram.write(0, &[1; 16])), ErrorKind::Corrupt);
        assert_must_reopen(&mut *oram);
    }
}

// ───────────────────────────── the store: tampering ─────────────────────────────

/// Tests that after bit flips in any byte of storage, including padding, an ORAM serves all
/// requests or reports corrupt storage.
#[test]
fn a_flip_anywhere_is_served_or_corrupt() {
    let mut outcomes = Outcomes::default();
    for build in SMALL_ORAMS {
        let positions = build(StoreFault::None).store().store.contents().len();
        for position in 0..positions {
            for flip in [0x01, 0x80, 0xFF] {
                outcomes.count(build, |contents, _| contents[position] ^= flip);
            }
        }
    }
    outcomes.assert_both();
}

#[test]
fn replaced_contents_are_served_or_corrupt() {
    let mut outcomes = Outcomes::default();
    for build in SMALL_ORAMS {
        for byte in 0..=u8::MAX {
            outcomes.count(build, |contents, _| contents.fill(byte));
        }
        for seed in 0..2000 {
            outcomes.count(build, |contents, _| {
                StdRng::seed_from_u64(seed).fill_bytes(contents);
            });
        }
    }
    outcomes.assert_both();
}

#[test]
fn counters_that_lie_are_served_or_corrupt() {
    let mut outcomes = Outcomes::default();
    for build in SMALL_ORAMS {
        for counter in [0, 1, 1 << 63, u64::MAX] {
            for bucket in 0..SMALL_BUCKETS {
                outcomes.count(build, |contents, headers| {
                    contents[headers[bucket]..][..8].copy_from_slice(&u64::to_be_bytes(counter));
                });
            }
            outcomes.count(build, |contents, headers| {
                for header in headers {
                    contents[*header..][..8].copy_from_slice(&u64::to_be_bytes(counter));
                }
            });
        }
    }
    outcomes.assert_both();
}

/// Copies each bucket over each other bucket, so that it is well-formed but in the wrong place. An
/// ORAM must serve all requests or report corrupt storage.
#[test]
fn buckets_in_the_wrong_place_are_served_or_corrupt() {
    let mut outcomes = Outcomes::default();
    for build in SMALL_ORAMS {
        for (from, to) in (0..SMALL_BUCKETS).flat_map(|a| (0..SMALL_BUCKETS).map(move |b| (a, b))) {
            outcomes.count(build, |contents, headers| {
                let bucket_bytes = headers[1] - headers[0];
                let bucket = headers[from]..headers[from] + bucket_bytes;
                contents.copy_within(bucket, headers[to]);
            });
        }
    }
    outcomes.assert_both();
}

/// Tests rollbacks of storage to an earlier state, as a whole or bucket by bucket. An ORAM must
/// serve all requests or report corrupt storage.
#[test]
fn rollbacks_are_served_or_corrupt() {
    for build in SMALL_ORAMS {
        for undone in 0..=SMALL_BUCKETS {
            let mut oram = build(StoreFault::None);
            write_all(&mut *oram).unwrap();
            let earlier = oram.store().store.contents().to_vec();
            write_all(&mut *oram).unwrap();
            let headers = headers(oram.store());
            let range = match headers.get(undone) {
                Some(header) => *header..header + (headers[1] - headers[0]),
                None => 0..earlier.len(),
            };
            oram.store().store.contents_mut()[range.clone()].copy_from_slice(&earlier[range]);
            serves_or_stops(&mut *oram);
        }
    }
}

/// The number of ORAMs that served every request although their storage was tampered with, and the
/// number of ORAMs that stopped with an error.
#[derive(Default)]
struct Outcomes {
    served: u32,
    stopped: u32,
}

impl Outcomes {
    /// Fills two ORAMs and tampers with their storage. Checks the invariants of the first, which
    /// must hold or fail as corrupt. Uses the second, and counts its outcome.
    fn count(&mut self, build: Build, lie: impl Fn(&mut [u8], &[usize])) {
        let deceived = || {
            let mut oram = build(StoreFault::None);
            write_all(&mut *oram).unwrap();
            let headers = headers(oram.store());
            lie(oram.store().store.contents_mut(), &headers);
            oram
        };
        is_ok_or_corrupt(deceived().check_invariants());
        match serves_or_stops(&mut *deceived()) {
            true => self.served += 1,
            false => self.stopped += 1,
        }
    }

    /// Checks that both outcomes occurred; otherwise the test is too weak.
    fn assert_both(&self) {
        assert!(self.served > 0 && self.stopped > 0, "{} {}", self.served, self.stopped);
    }
}

/// Uses `oram` and returns whether it serves all requests. If it does not, checks that it reports
/// corrupt storage and refuses further work.
fn serves_or_stops(oram: &mut dyn Small) -> bool {
    let mut block = [0; 16];
    let stopped = (0..2 * oram.capacity()).find_map(|i| {
        let address = i % oram.capacity();
        let used = oram.read(address, &mut block).and_then(|()| oram.write(address, &block));
        used.and_then(|()| oram.evict()).err()
    });
    match stopped {
        None => {
            // The scan may find damage that no access touched.
            is_ok_or_corrupt(oram.check_invariants());
            true
        }
        Some(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert_must_reopen(oram);
            false
        }
    }
}

fn is_ok_or_corrupt(scan: Result<(), Error>) {
    assert!(scan.is_ok() || kind(scan) == ErrorKind::Corrupt);
}

fn assert_must_reopen(oram: &mut dyn Small) {
    let calls = oram.store().rule.calls;
    let mut block = [0xA5; 16];
    let mut update = |_: &mut [u8]| panic!("a broken ORAM answers nothing");
    assert_eq!(kind(oram.read(0, &mut block)), ErrorKind::MustReopen);
    assert_eq!(kind(oram.write(0, &[1; 16])), ErrorKind::MustReopen);
    let update = Access { address: 0, op: Op::Update(&mut update) };
    assert_eq!(kind(oram.access(&mut [update])), ErrorKind::MustReopen);
    assert_eq!(kind(oram.evict()), ErrorKind::MustReopen);
    assert_eq!(kind(oram.check_invariants()), ErrorKind::MustReopen);
    assert_eq!((block, oram.store().rule.calls), ([0xA5; 16], calls));
}

// ───────────────────────────── ORAMs under test ─────────────────────────────

/// Path or RAW ORAM with five blocks of 16 bytes, with access to its store.
trait Small: Front {
    fn store(&mut self) -> &mut FaultyMemory;
}

impl Small for PathOram<FaultyMemory, StdRng> {
    fn store(&mut self) -> &mut FaultyMemory {
        self.store_mut()
    }
}

impl Small for RawOram<FaultyMemory, StdRng> {
    fn store(&mut self) -> &mut FaultyMemory {
        self.store_mut()
    }
}

type Build = fn(StoreFault) -> Box<dyn Small>;

const SMALL_BUCKETS: usize = 7;

/// Builders of both schemes: sealed, unencrypted, and unencrypted with one tree-top level.
const SMALL_ORAMS: [Build; 6] = [
    |fault| small_path(Seal::Aes, 0, fault),
    |fault| small_path(Seal::Null, 0, fault),
    |fault| small_path(Seal::Null, 1, fault),
    |fault| small_raw(Seal::Aes, 0, fault),
    |fault| small_raw(Seal::Null, 0, fault),
    |fault| small_raw(Seal::Null, 1, fault),
];

fn small_orams(fault: StoreFault) -> [Box<dyn Small>; 6] {
    SMALL_ORAMS.map(|build| build(fault))
}

fn small_path(seal: Seal, tree_top_levels: u8, fault: StoreFault) -> Box<dyn Small> {
    let config = small_tree(tree_top_levels);
    let store = faulty(&config, fault);
    Box::new(PathOram::path(&config, seal.sealer(), store, coins()).unwrap())
}

fn small_raw(seal: Seal, tree_top_levels: u8, fault: StoreFault) -> Box<dyn Small> {
    let config = RawConfig::of_tree(small_tree(tree_top_levels), 2);
    let store = faulty(&config.tree, fault);
    Box::new(RawOram::raw(&config, seal.sealer(), store, coins()).unwrap())
}

fn small_tree(tree_top_levels: u8) -> TreeConfig {
    let config = TreeConfig::new(5, 16, Geometry::uniform(2, 2).unwrap(), 20);
    config.with_tree_top_levels(tree_top_levels)
}

/// Writes each block's address into it, twice, so that evictions have reached every bucket.
fn write_all(oram: &mut dyn Small) -> Result<(), Error> {
    (0..2 * oram.capacity()).try_for_each(|i| {
        let address = i % oram.capacity();
        oram.write(address, &[address as u8; 16])
    })
}

enum Seal {
    Aes,
    Null,
}

impl Seal {
    fn sealer(&self) -> Sealer {
        match self {
            Self::Aes => Sealer::aes128(Key::from_bytes([7; 16]), TreeId(0)),
            Self::Null => Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets()),
        }
    }
}

fn path_on(
    config: &TreeConfig,
    store: FaultyMemory,
) -> Result<PathOram<FaultyMemory, StdRng>, Error> {
    PathOram::path(config, Seal::Aes.sealer(), store, coins())
}

fn raw_on(config: &RawConfig, store: FaultyMemory) -> Result<RawOram<FaultyMemory, StdRng>, Error> {
    RawOram::raw(config, Seal::Aes.sealer(), store, coins())
}

fn coins() -> StdRng {
    StdRng::seed_from_u64(1)
}

/// The kind of the error in `outcome`. Panics if the operation succeeded.
fn kind<T>(outcome: Result<T, Error>) -> ErrorKind {
    outcome.err().expect("the operation must fail").kind()
}

// ───────────────────────────── faulty stores ─────────────────────────────

#[derive(Clone, Copy)]
enum StoreFault {
    None,
    /// The read or write with this number, counted from 0, fails before it has any effect.
    Call(usize),
    /// The read or write with this number, counted from 0, fails after it took effect.
    TornCall(usize),
    /// A read returns frames that this function has changed.
    Frames(Bend),
}

type Bend = fn(&mut Vec<Span>);

const FAILURE: &str = "the disk is on fire";

/// A store in memory with one of the faults of [`StoreFault`].
type FaultyMemory = Faulty<MemoryStore, Faults>;

struct Faults {
    fault: StoreFault,
    /// Number of reads and writes so far.
    calls: usize,
}

fn faulty(config: &TreeConfig, fault: StoreFault) -> FaultyMemory {
    let memory = MemoryStore::new(&[config.shape().unwrap()], LayoutKind::Heap).unwrap();
    Faulty::new(memory, Faults { fault, calls: 0 })
}

/// The offsets in memory of the headers of all buckets.
fn headers(store: &FaultyMemory) -> Vec<usize> {
    let tree = TreeId(0);
    (0..SMALL_BUCKETS as u64)
        .map(|id| Piece { tree, bucket: BucketId(id), part: Part::Header })
        .map(|piece| store.store.span(&piece).expect("the tree has seven buckets").start)
        .collect()
}

impl Rule<MemoryStore> for Faults {
    fn handle(&mut self, memory: &mut MemoryStore, call: &mut Call<'_>) -> Result<(), StoreError> {
        if !matches!(call.operation, Operation::Read | Operation::Write) {
            return call.forward(memory);
        }
        let number = self.calls;
        self.calls += 1;
        let fails = || Err(StoreError::new(StoreErrorKind::Failed, FAILURE));
        match self.fault {
            StoreFault::Call(failing) if failing == number => return fails(),
            _ => call.forward(memory)?,
        }
        match self.fault {
            StoreFault::TornCall(failing) if failing == number => return fails(),
            StoreFault::Frames(bend) if call.operation == Operation::Read => {
                bend(&mut call.answer.spans)
            }
            _ => {}
        }
        Ok(())
    }
}
