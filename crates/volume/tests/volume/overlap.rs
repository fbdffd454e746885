//! Overlapping batches: the next one begins while storage still reads for the previous one. The
//! tests can hold storage back.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use oblivio_core::store::Piece;
use oblivio_core::view::Operation;
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, SmallVolume};
use oblivio_testkit::crash::{CrashStore, InjectedFault, OpKind, StoreEvent, Survival, World};
use oblivio_testkit::{Call, Faulty};
use oblivio_volume::device::{BlockDevice, DiskError, DiskErrorKind, DiskOp, Request, WipedBytes};
use oblivio_volume::{Disk, DiskOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::support::seen::DATA_TREE;

/// A time limit that is longer than anything that a disk does.
const PATIENCE: Duration = Duration::from_secs(20);

/// The number of cached blocks.
const CACHED: u64 = 8;

#[test]
fn a_block_on_its_way_that_is_written_keeps_what_was_written() {
    let gated = GatedDisk::new();
    let answers = gated.serve(vec![read(1), read(2), write(3, 99, false)], vec![read(3)]);
    assert_eq!(first_bytes(answers), [Some(1), Some(2), None, Some(99)]);
    assert_eq!(gated.contents(3), 99);
    // The block keeps its contents after the cache has written it back and evicted it.
    (40..40 + CACHED).for_each(|block| assert_eq!(gated.contents(block), block as u8));
    assert_eq!(gated.contents(3), 99);
}

#[test]
fn a_block_on_its_way_that_is_forgotten_is_zeros() {
    for is_written_again in [false, true] {
        let gated = GatedDisk::new();
        let mut first = vec![read(1), read(2), zero(3)];
        if is_written_again {
            first.push(write(3, 99, false));
        }
        let contents = if is_written_again { 99 } else { 0 };
        let answers = gated.serve(first, vec![read(3)]);
        assert_eq!(first_bytes(answers).pop().unwrap(), Some(contents));
        (40..40 + CACHED).for_each(|block| assert_eq!(gated.contents(block), block as u8));
        assert_eq!(gated.contents(3), contents);
    }
}

/// A block that is forgotten while it is read stays zero, even if a cache of one block evicts the
/// zeros before the old data arrives.
#[test]
fn a_block_on_its_way_that_is_forgotten_is_zeros_however_small_the_cache_is() {
    let gated = GatedDisk::with_cache(1);
    let first = vec![read(1), read(2), zero(3), read(4), read(5)];
    let answers = first_bytes(gated.serve(first, vec![read(3), read(6), read(3)]));
    assert_eq!(answers[5..], [Some(0), Some(6), Some(0)]);
    // It is also zero if no request waits for it any more, and other blocks evict the zeros.
    let gated = GatedDisk::with_cache(3);
    let all = vec![read(1), read(2), zero(3), read(3), read(1), read(2), write(5, 99, false)];
    assert_eq!(first_bytes(gated.serve(all, vec![]))[3], Some(0));
    assert_eq!(gated.contents(3), 0);
}

#[test]
fn a_trim_does_not_wait_for_what_was_begun() {
    let gated = GatedDisk::new();
    let gate = gated.gate.0.clone();
    let first = vec![read(2), read(1).then(move || gate.close()), zero(3)];
    let mut answers = gated.serve(first, vec![read(3)]);
    let last = answers.pop().unwrap();
    answers.into_iter().for_each(|answer| drop(answer.recv_timeout(PATIENCE).unwrap()));
    gated.gate.0.open();
    assert_eq!(first_bytes(vec![last]), [Some(0)]);
}

/// Early requests of a batch are answered before storage has read the blocks of the last one.
#[test]
fn an_answer_waits_for_nothing_that_comes_after_it() {
    let gated = GatedDisk::new();
    let gate = gated.gate.0.clone();
    let mut first = vec![read(1).then(move || gate.close())];
    first.extend((2..12).map(read));
    let mut answers = gated.serve(first, vec![]).into_iter();
    let one = answers.next().unwrap().recv_timeout(PATIENCE).unwrap();
    assert_eq!(one.unwrap()[0], 1);
    assert!(gated.gate.0.is_reached());
    let last = answers.next_back().unwrap();
    assert!(last.try_recv().is_err(), "storage has not read it yet");
    gated.gate.0.open();
    assert_eq!(first_bytes(answers.chain([last]).collect()), (2..12).map(Some).collect::<Vec<_>>());
}

/// A flush waits for the requests before it and for requests that arrive before those are done, and
/// for no others.
#[test]
fn a_flush_does_not_wait_for_ever_while_others_ask() {
    let gated = GatedDisk::new();
    let (gate, order) = (gated.gate.0.clone(), Arc::new(Mutex::new(Vec::new())));
    let noted = |request: TestRequest, name: &'static str| {
        let order = order.clone();
        request.then(move || order.lock().unwrap().push(name))
    };
    let first = vec![read(1).then(move || gate.close()), noted(DiskOp::Flush.into(), "flush")];
    let mut answers = gated.serve(first, vec![read(2), read(3)]);
    assert_eq!(first_bytes(vec![answers.remove(0)]), [Some(1)]);
    assert!(gated.gate.0.is_reached(), "storage begins the second read");
    answers.extend((20..23).map(|block| gated.submit(noted(read(block), "later"))));
    gated.gate.0.open();
    first_bytes(answers);
    assert_eq!(*order.lock().unwrap(), ["flush", "later", "later", "later"]);
}

