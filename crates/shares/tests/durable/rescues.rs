//! For any number of rolled-back or lost servers, a rescue finds each block that enough servers
//! have, in the latest version that they have. It calls no older version the latest.

use std::collections::HashMap;

use oblivio_core::durable::Recoverability;
use oblivio_shares::message::{Answer, Request, TreePoint};

use crate::owner::{BLOCK_BYTES, KINDS, Owner, PRESET};
use crate::repairs::{ServerStates, before, choices, opened, steps};
use crate::{parties, stopped_in_an_access};
use oblivio_testkit::ShareDisk;

/// The number of blocks that the owner writes in turn.
const WRITTEN: u64 = 7;

/// The number of writes that lead to a point.
fn writes_at(at: TreePoint) -> u64 {
    at.evictions * u64::from(PRESET.accesses) + at.written as u64
}

/// The number of steps (writes and evictions) that lead to a point.
fn steps_to(at: TreePoint) -> u64 {
    writes_at(at) + at.evictions
}

/// Whether a server at point `there` has the data of point `at`. With marks, a server has only the
/// data of its own point and of the point one step before.
fn has(at: TreePoint, there: TreePoint, is_marked: bool) -> bool {
    if at == there || at == before(there) {
        return true;
    }
    let in_one = |there: TreePoint| at.evictions == there.evictions && at.written <= there.written;
    !is_marked && (in_one(there) || there.written == 0 && in_one(before(there)))
}

/// The last point whose data at least `enough` servers have.
fn last_of(points: &[Option<TreePoint>], enough: usize, is_marked: bool) -> Option<TreePoint> {
    let there = || points.iter().flatten().copied();
    let is_enough =
        |at: &TreePoint| there().filter(|there| has(*at, *there, is_marked)).count() >= enough;
    there().flat_map(|there| [there, before(there)]).filter(is_enough).max()
}

struct Rescued {
    found: HashMap<u64, Vec<u8>>,
    recoverabilities: Vec<Recoverability>,
    damage: String,
}

fn rescue(owner: &Owner, disks: &[ShareDisk]) -> Rescued {
    let (mut array, _) = opened(owner, disks).restored();
    let (mut found, mut damage) = (HashMap::new(), String::new());
    let mut each = |address, bytes: &[u8]| drop(found.insert(address, bytes.to_vec()));
    let mut damaged = |error: &oblivio_core::Error| damage += &format!("{error}\n");
    let salvage = array.salvage(&mut each, &mut damaged, &mut |_| ()).unwrap();
    let recoverabilities =
        (0..WRITTEN).map(|address| array.recoverability(&salvage, address)).collect();
    Rescued { found, recoverabilities, damage }
}

/// Salvages from servers in the states `chosen`. Checks that the salvage finds each block that
/// enough servers have, and calls no older version the latest. `known` is the point that the
/// client's directory names as finished.
fn check(
    owner: &Owner,
    chosen: &[&ServerStates],
    (colluding, known, is_marked): (usize, TreePoint, bool),
) {
    let servers = chosen.len();
    let disks: Vec<_> = (0..servers).map(|server| chosen[server].disks[server].copy()).collect();
    let points: Vec<_> = (0..servers).map(|server| chosen[server].points[server]).collect();
    // A server that rolled back an eviction no longer has the marks before its last write. Other
    // servers lack that write only if they were rolled back by a single step.
    let is_full = |at: TreePoint| at.written == usize::from(PRESET.accesses);
    let lacks_marks = |at: TreePoint| is_full(at) && points.contains(&Some(before(at)));
    if is_marked && points.iter().flatten().any(|at| lacks_marks(*at)) {
        return;
    }
    let Rescued { found, recoverabilities, damage } = rescue(owner, &disks);
    let what = format!("{servers} {colluding} {points:?}, known {known:?}: {damage}");
    let last = last_of(&points, colluding + 1, is_marked);
    assert_eq!(last.is_none(), damage.contains("nothing can be read from them"), "{what}");
    let (had, all) = (last.map_or(0, writes_at), writes_at(known));
    for address in 0..WRITTEN {
        // The last write of the block, according to the directory.
        let write = (0..all).rfind(|write| write % WRITTEN == address).unwrap();
        let is_last = found.get(&address) == Some(&vec![write as u8 + 1; BLOCK_BYTES]);
        let recoverability = recoverabilities[address as usize];
        if write < had {
            // A later write may be found instead.
            let is_newer = found.get(&address).is_some_and(|found| found[0] > write as u8 + 1);
            assert!(is_last || is_newer, "{address}: {what}");
            // A map block may be lost because of its other entries.
            let is_sure = recoverability == Recoverability::Found
                || is_marked && recoverability == Recoverability::Doubtful;
            assert!(is_sure, "{address} {recoverability:?}: {what}");
        } else {
            assert!(recoverability != Recoverability::Found, "{address}: {what}");
        }
    }
    for (number, point) in (1..).zip(points) {
        let is_named =
            [": ", ", "].iter().any(|end| damage.contains(&format!("server {number}{end}")));
        let Some(there) = point else {
            assert!(is_named, "{number}: {what}");
            continue;
        };
        let (here, at) = (steps_to(there), last.map_or(steps_to(there), steps_to));
        let is_astray = there < known || here + 1 < at || at + 1 < here;
        // With more servers, some may have been missing.
        let is_told = servers == 2 * colluding + 1 || there.evictions < known.evictions;
        assert!(is_named == is_astray || !is_told, "{number}: {what}");
    }
}

