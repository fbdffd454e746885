//! A disk writes a sector atomically, and an anchor is smaller than a sector. Other storage
//! guarantees less. Wherever the write of an anchor is torn, the other anchor is left, and the
//! volume opens.

use oblivio_core::store::{BucketStore, Frames, Span, TreeId};
use oblivio_core::view::Operation;
use oblivio_core::{Access, Op, StoreError, StoreErrorKind};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallVolume};
use oblivio_testkit::crash::{CrashStore, InjectedFault, OpKind, Snapshot, Survival, World};
use oblivio_testkit::{Call, Faulty, Rule};
use oblivio_volume::{Volume, VolumeError};
use rand::SeedableRng;
use rand::rngs::StdRng;

const ANCHORS: TreeId = TreeId(1);
const ANCHOR_BYTES: usize = 64;

/// The point at which the power fails: the number of the write of an anchor, counted from 0, and
/// the number of its bytes that are written before.
#[derive(Clone, Copy, Debug)]
struct Tear {
    write: u64,
    after_bytes: usize,
}

/// A rule that cuts the power in the middle of one write of an anchor. The first `after_bytes`
/// bytes of the anchor are new and durable; the rest stay old.
struct Tearing {
    tear: Tear,
    writes: u64,
    is_off: bool,
}

impl Rule<CrashStore> for Tearing {
    fn handle(&mut self, store: &mut CrashStore, call: &mut Call<'_>) -> Result<(), StoreError> {
        let off = || Err(StoreError::new(StoreErrorKind::Failed, "the power is off"));
        if self.is_off {
            return off();
        }
        let writes_anchor = call.operation == Operation::Write
            && matches!(&call.pieces[..], [piece] if piece.tree == ANCHORS);
        self.writes += u64::from(writes_anchor);
        if !writes_anchor || self.writes - 1 != self.tear.write {
            return call.forward(store);
        }
        let old = store.read(&call.pieces)?.get(0).to_vec();
        call.forward(store)?;
        let new = store.read(&call.pieces)?.get(0).to_vec();
        assert_eq!((old.len(), new.len()), (ANCHOR_BYTES, ANCHOR_BYTES));
        let (written, _) = new.split_at(self.tear.after_bytes);
        let torn = [written, &old[self.tear.after_bytes..]].concat();
        let spans = [Span { start: 0, bytes: ANCHOR_BYTES }];
        store.write(&call.pieces, &mut |blanks| blanks.relay(Frames::new(&torn, &spans)))?;
        store.flush()?;
        self.is_off = true;
        off()
    }
}

/// A volume that was used and closed.
struct Bench {
    setup: SmallVolume,
    world: World,
    closed: Snapshot,
}

impl Bench {
    fn new() -> Self {
        let setup = SmallVolume::default();
        let world = setup.world();
        let coins = StdRng::seed_from_u64(1);
        use_it(setup.create(world.store(), world.dir(), coins).unwrap()).unwrap();
        let closed = world.snapshot();
        Self { setup, world, closed }
    }

    fn restore(&self, snapshot: &Snapshot) {
        self.world.restore_store(snapshot);
        self.world.restore_dir(snapshot);
    }

    /// Opens, uses and closes the volume. Returns whether the power failed.
    fn dies(&self, tear: Tear, coins: u64) -> bool {
        let store = Faulty::new(self.world.store(), Tearing { tear, writes: 0, is_off: false });
        let opened = self.setup.open(store, self.world.dir(), StdRng::seed_from_u64(coins));
        let used = opened.and_then(|(volume, _)| use_it(volume));
        self.world.crash(&mut StdRng::seed_from_u64(coins), Survival::None);
        used.is_err()
    }

    /// Opens, uses and closes the volume with a failing operation. Returns the kind of the
    /// operation, if it exists.
    fn fails(&self, operation: u64, coins: u64) -> Option<OpKind> {
        let mut coins = StdRng::seed_from_u64(coins);
        self.world.plan(&[InjectedFault::FailAt(operation)], &mut coins);
        let opened = self.setup.open(self.world.store(), self.world.dir(), coins);
        let _ = opened.and_then(|(volume, _)| use_it(volume));
        self.world.first_failure().map(|failure| failure.kind)
    }

    fn open(&self) -> Result<(), VolumeError> {
        let coins = StdRng::seed_from_u64(77);
        self.setup.open(self.world.store(), self.world.dir(), coins).map(drop)
    }
}

/// Makes accesses with checkpoints in between, and closes the volume.
fn use_it(mut volume: Volume) -> Result<(), VolumeError> {
    for address in 0..30 {
        let data = [1; BLOCK_BYTES as usize];
        volume.access(&mut [Access { address, op: Op::Write(&data) }])?;
    }
    volume.close().map(drop)
}

fn tears(write: u64) -> impl Iterator<Item = Tear> {
    (0..=ANCHOR_BYTES).map(move |after_bytes| Tear { write, after_bytes })
}

#[test]
fn a_torn_anchor_costs_nothing_whichever_it_is() {
    let bench = Bench::new();
    let all_die = |write: &u64| {
        tears(*write).all(|tear| {
            bench.restore(&bench.closed);
            let has_died = bench.dies(tear, 2);
            bench.open().unwrap_or_else(|wrong| panic!("{tear:?}: {wrong}"));
            has_died
        })
    };
    let written = (0..).take_while(all_die).count();
    assert!(written > 5, "an opening, two checkpoints and a closing write more than {written}");
}

/// The opening after a torn anchor writes another one. It must not overwrite the only valid anchor.
#[test]
fn an_anchor_that_is_torn_in_the_opening_after_a_torn_one_costs_nothing() {
    let bench = Bench::new();
    for first in (0..6).flat_map(tears).step_by(27) {
        bench.restore(&bench.closed);
        assert!(bench.dies(first, 2), "{first:?}");
        let torn = bench.world.snapshot();
        for second in (0..3).flat_map(tears) {
            bench.restore(&torn);
            assert!(bench.dies(second, 3), "{second:?}");
            bench.open().unwrap_or_else(|wrong| panic!("{first:?}, {second:?}: {wrong}"));
        }
    }
}

/// A failed sync has dropped an anchor, and a cache still shows it to the next opening: it must be
/// durable before the other anchor is overwritten.
#[test]
fn an_anchor_that_is_torn_in_the_opening_after_a_failed_sync_costs_nothing() {
    let bench = Bench::new();
    let failure = |operation: u64| {
        bench.restore(&bench.closed);
        bench.fails(operation, 2)
    };
    let kinds = (0..).map_while(failure).enumerate();
    let flushes: Vec<_> =
        kinds.filter(|(_, kind)| *kind == OpKind::StoreFlush).map(|(n, _)| n as u64).collect();
    assert!(flushes.len() > 5, "a flush for each anchor: {flushes:?}");
    for (flush, coins) in flushes.into_iter().flat_map(|flush| (0..4).map(move |n| (flush, n))) {
        for tear in (0..3).flat_map(tears).step_by(12) {
            bench.restore(&bench.closed);
            bench.fails(flush, coins);
            bench.world.plan(&[], &mut StdRng::seed_from_u64(coins));
            assert!(bench.dies(tear, 3), "{tear:?}");
            let seen = format!("flush {flush} failed with {coins}, {tear:?}");
            bench.open().unwrap_or_else(|wrong| panic!("{seen}: {wrong}"));
        }
    }
}