#[test]
fn no_block_on_its_way_is_read_twice() {
    let gated = GatedDisk::new();
    gated.world.take_view();
    let answers = gated.serve(vec![read(1), read(2)], vec![read(2), read(3), read(1), zero(2)]);
    assert_eq!(first_bytes(answers)[..5], [Some(1), Some(2), Some(2), Some(3), Some(1)]);
    assert_eq!(gated.contents(2), 0);
    assert_eq!(paths_announced(&gated.world), 3);
}

#[test]
fn a_disk_is_closed_although_storage_reads() {
    let GatedDisk { gate, disk, .. } = GatedDisk::new();
    let disk = Arc::new(disk);
    gate.0.close();
    let (sender, answer) = channel();
    let done = Box::new(move |data: Answer| sender.send(data.is_ok()).unwrap());
    disk.submit(Request { op: DiskOp::Read { offset: 0, bytes: 3 * BLOCK_BYTES }, done });
    assert!(gate.0.is_reached());
    let (closed, is_closed) = channel();
    let closing = disk.clone();
    let close = move || closed.send(closing.close().is_ok()).unwrap();
    // If the disk is never closed, the test does not wait for this thread.
    thread::Builder::new().spawn(close).unwrap();
    thread::sleep(Duration::from_millis(100));
    gate.0.open();
    assert_eq!(answer.recv_timeout(PATIENCE), Ok(true));
    let outcome = is_closed.recv_timeout(PATIENCE);
    // Dropping the disk would wait for its end here.
    std::mem::forget(disk);
    assert_eq!(outcome, Ok(true));
}

/// A request during the closing is answered: with its data, or with the error that the disk was
/// closed.
#[test]
fn every_request_is_answered_while_a_disk_is_closed() {
    let GatedDisk { gate, disk, .. } = GatedDisk::new();
    let disk = Arc::new(disk);
    let ask = |block: u64| {
        let (sender, answer) = channel();
        let done =
            Box::new(move |data: Answer| sender.send(data.map_err(|error| error.kind)).unwrap());
        let offset = block * u64::from(BLOCK_BYTES);
        disk.submit(Request { op: DiskOp::Read { offset, bytes: BLOCK_BYTES }, done });
        answer
    };
    gate.0.close();
    let mut answers = vec![ask(0)];
    assert!(gate.0.is_reached());
    let closing = disk.clone();
    let close = thread::Builder::new().spawn(move || closing.close().is_ok()).unwrap();
    for block in 1..50 {
        answers.push(ask(block));
        thread::sleep(Duration::from_millis(1));
    }
    gate.0.open();
    assert!(close.join().unwrap());
    let mut outcomes = answers.into_iter().map(|answer| answer.recv_timeout(PATIENCE).unwrap());
    assert!(outcomes.next().unwrap().is_ok());
    assert!(outcomes.any(|outcome| outcome.err() == Some(DiskErrorKind::Closed)));
    assert!(outcomes.all(|outcome| outcome.err() == Some(DiskErrorKind::Closed)));
}

