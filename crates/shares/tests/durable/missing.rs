//! Tests of missing servers. Accesses continue without them, and they catch up when they return.

use oblivio_core::ErrorKind;
use oblivio_core::durable::Want;
use oblivio_core::scheme::RollbackProbe;
use oblivio_shares::message::{Request, TreePoint};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::owner::{BLOCKS, Owner, PRESET};
use crate::{parties, step};

const PERIOD: u64 = PRESET.accesses as u64;

/// Creates an owner with five servers, two of which may be missing, after `accesses` accesses.
fn five(accesses: u64, seed: u64) -> Owner {
    let mut owner = Owner::new(parties(5, 1), seed);
    for i in 0..accesses {
        owner.write(i % BLOCKS, i as u8).unwrap();
    }
    owner
}

/// Makes servers missing, or restores them without their unsynced data.
fn set_missing(owner: &Owner, servers: &[usize], is_missing: bool) {
    let mut world = owner.servers.world();
    for server in servers {
        world.missing[*server] = is_missing;
        if !is_missing {
            world.restart(*server);
        }
    }
}

fn points(owner: &Owner) -> Vec<TreePoint> {
    owner.servers.world().points()
}

#[test]
fn servers_that_were_missing_catch_up_with_the_next_access() {
    for missed in 1..PERIOD - 1 {
        let mut owner = five(2 * PERIOD, missed);
        set_missing(&owner, &[1, 4], true);
        (0..missed).for_each(|i| owner.write(i, 0x70 + i as u8).unwrap());
        let at = |written| TreePoint { evictions: 2, written };
        let there = at(missed as usize);
        assert_eq!(points(&owner), [there, at(0), there, there, at(0)]);
        set_missing(&owner, &[1], false);
        owner.read(3).unwrap();
        set_missing(&owner, &[4], false);
        for i in 0..3 * PERIOD {
            owner.write(20 + i, 9).unwrap();
        }
        assert!(points(&owner).iter().all(|it| *it == points(&owner)[0]));
        owner.array.check(&mut |_| ()).unwrap();
        owner.read_all();
    }
}

#[test]
fn evictions_wait_for_servers_that_are_missing_and_nothing_is_lost() {
    let mut owner = five(2 * PERIOD, 1);
    set_missing(&owner, &[2, 3], true);
    (1..PERIOD).for_each(|i| owner.write(i, 7).unwrap());
    assert_eq!(owner.servers.world().waited, 0);
    let error = owner.write(0, 7).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    let error = error.to_string();
    for expected in ["server 3, server 4: it does not answer", "need all servers", "shares repair"]
    {
        assert!(error.contains(expected), "{error}");
    }
    assert!(owner.servers.world().waited > 0);
    // The eviction is due now, so the volume cannot be opened without these servers.
    assert!(owner.reopen().is_err());
    set_missing(&owner, &[2], false);
    let error = owner.reopen().unwrap_err().to_string();
    assert!(!error.contains("server 3") && error.contains("server 4"), "{error}");
    set_missing(&owner, &[3], false);
    owner.reopen().unwrap();
    owner.read_all();
    owner.array.check(&mut |_| ()).unwrap();
}

/// When missing servers return, an interrupted eviction continues. The owner need not reopen the
/// volume.
#[test]
fn an_eviction_continues_when_servers_come_back() {
    let mut owner = five(2 * PERIOD, 1);
    owner.servers.world().come_back = true;
    for round in 0..3 {
        set_missing(&owner, &[2, 3], true);
        (1..PERIOD).for_each(|i| owner.write(i, round).unwrap());
        assert_eq!(owner.servers.world().waited, usize::from(round));
        owner.write(0, round).unwrap();
        assert_eq!(owner.servers.world().waited, usize::from(round) + 1);
    }
    owner.read_all();
    owner.array.check(&mut |_| ()).unwrap();
}

#[test]
fn a_volume_is_opened_while_servers_are_missing() {
    let mut owner = five(2 * PERIOD + 1, 1);
    set_missing(&owner, &[0, 3], true);
    owner.write(5, 1).unwrap();
    owner.reopen().unwrap();
    owner.read(5).unwrap();
    set_missing(&owner, &[0], false);
    set_missing(&owner, &[1], true);
    // Server 1 is back but still lacks writes, and servers 2 and 4 are missing.
    assert!(owner.reopen().is_err(), "only two servers have all writes");
    set_missing(&owner, &[1], false);
    owner.reopen().unwrap();
    set_missing(&owner, &[3], false);
    owner.read_all();
}

