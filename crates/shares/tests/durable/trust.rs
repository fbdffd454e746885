//! Tests of servers that lie, are missing or were rolled back.

use oblivio_core::durable::Want;
use oblivio_core::{ErrorKind, StoreErrorKind};
use oblivio_shares::field::Gf256;
use oblivio_shares::message::{Refusal, Request, Setup, TreePoint};
use oblivio_shares::servers::{Patience, ShareServers};
use oblivio_shares::sharing::Share;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::owner::{BLOCK_BYTES, KINDS, Owner};
use crate::parties;

/// Makes an access while server `liar` lies, and returns its result.
fn access_with_a_liar(want: Want, data: Option<Vec<u8>>, liar: usize) -> (ErrorKind, String) {
    let mut owner = Owner::new(parties(3, 1), 1);
    for i in 0..11 {
        owner.write(i, 5).unwrap();
    }
    owner.forget(3);
    owner.servers.world().lying[liar] = true;
    let error = owner.access(&[(want, data)]).unwrap_err();
    // The path is random, and so are the evictions named in the message.
    let message = error.to_string();
    let (before, named) = message.split_once("last written by eviction ").unwrap();
    let after = named.trim_start_matches(|it: char| it.is_ascii_digit() || ", ".contains(it));
    (error.kind(), format!("{before}{after}"))
}

#[test]
fn a_liar_among_three_servers_fails_all_accesses_alike() {
    for liar in 0..3 {
        let data = || Some(vec![1; BLOCK_BYTES]);
        let first = access_with_a_liar(Want::Block(2), None, liar);
        assert_eq!(first.0, ErrorKind::Corrupt);
        assert!(first.1.contains("lies"), "{}", first.1);
        for (want, data) in [
            (Want::Block(2), data()),
            // A block never written, a forgotten one, and a dummy.
            (Want::Block(40), None),
            (Want::Block(40), data()),
            (Want::Block(3), None),
            (Want::Dummy, data()),
        ] {
            assert_eq!(access_with_a_liar(want, data, liar), first);
        }
    }
}

#[test]
fn a_liar_among_five_servers_is_named_and_corrected() {
    let mut owner = Owner::new(parties(5, 1), 2);
    for i in 0..20 {
        owner.write(i, i as u8).unwrap();
    }
    owner.servers.world().lying[3] = true;
    owner.read_all();
    let error = owner.array.check(&mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("server 4 (60 times)"), "{error}");
}

