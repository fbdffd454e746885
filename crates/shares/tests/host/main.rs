//! Tests of servers with their shares in files: their answers, and their state after a crash.

#![expect(clippy::unwrap_used, reason = "a test fails at an error")]

mod damage;
mod metadata;
mod syncs;
mod world;

use std::time::Duration;

use oblivio_core::{BucketId, Leaf, StoreErrorKind};
use oblivio_shares::field::Gf256;
use oblivio_shares::message::{Answer, Evict, Request, Select, Slots, TreePoint};
use oblivio_shares::sharing::{Parties, Share, share_of_another};
use oblivio_shares::tree::{Preset, Tree};
use world::{Tampers, World};

const ALL_PARTIES: [(u8, u8); 4] = [(3, 1), (4, 1), (5, 1), (5, 2)];

fn world(servers: u8, colluding: u8, height: u8) -> World {
    let parties = Parties::new(servers, colluding).unwrap();
    let tree = Tree::new(height, Preset { slots: 12, accesses: 3 }).unwrap();
    World::new(parties, tree, 3 << (height - 1), 700)
}

#[test]
fn reads_what_was_written() {
    for (servers, colluding) in ALL_PARTIES {
        for height in 1..=3 {
            let mut world = world(servers, colluding, height);
            for _ in 0..60 {
                world.access_any();
            }
        }
    }
}

#[test]
fn blocks_of_many_parts_go_through_evictions_part_by_part() {
    let tree = Tree::new(2, Preset { slots: 128, accesses: 4 }).unwrap();
    let mut world = World::new(Parties::new(3, 1).unwrap(), tree, 8, 33_000);
    for _ in 0..20 {
        world.access_any();
    }
}

/// No data is lost if a server loses its power after any write or sync of its files, during
/// accesses and evictions.
#[test]
fn nothing_is_lost_wherever_a_server_dies() {
    for (servers, colluding) in [(3, 1), (5, 1)] {
        let mut points = 0;
        let mut dead_in_evictions = 0;
        // A dealer, and a server that need not deal.
        for victim in [0, usize::from(servers) - 1] {
            let mut world = world(servers, colluding, 2);
            for _ in 0..20 {
                world.access_any();
            }
            for steps in 0..24 {
                world.disks[victim].dies_after(steps);
                let before = world.disks[victim].power_losses();
                while world.disks[victim].power_losses() == before {
                    let evicts = world.client.must_evict();
                    world.access_any();
                    let has_died = world.disks[victim].power_losses() > before;
                    dead_in_evictions += u32::from(evicts && has_died);
                }
                points += 1;
                // Another server may also lose its power after everything is done.
                world.restart(usize::from(servers) - 1 - victim);
                for _ in 0..2 {
                    world.access_any();
                }
            }
        }
        assert!(points == 48 && dead_in_evictions > 10, "{points} {dead_in_evictions}");
    }
}

/// A server deals each share from a fresh seed, even after a restart.
#[test]
fn no_server_deals_from_a_seed_twice() {
    let mut world = world(3, 1, 2);
    for server in 0..3 {
        for _ in 0..8 {
            world.access_any();
        }
        world.restart(server);
    }
    for _ in 0..8 {
        world.access_any();
    }
    let seeds = world.dealt_seeds.lock().unwrap();
    assert!(seeds.len() > 20, "{}", seeds.len());
    assert!(seeds.values().all(|times| *times == 1));
}

/// A server that does not deal may receive the client's request later than the dealers.
#[test]
fn a_server_that_does_not_deal_may_be_slower() {
    let tree = Tree::new(2, Preset { slots: 128, accesses: 1 }).unwrap();
    let mut world = World::new(Parties::new(4, 1).unwrap(), tree, 4, 132_000);
    world.late = Some((3, Duration::from_secs(1)));
    world.access_any();
    world.access_any();
    assert_eq!(world.epochs()[3].at.evictions, 1);
}

/// A server that restarted does not wait for shares that were dealt before its restart. Those
/// messages are lost, and the other servers do not send them again.
#[test]
fn no_wait_for_shares_dealt_before_a_restart() {
    let one_part = |height| world(3, 1, height);
    let many_parts = || {
        let tree = Tree::new(1, Preset { slots: 32, accesses: 4 }).unwrap();
        World::new(Parties::new(3, 1).unwrap(), tree, 4, 82_000)
    };
    for mut world in [one_part(1), one_part(2), many_parts()] {
        while !world.client.must_evict() {
            world.access_any();
        }
        world.started_again = Some(1);
        world.evict();
        assert!(matches!(world.failed[1], Answer::Refused(_)), "{:?}", world.failed);
        for _ in 0..5 {
            world.access_any();
        }
    }
}

