//! The simulated world: the state that outlives a process.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oblivio_core::geometry::BucketId;
use oblivio_core::store::{TreeId, TreeShape};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use super::directory::{CrashDir, Directory};
use super::fault::{
    Counts, FailedOperation, FailedSync, FaultPlan, InjectedFault, OpKind, Station, Survival,
    Verdict, machine_is_off,
};
use super::medium::Medium;
use super::servers::Machine;
use super::store::{CrashStore, PieceLocation, Places, range};
use super::view::{StoreEvent, View};

/// One store on one or more disks, one directory, and their faults. Clones are the same world.
///
/// The time from one [`Self::crash`] to the next is a *run*. Handles belong to the run in which
/// they were created, and fail after it. Each run counts its operations from 0.
#[derive(Clone)]
pub struct World {
    pub(super) places: Arc<Places>,
    state: Arc<Mutex<State>>,
}

pub(super) struct State {
    /// The disks of the store.
    pub(super) disks: Vec<Medium>,
    pub(super) directory: Directory,
    /// The servers besides the store, by number.
    pub(super) servers: BTreeMap<u8, Machine>,
    pub(super) plan: FaultPlan,
    pub(super) failed_sync: FailedSync,
    pub(super) view: View,
    run: u64,
    /// The number of the run of the store's machine, which may crash alone.
    store_run: u64,
    is_off: bool,
}

impl State {
    /// Begins an operation on a handle that was opened in run `run` of its machine. Counts the
    /// operation, and returns its planned outcome. Fails if the machine is off or has been
    /// restarted since.
    pub(super) fn begin(&mut self, run: u64, kind: OpKind) -> io::Result<Verdict> {
        let current = if kind.is_of_store() { self.store_run } else { self.run };
        if run != current || self.is_off {
            return Err(machine_is_off());
        }
        let verdict = self.plan.next(kind);
        self.is_off = verdict == Verdict::Crash && self.plan.store_dies.is_none();
        Ok(verdict)
    }

    pub(super) fn check_store_running(&self, run: u64) -> io::Result<()> {
        if self.is_store_running(run) { Ok(()) } else { Err(machine_is_off()) }
    }

    pub(super) fn is_store_running(&self, run: u64) -> bool {
        run == self.store_run && !self.is_off
    }

    /// Ends an operation of the store. If the store's machine crashed during the operation,
    /// restarts the machine.
    pub(super) fn end_store_operation(&mut self) {
        if let Some(survival) = self.plan.store_dies.take() {
            let mut coins = StdRng::seed_from_u64(self.plan.coins.random());
            crash_disks(&mut self.disks, survival, &mut coins);
            self.store_run += 1;
        }
    }
}

/// The contents of a world at one time: a backup, or a copy that the adversary made.
#[derive(Clone)]
pub struct Snapshot {
    store: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
}

impl Snapshot {
    /// All files, by name.
    pub fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
    }

    /// All bytes of the store, in an internal order.
    pub fn store(&self) -> &[u8] {
        &self.store
    }
}

/// Crashes each disk independently. If survival is random, each unsynced write survives with a
/// probability that is drawn for its disk. Returns this probability for the first disk.
pub(super) fn crash_disks<'d>(
    disks: impl IntoIterator<Item = &'d mut Medium>,
    survival: Survival,
    coins: &mut StdRng,
) -> f64 {
    // Fair coins would almost never lose exactly one of many writes, or keep exactly one.
    let kept_share = |coins: &mut StdRng| {
        *[0.05, 0.5, 0.5, 0.95].get(coins.random_range(0..4)).expect("there are four of them")
    };
    let of_first = kept_share(coins);
    for (i, disk) in disks.into_iter().enumerate() {
        let kept_share = if i == 0 { of_first } else { kept_share(coins) };
        disk.crash(survival, kept_share, None, coins);
    }
    of_first
}

impl World {
    /// Creates an empty directory, and a store with trees of these shapes, `TreeId(0)` first. No
    /// faults are planned.
    ///
    /// # Panics
    /// If the trees exceed 1 GiB, or cannot be laid out.
    pub fn new(shapes: &[TreeShape]) -> Self {
        Self::striped(shapes, 1)
    }

    /// Like [`Self::new`], but stripes the store over `disks` disks. All disks do a write or flush
    /// at the same time, but each fails and loses writes independently.
    ///
    /// # Panics
    /// If the trees exceed 1 GiB, or cannot be laid out.
    pub fn striped(shapes: &[TreeShape], disks: usize) -> Self {
        let places = Places::new(shapes, disks);
        let state = State {
            disks: vec![Medium::holding(vec![0; places.bytes as usize]); disks],
            directory: Directory::default(),
            servers: BTreeMap::new(),
            plan: FaultPlan::new(&[], 0),
            failed_sync: FailedSync::default(),
            view: View::default(),
            run: 0,
            store_run: 0,
            is_off: false,
        };
        Self { places: places.into(), state: Mutex::new(state).into() }
    }

    /// Returns a handle to the store, valid for this run.
    pub fn store(&self) -> CrashStore {
        let run = self.state().store_run;
        CrashStore::new(self.clone(), run)
    }

    /// Returns a handle to the directory, valid for this run.
    pub fn dir(&self) -> CrashDir {
        let run = self.state().run;
        CrashDir { world: self.clone(), run }
    }

    /// Replaces the planned faults of this run, and restarts counting from 0. `coins` determine the
    /// effect of failed operations.
    ///
    /// # Panics
    /// If a fault is impossible.
    pub fn plan(&self, faults: &[InjectedFault], coins: &mut impl Rng) {
        self.state().plan = FaultPlan::new(faults, coins.random());
    }

    /// Sets the effect of failed syncs.
    pub fn set_failed_sync(&self, mode: FailedSync) {
        self.state().failed_sync = mode;
    }

