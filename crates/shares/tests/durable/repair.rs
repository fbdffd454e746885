//! Tests of repairing servers that have lost their shares.

use std::ops::Range;

use oblivio_core::durable::{Contents, Want};
use oblivio_core::{Error, ErrorKind, StoreErrorKind};
use oblivio_shares::durable::{Checked, Need, Repaired, check_others, needs_repair, repair};
use oblivio_shares::field::Gf256;
use oblivio_shares::message::{Answer, Refusal, Request, TreePoint};
use oblivio_shares::sharing::recover;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::owner::{BLOCKS, KINDS, Owner, PRESET, key};
use crate::repairs::{disks_of, opened};
use crate::{parties, step};
use oblivio_testkit::ShareDisk;

/// Replaces the disk of a server with an empty one.
pub(crate) fn lose(owner: &Owner, server: usize) {
    let mut world = owner.servers.world();
    world.disks[server] = ShareDisk::default();
    world.restart(server);
}

fn checked(owner: &Owner, server: usize) -> Result<Checked, Error> {
    check_others(&mut owner.servers.clone(), &owner.params, &key(), server, &mut |_| ())
}

pub(crate) fn repaired(owner: &Owner, server: usize) -> Result<Repaired, Error> {
    repair(
        &mut owner.servers.clone(),
        &owner.params,
        &key(),
        (server, &Checked::default()),
        &mut |_| (),
    )
}

/// Checks the other servers, then removes the shares of a server, and repairs it.
pub(crate) fn check_and_repair(owner: &Owner, server: usize) -> Result<Repaired, Error> {
    let checked = checked(owner, server)?;
    lose(owner, server);
    let mut servers = owner.servers.clone();
    let repaired = repair(&mut servers, &owner.params, &key(), (server, &checked), &mut |_| ())?;
    owner.wrong.0.lock().unwrap().remove(&server);
    Ok(repaired)
}

fn need(owner: &Owner, server: usize) -> Need {
    needs_repair(&mut owner.servers.clone(), &owner.params, server).unwrap()
}

/// A server that cannot open its files is not rebuilt. It may still have all its shares, for
/// example if it has only run out of file descriptors.
#[test]
fn a_server_that_cannot_open_its_files_is_not_rebuilt() {
    use StoreErrorKind::{Failed, Full, Refused};
    let owner = Owner::new(parties(3, 1), 1);
    let needs = || needs_repair(&mut owner.servers.clone(), &owner.params, 1);
    for kind in [Failed, Full, Refused] {
        let why = "too few file descriptors".to_owned();
        owner.servers.world().refuses[1] = Some(Refusal { kind, why });
        let error = needs().unwrap_err();
        assert_eq!(error.store_kind(), Some(kind), "{error}");
        assert!(error.to_string().contains("too few file descriptors"), "{error}");
    }
    owner.servers.world().refuses[1] = None;
    assert_eq!(needs().unwrap(), Need::Nothing);
}

/// A server that is ahead of the others is not called rolled back while some servers do not answer,
/// because those may have the last writes, too.
#[test]
fn a_server_ahead_of_the_others_is_no_rollback_while_some_are_silent() {
    let owner = Owner::new(parties(5, 1), 1);
    let needs = || needs_repair(&mut owner.servers.clone(), &owner.params, 2);
    owner.servers.world().claims[2] = Some(TreePoint { evictions: 40, written: 0 });
    assert_eq!(needs().unwrap_err().kind(), ErrorKind::StoreRolledBack);
    owner.servers.world().missing[0] = true;
    let error = needs().unwrap_err();
    assert_eq!(error.store_kind(), Some(StoreErrorKind::Unreachable), "{error}");
    assert!(error.to_string().contains("server 1"), "{error}");
}

