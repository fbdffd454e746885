//! After any faults of *t* servers, some sequence of repairs leads to a volume that opens and has
//! all its data.

use std::collections::{HashMap, HashSet, VecDeque};

use oblivio_shares::message::{Answer, Request, TreePoint};

use crate::owner::{BLOCKS, Owner, PRESET};
use crate::parties;
use crate::repair::check_and_repair;
use crate::servers::Servers;
use oblivio_testkit::ShareDisk;

/// The disks and points of all servers, and which of them were rebuilt.
#[derive(Clone)]
struct ServerDisks {
    disks: Vec<ShareDisk>,
    points: Vec<Option<TreePoint>>,
    is_rebuilt: Vec<bool>,
}

impl ServerDisks {
    fn open(&self, owner: &Owner) -> Owner {
        opened(owner, &self.disks)
    }

    /// Whether the volume opens and has all its data.
    fn opens(&self, owner: &Owner) -> bool {
        let mut opened = self.open(owner);
        opened.reopen().is_ok()
            && (0..BLOCKS).all(|address| opened.read(address).is_ok())
            && opened.array.check(&mut |_| ()).is_ok()
    }

    fn repair(&self, owner: &Owner, server: usize) -> Option<Self> {
        let opened = self.open(owner);
        check_and_repair(&opened, server).ok()?;
        let mut is_rebuilt = self.is_rebuilt.clone();
        is_rebuilt[server] = true;
        Some(Self { disks: disks_of(&opened), points: points_of(&opened), is_rebuilt })
    }

    /// A key that is equal for states in which repairs behave alike: the sorted points, each with
    /// whether its server was rebuilt.
    fn key(&self) -> Key {
        let mut key: Vec<_> =
            self.points.iter().copied().zip(self.is_rebuilt.iter().copied()).collect();
        key.sort_unstable();
        key
    }
}

/// Opens servers with these disks. Returns an owner with the same directory as `owner`.
pub(crate) fn opened(owner: &Owner, disks: &[ShareDisk]) -> Owner {
    let mut opened = Owner::new(parties(3, 1), 5);
    opened.params = owner.params.clone();
    opened.servers = Servers::new(disks.len());
    for (server, disk) in disks.iter().enumerate() {
        let mut world = opened.servers.world();
        world.disks[server] = disk.copy();
        world.restart(server);
    }
    opened.log = owner.log.clone();
    opened.expected = owner.expected.clone();
    opened
}

type Key = Vec<(Option<TreePoint>, bool)>;

pub(crate) fn disks_of(owner: &Owner) -> Vec<ShareDisk> {
    owner.servers.world().disks.iter().map(ShareDisk::copy).collect()
}

fn points_of(owner: &Owner) -> Vec<Option<TreePoint>> {
    let mut world = owner.servers.world();
    let servers = world.hosts.len();
    let point = |server| match world.answer_in(server, 0, &Request::Epoch) {
        Answer::Epoch(epoch) => epoch.is_set_up.then_some(epoch.at),
        other => panic!("{other:?}"),
    };
    (0..servers).map(point).collect()
}

/// Whether some sequence of repairs leads to a volume that opens.
fn is_mended(owner: &Owner, held: ServerDisks, opens: &mut HashMap<Key, bool>) -> bool {
    let (mut seen, mut next) = (HashSet::new(), VecDeque::from([(held, 0)]));
    while let Some((held, repairs)) = next.pop_front() {
        let key = held.key();
        if !seen.insert(key.clone()) {
            continue;
        }
        if *opens.entry(key).or_insert_with(|| held.opens(owner)) {
            return true;
        }
        if repairs < held.disks.len() {
            let repaired = (0..held.disks.len()).filter_map(|server| held.repair(owner, server));
            next.extend(repaired.map(|held| (held, repairs + 1)));
        }
    }
    false
}

/// The point one step, which is a write or an eviction, before `at`.
pub(crate) fn before(at: TreePoint) -> TreePoint {
    match at.written {
        0 => TreePoint { evictions: at.evictions - 1, written: PRESET.accesses.into() },
        written => TreePoint { written: written - 1, ..at },
    }
}

