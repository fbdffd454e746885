//! Copying a volume to another store: crashes at any point, and what storage sees.

use std::io;

use oblivio_core::geometry::BucketId;
use oblivio_core::store::{BucketStore, Part, Piece, TreeId};
use oblivio_core::view::Operation;
use oblivio_testkit::crash::small_volume::SmallVolume;
use oblivio_testkit::crash::{InjectedFault, StoreEvent, Survival, World};
use oblivio_volume::copying::{
    Copied, CopyError, CopyOptions, CopyStep, CopyWatch, Progress, VolumeFingerprint, copy,
    read_superblock,
};
use oblivio_volume::superblock::copies::{BACK, FRONT};
use oblivio_volume::volume::shapes;
use oblivio_volume::{VolumeError, VolumeErrorKind};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::support::bench::{Bench, read, write};

/// The trees that make a store a volume are copied last: the anchors, then the back pair of
/// superblocks, then the front pair.
const LAST_TREES: [TreeId; 3] = [TreeId(1), BACK, FRONT];

/// Saves the progress of a copy, and stops the copy after a number of trips.
struct ProgressSaver {
    saved: Progress,
    trips_left: u64,
}

impl CopyWatch for ProgressSaver {
    fn keep(&mut self, progress: &Progress) -> io::Result<()> {
        self.saved = *progress;
        Ok(())
    }

    fn should_continue(&mut self, progress: &Progress, of: u64) -> bool {
        assert!((1..=of).contains(&progress.buckets));
        self.trips_left -= 1;
        self.trips_left > 0
    }
}

/// A volume, and the destination of its copy.
struct Move {
    bench: Bench,
    to: World,
    saver: ProgressSaver,
    options: CopyOptions,
}

impl Move {
    fn new(seed: u64) -> Self {
        Self::of(Bench::new(SmallVolume::default(), seed))
    }

    fn of(bench: Bench) -> Self {
        let to = World::new(&shapes(&bench.setup.params()).unwrap());
        let source = VolumeFingerprint::compute(&mut bench.world.store()).unwrap();
        let saver = ProgressSaver { saved: Progress::begin(source), trips_left: u64::MAX };
        // Progress is saved after each trip.
        let options = CopyOptions { keep_each_bytes: 1, ..CopyOptions::default() };
        Self { bench, to, saver, options }
    }

    /// Begins or resumes the copy.
    fn go(&mut self) -> Result<Copied, CopyError> {
        let (saved, options) = (self.saver.saved, self.options);
        let (mut from, mut to) = (self.bench.world.store(), self.to.store());
        copy(&mut from, &mut to, saved, options, &mut self.saver)
    }

    /// Continues the copy for this number of trips.
    fn go_for(&mut self, trips: u64) {
        self.saver.trips_left = trips;
        assert!(matches!(self.go(), Err(CopyError::Interrupted)));
        self.saver.trips_left = u64::MAX;
    }

    /// Continues the copy until all buckets are moved.
    fn go_until_all_is_moved(&mut self) {
        let all = pieces_of_scheme(&self.bench.setup).len() as u64;
        while self.saver.saved.buckets < all {
            self.go_for(1);
        }
        assert_eq!(self.saver.saved.step, CopyStep::Moving);
    }

    fn is_whole(&self) -> bool {
        self.bench.world.snapshot().store() == self.to.snapshot().store()
    }

    /// Opens the copy with the client's directory of the volume.
    fn open_copy(&self) -> Result<(), VolumeError> {
        let coins = StdRng::seed_from_u64(77);
        let (mut volume, _) =
            self.bench.setup.open(self.to.store(), self.bench.world.dir(), coins)?;
        read(&mut volume, 0)?;
        volume.close().map(drop)
    }
}

/// The operation and the piece of each event that a store saw, from index `from` on.
fn seen(world: &World, from: usize) -> Vec<(Operation, Option<Piece>)> {
    let seen = world.view().split_off(from);
    let event = |seen| match seen {
        StoreEvent::Event(event) => Some((event.operation, event.piece)),
        StoreEvent::Crash => None,
    };
    seen.into_iter().filter_map(event).collect()
}