#[test]
fn servers_come_and_go_and_so_does_the_client() {
    for (servers, colluding) in [(4, 1), (5, 1), (7, 1), (7, 2)] {
        let mut owner = Owner::new(parties(servers, colluding), 3);
        let spare = usize::from(servers - 2 * colluding - 1);
        let mut choices = StdRng::seed_from_u64(4);
        let (mut stops, mut behind) = (0, 0);
        for _ in 0..60 {
            let missing: Vec<_> =
                (0..spare).map(|_| choices.random_range(0..usize::from(servers))).collect();
            let is_dying = choices.random_range(0..3) == 0;
            for server in &missing {
                if is_dying {
                    owner.servers.world().disks[*server].dies_after(choices.random_range(1..20));
                } else {
                    set_missing(&owner, &[*server], true);
                }
            }
            if choices.random_range(0..3) == 0 {
                let at = owner.servers.world().asked + choices.random_range(1..12);
                let does = (0..servers).map(|_| choices.random()).collect();
                owner.servers.world().stop = Some((at, does));
            }
            let mut is_broken = (0..3).any(|_| step(&mut owner, &mut choices).is_err());
            stops += usize::from(is_broken);
            owner.servers.connect();
            if !is_dying {
                let points = points(&owner);
                behind += usize::from(points.iter().any(|it| *it != points[0]));
                // Some servers are still missing.
                is_broken = owner.reopen().is_err();
            }
            set_missing(&owner, &missing, false);
            if is_broken || choices.random() || step(&mut owner, &mut choices).is_err() {
                owner.reopen().unwrap();
            }
        }
        assert!(stops > 5 && behind > 10, "{stops} {behind}");
        owner.reopen().unwrap();
        owner.read_all();
        owner.array.check(&mut |_| ()).unwrap();
    }
}