/// The disk counts as closed even if an operation fails while it closes.
#[test]
fn a_disk_that_fails_while_it_is_closed_is_closed() {
    for cache in [0, CACHED] {
        for fails_at in 0..10 {
            let GatedDisk { gate, disk, world, .. } = GatedDisk::with_cache(cache);
            let disk = Arc::new(disk);
            gate.0.close();
            let ask = |block: u64| {
                let (sender, answer) = channel();
                let done = Box::new(move |data: Answer| sender.send(data.is_ok()).unwrap());
                let offset = block * u64::from(BLOCK_BYTES);
                disk.submit(Request { op: DiskOp::Read { offset, bytes: 3 * BLOCK_BYTES }, done });
                answer
            };
            let first = ask(0);
            assert!(gate.0.is_reached());
            let answers = [first, ask(8)];
            let (closed, is_closed) = channel();
            let closing = disk.clone();
            // If the disk is never closed, the test does not wait for this thread.
            let close = move || closed.send(closing.close().is_ok()).unwrap();
            thread::Builder::new().spawn(close).unwrap();
            thread::sleep(Duration::from_millis(20));
            world.plan(&[InjectedFault::FailAt(fails_at)], &mut StdRng::seed_from_u64(fails_at));
            gate.0.open();
            for answer in answers {
                answer.recv_timeout(PATIENCE).expect("every request is answered");
            }
            let outcome = is_closed.recv_timeout(PATIENCE);
            std::mem::forget(disk);
            assert!(outcome.is_ok(), "cache {cache}, failure {fails_at}");
        }
    }
}

/// A durable request is answered only after a flush, even if reads of the next batch have begun.
#[test]
fn what_is_durable_survives_although_the_next_batch_is_begun() {
    let gated = GatedDisk::new();
    let world = gated.world.clone();
    let crash = move || world.crash(&mut StdRng::seed_from_u64(9), Survival::None);
    let first = vec![read(1), read(2), write(5, 99, true).then(crash)];
    let answers = gated.serve(first, vec![read(3), read(4)]);
    let durable = answers.into_iter().nth(2).unwrap().recv_timeout(PATIENCE).unwrap();
    durable.unwrap();
    let GatedDisk { setup, world, disk, .. } = gated;
    drop(disk);
    let (mut volume, _) = setup.open(world.store(), world.dir(), StdRng::seed_from_u64(7)).unwrap();
    let mut data = [0; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address: 5, op: Op::Read(&mut data) }]).unwrap();
    assert_eq!(data[0], 99);
}

/// Requests in two overlapping batches leave the disk as if they came one by one; also after a
/// power loss, once a flush was answered.
#[test]
fn batches_that_overlap_are_done_in_their_order() {
    let mut coins = StdRng::seed_from_u64(1);
    for seed in 0..120 {
        let gated = GatedDisk::with_cache(coins.random_range(1..4));
        let mut shadow: Vec<_> = (0..BLOCKS as u8).collect();
        for _ in 0..4 {
            let mut expected = Vec::new();
            let mut batch = |reads: u64, others: usize| {
                let mut request: Vec<TestRequest> = Vec::new();
                let few = coins.random_range(0..BLOCKS - 12);
                for i in 0..reads {
                    request.push(read(few + i));
                    expected.push(Some(shadow[(few + i) as usize]));
                }
                for _ in 0..others {
                    let block = few + coins.random_range(0..12);
                    let now = &mut shadow[block as usize];
                    let (one, answer) = match coins.random_range(0..5) {
                        0 => {
                            *now = coins.random();
                            (write(block, *now, false), None)
                        }
                        1 => {
                            *now = coins.random();
                            (write_a_part(block, *now), None)
                        }
                        2 => {
                            *now = 0;
                            (zero(block), None)
                        }
                        _ => (read(block), Some(*now)),
                    };
                    expected.push(answer);
                    request.push(one);
                }
                request
            };
            // Enough blocks outside of the cache that storage must read.
            let first = batch(6, 10);
            let mut next = batch(0, 12);
            next.push(DiskOp::Flush.into());
            expected.push(None);
            assert_eq!(first_bytes(gated.serve(first, next)), expected, "{seed}");
        }
        let GatedDisk { setup, world, disk, .. } = gated;
        world.crash(&mut coins, Survival::None);
        drop(disk);
        let (mut volume, _) =
            setup.open(world.store(), world.dir(), StdRng::seed_from_u64(seed)).unwrap();
        for (address, fill) in (0..).zip(shadow) {
            let mut data = [1; BLOCK_BYTES as usize];
            volume.access(&mut [Access { address, op: Op::Read(&mut data) }]).unwrap();
            assert_eq!(data[0], fill, "{seed}: block {address}");
        }
    }
}