/// The minimum number of faulty servers: servers whose point is explained neither by a crash nor by
/// an absence. `known` is the point that is finished according to the client's directory.
fn faults(points: &[Option<TreePoint>], known: TreePoint, colluding: usize) -> usize {
    let Some(furthest) = points.iter().flatten().max().copied() else { return points.len() };
    // Everything before the last step is finished.
    let over = if furthest > known { known.max(before(furthest)) } else { known };
    // Evictions need all servers.
    let evicted = if furthest.written == 0 && furthest > known {
        over
    } else {
        TreePoint { written: 0, ..over }
    };
    let not_evicted = points.iter().filter(|at| at.is_none_or(|at| at < evicted)).count();
    let have_it = points.iter().flatten().filter(|at| **at >= over).count();
    not_evicted.max((2 * colluding + 1).saturating_sub(have_it))
}

/// All ways to choose one of `kinds` kinds for each server, if the order of the servers does not
/// matter.
pub(crate) fn choices(kinds: usize, servers: usize) -> Vec<Vec<usize>> {
    if servers == 0 {
        return vec![Vec::new()];
    }
    let longer = |chosen: Vec<usize>| {
        let least = chosen.last().copied().unwrap_or_default();
        (least..kinds).map(move |kind| [chosen.clone(), vec![kind]].concat())
    };
    choices(kinds, servers - 1).into_iter().flat_map(longer).collect()
}

/// The disks and points of all servers at one point of the history.
pub(crate) struct ServerStates {
    pub(crate) disks: Vec<ShareDisk>,
    pub(crate) points: Vec<Option<TreePoint>>,
}

/// Makes `writes`. Returns the states of the servers before each write (except the first
/// `passed_over` writes) and before each eviction, followed by the state after the last write, and
/// by empty disks.
pub(crate) fn steps(
    owner: &mut Owner,
    writes: impl IntoIterator<Item = (u64, u8)>,
    passed_over: usize,
) -> Vec<ServerStates> {
    let mut steps = Vec::new();
    let mut keep = |owner: &Owner| {
        let step = ServerStates { disks: disks_of(owner), points: points_of(owner) };
        let at = owner.servers.world().points()[0];
        if at.written == 0 {
            let back = opened(owner, &step.disks);
            let mut world = back.servers.world();
            for server in 0..step.disks.len() {
                for tree in 0..world.hosts[server].setups().count() as u8 {
                    let request = Request::RollBack { evictions: at.evictions - 1 };
                    assert_eq!(world.answer_in(server, tree, &request), Answer::Done);
                }
            }
            drop(world);
            steps.push(ServerStates { disks: disks_of(&back), points: points_of(&back) });
        }
        steps.push(step);
    };
    for (i, (address, fill)) in writes.into_iter().enumerate() {
        if i >= passed_over {
            keep(owner);
        }
        owner.write(address, fill).unwrap();
    }
    keep(owner);
    let servers = steps[0].disks.len();
    let disks = (0..servers).map(|_| ShareDisk::default()).collect();
    steps.push(ServerStates { disks, points: vec![None; servers] });
    steps
}

#[test]
fn repairs_lead_back_to_the_volume() {
    for (servers, colluding) in [(3, 1), (5, 1), (5, 2)] {
        // The last access has an eviction after it, or none.
        for writes in [22, 20] {
            for is_closed in [false, true] {
                let mut owner = Owner::new(parties(servers, colluding), 1);
                let all = (0..writes).map(|i| (i % BLOCKS, i as u8 + 1));
                let steps = steps(&mut owner, all, writes as usize - 2);
                if is_closed {
                    owner.reopen().unwrap();
                }
                let last = owner.servers.world().points()[0];
                let known = if is_closed { last } else { before(last) };
                let (mut opens, mut mended) = (HashMap::new(), 0);
                for chosen in choices(steps.len(), servers.into()) {
                    let chosen = || chosen.iter().map(|step| &steps[*step]).enumerate();
                    let points: Vec<_> = chosen().map(|(server, it)| it.points[server]).collect();
                    if faults(&points, known, colluding.into()) > colluding.into() {
                        continue;
                    }
                    let disks = chosen().map(|(server, it)| it.disks[server].copy()).collect();
                    let is_rebuilt = vec![false; servers.into()];
                    let held = ServerDisks { disks, points: points.clone(), is_rebuilt };
                    let is_mended = is_mended(&owner, held, &mut opens);
                    assert!(is_mended, "{servers} {colluding} {points:?}, {known:?}");
                    mended += 1;
                }
                assert!(mended > 2, "{mended}");
            }
        }
    }
}