/// Shares for a bucket that the eviction does not have are refused. The refusal names the server
/// that dealt them, and nothing changes.
#[test]
fn shares_for_no_bucket_of_the_eviction_are_refused() {
    let of_other_rounds: Tampers = |dealt| dealt.level += 100;
    let too_few: Tampers = |dealt| drop(dealt.shares.pop());
    let too_many: Tampers = |dealt| {
        let more = dealt.shares.first().filter(|_| dealt.shares.len() == 1).cloned();
        dealt.shares.extend(more);
    };
    let too_short: Tampers = |dealt| {
        dealt.shares.iter_mut().for_each(|share| *share = Share::Computed(vec![1; 12 * 700 - 1]));
    };
    let refusals = [
        (of_other_rounds, "from server 2 was lost"),
        (too_few, "server 2 has dealt invalid shares"),
        (too_many, "server 2 has dealt invalid shares"),
        (too_short, "server 2 has dealt invalid shares"),
    ];
    let mut world = world(3, 1, 2);
    for (tampers, expected) in refusals {
        while !world.client.must_evict() {
            world.access_any();
        }
        world.tampers = Some((2, tampers));
        world.failed.clear();
        world.evict();
        let names_it = |it: &Answer| matches!(it, Answer::Refused(it) if it.why.contains(expected));
        assert!(world.failed.iter().any(names_it), "{expected}: {:?}", world.failed);
    }
    for _ in 0..10 {
        world.access_any();
    }
}

/// An attempt begins at most once, even on a server that has restarted and lost its memory. Shares
/// dealt in one attempt are invalid in another.
#[test]
fn an_attempt_is_begun_once_also_by_a_server_that_was_started_again() {
    let mut world = world(3, 1, 2);
    while world.client.evictions() < 2 || !world.client.must_evict() {
        world.access_any();
    }
    let before = world.epochs()[0];
    let evict = world.client.evict(&mut world.coins).unwrap().remove(0);
    let ask = |world: &mut World, attempt| {
        let evict = Evict { attempt, ..evict.clone() };
        match world.ask(0, &Request::Evict { evict, dealers: vec![1, 2, 3] }) {
            Answer::Refused(refusal) => (refusal.kind, refusal.why),
            other => panic!("{other:?}"),
        }
    };
    let is_refused = |(kind, why): (StoreErrorKind, String), expected, text: &str| {
        assert!(kind == expected && why.contains(text), "{kind:?}: {why}");
    };
    use StoreErrorKind::{Refused, Unreachable};
    // Server 2 is missing.
    world.disks[1].dies_after(0);
    let attempt = before.attempt + 3;
    is_refused(ask(&mut world, attempt), Unreachable, "cannot reach server 2");
    world.restart(0);
    assert_eq!(world.epochs()[0].attempt, attempt);
    // A client repeats the latest attempt after its link was lost, and no older one.
    is_refused(ask(&mut world, attempt), Unreachable, "the link to the client was lost");
    for older in [attempt - 1, before.attempt] {
        is_refused(ask(&mut world, older), Refused, "later attempt");
    }
    is_refused(ask(&mut world, attempt + 1), Unreachable, "cannot reach server 2");
    assert_eq!(world.epochs()[0].at, before.at);
}

/// An eviction fills a sibling with the contents of its source, and leaves none of the sibling's
/// old contents.
#[test]
fn siblings_hold_nothing_behind_what_their_source_held() {
    let mut world = world(3, 1, 2);
    for _ in 0..6 {
        world.access_any();
    }
    world.evict();
    let held = 3;
    for index in [1, 0] {
        (0..held).for_each(|_| world.access_any());
        world.evict();
        let at = world.epochs()[0].at;
        let bucket = BucketId::new(1, index);
        let shares = world.fetch(0, at, Slots { bucket, first: 0, count: 12 });
        let (there, behind) = shares.split_at(held * 700);
        assert!(behind.iter().all(|byte| *byte == 0), "after eviction {}", at.evictions);
        assert!(there.chunks(700).all(|slot| slot.iter().any(|byte| *byte != 0)));
    }
    for _ in 0..10 {
        world.access_any();
    }
}