/// Every request is answered, whichever operation fails. The operations made for requests depend
/// neither on whether blocks are dirty, nor on whether blocks in flight are forgotten.
#[test]
fn steps_depend_on_counts_alone_and_every_request_is_answered() {
    let dirty = || vec![write(50, 1, false)];
    let with = |range: u64| move || vec![read(1), zero(range), read(2)];
    let one = steps(&Vec::new, &with(3));
    assert!(one.contains(&OpKind::FileBeginSync), "nothing was begun: {one:?}");
    assert_eq!(one, steps(&dirty, &with(3)));
    assert_eq!(one, steps(&Vec::new, &with(60)));
    // Enough reads that a window has more than one block.
    let many = || (1..=16).map(read).collect::<Vec<_>>();
    assert_eq!(steps(&Vec::new, &many), steps(&dirty, &many));
}

/// The kinds of the operations, in order, that a disk makes for the `first` batch and the next one,
/// after the requests `before`. For each operation, runs a new disk and makes the operation fail,
/// because the failure shows its kind.
fn steps(
    before: &dyn Fn() -> Vec<TestRequest>,
    first: &dyn Fn() -> Vec<TestRequest>,
) -> Vec<OpKind> {
    let mut kinds = Vec::new();
    for fails_at in 0.. {
        let gated = GatedDisk::new();
        for request in before() {
            let answer = gated.submit(request).recv_timeout(PATIENCE).unwrap();
            answer.unwrap();
        }
        gated.world.take_view();
        gated.world.plan(&[InjectedFault::FailAt(fails_at)], &mut StdRng::seed_from_u64(fails_at));
        let answers = gated.serve(first(), vec![read(3), read(4)]);
        for answer in answers {
            // An answer or an error, but it must arrive.
            let _ = answer.recv_timeout(PATIENCE).expect("every request is answered");
        }
        let Some(failure) = gated.world.first_failure() else { break };
        if !matches!(failure.kind, OpKind::StoreRead | OpKind::StoreWrite) {
            let before = kinds.iter().filter(|kind| **kind == OpKind::StoreRead).count();
            assert_eq!(reads(&gated.world), before, "paths of moves that are not durable");
        }
        kinds.push(failure.kind);
    }
    kinds
}

/// The number of read calls that storage saw.
fn reads(world: &World) -> usize {
    let view = world.take_view();
    let trips = view.iter().filter_map(|seen| match seen {
        StoreEvent::Event(event) => (event.operation == Operation::Read).then_some(event.trip),
        StoreEvent::Crash => None,
    });
    trips.collect::<HashSet<_>>().len()
}

// ───────────────────────────── a disk whose storage is held back ─────────────────────────────

struct GatedDisk {
    setup: SmallVolume,
    world: World,
    /// Opens the gate when dropped. Dropped before the disk, which may wait at the gate.
    gate: OpenOnDrop,
    disk: Disk,
}

type Answer = Result<WipedBytes, DiskError>;

/// A request, and an action to run before the receiver gets the answer.
struct TestRequest {
    op: DiskOp,
    then: Box<dyn FnOnce() + Send>,
}

impl TestRequest {
    fn then(self, then: impl FnOnce() + Send + 'static) -> Self {
        Self { then: Box::new(then), ..self }
    }
}

impl From<DiskOp> for TestRequest {
    fn from(op: DiskOp) -> Self {
        Self { op, then: Box::new(|| ()) }
    }
}

fn read(block: u64) -> TestRequest {
    DiskOp::Read { offset: block * u64::from(BLOCK_BYTES), bytes: BLOCK_BYTES }.into()
}

fn write(block: u64, fill: u8, durable: bool) -> TestRequest {
    let data = vec![fill; BLOCK_BYTES as usize].into();
    DiskOp::Write { offset: block * u64::from(BLOCK_BYTES), data, durable }.into()
}

/// A write of the first half of a block.
fn write_a_part(block: u64, fill: u8) -> TestRequest {
    let data = vec![fill; BLOCK_BYTES as usize / 2].into();
    DiskOp::Write { offset: block * u64::from(BLOCK_BYTES), data, durable: false }.into()
}

fn zero(block: u64) -> TestRequest {
    let offset = block * u64::from(BLOCK_BYTES);
    DiskOp::Zero { offset, bytes: BLOCK_BYTES.into(), durable: false }.into()
}

fn first_bytes(answers: Vec<Receiver<Answer>>) -> Vec<Option<u8>> {
    let first_byte =
        |answer: Receiver<Answer>| answer.recv_timeout(PATIENCE).unwrap().unwrap().first().copied();
    answers.into_iter().map(first_byte).collect()
}

