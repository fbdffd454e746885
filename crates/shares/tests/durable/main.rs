//! Tests of S³ORAM as the scheme of a volume. No acknowledged write is lost, at whatever step the
//! client or a server stops. Servers that lie or are rolled back are named.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod copies;
mod damage;
mod dealers;
mod loaded;
mod mapped;
mod mapped_view;
mod missing;
mod owner;
mod peers;
mod repair;
mod repairs;
mod rescues;
mod servers;
mod trust;
mod view;
mod wire;

use std::collections::HashMap;

use oblivio_core::StoreErrorKind;
use oblivio_core::durable::{Recoverability, Save, Want};
use oblivio_core::scheme::RollbackProbe;
use oblivio_shares::message::{Request, TreePoint};
use oblivio_shares::sharing::Parties;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use owner::{BLOCK_BYTES, BLOCKS, KINDS, Owner, PRESET};

fn parties(servers: u8, colluding: u8) -> Parties {
    Parties::new(servers, colluding).unwrap()
}

/// Makes 1 to 7 accesses at once, or sometimes forgets a block or makes a checkpoint.
fn step(owner: &mut Owner, choices: &mut StdRng) -> Result<(), oblivio_core::Error> {
    match choices.random_range(0..20) {
        0 => owner.forget(choices.random_range(0..BLOCKS)),
        1 => owner.checkpoint()?,
        _ => {
            let accesses = choices.random_range(1..8);
            let wanted: Vec<_> = (0..accesses)
                .map(|_| {
                    let want = match choices.random_range(0..6) {
                        0 => Want::Dummy,
                        // Repeat some blocks often.
                        1 => Want::Block(choices.random_range(0..3)),
                        _ => Want::Block(choices.random_range(0..BLOCKS)),
                    };
                    let data = vec![choices.random(); BLOCK_BYTES];
                    (want, choices.random::<bool>().then_some(data))
                })
                .collect();
            owner.access(&wanted)?;
        }
    }
    Ok(())
}

#[test]
fn what_is_read_is_what_was_written() {
    for (servers, colluding) in [(3, 1), (5, 1), (5, 2)] {
        let mut owner = Owner::new(parties(servers, colluding), 1);
        let mut choices = StdRng::seed_from_u64(2);
        for _ in 0..500 {
            step(&mut owner, &mut choices).unwrap();
        }
        owner.read_all();
        let live = owner.expected.len() as u64;
        assert_eq!(owner.array.check(&mut |_| ()).unwrap(), live);
        owner.checkpoint().unwrap();
        owner.reopen().unwrap();
        owner.read_all();
    }
}

#[test]
fn windows_are_planned_before_those_before_them_are_over() {
    let mut owner = Owner::new(parties(3, 1), 11);
    for i in 0..20 {
        owner.write(i, i as u8).unwrap();
    }
    // Mostly the same blocks in each window: one twice in a row, and one that was never written.
    let windows: Vec<_> = (0..5).map(|i| vec![3, 3, 10 + i, 50, 18]).collect();
    owner.read_ahead(&windows).unwrap();
    owner.reopen().unwrap();
    owner.read_all();
    // A block that is forgotten meanwhile is still looked for at its old path.
    let plan = |owner: &mut Owner, planned: &[&_]| {
        owner.array.plan(&[Want::Block(5)], planned, &mut owner.coins).unwrap()
    };
    let first = plan(&mut owner, &[]);
    let second = plan(&mut owner, &[&first]);
    let read = |owner: &mut Owner, plan| {
        let mut found = [1; BLOCK_BYTES];
        owner.array.carry_out(plan, &mut [oblivio_core::Op::Read(&mut found)]).unwrap();
        found
    };
    assert_eq!(read(&mut owner, &first), [5; BLOCK_BYTES]);
    owner.array.forget(5..6).unwrap();
    assert_eq!(read(&mut owner, &second), [0; BLOCK_BYTES]);
    // A plan of another state is invalid.
    let (stale, other) = (plan(&mut owner, &[]), plan(&mut owner, &[]));
    read(&mut owner, &other);
    let mut found = [1; BLOCK_BYTES];
    let error = owner.array.carry_out(&stale, &mut [oblivio_core::Op::Read(&mut found)]);
    assert_eq!(error.unwrap_err().kind(), oblivio_core::ErrorKind::InvalidRequest);
}

