//! Faults that a test can plan, and the times at which they occur.

use std::collections::BTreeMap;
use std::io;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::servers::is_sound;

/// A fault planned before a run. Each run numbers its operations from 0, over store and directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InjectedFault {
    /// The machine crashes during this operation. A write may be partly done, a sync may have
    /// worked, and all later operations fail.
    CrashAt(u64),
    /// This operation fails with an unknown effect. Later operations work.
    FailAt(u64),
    /// Every `n`-th operation fails. `n` must not be 0.
    FailEvery(u64),
    /// The first operation from this one on that needs space fails. Later operations work.
    DiskFullAt(u64),
    /// All operations from this one on that need space fail.
    DiskFullFrom(u64),
    /// The machine of the store crashes during the first store operation from this one on, and
    /// restarts. The client keeps running.
    StoreDiesAt(u64, Survival),
    /// This step of a disk or link fails in the given way. The client keeps running.
    StationAt(Station, u64, StationFailure),
}

/// A component with its own count of steps, from 0 in each run of the client. Servers are numbered
/// from 1; the client is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Station {
    /// The disk of a server. Its steps are writes and syncs.
    Disk {
        /// The number of the server.
        server: u8,
    },
    /// One direction of the link between two machines. Its steps are messages.
    Link {
        /// The number of the sender.
        from: u8,
        /// The number of the receiver.
        to: u8,
    },
}

/// The failure of a step at a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StationFailure {
    /// The message is lost, and the link ends.
    Lost,
    /// The message arrives, and then the link ends.
    Cut,
    /// The server crashes. If the step is a message to the server, it is not received. If it is a
    /// message from the server to the client, it was not sent.
    Dies(Survival),
}

/// The unsynced changes that survive a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Survival {
    /// All changes survive, but are still not durable: the process was killed, but the page cache
    /// survived.
    All,
    /// No change survives.
    None,
    /// Each change survives or not by a random choice, with a random bias.
    Random {
        /// Whether a write may survive in some of its sectors only.
        torn: bool,
    },
}

impl Survival {
    /// All survival modes.
    pub const MODES: [Self; 4] =
        [Self::All, Self::None, Self::Random { torn: false }, Self::Random { torn: true }];
}

/// The effect of a failed sync on changes that were not durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FailedSync {
    /// Some of the changes are lost, and the others become durable. Reads show the lost changes
    /// until the next crash, and a later sync succeeds without them. Linux behaves in this way.
    #[default]
    Drops,
    /// A later sync makes the changes durable.
    Retains,
}

/// The kinds of operations that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum OpKind {
    StoreRead,
    StoreWrite,
    StoreFlush,
    FileAppend,
    FileSync,
    FileBeginSync,
    DirNames,
    DirRead,
    DirCreate,
    DirRename,
    DirRemove,
    DirSyncNames,
    Message,
    ServerWrite,
    ServerSync,
}

impl OpKind {
    const COUNT: usize = Self::ServerSync as usize + 1;

    pub(super) fn is_of_store(self) -> bool {
        matches!(self, Self::StoreRead | Self::StoreWrite | Self::StoreFlush)
    }

    fn needs_room(self) -> bool {
        matches!(self, Self::StoreWrite | Self::FileAppend | Self::DirCreate)
    }
}

/// The number of operations of each kind in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; OpKind::COUNT]);

impl Counts {
    /// The number of operations of kind `kind`.
    pub fn count(&self, kind: OpKind) -> u64 {
        self.0[kind as usize]
    }

    /// The number of all operations, which is also the index of the next one.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// The first operation of a run that a fault struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailedOperation {
    /// The number of the operation, or of the step if the fault was at a station.
    pub operation: u64,
    /// The kind of the operation.
    pub kind: OpKind,
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The operation succeeds.
    Go,
    /// The operation fails, and may have been done in part.
    Fail(io::ErrorKind),
    /// The machine crashes during the operation.
    Crash,
}

impl Verdict {
    /// Converts the outcome to the result that the caller receives.
    pub(super) fn answer(self) -> io::Result<()> {
        match self {
            Self::Go => Ok(()),
            Self::Fail(io::ErrorKind::StorageFull) => Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "no space left (a planned fault): free some space and open again",
            )),
            Self::Fail(kind) => Err(io::Error::new(kind, "the medium failed (a planned fault)")),
            Self::Crash => Err(machine_is_off()),
        }
    }
}

pub(super) fn machine_is_off() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotConnected,
        "the machine is off: call World::crash and open everything again",
    )
}

/// The planned faults of one run, and the numbers of operations and steps that the run has made so
/// far.
pub(super) struct FaultPlan {
    faults: Vec<InjectedFault>,
    pub(super) coins: StdRng,
    pub(super) counts: Counts,
    pub(super) steps: BTreeMap<Station, u64>,
    /// Number of faults so far that a client may notice.
    pub(super) fired: u64,
    pub(super) first_failure: Option<FailedOperation>,
    /// The unsynced changes that survive on the store's machine, if the current operation crashes
    /// that machine.
    pub(super) store_dies: Option<Survival>,
}

