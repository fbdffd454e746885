//! Tests of an array with its position map in trees on the servers. It must behave like an array
//! with the map on the client.

use oblivio_core::durable::{DurableConfig, Recoverability, Save, Want};
use oblivio_core::scheme::{Op, RollbackProbe};
use oblivio_core::{ErrorKind, StoreErrorKind};
use oblivio_shares::durable::{Need, S3OramParams, check_others, needs_repair, repair};
use oblivio_shares::map_trees::MapShape;
use oblivio_shares::message::{Refusal, TreePoint};
use oblivio_shares::tree::Preset;
use oblivio_shares::view::heights;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::owner::{BLOCK_BYTES, BLOCKS, MARK_PAGES_BYTES, Owner, PRESET, key};
use crate::repair::lose;
use crate::{parties, step};

fn owner(seed: u64) -> Owner {
    Owner::in_trees(parties(3, 1), seed)
}

#[test]
fn what_is_read_is_what_was_written() {
    for (servers, colluding) in [(3, 1), (5, 2)] {
        let mut owner = Owner::in_trees(parties(servers, colluding), 1);
        let mut choices = StdRng::seed_from_u64(2);
        for _ in 0..300 {
            step(&mut owner, &mut choices).unwrap();
        }
        owner.read_all();
        let (live, buckets) = (owner.expected.len() as u64, owner.array.buckets_written());
        let mut read = 0;
        assert_eq!(owner.array.check(&mut |done| read = done).unwrap(), live);
        assert_eq!(read, buckets);
        owner.checkpoint().unwrap();
        owner.reopen().unwrap();
        owner.read_all();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For trees of any shape and for any accesses, each read returns the data that the owner last
    /// wrote to the block, or zeros if there was no write.
    #[test]
    fn any_accesses_find_what_a_list_of_blocks_would_hold(
        blocks in 2u64..300,
        block_bytes in 14usize..60,
        entries in 1u64..20,
        preset in prop::sample::select(vec![PRESET, Preset { slots: 48, accesses: 9 }]),
        accesses in prop::collection::vec((any::<u64>(), any::<Option<u8>>()), 1..100),
        seed in any::<u64>(),
    ) {
        let shape = MapShape { block_bytes, client_entries_max: entries };
        let params = S3OramParams::new(blocks, BLOCK_BYTES as u32, parties(3, 1), preset).unwrap();
        let params = params.with_map_in_trees(shape);
        prop_assume!(params.is_ok());
        let mut owner = Owner::of(params.unwrap(), seed, None);
        for (address, fill) in accesses {
            // Half of the accesses are for few blocks, so that these repeat soon.
            let address = if address % 2 == 0 { address % 3 } else { address } % blocks;
            match fill {
                Some(fill) => owner.write(address, fill).unwrap(),
                None => owner.read(address).unwrap(),
            }
        }
    }
}

#[test]
fn plans_are_for_one_state() {
    let mut owner = owner(11);
    (0..20).for_each(|i| owner.write(i, i as u8).unwrap());
    owner.read_ahead(&[vec![3, 3, 10, 50], vec![3, 11, 50, 18], vec![3; 7]]).unwrap();
    let plan =
        |owner: &mut Owner| owner.array.plan(&[Want::Block(5)], &[], &mut owner.coins).unwrap();
    let (stale, other) = (plan(&mut owner), plan(&mut owner));
    let mut found = [1; BLOCK_BYTES];
    owner.array.carry_out(&other, &mut [Op::Read(&mut found)]).unwrap();
    assert_eq!(found, [5; BLOCK_BYTES]);
    let error = owner.array.carry_out(&stale, &mut [Op::Read(&mut found)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
}

/// No data is lost if the client stops at any request of an access or an eviction, in any tree.
#[test]
fn nothing_is_lost_wherever_the_client_stops() {
    let mut owner = owner(3);
    let mut choices = StdRng::seed_from_u64(4);
    let mut stops = 0;
    for _ in 0..160 {
        let stop = |owner: &mut Owner, choices: &mut StdRng, within: usize| {
            let at = owner.servers.world().asked + choices.random_range(1..within);
            let does = (0..3).map(|_| choices.random()).collect();
            owner.servers.world().stop = Some((at, does));
        };
        stop(&mut owner, &mut choices, 40);
        for _ in 0..6 {
            if step(&mut owner, &mut choices).is_err() {
                stops += 1;
                break;
            }
        }
        owner.servers.connect();
        // The client may stop again during the reopening.
        if choices.random_range(0..3) == 0 {
            stop(&mut owner, &mut choices, 40);
            stops += usize::from(owner.reopen().is_err());
            owner.servers.connect();
        }
        owner.reopen().unwrap();
    }
    assert!(stops > 130, "{stops}");
    owner.read_all();
    owner.array.check(&mut |_| ()).unwrap();
}

#[test]
fn nothing_is_lost_wherever_a_server_dies() {
    let mut owner = owner(9);
    let mut choices = StdRng::seed_from_u64(10);
    let mut died = 0;
    for _ in 0..120 {
        let server = choices.random_range(0..3);
        owner.servers.world().disks[server].dies_after(choices.random_range(1..120));
        for _ in 0..3 {
            if step(&mut owner, &mut choices).is_err() {
                died += 1;
                break;
            }
        }
        owner.servers.world().restart(server);
        owner.reopen().unwrap();
    }
    assert!(died > 40, "{died}");
    assert!((0..3).all(|i| owner.servers.world().disks[i].power_losses() > 10));
    owner.read_all();
    owner.array.check(&mut |_| ()).unwrap();
}

/// A server may restart between any two messages. It then lacks the query, so the client sends the
/// query again. The owner does not notice.
#[test]
fn a_server_may_be_started_again_between_any_two_messages() {
    let mut owner = owner(5);
    for i in 0..60 {
        let at = owner.servers.world().asked + i as usize % 10;
        owner.servers.world().starts_again = vec![(at, i as usize % 3)];
        owner.write(i % BLOCKS, i as u8).unwrap();
    }
    owner.read_all();
    owner.array.check(&mut |_| ()).unwrap();
}

/// A server may restart again and again during an access. It loses the query at each restart, but
/// the access succeeds within the retry limit.
#[test]
fn a_server_may_be_started_again_and_again_during_an_access() {
    let mut owner = owner(5);
    owner.write(1, 1).unwrap();
    // Restart before the write, and before each repetition, which is a select and a write.
    let before_writes = |owner: &Owner, count: usize| {
        let asked = owner.servers.world().asked;
        (0..count).map(|i| (asked + 3 + 2 * i, 1)).collect()
    };
    owner.servers.world().waits_for_links = 3;
    owner.servers.world().starts_again = before_writes(&owner, 4);
    owner.write(1, 2).unwrap();
    assert!(owner.servers.world().starts_again.is_empty());
    // If the restarts do not end, the error reports lost links.
    owner.servers.world().starts_again = before_writes(&owner, 6);
    let error = owner.write(1, 3).unwrap_err();
    assert_eq!(error.store_kind(), Some(StoreErrorKind::Unreachable), "{error}");
    owner.servers.world().starts_again.clear();
    owner.reopen().unwrap();
    owner.read_all();
}

/// A final failure is reported while another server restarts. A write needs all servers, so it
/// fails if one server's disk is full. The client reports this without waiting to resend a request
/// to the server that restarts.
#[test]
fn a_final_failure_is_reported_while_another_server_restarts() {
    let mut owner = owner(5);
    owner.write(1, 1).unwrap();
    {
        let mut world = owner.servers.world();
        world.waits_for_links = 3;
        let asked = world.asked;
        world.starts_again = (0..6).map(|i| (asked + 3 + 2 * i, 1)).collect();
        let why = "disk full".into();
        world.refuses_writes[2] = Some(Refusal { kind: StoreErrorKind::Full, why });
    }
    let error = owner.write(1, 2).unwrap_err();
    assert_eq!(error.store_kind(), Some(StoreErrorKind::Full), "{error}");
    // Two restarts took place: before the write, and before its one repetition without a wait.
    assert_eq!(owner.servers.world().starts_again.len(), 4);
    owner.servers.world().starts_again.clear();
    owner.servers.world().refuses_writes[2] = None;
    owner.reopen().unwrap();
    owner.read_all();
}

#[test]
fn an_old_directory_is_refused() {
    let mut owner = owner(6);
    (0..10).for_each(|i| owner.write(i, 1).unwrap());
    let old = owner.log.clone();
    assert_eq!(owner.probe_rollback().unwrap(), RollbackProbe::NotYet);
    owner.write(1, 2).unwrap();
    let new = std::mem::replace(&mut owner.log, old);
    assert_eq!(owner.probe_rollback().unwrap(), RollbackProbe::Seen);
    owner.log = new;
    owner.reopen().unwrap();
    owner.read_all();
}

#[test]
fn states_and_sections_are_as_long_as_is_said() {
    let mut owner = owner(7);
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
        let plan = owner.array.plan(&[Want::Block(i)], &[], &mut owner.coins).unwrap();
        assert_eq!(plan.encoded().section().len() as u64, size.plan_bytes_per_access);
        owner.write(i, 3).unwrap();
    }
}

/// The client's directory counts as old if servers have more accesses in any tree. An access writes
/// the last map tree first, so if a client stops there, servers have the access only in that tree.
#[test]
fn a_directory_is_old_if_servers_know_more_of_any_tree() {
    let mut owner = owner(6);
    (0..10).for_each(|i| owner.write(i, 1).unwrap());
    let old = owner.log.clone();
    let at = owner.servers.world().asked + 4;
    owner.servers.world().stop = Some((at, vec![false; 3]));
    owner.write(1, 2).unwrap_err();
    owner.servers.connect();
    let written = [0, 1, 2].map(|tree| owner.servers.world().points_in(tree)[0].written);
    assert_eq!(written, [2, 2, 3]);
    let new = std::mem::replace(&mut owner.log, old);
    assert_eq!(owner.probe_rollback().unwrap(), RollbackProbe::Seen);
    owner.log = new;
    owner.reopen().unwrap();
    owner.read_all();
}

/// No data is lost if a disk reports a sync and then loses the last write of one tree. The client
/// repeats the access, although all servers have it in the data tree.
#[test]
fn a_disk_that_lies_about_the_last_write_of_any_tree_loses_nothing() {
    let mut lied = [0; 3];
    for (stop, tree) in (3..26).flat_map(|stop| [0, 1, 2].map(|tree| (stop, tree))) {
        let mut owner = owner(26);
        // With the next access, all roots are full.
        (0..11).for_each(|i| owner.write(i, 1).unwrap());
        let name = ["root", "root.1", "root.2"][tree];
        let disk = owner.servers.world().disks[1].clone();
        let (before, was_at) = (disk.content(name), owner.servers.world().points_in(tree as u8)[1]);
        let at = owner.servers.world().asked + stop;
        owner.servers.world().stop = Some((at, vec![false; 3]));
        let _ = owner.write(3, 9);
        owner.servers.connect();
        let after = TreePoint { written: was_at.written + 1, ..was_at };
        if owner.servers.world().points_in(tree as u8)[1] != after {
            continue;
        }
        lied[tree] += 1;
        disk.overwrite(name, 0, &before);
        owner.servers.world().restart(1);
        owner.reopen().unwrap();
        owner.read_all();
        owner.array.check(&mut |_| ()).unwrap();
    }
    // Trees with higher numbers are evicted later, so more stops can lose their last write.
    assert!(lied[0] > 2 && lied[1] > lied[0] + 3 && lied[2] > lied[1] + 3, "{lied:?}");
}

/// A liar is detected in an access of any kind, whether it changes metadata or a block.
#[test]
fn a_liar_is_detected_whatever_the_access_is_for() {
    let liars: [(_, &[usize]); 4] =
        [((3, 1), &[1]), ((5, 2), &[1]), ((5, 2), &[1, 3]), ((5, 2), &[0, 4])];
    for ((servers, colluding), liars) in liars {
        for wanted in [Want::Dummy, Want::Block(3), Want::Block(50)] {
            for of_blocks in [false, true] {
                let mut owner = Owner::in_trees(parties(servers, colluding), 8);
                (0..10).for_each(|i| owner.write(i, 1).unwrap());
                let mut world = owner.servers.world();
                let before = world.asked;
                let lying = if of_blocks { &mut world.lying_of_blocks } else { &mut world.lying };
                liars.iter().for_each(|liar| lying[*liar] = true);
                drop(world);
                let error = owner.access(&[(wanted, None)]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                // The metadata is requested from all servers first.
                assert_eq!(owner.servers.world().asked, before + 1 + usize::from(of_blocks));
            }
        }
    }
}

/// An empty server can be rebuilt, at whatever request the client stopped. In the middle of an
/// access, the map trees are one write ahead of the data tree, and the access is repeated.
#[test]
fn an_empty_server_is_rebuilt_during_an_access() {
    for (servers, colluding) in [(3, 1), (5, 2)] {
        let mut owner = Owner::in_trees(parties(servers, colluding), 21);
        let mut choices = StdRng::seed_from_u64(22);
        let params = owner.params.clone();
        for _ in 0..40 {
            let at = owner.servers.world().asked + choices.random_range(1..40);
            let does = (0..servers).map(|_| choices.random()).collect();
            owner.servers.world().stop = Some((at, does));
            while step(&mut owner, &mut choices).is_ok() {}
            owner.servers.connect();
            let lost = choices.random_range(0..usize::from(servers));
            let volume = &mut owner.servers.clone();
            // The server may only have wrong shares, and still report its point. If it alone has
            // the write in progress, another server must be repaired first.
            let is_wrong: bool = choices.random();
            if !is_wrong || check_others(volume, &params, &key(), lost, &mut |_| ()).is_err() {
                lose(&owner, lost);
            }
            // With five servers, repair those that are an eviction behind next.
            let mut next = vec![lost];
            while let Some(server) = next.pop() {
                let checked = check_others(volume, &params, &key(), server, &mut |_| ()).unwrap();
                lose(&owner, server);
                let repaired =
                    repair(volume, &params, &key(), (server, &checked), &mut |_| ()).unwrap();
                assert_ne!(needs_repair(volume, &params, server).unwrap(), Need::Shares);
                next.extend(repaired.behind);
            }
            owner.reopen().unwrap();
        }
        owner.read_all();
        owner.array.check(&mut |_| ()).unwrap();
    }
}

/// Damaged marks of another server are found before a repair removes shares. All blocks are valid,
/// but a server that is rebuilt with the wrong marks would be damaged, too.
#[test]
fn damaged_marks_of_another_server_are_found_before_anything_is_removed() {
    let mut owner = owner(25);
    // Three blocks are in the root, and no slot before them is empty.
    (0..43).for_each(|i| owner.write(i % BLOCKS, i as u8).unwrap());
    let (params, servers) = (owner.params.clone(), &mut owner.servers.clone());
    check_others(servers, &params, &key(), 0, &mut |_| ()).unwrap();
    let disk = owner.servers.world().disks[1].clone();
    let pages_at = disk.content("root").len() - MARK_PAGES_BYTES;
    disk.overwrite("root", pages_at, &[0; MARK_PAGES_BYTES / 31]);
    let error = check_others(servers, &params, &key(), 0, &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("Nothing was removed"), "{error}");
}

/// A check names a server with wrong shares, because blocks are sealed.
#[test]
fn a_check_finds_wrong_shares_of_one_server() {
    for (servers, colluding) in [(3, 1), (5, 2)] {
        let mut owner = Owner::in_trees(parties(servers, colluding), 23);
        (0..20).for_each(|i| owner.write(i, 1).unwrap());
        owner.array.check(&mut |_| ()).unwrap();
        owner.servers.world().lying[1] = true;
        let error = owner.array.check(&mut |_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("a share of server 2 does not fit"), "{error}");
    }
}

#[test]
fn a_check_detects_an_equal_rollback_of_all_servers() {
    let mut owner = owner(8);
    (0..9).for_each(|i| owner.write(i, 1).unwrap());
    owner.array.check(&mut |_| ()).unwrap();
    // Roll back the same map block on all servers, with its valid seal: the whole file except the
    // record.
    let disks = owner.servers.world().disks.clone();
    let before: Vec<_> = disks.iter().map(|disk| disk.content("root.1")).collect();
    owner.write(1, 2).unwrap();
    for (disk, before) in disks.iter().zip(before) {
        disk.overwrite("root.1", 8192, &before[8192..]);
    }
    let error = owner.array.check(&mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn a_salvage_works_without_one_server_and_from_an_older_state() {
    let mut owner = owner(8);
    (0..50).for_each(|i| owner.write(i, i as u8).unwrap());
    (20..30).for_each(|i| owner.write(i, 0x70 + i as u8).unwrap());
    owner.forget(4);
    owner.checkpoint().unwrap();
    (0..9).for_each(|i| owner.read(i).unwrap());
    (25..35).for_each(|i| owner.write(i, 0xa0 + i as u8).unwrap());
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

/// If all servers were rolled back equally, a salvage does not call an old block the latest. The
/// map tells which blocks are outdated. If the map itself is older, the salvage calls no block the
/// latest.
#[test]
fn a_salvage_after_an_equal_rollback_calls_no_old_block_the_latest() {
    for later in [1, 5, 30] {
        let mut owner = owner(31);
        (0..BLOCKS).for_each(|i| owner.write(i, 1).unwrap());
        let before = owner.servers.world().disks.iter().map(|disk| disk.copy()).collect::<Vec<_>>();
        let written = |i: u64| (7 * i + 3) % BLOCKS;
        (0..later).for_each(|i| owner.write(written(i), 2).unwrap());
        owner.checkpoint().unwrap();
        for (server, disk) in before.into_iter().enumerate() {
            owner.servers.world().disks[server] = disk;
            owner.servers.world().restart(server);
        }
        owner.servers.connect();
        let (mut array, _) = owner.restored();
        let mut found = std::collections::HashMap::new();
        let mut each = |address, bytes: &[u8]| drop(found.insert(address, bytes.to_vec()));
        let salvage = array.salvage(&mut each, &mut |_| (), &mut |_| ()).unwrap();
        let is_old = |address| (0..later).any(|i| written(i) == address);
        for address in 0..BLOCKS {
            let recoverability = array.recoverability(&salvage, address);
            let is_doubtful = recoverability == Recoverability::Doubtful;
            assert!(
                is_doubtful || !is_old(address) && recoverability == Recoverability::Found,
                "{address} {recoverability:?}"
            );
            assert!(found.contains_key(&address));
        }
        let sure = (0..BLOCKS)
            .filter(|it| array.recoverability(&salvage, *it) == Recoverability::Found)
            .count();
        // One block of the last tree maps sixteen blocks of the data.
        assert!(later > 5 || sure >= 12, "{sure}");
    }
}

/// The shares of a server are rebuilt in all trees, including the marks of taken blocks.
#[test]
fn the_shares_of_a_server_are_rebuilt() {
    // After few writes, no eviction has reached some leaves.
    for writes in [41, 40, 43, 3, 6, 17] {
        let mut owner = owner(12);
        (0..writes).for_each(|i| owner.write(i % BLOCKS, i as u8).unwrap());
        owner.reopen().unwrap();
        let (params, servers) = (owner.params.clone(), &mut owner.servers.clone());
        assert_eq!(needs_repair(servers, &params, 1).unwrap(), Need::Nothing);
        lose(&owner, 1);
        assert_eq!(needs_repair(servers, &params, 1).unwrap(), Need::Shares);
        let mut done = 0;
        let checked = check_others(servers, &params, &key(), 1, &mut |it| done = it).unwrap();
        assert_eq!(done, params.buckets());
        let repaired = repair(servers, &params, &key(), (1, &checked), &mut |_| ()).unwrap();
        assert_eq!(repaired.wrong, [0; 0]);
        assert_eq!(needs_repair(servers, &params, 1).unwrap(), Need::Nothing);
        // The rebuilt shares survive a restart of the server.
        owner.servers.world().restart(1);
        owner.reopen().unwrap();
        owner.read_all();
        owner.array.check(&mut |_| ()).unwrap();
    }
}

#[test]
fn map_trees_require_all_servers() {
    let shape = MapShape { block_bytes: 28, client_entries_max: 5 };
    let error = crate::owner::params(parties(5, 1)).with_map_in_trees(shape).unwrap_err();
    assert!(error.to_string().contains("must be on the client"), "{error}");
    let owner = Owner::in_trees(parties(5, 2), 1);
    assert_eq!(heights(&owner.params.facts()), Some(vec![4, 2, 1]));
}
