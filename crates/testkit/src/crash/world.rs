//! What outlives a process.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oblivio_core::geometry::BucketId;
use oblivio_core::store::{TreeId, TreeShape};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use super::directory::{CrashDir, Directory};
use super::fault::{
    Counts, FailedSync, Fault, OpKind, Plan, Station, Strike, Survival, Verdict, machine_is_off,
};
use super::medium::Medium;
use super::servers::Machine;
use super::store::{CrashStore, Place, Places, range};
use super::view::{Seen, View};

/// One store, on one disk or on several, and one directory, and what befalls them. Clones are the same world.
///
/// It lives from [`Self::crash`] to crash: a *run*. Handles belong to the run they were made in and
/// are dead after it. Operations are counted anew in each run.
#[derive(Clone)]
pub struct World {
    pub(super) places: Arc<Places>,
    state: Arc<Mutex<State>>,
}

pub(super) struct State {
    /// Of the store.
    pub(super) disks: Vec<Medium>,
    pub(super) directory: Directory,
    /// Beside the store, by their numbers.
    pub(super) servers: BTreeMap<u8, Machine>,
    pub(super) plan: Plan,
    pub(super) failed_sync: FailedSync,
    pub(super) view: View,
    run: u64,
    /// Of the machine of the store, which may die alone.
    store_run: u64,
    is_off: bool,
}

impl State {
    /// Counts an operation of a handle of `run`, and says what becomes of it.
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

    /// An operation of the store has ended: if its machine died in it, it is started again.
    pub(super) fn end_store_operation(&mut self) {
        if let Some(survival) = self.plan.store_dies.take() {
            let mut coins = StdRng::seed_from_u64(self.plan.coins.random());
            crash_disks(&mut self.disks, survival, &mut coins);
            self.store_run += 1;
        }
    }
}

/// What a world held at one moment: a backup, or what an adversary kept.
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

    /// Everything that the store held, in an order of the world's own.
    pub fn store(&self) -> &[u8] {
        &self.store
    }
}