fn all_pieces(setup: &SmallVolume) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (tree, shape) in (0..).map(TreeId).zip(shapes(&setup.params()).unwrap()) {
        for (level, shape) in (0..).zip(shape.levels()) {
            let bucket = |index| BucketId::new(level, index);
            let part = Part::Whole;
            pieces.extend((0..shape.buckets).map(|index| Piece {
                tree,
                bucket: bucket(index),
                part,
            }));
        }
    }
    pieces
}

/// The pieces that are copied before those of [`LAST_TREES`].
fn pieces_of_scheme(setup: &SmallVolume) -> Vec<Piece> {
    let mut pieces = all_pieces(setup);
    pieces.retain(|piece| !LAST_TREES.contains(&piece.tree));
    pieces
}

fn is_zeros(world: &World, piece: Piece) -> bool {
    world.store().read(&[piece]).unwrap().get(0).iter().all(|byte| *byte == 0)
}

#[test]
fn a_copy_opens_as_the_volume_and_the_old_place_is_refused_after_that() {
    for setup in SmallVolume::default().on_each_scheme() {
        let mut it = Move::of(Bench::new(setup, 1));
        let copied = it.go().unwrap();
        assert!(it.is_whole());
        assert_eq!(copied.buckets, all_pieces(&it.bench.setup).len() as u64);
        it.open_copy().unwrap();
        let refused = it.bench.open().map(drop).unwrap_err();
        assert_eq!(refused.kind(), VolumeErrorKind::StoreRolledBack);
        it.open_copy().unwrap();
    }
}

#[test]
fn a_copy_that_ends_anywhere_is_no_volume_and_can_be_resumed() {
    let operations = {
        let mut it = Move::new(2);
        it.go().unwrap();
        it.to.operations()
    };
    assert!(operations > 40, "{operations}");
    let mut coins = StdRng::seed_from_u64(3);
    for n in 0..operations {
        let faults =
            [InjectedFault::CrashAt(n), InjectedFault::FailAt(n), InjectedFault::DiskFullAt(n)];
        for (fault, survival) in
            faults.into_iter().zip(Survival::MODES.into_iter().cycle().skip(n as usize))
        {
            let mut it = Move::new(2);
            let mut has_closed = false;
            // Half of the runs end a second time, a little later.
            for fault in [Some(fault), (n % 2 == 0).then_some(InjectedFault::CrashAt(n / 3))] {
                it.to.plan(fault.as_slice(), &mut coins);
                let ended = it.go();
                assert!(ended.is_ok() || it.to.faults_fired() > 0, "{fault:?}: {ended:?}");
                it.to.crash(&mut coins, survival);
                has_closed |= it.saver.saved.step == CopyStep::Finishing;
                if !has_closed {
                    assert!(
                        read_superblock(&mut it.to.store()).is_err(),
                        "{fault:?}: it is already a volume"
                    );
                }
            }
            it.go().unwrap();
            it.to.crash(&mut coins, Survival::None);
            assert!(it.is_whole(), "{fault:?}, {survival:?}");
        }
    }
}

#[test]
fn a_copy_without_reading_back_is_complete() {
    let mut it = Move::new(4);
    it.options.reads_back = false;
    it.go().unwrap();
    assert!(it.is_whole());
    let data = |(operation, piece): &(Operation, Option<Piece>)| {
        *operation == Operation::Read && piece.is_some_and(|piece| piece.tree == TreeId(2))
    };
    assert!(!seen(&it.to, 0).iter().any(data));
}