impl FaultPlan {
    /// Creates the plan for one run. `seed` determines the effect of failed operations.
    ///
    /// # Panics
    /// If a fault is impossible.
    pub(super) fn new(faults: &[InjectedFault], seed: u64) -> Self {
        assert!(!faults.contains(&InjectedFault::FailEvery(0)), "FailEvery needs at least 1");
        assert!(
            faults.iter().all(is_sound),
            "a disk can only crash, and a link needs two machines"
        );
        Self {
            faults: faults.to_vec(),
            coins: StdRng::seed_from_u64(seed),
            counts: Counts::default(),
            steps: BTreeMap::new(),
            fired: 0,
            first_failure: None,
            store_dies: None,
        }
    }

    /// Counts the next operation and returns its planned outcome.
    pub(super) fn next(&mut self, kind: OpKind) -> Verdict {
        let number = self.counts.total();
        self.counts.0[kind as usize] += 1;
        let hit = |fault: &InjectedFault| match *fault {
            InjectedFault::CrashAt(n) => (number == n).then_some(Verdict::Crash),
            InjectedFault::FailAt(n) => {
                (number == n).then_some(Verdict::Fail(io::ErrorKind::Other))
            }
            InjectedFault::FailEvery(n) => {
                (number + 1).is_multiple_of(n).then_some(Verdict::Fail(io::ErrorKind::Other))
            }
            InjectedFault::DiskFullAt(n) | InjectedFault::DiskFullFrom(n) => (number >= n
                && kind.needs_room())
            .then_some(Verdict::Fail(io::ErrorKind::StorageFull)),
            InjectedFault::StoreDiesAt(n, _) => {
                (number >= n && kind.is_of_store()).then_some(Verdict::Crash)
            }
            InjectedFault::StationAt(..) => None,
        };
        let found = self.faults.iter().enumerate().find_map(|(i, fault)| Some((i, hit(fault)?)));
        let Some((i, verdict)) = found else { return Verdict::Go };
        self.first_failure.get_or_insert(FailedOperation { operation: number, kind });
        match self.faults[i] {
            // Does not count as fired: clients must not notice it.
            InjectedFault::StoreDiesAt(_, survival) => {
                self.store_dies = Some(survival);
                self.faults.remove(i);
            }
            InjectedFault::DiskFullAt(_) => {
                self.fired += 1;
                self.faults.remove(i);
            }
            _ => self.fired += 1,
        }
        verdict
    }

    /// Counts the next step of a station and returns the step's failure, if one is planned.
    pub(super) fn next_at(&mut self, station: Station, kind: OpKind) -> Option<StationFailure> {
        let steps = self.steps.entry(station).or_default();
        let number = *steps;
        *steps += 1;
        let failure = self.faults.iter().find_map(|fault| match *fault {
            InjectedFault::StationAt(at, n, failure) if at == station && n == number => {
                Some(failure)
            }
            _ => None,
        })?;
        self.first_failure.get_or_insert(FailedOperation { operation: number, kind });
        Some(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the outcomes of the first operations of a run, one letter each.
    fn fates(faults: &[InjectedFault], kinds: &[OpKind]) -> String {
        let mut plan = FaultPlan::new(faults, 0);
        let fates = kinds.iter().map(|kind| match plan.next(*kind) {
            Verdict::Go => '.',
            Verdict::Fail(io::ErrorKind::StorageFull) => 'F',
            Verdict::Fail(_) => 'e',
            Verdict::Crash => 'C',
        });
        fates.collect()
    }

    #[test]
    fn faults_strike_where_planned() {
        use OpKind::{FileAppend, StoreRead};
        let reads = [StoreRead; 8];
        assert_eq!(fates(&[], &reads), "........");
        assert_eq!(fates(&[InjectedFault::CrashAt(0)], &reads), "C.......");
        assert_eq!(
            fates(&[InjectedFault::FailAt(2), InjectedFault::CrashAt(5)], &reads),
            "..e..C.."
        );
        assert_eq!(fates(&[InjectedFault::FailEvery(3)], &reads), "..e..e..");
        let mixed = [FileAppend, StoreRead, StoreRead, FileAppend, StoreRead, FileAppend];
        assert_eq!(fates(&[InjectedFault::DiskFullAt(1)], &mixed), "...F..");
        assert_eq!(fates(&[InjectedFault::DiskFullFrom(1)], &mixed), "...F.F");
        assert_eq!(fates(&[InjectedFault::StoreDiesAt(3, Survival::None)], &mixed), "....C.");
    }

    #[test]
    fn operations_are_counted_by_kind() {
        let mut plan = FaultPlan::new(&[], 0);
        for kind in [OpKind::StoreRead, OpKind::DirSyncNames, OpKind::StoreRead] {
            plan.next(kind);
        }
        let counts = plan.counts;
        assert_eq!((counts.count(OpKind::StoreRead), counts.count(OpKind::DirSyncNames)), (2, 1));
        assert_eq!((counts.count(OpKind::StoreWrite), counts.total()), (0, 3));
    }
}