#[test]
fn what_enough_servers_have_is_rescued_and_nothing_older_is_called_the_latest() {
    let [of_known, in_trees] = KINDS;
    for (servers, colluding, of_kind, is_marked, recorded) in [
        (3, 1, of_known, false, 4),
        (3, 1, in_trees, true, 4),
        (5, 1, of_known, false, 2),
        (5, 2, of_known, false, 2),
        (5, 2, in_trees, true, 2),
    ] {
        // Keep the states before the last writes. The last write has an eviction after it or none,
        // and the directory knows all writes or only earlier ones.
        for (writes, is_closed) in [(20, true), (22, true), (22, false)] {
            let mut owner = of_kind(parties(servers, colluding), 1);
            let write = |i: u64| (i % WRITTEN, i as u8 + 1);
            (0..writes - recorded)
                .map(write)
                .for_each(|(address, fill)| owner.write(address, fill).unwrap());
            owner.checkpoint().unwrap();
            let mut known = owner.servers.world().points()[0];
            let steps = steps(&mut owner, (writes - recorded..writes).map(write), 0);
            if is_closed {
                known = owner.servers.world().points()[0];
                owner.checkpoint().unwrap();
            }
            for chosen in choices(steps.len(), servers.into()) {
                let chosen: Vec<_> = chosen.iter().map(|step| &steps[*step]).collect();
                check(&owner, &chosen, (colluding.into(), known, is_marked));
            }
        }
    }
}

/// A liar at the point of one of two honest servers hides no block. A crash leaves honest servers
/// one step apart. If the liar claims the later point, two of three servers claim it, but their
/// shares recover no data at this point.
#[test]
fn a_liar_at_the_point_of_one_of_two_servers_hides_nothing() {
    for of_kind in KINDS {
        let stopped = (1..).map_while(|trip| Some((trip, stopped_in_an_access(of_kind, trip)?)));
        for (trip, (owner, before)) in stopped {
            owner.servers.world().mirrors = Some((2, 0));
            let (mut array, _) = owner.restored();
            let mut found = HashMap::new();
            let mut each = |address, bytes: &[u8]| drop(found.insert(address, bytes.to_vec()));
            let salvage = array.salvage(&mut each, &mut |_| (), &mut |_| ()).unwrap();
            // The write in progress may be on either server.
            for address in (0..48).filter(|address| *address != 7) {
                assert_eq!(
                    array.recoverability(&salvage, address),
                    Recoverability::Found,
                    "{trip}: {address}"
                );
                assert_eq!(found.get(&address), before.get(&address), "{trip}: {address}");
            }
        }
    }
}

/// If the latest copy of a block is damaged, a salvage calls no older copy the latest. The client's
/// directory knows of neither copy. The map names the latest write at the last point, and the write
/// before it at the point before.
#[test]
fn no_older_block_is_called_the_latest_since_the_latest_is_damaged() {
    for (spoilt, missing) in [(vec![0, 1], None), (vec![0], Some(2))] {
        let [_, with_map_in_trees] = KINDS;
        let mut owner = with_map_in_trees(parties(3, 1), 8);
        (0..49).for_each(|i| owner.write(i % 48, i as u8).unwrap());
        owner.checkpoint().unwrap();
        let at = |owner: &Owner| match owner.servers.world().answer_in(0, 0, &Request::Epoch) {
            Answer::Epoch(epoch) => epoch.at,
            other => panic!("unexpected answer: {other:?}"),
        };
        owner.write(7, 0xaa).unwrap();
        let before = at(&owner);
        owner.write(7, 0xee).unwrap();
        let after = at(&owner);
        assert_eq!(after, TreePoint { written: before.written + 1, ..before });
        owner.servers.world().spoilt = Some((before.written, spoilt));
        if let Some(missing) = missing {
            owner.servers.world().missing[missing] = true;
        }
        let (mut array, _) = owner.restored();
        let mut found = HashMap::new();
        let mut each = |address, bytes: &[u8]| drop(found.insert(address, bytes.to_vec()));
        let salvage = array.salvage(&mut each, &mut |_| (), &mut |_| ()).unwrap();
        let (recoverability, block) =
            (array.recoverability(&salvage, 7), found.get(&7).map(|block| block[0]));
        assert!(
            recoverability != Recoverability::Found || block == Some(0xee),
            "{recoverability:?} {block:02x?}"
        );
        assert!(
            recoverability != Recoverability::Doubtful || block == Some(0xaa),
            "{recoverability:?} {block:02x?}"
        );
    }
}