/// What storage sees of a copy: the source sees all buckets in one order, whatever was done with
/// the volume; the destination sees which of them were ever written.
#[test]
fn a_copy_shows_all_buckets_in_order_and_which_were_ever_written() {
    let mut old_places = Vec::new();
    for seed in [5, 6] {
        let mut bench = Bench::new(SmallVolume::default(), seed);
        let (mut volume, _) = bench.open().unwrap();
        for address in (0..40).map(|n| n * seed % 16) {
            write(&mut volume, address, 1).unwrap();
        }
        volume.close().unwrap();
        let before = bench.world.view().len();
        let mut it = Move::of(bench);
        it.go().unwrap();
        old_places.push(seen(&it.bench.world, before));

        let all = all_pieces(&it.bench.setup);
        let written = all.iter().filter(|piece| !is_zeros(&it.bench.world, **piece));
        let (last, mut expected): (Vec<Piece>, Vec<Piece>) =
            written.partition(|piece| LAST_TREES.contains(&piece.tree));
        for tree in LAST_TREES {
            expected.extend(last.iter().filter(|piece| piece.tree == tree));
        }
        assert!(expected.len() < all.len(), "some were never written");
        let new_place = seen(&it.to, 0).into_iter();
        let writes = new_place.filter(|(operation, _)| *operation == Operation::Write);
        assert_eq!(writes.map(|(_, piece)| piece.unwrap()).collect::<Vec<_>>(), expected);
    }
    assert!(old_places[0] == old_places[1], "the order depends on what was done with the volume");
    let changes =
        |(operation, _): &(Operation, _)| matches!(operation, Operation::Write | Operation::Flush);
    assert!(!old_places[0].iter().any(changes));
}

#[test]
fn a_volume_that_was_opened_since_is_not_copied_on() {
    for trips in 1..16 {
        for is_closed in [true, false] {
            let mut it = Move::new(7);
            it.go_for(trips);
            let (volume, _) = it.bench.open().unwrap();
            if is_closed {
                volume.close().unwrap();
            } else {
                drop(volume);
            }
            let before = it.to.snapshot();
            assert!(matches!(it.go(), Err(CopyError::Changed)), "{trips}");
            assert!(it.to.snapshot().store() == before.store(), "nothing more was copied");
        }
    }
}

/// A copy is interrupted, and then the machine dies while it opens the source volume. If that
/// opening wrote anything, resuming the copy fails with `Changed`; otherwise the copy completes.
#[test]
fn a_volume_whose_opening_was_interrupted_since_is_not_copied_on() {
    for n in 0..60 {
        let mut it = Move::new(8);
        it.go_for(4);
        let before = it.bench.world.snapshot();
        it.bench.world.crash(&mut StdRng::seed_from_u64(n), Survival::All);
        it.bench.world.plan(&[InjectedFault::CrashAt(n)], &mut StdRng::seed_from_u64(n));
        let _ = it.bench.open();
        it.bench.world.crash(&mut StdRng::seed_from_u64(n), Survival::All);
        let is_same = it.bench.world.snapshot().store() == before.store();
        match it.go() {
            Ok(_) => assert!(is_same && it.is_whole(), "{n}"),
            Err(error) => assert!(!is_same && matches!(error, CopyError::Changed), "{n}: {error}"),
        }
    }
}

#[test]
fn a_change_in_the_destination_is_found_and_named() {
    for piece in pieces_of_scheme(&SmallVolume::default()).iter().step_by(9) {
        let mut it = Move::new(9);
        it.go_until_all_is_moved();
        it.to.flip_bit(piece.tree, piece.bucket, 3, 5);
        for _ in 0..2 {
            let found = it.go();
            assert!(
                matches!(found, Err(CopyError::Different(found)) if found == *piece),
                "{found:?}"
            );
            assert!(read_superblock(&mut it.to.store()).is_err(), "the destination is no volume");
        }
        it.to.flip_bit(piece.tree, piece.bucket, 3, 5);
        it.go().unwrap();
    }
}

