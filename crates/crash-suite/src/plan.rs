//! Chooses the points to test: a sample of all points, drawn with a fixed seed for each setup and
//! seed of a workload.

use std::collections::BTreeMap;

use oblivio_testkit::crash::{CLIENT, InjectedFault, Life, Station, StationFailure, Survival};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};

use crate::point::Point;
use crate::setups::{Setup, Storage};

/// Maximum number of operations between opening a volume after a crash and the next crash. Most of
/// these operations are recovery.
pub(crate) const RECOVERY_OPERATIONS_MAX: u64 = 120;

/// Maximum number of steps of one server's disk, or of messages on one link, between opening a
/// volume after a crash and the next fault.
const RECOVERY_STEPS_MAX: u64 = 40;

/// The kind of fault at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PointKind {
    /// A crash in which client and store keep the same share of unsynced writes.
    Crash,
    /// A crash in which client and store keep different shares of unsynced writes.
    CrashSplit,
    /// A crash, a second one soon after reopening, and sometimes a third.
    CrashInRecovery,
    /// One operation fails.
    Fail,
    /// Every n-th operation fails, in each of three [lives](Life).
    FailEvery,
    /// One operation finds the disk full.
    DiskFullAt,
    /// From one operation on, the disk is full.
    DiskFullFrom,
    /// The machine of the store dies and the client stays up; this happens in each of two
    /// [lives](Life).
    StoreDies,
    /// One of several servers dies and the client stays up.
    ServerDies,
    /// A link between two machines ends at a message.
    LinkEnds,
    /// The client, a server or a link fails, and a server or a link fails again soon after
    /// reopening.
    ServersInRecovery,
}

impl PointKind {
    /// Percentage of points per kind, for a local volume.
    const SHARES: [(Self, u64); 7] = [
        (Self::Crash, 25),
        (Self::CrashSplit, 20),
        (Self::CrashInRecovery, 30),
        (Self::Fail, 10),
        (Self::FailEvery, 5),
        (Self::DiskFullAt, 5),
        (Self::DiskFullFrom, 5),
    ];

    /// Percentage of points per kind, for a store on another machine.
    const REMOTE_SHARES: [(Self, u64); 8] = [
        (Self::Crash, 15),
        (Self::CrashSplit, 15),
        (Self::CrashInRecovery, 20),
        (Self::Fail, 5),
        (Self::FailEvery, 3),
        (Self::DiskFullAt, 3),
        (Self::DiskFullFrom, 4),
        (Self::StoreDies, 35),
    ];

    /// Percentage of points per kind, for objects of a service. The service itself does not die,
    /// but loses answers and parts of bodies at all points.
    const OBJECTS_SHARES: [(Self, u64); 5] = [
        (Self::Crash, 45),
        (Self::CrashSplit, 15),
        (Self::CrashInRecovery, 30),
        (Self::Fail, 8),
        (Self::FailEvery, 2),
    ];

    /// Percentage of points per kind, for share servers.
    const SHARED_SHARES: [(Self, u64); 8] = [
        (Self::Crash, 12),
        (Self::CrashSplit, 12),
        (Self::CrashInRecovery, 10),
        (Self::Fail, 3),
        (Self::DiskFullFrom, 3),
        (Self::ServerDies, 25),
        (Self::LinkEnds, 15),
        (Self::ServersInRecovery, 20),
    ];

    /// The kind under which a replayed point is counted. Only deaths of the store or a server and
    /// ends of links have kinds of their own here. A point with any other fault counts as a crash,
    /// or, with several lives, as a crash in recovery.
    pub(crate) fn from_lives(lives: &[Life]) -> Self {
        let store_dies = |life: &Life| matches!(life.faults[..], [InjectedFault::StoreDiesAt(..)]);
        let of_station = |life: &Life| match life.faults[..] {
            [InjectedFault::StationAt(.., failure)] => Some(failure),
            _ => None,
        };
        match lives {
            [life, ..] if store_dies(life) => Self::StoreDies,
            [life] if matches!(of_station(life), Some(StationFailure::Dies(_))) => Self::ServerDies,
            [life] if of_station(life).is_some() => Self::LinkEnds,
            [_, ..] if lives.iter().any(|life| of_station(life).is_some()) => {
                Self::ServersInRecovery
            }
            [_] => Self::Crash,
            _ => Self::CrashInRecovery,
        }
    }