#[test]
fn what_is_asked_twice_is_done_once() {
    let mut world = world(3, 1, 2);
    world.access_any();
    let at = world.epochs()[0].at;
    let block = Share::Computed(vec![5; 700]);
    let write = Request::Write { at, block };
    for _ in 0..2 {
        assert_eq!(world.ask(0, &write), Answer::Done);
        assert_eq!(world.epochs()[0].at.written, at.written + 1);
    }
    // Slots after the point count as zeros.
    let slot = Slots { bucket: BucketId::ROOT, first: at.written, count: 1 };
    let after = TreePoint { written: at.written + 1, ..at };
    assert_eq!(world.fetch(0, at, slot), vec![0; 700]);
    assert_eq!(world.fetch(0, after, slot), vec![5; 700]);
}

/// The state before an eviction can be fetched until the next write. So a client can read the same
/// state from a server that has not evicted yet and from one that has.
#[test]
fn what_was_there_before_an_eviction_is_fetched_until_something_is_written() {
    let mut world = world(3, 1, 2);
    // Siblings and leaves are in use, too.
    for _ in 0..6 {
        while !world.client.must_evict() {
            world.access_any();
        }
        let before = world.epochs()[0].at;
        let all = |world: &mut World| -> Vec<Answer> {
            let slots =
                (0..7).map(|bucket| Slots { bucket: BucketId(bucket), first: 0, count: 12 });
            slots.map(|slots| world.ask(0, &Request::Fetch { at: before, slots })).collect()
        };
        let held = all(&mut world);
        assert!(held.iter().all(|it| matches!(it, Answer::Share(_))));
        world.evict();
        assert!(all(&mut world) == held);
        world.restart(0);
        assert!(all(&mut world) == held);
        let slots = Slots { bucket: BucketId::ROOT, first: 0, count: 1 };
        for elsewhere in [
            TreePoint { written: before.written - 1, ..before },
            TreePoint { evictions: before.evictions.wrapping_sub(1), ..before },
        ] {
            let answer = world.ask(0, &Request::Fetch { at: elsewhere, slots });
            assert!(matches!(answer, Answer::Refused(_)), "{elsewhere:?}");
        }
        world.access_any();
        assert!(all(&mut world).iter().all(|it| matches!(it, Answer::Refused(_))));
    }
}

