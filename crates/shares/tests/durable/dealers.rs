//! Servers that have given wrong answers do not deal in evictions until they are repaired, even
//! after the volume is reopened.

use oblivio_core::StoreErrorKind;
use oblivio_core::durable::Want;
use oblivio_core::durable::WrongServers;
use oblivio_shares::message::Request;

use crate::owner::{BLOCK_BYTES, BLOCKS, KINDS, Owner, PRESET};
use crate::parties;
use crate::repair::check_and_repair;

/// The dealers of all evictions that began, in order.
fn dealers(owner: &Owner) -> Vec<Vec<u8>> {
    let seen = owner.servers.world().seen[0].clone();
    let dealers = seen.into_iter().filter_map(|request| match request {
        Request::Evict { dealers, .. } => Some(dealers),
        _ => None,
    });
    dealers.collect()
}

fn last_dealers(owner: &Owner) -> Vec<u8> {
    dealers(owner).pop().unwrap()
}

/// Makes as many accesses as are between two evictions, which must lead to an eviction.
fn evict(owner: &mut Owner) {
    let before = dealers(owner).len();
    (0..u64::from(PRESET.accesses)).for_each(|i| owner.read(i).unwrap());
    assert!(dealers(owner).len() > before);
}

#[test]
fn a_server_that_has_answered_wrong_does_not_deal_until_it_is_repaired() {
    let mut owner = Owner::new(parties(5, 1), 2);
    (0..20).for_each(|i| owner.write(i, i as u8).unwrap());
    evict(&mut owner);
    assert_eq!(last_dealers(&owner), [1, 2, 3]);
    owner.servers.world().lying_of_blocks[1] = true;
    evict(&mut owner);
    assert_eq!((last_dealers(&owner), owner.wrong.listed()), (vec![1, 3, 4], vec![1]));
    owner.servers.world().lying_of_blocks[1] = false;
    owner.checkpoint().unwrap();
    owner.reopen().unwrap();
    evict(&mut owner);
    assert_eq!(last_dealers(&owner), [1, 3, 4]);
    check_and_repair(&owner, 1).unwrap();
    owner.reopen().unwrap();
    evict(&mut owner);
    assert_eq!(last_dealers(&owner), [1, 2, 3]);
    owner.read_all();
}

/// A wrong answer found just before a crash still counts in the eviction that the next opening
/// repeats. The servers have finished the access that found the wrong answer, so the next opening
/// does not repeat the access. It repeats the eviction after the access, before it requests any
/// block.
#[test]
fn what_was_found_before_a_crash_counts_in_the_eviction_that_is_begun_again() {
    let mut owner = Owner::new(parties(5, 1), 2);
    (0..20).for_each(|i| owner.write(i, i as u8).unwrap());
    while owner.servers.world().points()[0].written + 1 < PRESET.accesses.into() {
        owner.read(1).unwrap();
    }
    let mut world = owner.servers.world();
    world.lying_of_blocks[1] = true;
    // The client stops after a select and a write.
    let at = world.asked + 3;
    world.stop = Some((at, vec![false; 5]));
    drop(world);
    owner.read(2).unwrap_err();
    owner.servers.connect();
    owner.servers.world().lying_of_blocks[1] = false;
    let before = dealers(&owner).len();
    owner.reopen().unwrap();
    assert_eq!(dealers(&owner)[before..], [[1, 3, 4]]);
}

/// Wrong shares on one of five servers lose no data: an eviction must not turn them into wrong
/// blocks on all servers.
#[test]
fn wrong_shares_of_one_server_of_five_lose_nothing() {
    for wrong in [1, 4] {
        let mut owner = Owner::new(parties(5, 1), 3);
        (0..40).for_each(|i| owner.write(i, i as u8).unwrap());
        owner.servers.world().takes_wrong[wrong] = true;
        for i in (0..BLOCKS).cycle().take(100) {
            owner.read(i).unwrap();
        }
        owner.servers.world().takes_wrong[wrong] = false;
        assert_eq!(owner.wrong.listed(), [wrong]);
        check_and_repair(&owner, wrong).unwrap();
        owner.reopen().unwrap();
        owner.read_all();
        owner.array.check(&mut |_| ()).unwrap();
    }
}

/// An eviction is refused if fewer than 2*t* + 1 servers have never given a wrong answer. With
/// three servers, a check names a server with wrong shares, but accesses cannot.
#[test]
fn an_eviction_is_refused_if_too_few_servers_have_answered_right() {
    for of_kind in KINDS {
        let mut owner = of_kind(parties(3, 1), 7);
        (0..48).for_each(|i| owner.write(i, 5).unwrap());
        owner.servers.world().lying[1] = true;
        let error = owner.array.check(&mut |_| ()).unwrap_err().to_string();
        assert!(error.contains("a share of server 2 does not fit"), "{error}");
        assert_eq!(owner.wrong.listed(), [1]);
        owner.servers.world().lying[1] = false;
        owner.reopen().unwrap();
        let before = dealers(&owner).len();
        let wanted = [const { (Want::Dummy, None) }; PRESET.accesses as usize];
        let error = owner.access(&wanted).unwrap_err();
        assert_eq!(error.store_kind(), Some(StoreErrorKind::Damaged));
        let message = error.to_string();
        assert!(message.contains("wrong shares were found on server 2"), "{message}");
        assert_eq!(dealers(&owner).len(), before, "nothing was dealt");
        check_and_repair(&owner, 1).unwrap();
        owner.reopen().unwrap();
        owner.write(1, 1).unwrap();
        owner.access(&[(Want::Block(1), Some(vec![2; BLOCK_BYTES]))]).unwrap();
        owner.read_all();
    }
}
