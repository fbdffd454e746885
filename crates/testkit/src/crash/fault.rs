//! What can be planned to go wrong, and when.

use std::collections::BTreeMap;
use std::io;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::servers::is_sound;

/// A fault, planned before a run. Operations are numbered from 0 in each run, over both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The machine dies in this operation. A write may have begun, a sync may have worked, and
    /// everything from then on fails.
    CrashAt(u64),
    /// This operation fails, and later ones work. What it did is unknown.
    FailAt(u64),
    /// Of so many operations, the last fails, again and again. Never zero.
    FailEvery(u64),
    /// The first operation from this one on that needs room finds none. Later ones do.
    DiskFullAt(u64),
    /// No operation from this one on finds room.
    DiskFullFrom(u64),
    /// The machine of the store dies in the first operation of the store from this one on, and so much of it survives; then it is
    /// started again. The client lives on.
    StoreDiesAt(u64, Survival),
    /// This step of a station goes wrong. The client lives on.
    StationAt(Station, u64, Mishap),
}

/// Where steps are counted by themselves, from 0 in each run of the client. Servers are numbered from 1, and the client is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Station {
    /// The disk of a server: its steps are writes and syncs.
    Disk {
        /// Whose.
        server: u8,
    },
    /// One way of the link between two machines: its steps are messages.
    Link {
        /// Who sends.
        from: u8,
        /// To whom.
        to: u8,
    },
}

/// What goes wrong in a step of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mishap {
    /// The message does not arrive, and the link ends.
    Lost,
    /// The message arrives, and then the link ends.
    Cut,
    /// The server dies in it, and so much of its disk survives. A message is not taken any more; one for the client was not sent.
    Dies(Survival),
}

/// What survives a crash, of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Survival {
    /// Everything, and it is still not durable: the process was killed, the page cache lives.
    All,
    /// Nothing.
    None,
    /// Of each operation a coin decides; how many fall on one side, another coin.
    Random {
        /// Whether single sectors of a write survive without the others.
        torn: bool,
    },
}

impl Survival {
    /// One of each.
    pub const MODES: [Self; 4] =
        [Self::All, Self::None, Self::Random { torn: false }, Self::Random { torn: true }];
}

/// What a failed sync does to what was not durable before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FailedSync {
    /// Some of it is lost for ever, though it can be read until the next crash, and a later sync
    /// succeeds. The rest is durable. So it is on Linux.
    #[default]
    Drops,
    /// A later sync makes it durable.
    Retains,
}

/// The kinds of operation that are counted.
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

/// How many operations of each kind there were in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; OpKind::COUNT]);

impl Counts {
    /// Those of one kind.
    pub fn of(&self, kind: OpKind) -> u64 {
        self.0[kind as usize]
    }

    /// All of them: the number of the next operation.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Where a fault struck first in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Strike {
    /// The number of the operation.
    pub operation: u64,
    /// Its kind.
    pub kind: OpKind,
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It works.
    Go,
    /// It fails, and may have been done in part.
    Fail(io::ErrorKind),
    /// It is the last.
    Crash,
}