/// The number of paths announced to storage before they were read.
fn paths_announced(world: &World) -> usize {
    let setup = setup();
    let leaf_level = setup.leaf_level + 1;
    let is_of_leaf = |piece: &Piece| piece.tree == DATA_TREE && piece.bucket.level() == leaf_level;
    let announced = world.take_view().into_iter().filter(|seen| match seen {
        StoreEvent::Event(event) => {
            event.operation == Operation::Prefetch && event.piece.as_ref().is_some_and(is_of_leaf)
        }
        StoreEvent::Crash => false,
    });
    announced.count()
}

/// A volume that can begin all reads of these tests before a checkpoint is due.
fn setup() -> SmallVolume {
    SmallVolume { leaf_level: 6, tree_top_levels: 4, ..SmallVolume::default() }
}

impl GatedDisk {
    /// A disk whose blocks hold their numbers.
    fn new() -> Self {
        Self::with_cache(CACHED)
    }

    fn with_cache(blocks: u64) -> Self {
        let setup = setup();
        let world = setup.world();
        let coins = StdRng::seed_from_u64;
        let mut volume = setup.create(world.store(), world.dir(), coins(1)).unwrap();
        for address in 0..BLOCKS {
            let data = [address as u8; BLOCK_BYTES as usize];
            volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
        }
        volume.close().unwrap();
        let gate = Arc::new(Gate::default());
        let reads_pass = gate.clone();
        let pass_gate = move |store: &mut CrashStore, call: &mut Call<'_>| {
            if call.operation == Operation::Read {
                reads_pass.pass();
            }
            call.forward(store)
        };
        let store = Faulty::new(world.store(), pass_gate);
        let (volume, _) = setup.open(store, world.dir(), coins(2)).unwrap();
        let cache_bytes_max = blocks * u64::from(BLOCK_BYTES);
        let options = DiskOptions::default().with_cache_bytes_max(cache_bytes_max);
        let disk = Disk::start(volume, &options).unwrap();
        Self { setup, world, gate: OpenOnDrop(gate), disk }
    }

    fn submit(&self, request: TestRequest) -> Receiver<Answer> {
        let (sender, answer) = channel();
        let TestRequest { op, then } = request;
        let done = Box::new(move |answer| {
            then();
            // The receiver may have been dropped.
            let _ = sender.send(answer);
        });
        self.disk.submit(Request { op, done });
        answer
    }

    fn contents(&self, block: u64) -> u8 {
        let answer = self.submit(read(block)).recv_timeout(PATIENCE).unwrap();
        answer.unwrap()[0]
    }

    /// Makes the disk serve `first` together. When storage begins to read for them, submits `next`.
    fn serve(&self, first: Vec<TestRequest>, next: Vec<TestRequest>) -> Vec<Receiver<Answer>> {
        let (is_busy, busy) = channel();
        let (all_are_there, go_on) = channel::<()>();
        let nothing = DiskOp::Trim { offset: 0, bytes: 0, durable: false };
        let before = self.submit(TestRequest::from(nothing).then(move || {
            is_busy.send(()).unwrap();
            go_on.recv().unwrap();
        }));
        busy.recv().unwrap();
        self.gate.0.close();
        let mut answers: Vec<_> = first.into_iter().map(|request| self.submit(request)).collect();
        all_are_there.send(()).unwrap();
        before.recv().unwrap().unwrap();
        // An operation may fail before storage reads.
        if self.gate.0.is_reached() {
            answers.extend(next.into_iter().map(|request| self.submit(request)));
        }
        self.gate.0.open();
        answers
    }
}

/// A gate that reads wait at while it is closed.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    is_closed: bool,
    has_waiter: bool,
}

impl Gate {
    fn close(&self) {
        self.state.lock().unwrap().is_closed = true;
    }

    fn open(&self) {
        self.state.lock().unwrap().is_closed = false;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        while state.is_closed {
            state.has_waiter = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap();
        }
        state.has_waiter = false;
    }

    /// Whether a read waits at the gate, or reaches it within two seconds.
    fn is_reached(&self) -> bool {
        let state = self.state.lock().unwrap();
        let moment = Duration::from_secs(2);
        let waiting = |state: &mut GateState| !state.has_waiter;
        self.changed.wait_timeout_while(state, moment, waiting).unwrap().0.has_waiter
    }
}

/// Opens the gate also if a test has failed, so that no thread waits for ever.
struct OpenOnDrop(Arc<Gate>);

impl Drop for OpenOnDrop {
    fn drop(&mut self) {
        self.0.open();
    }
}