#[test]
fn nothing_is_lost_wherever_the_client_stops() {
    for (servers, colluding) in [(3, 1), (5, 2)] {
        let mut owner = Owner::new(parties(servers, colluding), 3);
        let mut choices = StdRng::seed_from_u64(4);
        let mut stops = 0;
        for _ in 0..600 {
            let at = owner.servers.world().asked + choices.random_range(1..12);
            let does = (0..servers).map(|_| choices.random()).collect();
            owner.servers.world().stop = Some((at, does));
            for _ in 0..3 {
                if step(&mut owner, &mut choices).is_err() {
                    stops += 1;
                    break;
                }
            }
            owner.servers.connect();
            // The client may stop again during the reopening.
            if choices.random_range(0..3) == 0 {
                let at = owner.servers.world().asked + choices.random_range(1..20);
                let does = (0..servers).map(|_| choices.random()).collect();
                owner.servers.world().stop = Some((at, does));
                stops += usize::from(owner.reopen().is_err());
                owner.servers.connect();
            }
            owner.reopen().unwrap();
        }
        assert!(stops > 500, "{stops}");
        owner.read_all();
        owner.array.check(&mut |_| ()).unwrap();
    }
}

#[test]
fn nothing_is_lost_wherever_a_server_dies() {
    let mut owner = Owner::new(parties(3, 1), 9);
    let mut choices = StdRng::seed_from_u64(10);
    let mut died = 0;
    for _ in 0..60 {
        let server = choices.random_range(0..3);
        owner.servers.world().disks[server].dies_after(choices.random_range(1..60));
        for _ in 0..3 {
            if step(&mut owner, &mut choices).is_err() {
                died += 1;
                break;
            }
        }
        owner.servers.world().restart(server);
        owner.reopen().unwrap();
    }
    assert!(died > 20, "{died}");
    assert!((0..3).all(|i| owner.servers.world().disks[i].power_losses() > 5));
    owner.read_all();
    owner.array.check(&mut |_| ()).unwrap();
}

#[test]
fn evictions_are_begun_again_until_all_are_through() {
    let mut owner = Owner::new(parties(3, 1), 5);
    for i in 0..40 {
        owner.servers.world().failing_evictions = (i % 5) as usize;
        owner.write(i % BLOCKS, i as u8).unwrap();
    }
    owner.servers.world().failing_evictions = 5;
    let error = (0..4).find_map(|i| owner.write(i, 7).err()).unwrap().to_string();
    assert!(error.contains("server 2: another server has not dealt"), "{error}");
    owner.reopen().unwrap();
    owner.read_all();
}

#[test]
fn retries_wait_for_links_only() {
    let mut owner = Owner::new(parties(3, 1), 6);
    let attempts = |owner: &Owner| {
        let seen = owner.servers.world().seen[0].clone();
        seen.iter().filter(|it| matches!(it, Request::Evict { .. })).count()
    };
    for (failure, failing, waits, tried) in [
        (StoreErrorKind::Unreachable, 9, 20, Ok(10)),
        (StoreErrorKind::Unreachable, 30, 20, Err(21)),
        // The time spent waiting for silent servers counts.
        (StoreErrorKind::Unreachable, 30, 0, Err(2)),
        // A server that was away for a moment may cost an attempt, but not the eviction.
        (StoreErrorKind::Unreachable, 1, 0, Ok(2)),
        (StoreErrorKind::Refused, 30, 20, Err(5)),
        (StoreErrorKind::Full, 30, 20, Err(1)),
        (StoreErrorKind::Damaged, 30, 20, Err(1)),
    ] {
        while owner.servers.world().points()[0].written + 1 < PRESET.accesses.into() {
            owner.read(1).unwrap();
        }
        let before = attempts(&owner);
        let mut world = owner.servers.world();
        (world.failing_evictions, world.failure, world.waits_for_links) = (failing, failure, waits);
        drop(world);
        let tries = owner.servers.world().tried;
        let written = owner.write(2, failing as u8).map_err(|error| error.store_kind());
        assert_eq!(owner.servers.world().tried, tries + 1);
        owner.servers.world().failing_evictions = 0;
        let times = attempts(&owner) - before;
        let outcome = written.map(|()| times).map_err(|kind| (times, kind));
        assert_eq!(outcome, tried.map_err(|times| (times, Some(failure))));
        owner.reopen().unwrap();
        owner.read_all();
    }
}

/// If an attempt is repeated after a lost link, the error of the repetition is a lost link, too. A
/// store repeats a request after a lost link. A server that has already begun the attempt refuses
/// it with this reason.
#[test]
fn an_attempt_that_is_repeated_after_its_link_was_lost_is_a_lost_link() {
    for of_kind in KINDS {
        let mut owner = of_kind(parties(3, 1), 6);
        owner.servers.world().waits_for_links = 12;
        owner.servers.world().cut_evictions = 9;
        (0..10).for_each(|i| owner.write(i, 1).unwrap());
        assert_eq!(owner.servers.world().cut_evictions, 0);
        owner.servers.world().cut_evictions = 40;
        let error = (0..10).find_map(|i| owner.write(i, 2).err()).unwrap();
        assert_eq!(error.store_kind(), Some(StoreErrorKind::Unreachable), "{error}");
        owner.servers.world().cut_evictions = 0;
        owner.reopen().unwrap();
        owner.read_all();
    }
}