#[test]
fn an_empty_server_is_rebuilt_wherever_the_others_are() {
    for (servers, colluding) in [(3, 1), (5, 1), (5, 2)] {
        let mut owner = Owner::new(parties(servers, colluding), 1);
        let mut choices = StdRng::seed_from_u64(2);
        for _ in 0..30 {
            let at = owner.servers.world().asked + choices.random_range(1..12);
            let does = (0..servers).map(|_| choices.random()).collect();
            owner.servers.world().stop = Some((at, does));
            while step(&mut owner, &mut choices).is_ok() {}
            owner.servers.connect();
            let lost = choices.random_range(0..usize::from(servers));
            lose(&owner, lost);
            assert_eq!(need(&owner, lost), Need::Shares);
            checked(&owner, lost).unwrap();
            assert_eq!(repaired(&owner, lost).unwrap(), Repaired::default());
            assert_ne!(need(&owner, lost), Need::Shares);
            owner.reopen().unwrap();
        }
        owner.read_all();
        owner.array.check(&mut |_| ()).unwrap();
    }
}

/// A server that lies only after the check is detected. If only *t* + 1 servers answer, their
/// shares can only be verified by the seal of their block.
#[test]
fn a_server_that_lies_after_the_check_is_detected() {
    for of_kind in KINDS {
        let mut owner = of_kind(parties(3, 1), 2);
        (0..20).for_each(|i| owner.write(i, i as u8).unwrap());
        let before = checked(&owner, 2).unwrap();
        lose(&owner, 2);
        owner.servers.world().lying[0] = true;
        let mut servers = owner.servers.clone();
        let made = repair(&mut servers, &owner.params, &key(), (2, &before), &mut |_| ());
        let message = made.unwrap_err().to_string();
        assert!(message.contains("is incomplete: repeat the repair"), "{message}");
        // The server does not count as repaired.
        assert_eq!(need(&owner, 2), Need::Shares);
        owner.servers.world().lying[0] = false;
        lose(&owner, 2);
        let mut servers = owner.servers.clone();
        repair(&mut servers, &owner.params, &key(), (2, &before), &mut |_| ()).unwrap();
        owner.reopen().unwrap();
        owner.read_all();
    }
}

/// A liar cannot make another server roll back. One of five servers claims to be one eviction
/// behind. The client has continued after the eviction, so no other server rolls back.
#[test]
fn a_liar_makes_no_server_roll_back() {
    let mut owner = Owner::loaded(parties(5, 1), 1, NothingToLoad);
    lose(&owner, 0);
    let before = owner.servers.world().points();
    let at = before[1];
    let lie = TreePoint { evictions: at.evictions - 1, written: PRESET.accesses.into() };
    owner.servers.world().claims = vec![None, None, None, None, Some(lie)];
    let expected = Repaired { wrong: Vec::new(), behind: vec![4] };
    assert_eq!(check_and_repair(&owner, 0).unwrap(), expected);
    assert_eq!(owner.servers.world().points()[1..4], before[1..4]);
    // The liar repeats the lie after its repair, and does not prevent the repair of another server.
    assert_eq!(check_and_repair(&owner, 4).unwrap(), Repaired::default());
    assert_eq!(check_and_repair(&owner, 1).unwrap(), expected);
    owner.servers.world().claims = vec![None; 5];
    owner.reopen().unwrap();
    owner.read_all();
}

/// After a check, a repair succeeds at whatever request an access stopped. Trees may then be an
/// access or an eviction apart. So the check keeps the server's point in each tree, and the repair
/// uses the point after the shares are removed.
#[test]
fn a_repair_succeeds_after_a_check_wherever_an_access_stops() {
    let mut repairs = 0;
    for does in [[true, false, false], [false, true, true]] {
        for trip in 1.. {
            let mut owner = Owner::in_trees(parties(3, 1), 8);
            (0..51).for_each(|i| owner.write(i % 48, i as u8).unwrap());
            let at = owner.servers.world().asked + trip;
            owner.servers.world().stop = Some((at, does.to_vec()));
            if owner.write(7, 0xee).is_ok() {
                break;
            }
            let disks = disks_of(&owner);
            for server in 0..3 {
                let copy = opened(&owner, &disks);
                if checked(&copy, server).is_ok() {
                    let made = check_and_repair(&copy, server);
                    assert!(made.is_ok(), "{does:?} {trip} {server}: {}", made.unwrap_err());
                    repairs += 1;
                }
            }
        }
    }
    assert!(repairs > 60, "{repairs}");
}