#[test]
fn a_liar_among_those_from_whom_a_server_catches_up_is_noticed() {
    let mut owner = five(2 * PERIOD, 1);
    set_missing(&owner, &[4], true);
    owner.write(1, 7).unwrap();
    owner.write(2, 7).unwrap();
    owner.servers.world().lying[0] = true;
    set_missing(&owner, &[4], false);
    // Four servers answer: the liar is corrected.
    owner.read(1).unwrap();
    owner.servers.world().lying[0] = false;
    let error = owner.array.check(&mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("server 1 (2 times)"), "{error}");
    owner.reopen().unwrap();
    owner.array.check(&mut |_| ()).unwrap();
    owner.read_all();
    // Three servers answer: the liar cannot be named, and nothing goes to the other servers.
    let mut owner = five(2 * PERIOD, 1);
    let before = points(&owner);
    set_missing(&owner, &[3, 4], true);
    owner.write(1, 7).unwrap();
    owner.write(2, 7).unwrap();
    owner.servers.world().lying[0] = true;
    set_missing(&owner, &[3, 4], false);
    let error = owner.read(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(points(&owner)[3..], before[3..]);
    owner.servers.world().lying[0] = false;
    owner.reopen().unwrap();
    owner.read_all();
}

/// No eviction begins while a server lacks a block that it has acknowledged. The server's disk
/// loses an acknowledged write, so the server is one block behind and does not notice.
#[test]
fn no_eviction_begins_without_a_block_that_a_server_has_said_it_had() {
    for forgotten in 0..PERIOD {
        // With three servers the access is repeated; with five the server catches up.
        for servers in [3, 5] {
            let mut owner = Owner::new(parties(servers, 1), forgotten);
            (0..2 * PERIOD).for_each(|i| owner.write(i, i as u8).unwrap());
            let failed = (0..PERIOD).any(|i| {
                owner.servers.world().forgets[1] = i == forgotten;
                owner.write(i, 0x70 + i as u8).is_err()
            });
            assert_eq!(failed, servers == 3, "{forgotten}");
            if failed {
                owner.reopen().unwrap();
            }
            assert!(points(&owner).iter().all(|it| *it == points(&owner)[0]));
            owner.array.check(&mut |_| ()).unwrap();
            owner.read_all();
        }
    }
}

#[test]
fn servers_that_are_not_where_they_have_to_be_are_left_out_and_named() {
    let point = |evictions, written| TreePoint { evictions, written };
    for (claim, expected) in [
        (point(0, 3), "server 2: it was rolled back"),
        (point(2, 77), "server 2: it claims an impossible point"),
        (point(9, 0), "server 2: it claims to be ahead"),
    ] {
        let mut owner = five(2 * PERIOD, 2);
        owner.write(1, 1).unwrap();
        owner.servers.world().claims[1] = Some(claim);
        owner.reopen().unwrap();
        let asked = owner.servers.world().seen[1].len();
        owner.read(1).unwrap();
        assert_eq!(owner.servers.world().seen[1].len(), asked, "the server gets no request");
        let error = (0..PERIOD).find_map(|_| owner.write(2, 2).err()).unwrap().to_string();
        assert!(error.contains(expected) && error.contains("shares repair"), "{error}");
        owner.servers.world().claims[1] = None;
        owner.reopen().unwrap();
        owner.read_all();
        owner.array.check(&mut |_| ()).unwrap();
    }
}

#[test]
fn an_old_directory_is_refused_despite_missing_servers() {
    let mut owner = five(2 * PERIOD, 2);
    set_missing(&owner, &[3, 4], true);
    let old = owner.log.clone();
    owner.write(1, 2).unwrap();
    owner.write(1, 3).unwrap();
    let new = std::mem::replace(&mut owner.log, old);
    assert_eq!(owner.probe_rollback().unwrap(), RollbackProbe::Seen);
    // Only one of the servers that are ahead answers: the client neither believes it nor continues.
    set_missing(&owner, &[3, 4], false);
    set_missing(&owner, &[0, 1], true);
    let error = owner.probe_rollback().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    let error = error.to_string();
    let expected =
        "ahead of the client's directory: server 3. Not answering: server 1, server 2. Either";
    assert!(error.contains(expected), "{error}");
    set_missing(&owner, &[0, 1], false);
    assert_eq!(owner.probe_rollback().unwrap(), RollbackProbe::Seen);
    owner.log = new;
    owner.reopen().unwrap();
    owner.read_all();
}

#[test]
fn one_server_cannot_make_the_client_believe_that_its_directory_is_old() {
    let mut owner = five(2 * PERIOD + 1, 2);
    owner.servers.world().claims[2] = Some(TreePoint { evictions: 2, written: 2 });
    assert_eq!(owner.probe_rollback().unwrap(), RollbackProbe::NotYet);
    owner.reopen().unwrap();
    owner.servers.world().claims[2] = None;
    owner.read_all();
}

/// While servers are missing, requests do not depend on the workload. Requests to a server that
/// catches up depend only on the counts of evictions and writes.
#[test]
fn what_is_asked_while_servers_are_missing_does_not_depend_on_what_the_owner_does() {
    let seen = |want: fn(u64) -> Want| {
        let mut owner = five(0, 5);
        let mut choices = StdRng::seed_from_u64(6);
        for i in 0..100 {
            let server = choices.random_range(0..5);
            set_missing(&owner, &[server], true);
            for _ in 0..choices.random_range(0..PERIOD) {
                let is_last = points(&owner).iter().any(|it| it.written as u64 + 1 == PERIOD);
                if !is_last {
                    owner.access(&[(want(i), None)]).unwrap();
                }
            }
            set_missing(&owner, &[server], false);
            owner.access(&[(want(i), None)]).unwrap();
        }
        let shape = |request: &Request| {
            let is_fetch = matches!(request, Request::Fetch { .. });
            (request.encode().len(), is_fetch)
        };
        let seen = &owner.servers.world().seen;
        seen.iter().map(|seen| seen.iter().map(shape).collect()).collect::<Vec<Vec<_>>>()
    };
    let (same, all, nothing) =
        (seen(|_| Want::Block(7)), seen(|i| Want::Block(i % BLOCKS)), seen(|_| Want::Dummy));
    assert!(same == all && all == nothing);
    assert!(same.iter().flatten().any(|(_, is_fetch)| *is_fetch));
}