    fn shares(setup: &Setup) -> &'static [(Self, u64)] {
        match setup.storage {
            Storage::Local => &Self::SHARES,
            Storage::Remote => &Self::REMOTE_SHARES,
            Storage::Objects { .. } => &Self::OBJECTS_SHARES,
            Storage::Shared { .. } => &Self::SHARED_SHARES,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::CrashSplit => "crash_client_and_store_fare_differently",
            Self::CrashInRecovery => "crash_in_recovery",
            Self::Fail => "fail_at",
            Self::FailEvery => "fail_every",
            Self::DiskFullAt => "disk_full_at",
            Self::DiskFullFrom => "disk_full_from",
            Self::StoreDies => "store_dies_and_the_client_does_not",
            Self::ServerDies => "server_dies_and_the_client_does_not",
            Self::LinkEnds => "link_ends",
            Self::ServersInRecovery => "crash_or_link_ends_in_recovery",
        }
    }
}

/// Draws about `count` points in total, spread evenly over `setups` and seeds 1 to `seeds`.
pub(crate) fn points(
    setups: &[Setup],
    seeds: u64,
    count: u64,
) -> Result<Vec<(PointKind, Point)>, String> {
    let of_group = count / (setups.len() as u64 * seeds).max(1);
    let mut points = Vec::new();
    for setup in setups {
        for seed in 1..=seeds {
            let group = Group::new(*setup, seed)?;
            for &(kind, share) in PointKind::shares(setup) {
                let wanted = (of_group * share).div_ceil(100) as usize;
                let point = |lives| (kind, Point { setup: *setup, seed, lives });
                points.extend(group.draw(kind, wanted).into_iter().map(point));
            }
        }
    }
    Ok(points)
}

/// The lengths of the runs of one setup and seed, from which the points of crashes and failures are
/// drawn.
struct Group {
    /// Numbers of operations in the first life. Entry `i` is for a run of `i + 1` lives.
    operations: [u64; 3],
    /// Numbers of steps at each station in the first life. Entry `i` is for a run of `i + 1` lives.
    steps: [BTreeMap<Station, u64>; 3],
    seed: u64,
}

impl Group {
    fn new(setup: Setup, seed: u64) -> Result<Self, String> {
        let mut operations = [0; 3];
        let mut steps = [const { BTreeMap::new() }; 3];
        for (i, (operations, steps)) in operations.iter_mut().zip(&mut steps).enumerate() {
            let calm = vec![Life::new(&[], Survival::None); i + 1];
            let ran = setup.run(seed, &calm);
            let mut ran = ran.map_err(|loss| format!("{} without faults: {loss}", setup.name))?;
            *operations = ran.operations[0].total();
            *steps = ran.steps.swap_remove(0);
        }
        Ok(Self { operations, steps, seed })
    }

    fn draw(&self, kind: PointKind, wanted: usize) -> Vec<Vec<Life>> {
        let mut coins = StdRng::seed_from_u64(self.seed << 8 | kind as u64);
        let drawn: fn(&Self, &mut StdRng) -> Vec<Life> = match kind {
            PointKind::CrashInRecovery => Self::draw_recovery,
            PointKind::ServerDies => |group, coins| vec![group.draw_station_fault(0, true, coins)],
            PointKind::LinkEnds => |group, coins| vec![group.draw_station_fault(0, false, coins)],
            PointKind::ServersInRecovery => Self::draw_servers_recovery,
            _ => return self.sample(kind, wanted, &mut coins),
        };
        (0..wanted).map(|_| drawn(self, &mut coins)).collect()
    }

    fn sample(&self, kind: PointKind, wanted: usize, coins: &mut StdRng) -> Vec<Vec<Life>> {
        let mut all = self.all(kind);
        all.shuffle(coins);
        all.truncate(wanted);
        all
    }

    /// Lists all points of a kind that injects the same fault in each of its lives.
    fn all(&self, kind: PointKind) -> Vec<Vec<Life>> {
        let modes = Survival::MODES.into_iter();
        let pairs = modes.flat_map(|store| Survival::MODES.map(|dir| (store, dir)));
        let pairs = pairs.filter(|(store, dir)| (store == dir) != (kind == PointKind::CrashSplit));
        let (fault, lives): (fn(u64) -> InjectedFault, _) = match kind {
            PointKind::Crash | PointKind::CrashSplit => (InjectedFault::CrashAt, 1),
            PointKind::Fail => (InjectedFault::FailAt, 1),
            PointKind::FailEvery => (|n| InjectedFault::FailEvery(n + 1), 3),
            PointKind::DiskFullAt => (InjectedFault::DiskFullAt, 1),
            PointKind::DiskFullFrom => (InjectedFault::DiskFullFrom, 1),
            PointKind::StoreDies => return self.store_dies(),
            // These kinds are drawn instead of enumerated.
            PointKind::CrashInRecovery
            | PointKind::ServerDies
            | PointKind::LinkEnds
            | PointKind::ServersInRecovery => {
                return Vec::new();
            }
        };
        let at = |n| {
            let life = move |(store, dir)| Life { faults: vec![fault(n)], store, dir };
            pairs.clone().map(move |pair| vec![life(pair); lives])
        };
        (0..self.operations[lives - 1]).flat_map(at).collect()
    }