/// Servers connect to each other before the first eviction of each opening. Otherwise a server with
/// a missing link would wait for shares that never arrive, while the client sends long matrices.
#[test]
fn servers_meet_before_the_first_eviction_of_each_opening() {
    let mut owner = Owner::new(parties(3, 1), 6);
    for _ in 0..2 {
        let before = owner.servers.world().seen[0].len();
        (0..3 * u64::from(PRESET.accesses)).for_each(|i| owner.write(i, 1).unwrap());
        for seen in owner.servers.world().seen.clone() {
            let is_eviction =
                |it: &&Request| matches!(it, Request::Evict { .. } | Request::Connect);
            let of_evictions: Vec<_> = seen[before..].iter().filter(is_eviction).collect();
            assert_eq!(of_evictions.len(), 4);
            assert_eq!(of_evictions.iter().position(|it| **it == Request::Connect), Some(0));
        }
        owner.reopen().unwrap();
    }
}

#[test]
fn an_old_directory_is_refused() {
    let mut owner = Owner::new(parties(3, 1), 6);
    for i in 0..10 {
        owner.write(i, 1).unwrap();
    }
    let old = owner.log.clone();
    assert_eq!(owner.probe_rollback().unwrap(), RollbackProbe::NotYet);
    owner.write(1, 2).unwrap();
    let new = std::mem::replace(&mut owner.log, old);
    assert_eq!(owner.probe_rollback().unwrap(), RollbackProbe::Seen);
    // A client that skips the probe is also refused, and nothing changes.
    let (mut array, _) = owner.restored();
    array.begin_era(oblivio_core::durable::EraStart::Opening, &mut owner.coins);
    let plan = array.plan(&[Want::Dummy], &[], &mut owner.coins).unwrap();
    let error = array.carry_out(&plan, &mut [oblivio_core::Op::Write(&[])]).unwrap_err();
    assert!(error.to_string().contains("ahead of the client's directory"), "{error}");
    owner.log = new;
    owner.reopen().unwrap();
    owner.read_all();
}

#[test]
fn states_and_sections_are_as_long_as_is_said() {
    use oblivio_core::durable::DurableConfig;
    let mut owner = Owner::new(parties(3, 1), 7);
    let size = owner.params.state_size().unwrap();
    let expected: u64 = size.whole.iter().map(|it| it.sections * it.bytes).sum();
    for i in 0..30 {
        let bytes = |what| {
            let mut bytes = 0;
            owner.array.save(what, &mut |section| bytes += section.len() as u64);
            bytes
        };
        assert_eq!(bytes(Save::WholePadded), expected);
        assert!(bytes(Save::Whole) <= expected && bytes(Save::Changes) < 16);
        owner.write(i, 3).unwrap();
    }
}

#[test]
fn a_salvage_works_without_one_server_and_from_an_older_state() {
    let mut owner = Owner::new(parties(3, 1), 8);
    for i in 0..50 {
        owner.write(i, i as u8).unwrap();
    }
    // Older versions of these blocks are still in buckets: some from before the last checkpoint,
    // some from the checkpoint itself.
    for i in 20..30 {
        owner.write(i, 0x70 + i as u8).unwrap();
    }
    owner.forget(4);
    owner.checkpoint().unwrap();
    for i in 0..9 {
        owner.read(i).unwrap();
    }
    for i in 25..35 {
        owner.write(i, 0xa0 + i as u8).unwrap();
    }
    owner.servers.world().missing[1] = true;
    let (mut array, _) = owner.restored();
    let (mut found, mut damage) = (std::collections::HashMap::new(), 0);
    let mut each = |address, bytes: &[u8]| {
        found.insert(address, bytes.to_vec());
    };
    let salvage = array.salvage(&mut each, &mut |_| damage += 1, &mut |_| ()).unwrap();
    owner.expected.remove(&4);
    assert_eq!(found, owner.expected);
    assert!(damage > 0, "a server is missing");
    assert_eq!(array.recoverability(&salvage, 3), Recoverability::Found);
    assert_eq!(array.recoverability(&salvage, 4), Recoverability::Empty);
}