/// Each disk fares by itself. Answers the share that the first has kept.
pub(super) fn crash_disks<'d>(
    disks: impl IntoIterator<Item = &'d mut Medium>,
    survival: Survival,
    coins: &mut StdRng,
) -> f64 {
    // Fair coins alone would almost never lose just one write of many, or keep just one.
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
    /// An empty directory, and a store with trees of these shapes, `TreeId(0)` first. Nothing is
    /// planned to go wrong.
    ///
    /// # Panics
    /// When the trees exceed 1 GiB, or cannot be laid out.
    pub fn new(shapes: &[TreeShape]) -> Self {
        Self::striped(shapes, 1)
    }

    /// The same, and the store is striped over so many disks. They do each write and each flush at once, and each fails
    /// and forgets by itself.
    ///
    /// # Panics
    /// When the trees exceed 1 GiB, or cannot be laid out.
    pub fn striped(shapes: &[TreeShape], disks: usize) -> Self {
        let places = Places::new(shapes, disks);
        let state = State {
            disks: vec![Medium::holding(vec![0; places.bytes as usize]); disks],
            directory: Directory::default(),
            servers: BTreeMap::new(),
            plan: Plan::new(&[], 0),
            failed_sync: FailedSync::default(),
            view: View::default(),
            run: 0,
            store_run: 0,
            is_off: false,
        };
        Self { places: places.into(), state: Mutex::new(state).into() }
    }

    /// The store, for this run.
    pub fn store(&self) -> CrashStore {
        let run = self.state().store_run;
        CrashStore::new(self.clone(), run)
    }

    /// The directory, for this run.
    pub fn dir(&self) -> CrashDir {
        let run = self.state().run;
        CrashDir { world: self.clone(), run }
    }

    /// Plans the faults of this run instead of those planned before, and starts to count from 0.
    /// The coins decide what a failed operation did.
    ///
    /// # Panics
    /// On a fault that makes no sense.
    pub fn plan(&self, faults: &[Fault], coins: &mut impl Rng) {
        self.state().plan = Plan::new(faults, coins.random());
    }

    /// What failed syncs do from now on.
    pub fn set_failed_sync(&self, mode: FailedSync) {
        self.state().failed_sync = mode;
    }

    /// Operations of this run so far: the number of the next one.
    pub fn operations(&self) -> u64 {
        self.counts().total()
    }

    /// The same, by kind.
    pub fn counts(&self) -> Counts {
        self.state().plan.counts
    }

    /// Which run this is: from crash to crash.
    pub fn run(&self) -> u64 {
        self.state().run
    }

    /// Which run of the machine of the store this is: it may die alone.
    pub fn store_run(&self) -> u64 {
        self.state().store_run
    }

    /// How many operations of this run met a fault that whoever uses the world may notice.
    pub fn faults_fired(&self) -> u64 {
        self.state().plan.fired
    }

    /// Where the first of them was.
    pub fn first_strike(&self) -> Option<Strike> {
        self.state().plan.first_strike
    }

    /// Whether a planned crash has happened.
    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// The same at each station that there is beside.
    pub fn steps(&self) -> BTreeMap<Station, u64> {
        self.state().plan.steps.clone()
    }

    /// Ends the run, if a fault has not, decides what survives on both sides, and begins the next
    /// one, with no faults planned. Servers fare as the store does; if all survives there, they run on.
    pub fn crash(&self, coins: &mut impl Rng, survival: Survival) {
        self.crash_apart(coins, survival, survival);
    }

    /// The same for two machines, of which each fares in its own way.
    pub fn crash_apart(&self, coins: &mut impl Rng, store: Survival, dir: Survival) {
        let mut coins = StdRng::seed_from_u64(coins.random());
        let mut state = self.state();
        let of_first = crash_disks(&mut state.disks, store, &mut coins);
        state.directory.crash(dir, of_first, &mut coins);
        if store != Survival::All {
            state.servers.values_mut().for_each(|server| server.dies(store, &mut coins));
        }
        state.plan = Plan::new(&[], 0);
        state.view.crash();
        state.run += 1;
        state.store_run += 1;
        state.is_off = false;
    }

    /// What both sides hold, as a read sees it.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.state();
        let store = state.disks.iter().flat_map(|disk| disk.bytes()).copied().collect();
        Snapshot { store, files: state.directory.contents() }
    }

    /// Rolls the store back, durably and at once, behind the back of open handles.
    ///
    /// # Panics
    /// When the snapshot is of another world with other trees.
    pub fn restore_store(&self, snapshot: &Snapshot) {
        let mut state = self.state();
        let bytes = self.places.bytes as usize;
        assert_eq!(snapshot.store.len(), bytes * state.disks.len(), "a snapshot of these trees");
        for (i, disk) in state.disks.iter_mut().enumerate() {
            disk.hold(&snapshot.store[i * bytes..][..bytes]);
        }
    }

    /// Rolls the directory back, durably and at once. Open files are dead afterwards.
    pub fn restore_dir(&self, snapshot: &Snapshot) {
        self.state().directory.replace(&snapshot.files);
    }

    /// Gives the directory this file, durably and at once. Open files are dead afterwards.
    pub fn replace_file(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        let mut files = state.directory.contents();
        files.insert(name.into(), bytes.to_vec());
        state.directory.replace(&files);
    }

    /// Takes this file from the directory, durably and at once. Open files are dead afterwards.
    pub fn remove_file(&self, name: &str) {
        let mut state = self.state();
        let mut files = state.directory.contents();
        files.remove(name);
        state.directory.replace(&files);
    }

    /// Flips bit `bit` of byte `byte` of a bucket.
    ///
    /// # Panics
    /// When there is no such bit.
    pub fn flip_bit(&self, tree: TreeId, bucket: BucketId, byte: usize, bit: u8) {
        let Place { disk, span } = self.places.bucket(tree, bucket);
        assert!(byte < span.bytes && bit < 8, "there is no bit {bit} in byte {byte} of {bucket}");
        let disk = &mut self.state().disks[disk];
        let at = span.start + byte;
        let flipped = disk.bytes()[at] ^ 1 << bit;
        disk.tamper(at, &[flipped]);
    }

    /// Puts each of two buckets in the place of the other.
    ///
    /// # Panics
    /// When one does not exist, or they differ in size.
    pub fn swap_buckets(&self, one: (TreeId, BucketId), other: (TreeId, BucketId)) {
        let places = [one, other].map(|(tree, bucket)| self.places.bucket(tree, bucket));
        let [one, other] = places.map(|place| place.span.bytes);
        assert_eq!(one, other, "only buckets of one size can be swapped");
        let mut state = self.state();
        let held =
            places.map(|Place { disk, span }| state.disks[disk].bytes()[range(&span)].to_vec());
        for (Place { disk, span }, held) in places.iter().zip(held.iter().rev()) {
            state.disks[*disk].tamper(span.start, held);
        }
    }

    /// Puts an older version of a bucket in its place.
    ///
    /// # Panics
    /// When there is no such bucket, or the snapshot is of another world with other trees.
    pub fn replace_bucket(&self, snapshot: &Snapshot, tree: TreeId, bucket: BucketId) {
        let Place { disk, span } = self.places.bucket(tree, bucket);
        let on_its_disk = &snapshot.store[disk * self.places.bytes as usize..];
        self.state().disks[disk].tamper(span.start, &on_its_disk[range(&span)]);
    }

    /// What the store has seen since the world began.
    pub fn view(&self) -> Vec<Seen> {
        self.state().view.seen.clone()
    }

    /// The same, forgotten by the world.
    pub fn take_view(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state().view.seen)
    }

    /// A test that panicked elsewhere leaves the world as it is, and it is still of use.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