struct NothingToLoad;

impl Contents for NothingToLoad {
    fn block(&mut self, _: u64, _: &mut [u8]) -> Result<bool, Error> {
        Ok(false)
    }
}

#[test]
fn a_repair_that_was_interrupted_is_begun_again_from_nothing() {
    let mut owner = Owner::new(parties(3, 1), 1);
    (0..50).for_each(|i| owner.write(i, i as u8).unwrap());
    let before = owner.servers.world().asked;
    lose(&owner, 1);
    repaired(&owner, 1).unwrap();
    let trips = owner.servers.world().asked - before;
    for stop in 1..trips {
        lose(&owner, 1);
        let at = owner.servers.world().asked + stop;
        owner.servers.world().stop = Some((at, vec![stop % 2 == 0; 3]));
        assert!(repaired(&owner, 1).is_err());
        owner.servers.connect();
        owner.servers.world().restart(1);
    }
    // A partly rebuilt server does not count, and a repair never continues on a used server.
    lose(&owner, 1);
    repaired(&owner, 1).unwrap();
    owner.reopen().unwrap();
    assert!(repaired(&owner, 1).is_err(), "the server is in use");
    owner.read_all();
    owner.array.check(&mut |_| ()).unwrap();
}

#[test]
fn a_server_with_wrong_shares_is_named_and_makes_no_others_wrong() {
    let mut owner = Owner::new(parties(5, 1), 1);
    (0..50).for_each(|i| owner.write(i, i as u8).unwrap());
    owner.servers.world().lying[3] = true;
    lose(&owner, 0);
    assert_eq!(repaired(&owner, 0).unwrap(), Repaired { wrong: vec![3], behind: Vec::new() });
    // With three other servers, the wrong one cannot be named.
    owner.servers.world().missing[1] = true;
    lose(&owner, 0);
    assert_eq!(repaired(&owner, 0).unwrap_err().kind(), ErrorKind::Corrupt);
    owner.servers.world().lying[3] = false;
    lose(&owner, 0);
    repaired(&owner, 0).unwrap();
    owner.servers.world().missing[1] = false;
    owner.reopen().unwrap();
    owner.array.check(&mut |_| ()).unwrap();
    (0..BLOCKS).for_each(|i| owner.read(i).unwrap());
}

/// A repair removes no shares before it knows that the other servers have the volume. If the user
/// names the wrong server, that server must still have its shares when the mistake is found.
#[test]
fn nothing_is_removed_before_the_others_are_known_to_have_it() {
    let mut owner = Owner::new(parties(3, 1), 1);
    (0..50).for_each(|i| owner.write(i, i as u8).unwrap());
    (0..3).for_each(|server| drop(checked(&owner, server).unwrap()));
    // With three servers, only the seals detect a wrong one.
    owner.servers.world().lying[1] = true;
    let kinds = [0, 1, 2].map(|server| checked(&owner, server).err().map(|error| error.kind()));
    assert_eq!(kinds, [Some(ErrorKind::Corrupt), None, Some(ErrorKind::Corrupt)]);
    owner.servers.world().lying[1] = false;
    // A server that was rolled back is no source for another.
    let behind = TreePoint { evictions: 2, written: 1 };
    owner.servers.world().claims = vec![None, Some(behind), None];
    checked(&owner, 1).unwrap();
    assert!(checked(&owner, 0).is_err() && checked(&owner, 2).is_err());
    // A server ahead of all others is not lost.
    owner.servers.world().claims = vec![Some(behind), Some(behind), None];
    let error = needs_repair(&mut owner.servers.clone(), &owner.params, 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRolledBack);
    owner.servers.world().claims = vec![None; 3];
    owner.servers.world().hosts.swap(0, 1);
    // Servers 1 and 2 are swapped.
    let error = checked(&owner, 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreMismatch, "{error}");
    assert!(error.to_string().contains("in another order than"), "{error}");
    // Server 3 accepts its setup, so only server 2 is wrong.
    let error = checked(&owner, 0).unwrap_err();
    assert_eq!(error.store_kind(), Some(StoreErrorKind::Damaged), "{error}");
    assert!(error.to_string().contains("server 2: "), "{error}");
}