impl Verdict {
    /// The answer to the operation.
    pub(super) fn answer(self) -> io::Result<()> {
        match self {
            Self::Go => Ok(()),
            Self::Fail(io::ErrorKind::StorageFull) => Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "no space is left (a planned fault): make room and open again",
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

/// The faults of one run, and how far it has got.
pub(super) struct Plan {
    faults: Vec<Fault>,
    pub(super) coins: StdRng,
    pub(super) counts: Counts,
    pub(super) steps: BTreeMap<Station, u64>,
    /// Of those that whoever uses the world may notice.
    pub(super) fired: u64,
    pub(super) first_strike: Option<Strike>,
    /// The machine of the store dies in the operation under way, and so much survives.
    pub(super) store_dies: Option<Survival>,
}

impl Plan {
    /// # Panics
    /// When a fault makes no sense.
    pub(super) fn new(faults: &[Fault], seed: u64) -> Self {
        assert!(!faults.contains(&Fault::FailEvery(0)), "of zero operations, none is the last");
        assert!(
            faults.iter().all(is_sound),
            "a disk sends nothing, and nobody has a link to himself"
        );
        Self {
            faults: faults.to_vec(),
            coins: StdRng::seed_from_u64(seed),
            counts: Counts::default(),
            steps: BTreeMap::new(),
            fired: 0,
            first_strike: None,
            store_dies: None,
        }
    }

    /// Counts the next operation, and says what becomes of it.
    pub(super) fn next(&mut self, kind: OpKind) -> Verdict {
        let number = self.counts.total();
        self.counts.0[kind as usize] += 1;
        let hit = |fault: &Fault| match *fault {
            Fault::CrashAt(n) => (number == n).then_some(Verdict::Crash),
            Fault::FailAt(n) => (number == n).then_some(Verdict::Fail(io::ErrorKind::Other)),
            Fault::FailEvery(n) => {
                (number + 1).is_multiple_of(n).then_some(Verdict::Fail(io::ErrorKind::Other))
            }
            Fault::DiskFullAt(n) | Fault::DiskFullFrom(n) => (number >= n && kind.needs_room())
                .then_some(Verdict::Fail(io::ErrorKind::StorageFull)),
            Fault::StoreDiesAt(n, _) => {
                (number >= n && kind.is_of_store()).then_some(Verdict::Crash)
            }
            Fault::StationAt(..) => None,
        };
        let found = self.faults.iter().enumerate().find_map(|(i, fault)| Some((i, hit(fault)?)));
        let Some((i, verdict)) = found else { return Verdict::Go };
        self.first_strike.get_or_insert(Strike { operation: number, kind });
        match self.faults[i] {
            // Whoever uses the store must not notice.
            Fault::StoreDiesAt(_, survival) => {
                self.store_dies = Some(survival);
                self.faults.remove(i);
            }
            Fault::DiskFullAt(_) => {
                self.fired += 1;
                self.faults.remove(i);
            }
            _ => self.fired += 1,
        }
        verdict
    }

    /// Counts the next step of a station, and says what goes wrong in it.
    pub(super) fn next_at(&mut self, station: Station, kind: OpKind) -> Option<Mishap> {
        let steps = self.steps.entry(station).or_default();
        let number = *steps;
        *steps += 1;
        let mishap = self.faults.iter().find_map(|fault| match *fault {
            Fault::StationAt(at, n, mishap) if at == station && n == number => Some(mishap),
            _ => None,
        })?;
        self.first_strike.get_or_insert(Strike { operation: number, kind });
        Some(mishap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of the first operations of a run, in letters.
    fn fates(faults: &[Fault], kinds: &[OpKind]) -> String {
        let mut plan = Plan::new(faults, 0);
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
        assert_eq!(fates(&[Fault::CrashAt(0)], &reads), "C.......");
        assert_eq!(fates(&[Fault::FailAt(2), Fault::CrashAt(5)], &reads), "..e..C..");
        assert_eq!(fates(&[Fault::FailEvery(3)], &reads), "..e..e..");
        let mixed = [FileAppend, StoreRead, StoreRead, FileAppend, StoreRead, FileAppend];
        assert_eq!(fates(&[Fault::DiskFullAt(1)], &mixed), "...F..");
        assert_eq!(fates(&[Fault::DiskFullFrom(1)], &mixed), "...F.F");
        assert_eq!(fates(&[Fault::StoreDiesAt(3, Survival::None)], &mixed), "....C.");
    }

    #[test]
    fn operations_are_counted_by_kind() {
        let mut plan = Plan::new(&[], 0);
        for kind in [OpKind::StoreRead, OpKind::DirSyncNames, OpKind::StoreRead] {
            plan.next(kind);
        }
        let counts = plan.counts;
        assert_eq!((counts.of(OpKind::StoreRead), counts.of(OpKind::DirSyncNames)), (2, 1));
        assert_eq!((counts.of(OpKind::StoreWrite), counts.total()), (0, 3));
    }
}