#[test]
fn a_copy_that_was_opened_and_anything_else_is_left_as_it_is() {
    let mut it = Move::new(10);
    it.go_for(1);
    let (begun, _) = (it.saver.saved, it.go().unwrap());
    let finishing = it.saver.saved;
    assert_eq!(finishing.step, CopyStep::Finishing);
    // The copy was complete, but its progress was not deleted.
    it.go().unwrap();
    it.open_copy().unwrap();
    let before = it.to.snapshot();
    for saved in [finishing, begun, Progress { step: CopyStep::ReadingBack, ..begun }] {
        it.saver.saved = saved;
        assert!(matches!(it.go(), Err(CopyError::InUse)), "{saved:?}");
    }
    let mut other = Move::new(11);
    other.to = it.to.clone();
    assert!(matches!(other.go(), Err(CopyError::InUse)));
    assert!(it.to.snapshot().store() == before.store(), "the destination was changed");
    it.open_copy().unwrap();
}

/// Resumes a copy that was interrupted after its comparison, and a complete one. Both are compared
/// again, unless the options exclude it.
#[test]
fn a_copy_that_is_resumed_at_its_end_is_compared_again_unless_that_is_unwanted() {
    let mut it = Move::new(13);
    let first = it.go().unwrap();
    assert_eq!((it.saver.saved.step, first.buckets_compared), (CopyStep::Finishing, first.buckets));
    let piece = *pieces_of_scheme(&it.bench.setup).last().unwrap();
    it.to.flip_bit(piece.tree, piece.bucket, 3, 5);
    it.options.reads_back = false;
    assert_eq!(it.go().unwrap().buckets_compared, 0);
    it.options.reads_back = true;
    // The comparison itself is interrupted once, and continues where it stopped.
    it.go_for(1);
    let saved = it.saver.saved;
    assert!(saved.step == CopyStep::ReadingBack && saved.buckets > 0);
    assert!(matches!(it.go(), Err(CopyError::Different(found)) if found == piece));
    it.to.flip_bit(piece.tree, piece.bucket, 3, 5);
    let rest = it.go().unwrap().buckets_compared;
    assert!(rest > 0 && rest <= first.buckets - saved.buckets, "{rest}");
    assert_eq!(it.go().unwrap().buckets_compared, first.buckets);
    assert!(it.is_whole());
}

/// Opens and closes the volume after all buckets of its copy were compared, before the copy ends.
struct UseDuringCopy<'b> {
    bench: &'b mut Bench,
    has_used: bool,
}

impl CopyWatch for UseDuringCopy<'_> {
    fn keep(&mut self, _: &Progress) -> io::Result<()> {
        Ok(())
    }

    fn should_continue(&mut self, progress: &Progress, of: u64) -> bool {
        if progress.step == CopyStep::ReadingBack && progress.buckets == of {
            self.bench.open().unwrap().0.close().unwrap();
            self.has_used = true;
        }
        true
    }
}

#[test]
fn a_volume_that_is_used_while_it_is_copied_does_not_count_as_copied() {
    let Move { mut bench, to, saver, options } = Move::new(14);
    let (mut from, mut new_place) = (bench.world.store(), to.store());
    let mut watch = UseDuringCopy { bench: &mut bench, has_used: false };
    let ended = copy(&mut from, &mut new_place, saver.saved, options, &mut watch);
    assert!(watch.has_used && matches!(ended, Err(CopyError::Changed)), "{ended:?}");
    assert!(read_superblock(&mut to.store()).is_err(), "the copy is a volume");
}

#[test]
fn places_that_do_not_fit_are_refused() {
    let mut it = Move::new(12);
    it.saver.saved.buckets = u64::MAX;
    assert!(matches!(it.go(), Err(CopyError::OtherShapes)));
    let fewer = SmallVolume { leaf_level: 4, ..SmallVolume::default() };
    let shapes = shapes(&SmallVolume::default().params()).unwrap();
    let more = [&shapes[..], &shapes[..1]].concat();
    for other in [Move::of(Bench::new(fewer, 1)).to, World::new(&more)] {
        let mut it = Move { to: other, ..Move::new(12) };
        assert!(matches!(it.go(), Err(CopyError::OtherShapes)));
        assert_eq!(seen(&it.to, 0), []);
    }
    let mut it = Move::new(12);
    it.bench.world = World::new(&shapes);
    assert!(matches!(it.go(), Err(CopyError::NoVolume(_))));
}