    /// Lists the points at which the store's machine dies, in each of two lives. Each life ends
    /// with a crash in which the client loses all its unsynced writes.
    fn store_dies(&self) -> Vec<Vec<Life>> {
        let at = |n| {
            Survival::MODES.map(|survival| {
                let faults = vec![InjectedFault::StoreDiesAt(n, survival)];
                vec![Life { faults, store: survival, dir: Survival::None }; 2]
            })
        };
        (0..self.operations[1]).flat_map(at).collect()
    }

    fn draw_recovery(&self, coins: &mut StdRng) -> Vec<Life> {
        let lives = coins.random_range(2..=3);
        let first = crash(self.operations[lives - 1], coins);
        let later = (1..lives).map(|_| crash(RECOVERY_OPERATIONS_MAX, coins));
        [first].into_iter().chain(later).collect()
    }

    /// Draws a fault at a disk or a link, in a life with `later` lives after it. If `dies`, a
    /// server dies; otherwise a link ends.
    fn draw_station_fault(&self, later: usize, dies: bool, coins: &mut StdRng) -> Life {
        fault_at_station(&self.steps[later], u64::MAX, dies, coins)
    }

    fn draw_servers_recovery(&self, coins: &mut StdRng) -> Vec<Life> {
        let first = match coins.random_range(0..3) {
            0 => crash(self.operations[1], coins),
            kind => self.draw_station_fault(1, kind == 1, coins),
        };
        let dies = coins.random_bool(0.7);
        vec![first, fault_at_station(&self.steps[1], RECOVERY_STEPS_MAX, dies, coins)]
    }
}

fn mode(coins: &mut StdRng) -> Survival {
    *Survival::MODES.choose(coins).expect("MODES is not empty")
}

fn crash(operations: u64, coins: &mut StdRng) -> Life {
    let (store, other) = (mode(coins), mode(coins));
    let dir = if coins.random() { store } else { other };
    let n = coins.random_range(0..operations);
    Life { faults: vec![InjectedFault::CrashAt(n)], store, dir }
}

/// Returns a life in which a server dies, or a link ends, within the first `steps_max` steps of a
/// random station. The client crashes at the end of the life.
fn fault_at_station(
    steps: &BTreeMap<Station, u64>,
    steps_max: u64,
    dies: bool,
    coins: &mut StdRng,
) -> Life {
    let is_link = |station: &Station| matches!(station, Station::Link { .. });
    let stations: Vec<_> = steps.iter().filter(|(station, _)| dies || is_link(station)).collect();
    let (&station, &steps) = *stations.choose(coins).expect("share servers have disks and links");
    let n = coins.random_range(0..steps.min(steps_max));
    let failure = match station {
        _ if dies => StationFailure::Dies(mode(coins)),
        // On a link of the client a cut message counts as lost: either the request or its answer is
        // missing.
        Station::Link { from: CLIENT, .. } | Station::Link { to: CLIENT, .. } => {
            StationFailure::Lost
        }
        _ if coins.random() => StationFailure::Lost,
        _ => StationFailure::Cut,
    };
    let (store, dir) = (mode(coins), mode(coins));
    Life { faults: vec![InjectedFault::StationAt(station, n, failure)], store, dir }
}

#[cfg(test)]
mod tests {
    use indicatif::ProgressBar;

    use super::*;
    use crate::setups::setups;

    /// Tests a small sample of points for share servers, in which servers die and links end.
    #[test]
    fn volumes_on_share_servers_lose_nothing_at_a_few_points() {
        let mut tried = setups();
        tried.retain(|setup| ["shares", "shares-five-asked-again"].contains(&setup.name));
        assert_eq!(tried.len(), 2);
        let tally = crate::run(&points(&tried, 1, 40).unwrap(), &ProgressBar::hidden());
        let losses: Vec<_> = tally.losses().collect();
        assert!(losses.is_empty(), "{losses:?}");
        assert!(tally.distinct() > 35, "{}", tally.distinct());
    }

    /// Tests a small sample of points, so that an ordinary test run notices a loss before the full
    /// suite does.
    #[test]
    fn volumes_on_servers_lose_nothing_at_a_few_points() {
        let mut tried = setups();
        tried.retain(|setup| ["remote", "remote-fixed-rate"].contains(&setup.name));
        assert_eq!(tried.len(), 2);
        let points = points(&tried, 1, 120).unwrap();
        let mut deaths = 0;
        for (kind, point) in points {
            let ran = point.run().unwrap_or_else(|loss| panic!("{point}: {loss}"));
            deaths += usize::from(kind == PointKind::StoreDies && ran.struck() > 0);
        }
        assert!(deaths > 20, "{deaths}");
    }
}