/// Returns an owner with 48 blocks, whose last access stopped, and the contents of the blocks
/// before that access. The access to block 7, or its eviction, stopped after `trips` trips, when
/// one of three servers had handled the request. `None` if the access and the eviction have fewer
/// trips.
fn stopped_in_an_access(
    of_kind: fn(Parties, u64) -> Owner,
    trips: usize,
) -> Option<(Owner, HashMap<u64, Vec<u8>>)> {
    let mut owner = of_kind(parties(3, 1), 8);
    (0..51).for_each(|i| owner.write(i % 48, i as u8).unwrap());
    owner.checkpoint().unwrap();
    let before = owner.expected.clone();
    let at = owner.servers.world().asked + trips;
    owner.servers.world().stop = Some((at, vec![true, false, false]));
    owner.write(7, 0xee).err()?;
    owner.servers.connect();
    Some((owner, before))
}

/// A salvage works on two servers one step apart. The client and one server are lost during an
/// access or its eviction, which one of the two other servers has finished.
#[test]
fn a_salvage_works_on_two_servers_one_step_apart() {
    for of_kind in KINDS {
        let (mut a_write_apart, mut an_eviction_apart, mut trip) = (0, 0, 1);
        while let Some((mut owner, before)) = stopped_in_an_access(of_kind, trip) {
            owner.servers.world().missing[2] = true;
            let mut world = owner.servers.world();
            let trees = world.hosts[0].setups().count() as u8;
            let points: Vec<_> = (0..trees).map(|tree| world.points_in(tree)).collect();
            drop(world);
            let is_apart =
                |of: fn(TreePoint) -> u64| points.iter().any(|it| of(it[0]) != of(it[1]));
            let is_an_eviction_apart = is_apart(|at| at.evictions);
            an_eviction_apart += u32::from(is_an_eviction_apart);
            a_write_apart += u32::from(!is_an_eviction_apart && is_apart(|at| at.written as u64));
            let (mut array, _) = owner.restored();
            let (mut found, mut damage) = (HashMap::new(), Vec::new());
            let mut each = |address, bytes: &[u8]| drop(found.insert(address, bytes.to_vec()));
            let mut damaged = |error: &oblivio_core::Error| damage.push(error.to_string());
            let salvage = array.salvage(&mut each, &mut damaged, &mut |_| ()).unwrap();
            assert!(
                (0..48).all(|i| array.recoverability(&salvage, i) == Recoverability::Found),
                "trip {trip}, {points:?}: {damage:?}"
            );
            // The write in progress may or may not be there.
            let last = found.insert(7, before[&7].clone()).unwrap();
            assert!([&before[&7], &owner.expected[&7]].contains(&&last));
            assert_eq!(found, before);
            // The salvage has changed no server, and the servers continue when the third is back.
            let mut world = owner.servers.world();
            assert!((0..trees).all(|tree| world.points_in(tree) == points[usize::from(tree)]));
            world.missing[2] = false;
            drop(world);
            owner.reopen().unwrap();
            owner.read_all();
            trip += 1;
        }
        assert!(a_write_apart > 0 && an_eviction_apart > 0, "{a_write_apart} {an_eviction_apart}");
    }
}

/// A salvage ignores a rolled-back server, but not silently: it names the server that holds old
/// data.
#[test]
fn a_salvage_ignores_and_names_a_rolled_back_server() {
    let mut owner = Owner::new(parties(3, 1), 8);
    (0..50).for_each(|i| owner.write(i, i as u8).unwrap());
    owner.checkpoint().unwrap();
    owner.write(1, 1).unwrap();
    for (claim, expected) in [
        (TreePoint { evictions: 3, written: 1 }, Some("server 2: it was rolled back")),
        (TreePoint { evictions: 12, written: 1 }, Some("server 2: it was rolled back")),
        (TreePoint { evictions: 13, written: 1 }, Some("server 2: it claims to be ahead")),
        (TreePoint { evictions: 12, written: 77 }, Some("server 2: it claims an impossible point")),
        // A crash may leave a server one step behind.
        (TreePoint { evictions: 12, written: 2 }, None),
    ] {
        owner.servers.world().claims[1] = Some(claim);
        let (mut array, _) = owner.restored();
        let (mut found, mut damage) = (0, Vec::new());
        let mut damaged = |error: &oblivio_core::Error| damage.push(error.to_string());
        array.salvage(&mut |_, _| found += 1, &mut damaged, &mut |_| ()).unwrap();
        assert!(found >= 50, "{found}");
        match expected {
            Some(expected) => assert!(damage[0].contains(expected), "{damage:?}"),
            None => assert!(damage.is_empty(), "{damage:?}"),
        }
    }
}