#[test]
fn with_too_few_others_nothing_is_made() {
    let mut owner = Owner::new(parties(3, 1), 1);
    (0..20).for_each(|i| owner.write(i, i as u8).unwrap());
    lose(&owner, 2);
    owner.servers.world().missing[0] = true;
    let error = repaired(&owner, 2).unwrap_err().to_string();
    assert!(error.contains("server 1: it does not answer"), "{error}");
    owner.servers.world().missing[0] = false;
    repaired(&owner, 2).unwrap();
    assert!(repaired(&owner, 3).is_err(), "there is no such server");
    owner.reopen().unwrap();
    owner.read_all();
}

/// A server is not repaired from servers that lack its last write. A server that was rolled back by
/// one write looks like a server after a crash. If the only server with a write were rebuilt from
/// servers without it, the write would be lost.
#[test]
fn no_server_is_repaired_from_one_that_lacks_its_last_write() {
    for (servers, colluding, is_evicted) in
        [(3, 1, false), (3, 1, true), (5, 2, false), (5, 2, true), (5, 1, false)]
    {
        let mut owner = Owner::new(parties(servers, colluding), 1);
        let writes = if is_evicted { 20 } else { 22 };
        (0..writes).for_each(|i| owner.write(i, i as u8).unwrap());
        let at = owner.servers.world().points()[0];
        let before = match is_evicted {
            true => TreePoint { evictions: at.evictions - 1, written: PRESET.accesses.into() },
            false => TreePoint { written: at.written - 1, ..at },
        };
        assert_eq!((at.written == 0, need(&owner, 0)), (is_evicted, Need::Nothing));
        // Only *t* other servers have the last write.
        let set_back = usize::from(servers - 1 - colluding);
        for server in 0..set_back {
            owner.servers.world().claims[server] = Some(before);
        }
        let has_it = set_back;
        let error = checked(&owner, has_it).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreMismatch, "{error}");
        assert!(error.to_string().contains("server 1 lacks the last writes"), "{error}");
        assert_eq!(need(&owner, 0), Need::LastWrites);
        // A rolled-back server is repaired from the servers with the last write if they are enough.
        // If a second server lacks an eviction, the eviction is rolled back instead.
        let are_enough = usize::from(colluding) < usize::from(servers) - set_back;
        if are_enough && (set_back == 1 || !is_evicted) {
            checked(&owner, 0).unwrap();
        }
        // An empty server has no write to lose. (An eviction that servers deny would be lost.)
        lose(&owner, has_it);
        assert!(is_evicted || checked(&owner, has_it).is_ok());
    }
}

/// Either of two rolled-back servers can be repaired first. Two of five servers, one of which may
/// collude, were rolled back equally.
#[test]
fn either_of_two_rolled_back_servers_can_be_repaired_first() {
    for is_evicted in [false, true] {
        let mut owner = Owner::new(parties(5, 1), 1);
        let writes = if is_evicted { 20 } else { 22 };
        (0..writes - 1).for_each(|i| owner.write(i, i as u8).unwrap());
        let set_back = [0, 1].map(|server| owner.servers.world().disks[server].copy());
        owner.write(writes - 1, 77).unwrap();
        assert_eq!(owner.servers.world().points()[0].written == 0, is_evicted);
        for (server, disk) in set_back.into_iter().enumerate() {
            let mut world = owner.servers.world();
            if is_evicted {
                let back = Request::RollBack { evictions: world.points()[server].evictions - 1 };
                assert_eq!(world.answer_in(server, 0, &back), Answer::Done);
            } else {
                world.disks[server] = disk;
                world.restart(server);
            }
        }
        if !is_evicted {
            // A server with the last write and wrong shares is rebuilt from the two others that
            // have the write.
            assert_eq!(check_and_repair(&owner, 2).unwrap(), Repaired::default());
            assert_eq!(need(&owner, 2), Need::Nothing);
        }
        for server in [0, 1] {
            let behind = if is_evicted && server == 0 { vec![1] } else { Vec::new() };
            let expected = Repaired { wrong: Vec::new(), behind };
            assert_eq!(check_and_repair(&owner, server).unwrap(), expected);
        }
        owner.reopen().unwrap();
        owner.read_all();
        owner.array.check(&mut |_| ()).unwrap();
    }
}