/// When a server acknowledges a put, the shares are durable. The client does not put them again,
/// and a rebuilt server has no earlier state.
#[test]
fn what_was_put_is_durable_when_it_is_answered() {
    let mut world = world(3, 1, 2);
    let at = TreePoint { evictions: 4, written: 1 };
    for (bucket, fill) in [(BucketId::new(2, 1), 7), (BucketId::ROOT, 8)] {
        let slots = Slots { bucket, first: 0, count: 1 };
        let share = Share::Computed(vec![fill; 700]);
        assert_eq!(world.ask(0, &Request::Put { at, slots, share }), Answer::Done);
        world.restart(0);
    }
    assert_eq!(world.ask(0, &Request::SetPoint { at }), Answer::Done);
    for (bucket, fill) in [(BucketId::new(2, 1), 7), (BucketId::ROOT, 8)] {
        assert_eq!(world.fetch(0, at, Slots { bucket, first: 0, count: 1 }), vec![fill; 700]);
    }
    let at = TreePoint { evictions: 4, written: 0 };
    assert_eq!(world.ask(1, &Request::SetPoint { at }), Answer::Done);
    let back = Request::RollBack { evictions: 3 };
    for _ in 0..2 {
        assert!(matches!(world.ask(1, &back), Answer::Refused(_)));
        let at = TreePoint { evictions: 3, written: 3 };
        let slots = Slots { bucket: BucketId::ROOT, first: 0, count: 1 };
        assert!(matches!(world.ask(1, &Request::Fetch { at, slots }), Answer::Refused(_)));
        world.restart(1);
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut world = world(3, 1, 2);
    for _ in 0..11 {
        world.access_any();
    }
    let before = world.epochs();
    let at = before[0].at;
    let query = |elements| Share::Computed(vec![1; elements]);
    let select = |at, leaf, elements| Request::Select {
        at,
        select: Select { leaf: Leaf(leaf), query: query(elements) },
    };
    let behind = TreePoint { evictions: at.evictions - 1, written: 0 };
    let ahead = TreePoint { evictions: at.evictions, written: at.written + 1 };
    let two_before = TreePoint { evictions: at.evictions, written: at.written - 2 };
    let another = world.setup(1);
    let slots = |bucket, first, count| Slots { bucket, first, count };
    let refused = [
        select(at, 4, 36),
        select(at, 0, 35),
        select(behind, 0, 36),
        select(ahead, 0, 36),
        select(two_before, 0, 36),
        Request::Write { at, block: query(699) },
        Request::Write { at: ahead, block: query(700) },
        Request::Write { at: two_before, block: query(700) },
        Request::Fetch { at: two_before, slots: slots(BucketId::ROOT, 0, 1) },
        Request::RollBack { evictions: at.evictions - 1 },
        Request::RollBack { evictions: at.evictions + 1 },
        Request::Setup(another),
        Request::SetPoint { at: ahead },
        Request::Put { at, slots: slots(BucketId::ROOT, 0, 1), share: query(700) },
        Request::Fetch { at, slots: slots(BucketId::new(3, 0), 0, 1) },
        Request::Fetch { at, slots: slots(BucketId::ROOT, 12, 1) },
        Request::Fetch { at, slots: slots(BucketId::ROOT, 11, 2) },
    ];
    for request in refused {
        let answer = world.ask(0, &request);
        assert!(matches!(answer, Answer::Refused(_)), "{request:?}: {answer:?}");
    }
    assert_eq!(world.epochs(), before);
    for _ in 0..10 {
        world.access_any();
    }
}

/// A server that has lost everything is rebuilt from the others.
#[test]
fn a_server_is_rebuilt_from_the_shares_of_others() {
    for (servers, colluding) in ALL_PARTIES {
        let mut world = world(servers, colluding, 3);
        for _ in 0..31 {
            world.access_any();
        }
        let at = rebuild_first_server(&mut world, colluding);
        assert_eq!(world.ask(0, &Request::SetPoint { at }), Answer::Done);
        for _ in 0..31 {
            world.access_any();
        }
    }
}

/// Rebuilds the first server on an empty disk from the shares of other servers. Returns their
/// point.
fn rebuild_first_server(world: &mut World, colluding: u8) -> TreePoint {
    let at = world.epochs()[1].at;
    let first = world.setup(0);
    world.disks[0] = oblivio_testkit::ShareDisk::default();
    world.restart(0);
    assert_eq!(world.ask(0, &Request::Setup(first)), Answer::Done);
    let others: Vec<u8> = (2..2 + colluding + 1).collect();
    for bucket in (0..(2 << world.tree.height()) - 1).map(BucketId) {
        for first in [0, 5, 10] {
            let slots = Slots { bucket, first, count: 5.min(12 - first) };
            let shares: Vec<_> = others
                .iter()
                .map(|number| world.fetch(usize::from(*number) - 1, at, slots))
                .collect();
            if shares.iter().flatten().all(|byte| *byte == 0) {
                continue;
            }
            let held = if bucket == BucketId::ROOT { at.written - first } else { 5 };
            let slots = Slots { count: held.min(slots.count), ..slots };
            let share = share_of_another::<Gf256>(
                &others,
                &shares.iter().map(|it| &it[..slots.count * 700]).collect::<Vec<_>>(),
                1,
            );
            let share = Share::Computed(share.unwrap());
            assert_eq!(world.ask(0, &Request::Put { at, slots, share }), Answer::Done);
        }
    }
    at
}

/// A server that loses its power at any step of a rebuild is complete, or reports that it is not.
/// It acknowledges shares only once they are durable.
#[test]
fn a_rebuilt_server_is_complete_or_reports_that_it_is_not() {
    let mut world = world(3, 1, 2);
    for _ in 0..20 {
        world.access_any();
    }
    let mut is_rebuilt = false;
    for steps in 0.. {
        let at = rebuild_first_server(&mut world, 1);
        world.disks[0].dies_after(steps);
        let has_died = world.ask(0, &Request::SetPoint { at }) != Answer::Done;
        world.restart(0);
        is_rebuilt = world.epochs()[0].at == at;
        assert!(is_rebuilt || has_died, "{steps}");
        if is_rebuilt {
            // All servers together return what was written.
            (0..world.model.len()).for_each(|address| drop(world.access(address, None)));
        }
        if !has_died {
            break;
        }
    }
    assert!(is_rebuilt);
}

#[test]
fn a_damaged_record_or_setup_is_refused() {
    let mut world = world(3, 1, 2);
    world.access_any();
    let disk = world.disks[0].clone();
    disk.flips_a_bit("setup", &mut world.coins);
    let opened = oblivio_shares::host::Host::open(Box::new(world.disks[0].clone()), || Ok([1; 32]));
    // Whichever bit was flipped, the file does not read as the setup of this server.
    assert!(opened.is_err() || opened.is_ok_and(|host| *host.setup().unwrap() != world.setup(0)));
}