/// With one or two of five servers missing, a liar is detected but cannot be named, because too few
/// answers remain. With all five, two liars are detected, and the error does not blame missing
/// answers.
#[test]
fn with_one_of_five_servers_missing_a_liar_cannot_be_named() {
    for (missing, is_short) in [(&[][..], false), (&[0], true), (&[0, 1], true)] {
        let mut owner = Owner::new(parties(5, 1), 2);
        for i in 0..20 {
            owner.write(i, i as u8).unwrap();
        }
        // One liar is corrected as long as all servers answer; two contradict each other.
        let liars = if missing.is_empty() { 2..4 } else { 3..4 };
        let mut world = owner.servers.world();
        missing.iter().for_each(|server| world.missing[*server] = true);
        liars.for_each(|server| world.lying[server] = true);
        drop(world);
        let error = owner.access(&[(Want::Block(2), None)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let message = error.to_string();
        assert_eq!(
            message.contains("There are too few answers to tell which server"),
            is_short,
            "{message}"
        );
    }
}

#[test]
fn servers_that_are_rolled_back_or_ahead_are_named() {
    let point = |evictions, written| TreePoint { evictions, written };
    let claims = [
        (point(0, 3), "server 2: it was rolled back"),
        (point(9, 0), "server 2: it claims to be ahead"),
        (point(u64::MAX, 0), "server 2: the server's answer does not match"),
        (point(2, 77), "server 2: it claims an impossible point"),
    ];
    for (of_kind, (claim, expected)) in KINDS.iter().flat_map(|kind| claims.map(|it| (kind, it))) {
        let mut owner = of_kind(parties(3, 1), 3);
        for i in 0..11 {
            owner.write(i, 5).unwrap();
        }
        owner.servers.world().claims[1] = Some(claim);
        let error = owner.reopen().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        owner.servers.world().claims[1] = None;
        owner.reopen().unwrap();
        owner.read_all();
    }
}

#[test]
fn one_server_that_says_it_is_behind_by_a_step_changes_nothing() {
    let mut owner = Owner::new(parties(3, 1), 4);
    for i in 0..11 {
        owner.write(i, 5).unwrap();
    }
    let points = owner.servers.world().points();
    assert_eq!(points, [TreePoint { evictions: 2, written: 3 }; 3]);
    owner.servers.world().claims[1] = Some(TreePoint { evictions: 2, written: 2 });
    owner.reopen().unwrap();
    owner.servers.world().claims[1] = None;
    owner.read_all();
}

#[test]
fn a_rollback_of_all_servers_is_refused() {
    let mut owner = Owner::new(parties(3, 1), 5);
    for i in 0..11 {
        owner.write(i, 5).unwrap();
    }
    owner.checkpoint().unwrap();
    owner.write(1, 1).unwrap();
    owner.servers.world().claims = vec![Some(TreePoint { evictions: 2, written: 2 }); 3];
    let error = owner.reopen().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRolledBack);
    assert!(error.to_string().contains("Restore the folders of the servers"), "{error}");
    let named = "server 1, server 2, server 3: it was rolled back behind the client's directory";
    assert!(error.to_string().contains(named), "{error}");
}

/// The client checks the servers before its first access. Otherwise the access would show a
/// rolled-back server that the client accepted its old state.
#[test]
fn servers_are_checked_before_the_first_access() {
    let point = |evictions, written| TreePoint { evictions, written };
    let claims = [
        (vec![Some(point(0, 1)), None, None], ErrorKind::StoreRolledBack),
        (vec![Some(point(2, 4)); 3], ErrorKind::StateRolledBack),
    ];
    let all = KINDS.iter().flat_map(|kind| claims.clone().map(|it| (kind, it)));
    for (of_kind, (claims, expected)) in all {
        let mut owner = of_kind(parties(3, 1), 5);
        (0..11).for_each(|i| owner.write(i, 5).unwrap());
        owner.checkpoint().unwrap();
        let (mut array, _) = owner.restored();
        owner.servers.world().claims = claims;
        let asked = owner.servers.world().seen[0].len();
        assert_eq!(array.check_storage().unwrap_err().kind(), expected);
        let is_look = |it: &Request| matches!(it, Request::Epoch | Request::Setup(_));
        assert!(owner.servers.world().seen[0][asked..].iter().all(is_look));
        owner.servers.world().claims = vec![None; 3];
        array.check_storage().unwrap();
        owner.read_all();
    }
}

/// A made-up attempt number is not believed. Attempt numbers only grow, and a number that one
/// server makes up must not use them up for all servers.
#[test]
fn a_made_up_attempt_number_is_not_believed() {
    for made_up in [1 << 62, u64::MAX] {
        let mut owner = Owner::new(parties(3, 1), 5);
        (0..11).for_each(|i| owner.write(i, 5).unwrap());
        owner.servers.world().attempts[1] = Some(made_up);
        let error = owner.write(1, 1).unwrap_err().to_string();
        assert!(error.contains("server 2: it claims"), "{error}");
        owner.servers.world().attempts[1] = None;
        let attempts = owner.servers.world().seen.concat().into_iter().filter_map(|it| match it {
            Request::Evict { evict, .. } => Some(evict.attempt),
            _ => None,
        });
        assert!(attempts.max().unwrap() < 10);
        owner.reopen().unwrap();
        owner.read_all();
    }
}

/// Only slow requests have a long time limit. Otherwise a server could delay every ordinary request
/// for as long as an eviction may take.
#[test]
fn only_what_may_take_long_is_waited_for_long() {
    let mut owner = Owner::new(parties(5, 1), 5);
    for i in 0..11 {
        // A server that was missing catches up.
        owner.servers.world().missing[4] = i == 4 || i == 5;
        owner.write(i, 5).unwrap();
    }
    let accesses = std::mem::take(&mut owner.servers.world().patience);
    owner.reopen().unwrap();
    let opening = std::mem::take(&mut owner.servers.world().patience);
    let all_are = |asked: &[(Request, Patience)], which: fn(&Request) -> bool, expected| {
        let of: Vec<_> = asked.iter().filter(|(request, _)| which(request)).collect();
        assert!(!of.is_empty() && of.iter().all(|(_, patience)| *patience == expected));
    };
    for which in [
        (|it| matches!(it, Request::Select { .. })) as fn(&Request) -> bool,
        |it| matches!(it, Request::Write { .. }),
        |it| matches!(it, Request::Fetch { .. }),
    ] {
        all_are(&accesses, which, Patience::Short);
    }
    // Before each access the client asks whether the server is back.
    assert!(accesses.contains(&(Request::Epoch, Patience::Short)));
    all_are(&accesses, |it| matches!(it, Request::Evict { .. }), Patience::Long);
    all_are(&accesses, |it| matches!(it, Request::Connect), Patience::Long);
    // A server may still be evicting for a lost client.
    all_are(&opening, |it| *it == Request::Epoch, Patience::Long);
    // With map trees, metadata is requested as well.
    let mut owner = Owner::in_trees(parties(3, 1), 5);
    (0..3).for_each(|i| owner.write(i, 5).unwrap());
    let accesses = std::mem::take(&mut owner.servers.world().patience);
    owner.write(3, 5).unwrap();
    let full = std::mem::take(&mut owner.servers.world().patience);
    for asked in [accesses, full] {
        all_are(&asked, |it| matches!(it, Request::Metadata { .. }), Patience::Short);
        all_are(&asked, |it| matches!(it, Request::Select { .. }), Patience::Short);
        all_are(&asked, |it| matches!(it, Request::Write { .. }), Patience::Short);
    }
}

#[test]
fn a_share_that_is_damaged_is_found() {
    let mut owner = Owner::new(parties(3, 1), 7);
    for i in 0..50 {
        owner.write(i, 5).unwrap();
    }
    owner.array.check(&mut |_| ()).unwrap();
    let mut coins = StdRng::seed_from_u64(8);
    for _ in 0..200 {
        owner.servers.world().disks[1].flips_a_bit("leaves", &mut coins);
    }
    let error = owner.array.check(&mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    // With three servers, the seals of blocks name the wrong one.
    assert!(error.to_string().contains("a share of server 2 does not fit"), "{error}");
}

#[test]
fn a_server_that_is_missing_is_named() {
    let mut owner = Owner::new(parties(3, 1), 6);
    owner.write(1, 1).unwrap();
    owner.servers.world().missing[2] = true;
    let error = owner.write(1, 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    assert!(error.to_string().contains("server 3: it does not answer"), "{error}");
    owner.servers.world().missing[2] = false;
    owner.reopen().unwrap();
    owner.read_all();
}

/// Creates an array whose servers all return the first version of a block that was written twice,
/// with the metadata of the second version. Server `missing` is missing during the writes.
fn with_an_older_block(owner: Owner, missing: Option<usize>) -> Owner {
    with_the_block_before(owner, [5, 5], missing)
}

/// Writes to the two addresses in `written`. Then replaces, on all servers but `missing`, the
/// second block with the first, and keeps the metadata of the second.
fn with_the_block_before(mut owner: Owner, written: [u64; 2], missing: Option<usize>) -> Owner {
    missing.iter().for_each(|server| owner.servers.world().missing[*server] = true);
    for (address, byte) in written.into_iter().zip(1..) {
        owner.write(address, byte).unwrap();
    }
    let slot = |share: &Share<u8>, setup: &Setup| {
        share.clone().into_elements::<Gf256>(setup.block_bytes).unwrap()
    };
    let again = |(seen, seen_in): (&Vec<Request>, &Vec<u8>)| {
        let of_data = seen.iter().zip(seen_in).filter(|(_, tree)| **tree == 0);
        let (mut setup, mut writes) = (None, Vec::new());
        for (request, _) in of_data {
            match request {
                Request::Setup(it) => setup = Some(it),
                Request::Write { at, block } => writes.push((*at, block)),
                _ => (),
            }
        }
        // A missing server gets at most one request.
        let ([(_, first), (at, second)], setup) = (<[_; 2]>::try_from(writes).ok()?, setup?);
        let metadata_bytes = setup.metadata_bytes;
        let block = [&slot(second, setup)[..metadata_bytes], &slot(first, setup)[metadata_bytes..]]
            .concat();
        Some(Request::Write { at, block: Share::Computed(block) })
    };
    let world = owner.servers.world();
    let again = world.seen.iter().zip(&world.seen_in).map(again).collect();
    let servers = world.hosts.len();
    drop(world);
    let answered = owner.servers.ask(0, again, Patience::Short);
    let done = answered.into_iter().flatten().filter(Result::is_ok);
    assert_eq!(done.count(), servers - missing.iter().count());
    missing.iter().for_each(|server| owner.servers.world().missing[*server] = false);
    owner
}

#[test]
fn an_older_version_of_a_block_is_not_taken_for_it_though_all_servers_show_it() {
    for of_kind in KINDS {
        let of_three = || with_an_older_block(of_kind(parties(3, 1), 9), None);
        let error = of_three().read(5).unwrap_err();
        assert!(error.to_string().contains("did not return what was written"), "{error}");
        assert_eq!(of_three().array.check(&mut |_| ()).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    let of_three = || with_an_older_block(Owner::new(parties(3, 1), 9), None);
    let error = of_three().array.check(&mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("not what was written"), "{error}");
    let mut found = Vec::new();
    let mut each = |address, _: &[u8]| found.push(address);
    of_three().array.salvage(&mut each, &mut |_| (), &mut |_| ()).unwrap();
    assert!(found.is_empty(), "{found:?}");
    // A server that was missing does not get the older block either.
    let of_five = Owner::new(parties(5, 1), 9);
    let error = with_an_older_block(of_five, Some(4)).read(6).unwrap_err();
    assert!(
        error.to_string().contains("a server that is catching up is not what was written"),
        "{error}"
    );
}

/// A block whose metadata names another block is not accepted as that block. The metadata names the
/// block of a slot, and so does the seal of the block.
#[test]
fn a_block_in_a_slot_that_says_that_it_is_another_ones_is_not_taken_for_it() {
    let of_three = || with_the_block_before(Owner::in_trees(parties(3, 1), 9), [5, 6], None);
    let error = of_three().read(6).unwrap_err().to_string();
    assert!(error.contains("did not return what was written"), "{error}");
    let error = of_three().array.check(&mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("a block is not what was written"), "{error}");
}

/// A server that reports an unknown version does not decide the kind of an error, because only the
/// server itself can know its version. If another server reports damage, the damage decides the
/// kind.
#[test]
fn a_server_that_says_another_version_does_not_decide_what_kind_an_error_is() {
    use StoreErrorKind::{Damaged, UnknownVersion};
    for of_kind in KINDS {
        for kinds in [[UnknownVersion, Damaged], [Damaged, UnknownVersion]] {
            let mut owner = of_kind(parties(3, 1), 6);
            owner.write(3, 1).unwrap();
            for (server, kind) in kinds.into_iter().enumerate() {
                let refusal = Refusal { kind, why: "no".into() };
                owner.servers.world().refuses[server] = Some(refusal);
            }
            let error = owner.read(3).unwrap_err();
            assert_eq!(error.store_kind(), Some(Damaged), "{error}");
        }
    }
}

#[test]
fn what_a_server_says_steers_no_terminal() {
    let mut owner = Owner::new(parties(3, 1), 6);
    owner.servers.world().refuses[1] = Some(format!("\u{1b}[2J{}", "no".repeat(1000)).into());
    let error = owner.write(1, 1).unwrap_err().to_string();
    assert!(error.contains("server 2:  [2Jnono") && error.len() < 1500, "{error}");
}

/// Only rolled-back servers are named, even if most servers were rolled back: the point of the
/// array does not follow from the majority.
#[test]
fn only_rolled_back_servers_are_named_even_if_more_than_may_collude() {
    let before = |evictions, written| Some(TreePoint { evictions, written });
    for of_kind in KINDS {
        let mut owner = of_kind(parties(3, 1), 6);
        (0..10).for_each(|i| owner.write(i, 1).unwrap());
        owner.checkpoint().unwrap();
        for claims in [[None, before(0, 1), before(1, 2)], [None, before(1, 2), before(1, 2)]] {
            owner.servers.world().claims = claims.to_vec();
            let (mut array, _) = owner.restored();
            for error in [array.check_not_rolled_back(), array.check_storage()] {
                let error = error.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::StoreRolledBack);
                let is_named =
                    [1, 2, 3].map(|number| error.to_string().contains(&format!("server {number}")));
                assert_eq!(is_named, [false, true, true], "{error}");
            }
        }
        owner.servers.world().claims = vec![None; 3];
        owner.restored().0.check_not_rolled_back().unwrap();
        // A server that does not answer may have newer records than the others.
        owner.servers.world().missing[1] = true;
        let error = owner.restored().0.check_not_rolled_back().unwrap_err();
        assert_eq!(error.store_kind(), Some(StoreErrorKind::Unreachable));
        assert!(error.to_string().contains("server 2 does not answer"), "{error}");
    }
}