/// A liar that claims to be one step ahead does not make other servers seem to lack a write, as
/// long as all servers answer.
#[test]
fn a_liar_by_a_step_makes_no_other_seem_to_be_behind() {
    let mut owner = Owner::new(parties(3, 1), 1);
    (0..22).for_each(|i| owner.write(i, i as u8).unwrap());
    let at = owner.servers.world().points()[0];
    let [before, after] =
        [at.written - 1, at.written + 1].map(|written| TreePoint { written, ..at });
    owner.servers.world().claims[1] = Some(after);
    assert_eq!(need(&owner, 0), Need::Nothing);
    // A silent server may be at the same point.
    owner.servers.world().missing[2] = true;
    assert_eq!(need(&owner, 0), Need::LastWrites);
    owner.servers.world().missing[2] = false;
    owner.servers.world().claims[1] = Some(before);
    assert_eq!([0, 1].map(|server| need(&owner, server)), [Need::Nothing, Need::LastWrites]);
}

/// A wrong label does not become part of a rebuilt server. A label is shared like the rest of a
/// slot, but not sealed. A client with the key computes the label from the block in the slot, and
/// so detects a wrong label.
#[test]
fn a_wrong_label_is_not_made_part_of_a_new_server() {
    let mut owner = Owner::in_trees(parties(3, 1), 5);
    for i in 0..BLOCKS {
        owner.access(&[(Want::Block(i), None), (Want::Dummy, None)]).unwrap();
    }
    owner.checkpoint().unwrap();
    let (mut of_blocks, mut of_dummies) = (0, 0);
    // Each leaf has two places, and each other bucket except the root has one.
    for (file, buckets) in [("leaves", 2 * 16), ("siblings", 14)] {
        let contents = |owner: &Owner| -> Vec<Vec<u8>> {
            owner.servers.world().disks.iter().map(|disk| disk.content(file)).collect()
        };
        let all = contents(&owner);
        let bytes = all[0].len() / (buckets * usize::from(PRESET.slots));
        let held = |at: &Range<usize>, second: usize| {
            let shares = [&all[0][at.clone()], &all[second][at.clone()]];
            recover::<Gf256>(&[1, second as u8 + 1], &shares).unwrap()
        };
        let slots = (0..all[0].len() / bytes).map(|slot| slot * bytes..(slot + 1) * bytes);
        // Stale places hold shares of different attempts.
        let whole = slots.filter(|at| held(at, 1) == held(at, 2));
        let (blocks, dummies): (Vec<_>, Vec<_>) = whole
            .filter(|at| held(at, 1).iter().any(|byte| *byte != 0))
            .partition(|at| held(at, 1)[..3] != [0; 3]);
        for (slots, found) in [(blocks, &mut of_blocks), (dummies, &mut of_dummies)] {
            for at in slots.iter().step_by(1 + slots.len() / 8) {
                let disk = owner.servers.world().disks[0].clone();
                disk.overwrite(file, at.start, &[all[0][at.start] ^ 1]);
                *found += usize::from(checked(&owner, 2).is_err());
                disk.overwrite(file, at.start, &[all[0][at.start]]);
            }
        }
    }
    assert!(of_blocks > 5 && of_dummies > 0, "{of_blocks} {of_dummies}");
    assert_eq!(check_and_repair(&owner, 2).unwrap(), Repaired::default());
    owner.reopen().unwrap();
    owner.read_all();
}