    /// The number of operations of this run so far. Also the number of the next one.
    pub fn operations(&self) -> u64 {
        self.counts().total()
    }

    /// The numbers of operations of this run so far, by kind.
    pub fn counts(&self) -> Counts {
        self.state().plan.counts
    }

    /// The number of this run.
    pub fn run(&self) -> u64 {
        self.state().run
    }

    /// The number of this run of the store's machine, which may crash alone.
    pub fn store_run(&self) -> u64 {
        self.state().store_run
    }

    /// The number of faults of this run so far that a client may notice.
    pub fn faults_fired(&self) -> u64 {
        self.state().plan.fired
    }

    /// The first operation of this run that a fault struck.
    pub fn first_failure(&self) -> Option<FailedOperation> {
        self.state().plan.first_failure
    }

    /// Whether a planned crash has happened.
    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// The numbers of steps of this run so far at each station.
    pub fn steps(&self) -> BTreeMap<Station, u64> {
        self.state().plan.steps.clone()
    }

    /// Ends the run, applies `survival` to store and directory, and begins a run without faults.
    /// Servers crash in the same way as the store. With [`Survival::All`], they keep running.
    pub fn crash(&self, coins: &mut impl Rng, survival: Survival) {
        self.crash_apart(coins, survival, survival);
    }

    /// Like [`Self::crash`], but store and directory survive to different degrees.
    pub fn crash_apart(&self, coins: &mut impl Rng, store: Survival, dir: Survival) {
        let mut coins = StdRng::seed_from_u64(coins.random());
        let mut state = self.state();
        let of_first = crash_disks(&mut state.disks, store, &mut coins);
        state.directory.crash(dir, of_first, &mut coins);
        if store != Survival::All {
            state.servers.values_mut().for_each(|server| server.dies(store, &mut coins));
        }
        state.plan = FaultPlan::new(&[], 0);
        state.view.crash();
        state.run += 1;
        state.store_run += 1;
        state.is_off = false;
    }

    /// The contents of store and directory, as reads see them.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.state();
        let store = state.disks.iter().flat_map(|disk| disk.bytes()).copied().collect();
        Snapshot { store, files: state.directory.contents() }
    }

    /// Rolls the store back, durably and at once. Open handles stay valid.
    ///
    /// # Panics
    /// If the snapshot is of a world with other trees.
    pub fn restore_store(&self, snapshot: &Snapshot) {
        let mut state = self.state();
        let bytes = self.places.bytes as usize;
        assert_eq!(snapshot.store.len(), bytes * state.disks.len(), "the snapshot has other trees");
        for (i, disk) in state.disks.iter_mut().enumerate() {
            disk.hold(&snapshot.store[i * bytes..][..bytes]);
        }
    }

    /// Rolls the directory back, durably and at once. Open files become invalid.
    pub fn restore_dir(&self, snapshot: &Snapshot) {
        self.state().directory.replace(&snapshot.files);
    }

    /// Adds or replaces a file, durably and at once. Open files become invalid.
    pub fn replace_file(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        let mut files = state.directory.contents();
        files.insert(name.into(), bytes.to_vec());
        state.directory.replace(&files);
    }

    /// Removes a file, durably and at once. Open files become invalid.
    pub fn remove_file(&self, name: &str) {
        let mut state = self.state();
        let mut files = state.directory.contents();
        files.remove(name);
        state.directory.replace(&files);
    }

    /// Flips bit `bit` of byte `byte` of a bucket.
    ///
    /// # Panics
    /// If the bit does not exist.
    pub fn flip_bit(&self, tree: TreeId, bucket: BucketId, byte: usize, bit: u8) {
        let PieceLocation { disk, span } = self.places.bucket(tree, bucket);
        assert!(byte < span.bytes && bit < 8, "{bucket} has no bit {bit} of byte {byte}");
        let disk = &mut self.state().disks[disk];
        let at = span.start + byte;
        let flipped = disk.bytes()[at] ^ 1 << bit;
        disk.tamper(at, &[flipped]);
    }

    /// Swaps two buckets.
    ///
    /// # Panics
    /// If a bucket does not exist, or the buckets differ in size.
    pub fn swap_buckets(&self, one: (TreeId, BucketId), other: (TreeId, BucketId)) {
        let places = [one, other].map(|(tree, bucket)| self.places.bucket(tree, bucket));
        let [one, other] = places.map(|place| place.span.bytes);
        assert_eq!(one, other, "only buckets of one size can be swapped");
        let mut state = self.state();
        let held = places
            .map(|PieceLocation { disk, span }| state.disks[disk].bytes()[range(&span)].to_vec());
        for (PieceLocation { disk, span }, held) in places.iter().zip(held.iter().rev()) {
            state.disks[*disk].tamper(span.start, held);
        }
    }

    /// Replaces a bucket with its version in the snapshot.
    ///
    /// # Panics
    /// If the bucket does not exist, or the snapshot is of a world with other trees.
    pub fn replace_bucket(&self, snapshot: &Snapshot, tree: TreeId, bucket: BucketId) {
        let PieceLocation { disk, span } = self.places.bucket(tree, bucket);
        let on_its_disk = &snapshot.store[disk * self.places.bytes as usize..];
        self.state().disks[disk].tamper(span.start, &on_its_disk[range(&span)]);
    }

    /// The view of the store, over all runs.
    pub fn view(&self) -> Vec<StoreEvent> {
        self.state().view.events.clone()
    }

    /// Returns the view of the store, and clears it.
    pub fn take_view(&self) -> Vec<StoreEvent> {
        std::mem::take(&mut self.state().view.events)
    }

    /// Locks the state. Ignores poisoning: after a panic of another thread, the world is still
    /// usable.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
