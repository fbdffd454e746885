//! Tests that all data that a server acknowledges is durable, even if its disk fails, or if only
//! the server's process dies.

use oblivio_core::BucketId;
use oblivio_shares::host::Host;
use oblivio_shares::message::{Answer, Request, Slots, TreePoint};
use oblivio_shares::sharing::Share;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::world::World;
use oblivio_testkit::ShareDisk;

const AT: TreePoint = TreePoint { evictions: 0, written: 1 };

/// Creates servers. The first is new and has a disk that can fail.
fn world() -> (World, ShareDisk) {
    let mut world = crate::world(3, 1, 2);
    let disk = ShareDisk::default();
    world.hosts[0] = Host::open(Box::new(disk.clone()), || Ok([1; 32])).unwrap();
    world.disks[0] = disk.clone();
    assert_eq!(world.ask(0, &Request::Setup(world.setup(0))), Answer::Done);
    (world, disk)
}

fn is_refused(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused(refusal) if refusal.why.contains("its disk"))
}

/// After a failed sync, a server answers no request. The system may report success for the next
/// sync although it has dropped data.
#[test]
fn after_a_sync_that_has_failed_nothing_is_answered() {
    let block = || Share::Computed(vec![7; 700]);
    let put = Slots { bucket: BucketId::ROOT, first: 0, count: 1 };
    let set_point = || Request::SetPoint { at: AT };
    for (request, fails) in [
        (set_point(), "root"),
        (set_point(), "siblings"),
        (set_point(), "leaves"),
        (Request::Write { at: TreePoint::default(), block: block() }, "root"),
    ] {
        let (mut world, disk) = world();
        if matches!(request, Request::SetPoint { .. }) {
            let put = Request::Put { at: AT, slots: put, share: block() };
            assert_eq!(world.ask(0, &put), Answer::Done);
        }
        disk.fail_syncs_of(Some(fails));
        assert_ne!(world.ask(0, &request), Answer::Done);
        disk.fail_syncs_of(None);
        for again in [request, Request::Epoch] {
            assert!(is_refused(&world.ask(0, &again)), "{again:?} after {fails}");
        }
    }
}

/// Data that a dead process left behind is durable before a new process reports it, even after a
/// failed sync. The system may have dropped data, which another sync would not write. So the new
/// process first writes the last record and the last block again.
#[test]
fn data_of_a_dead_process_is_durable_before_it_is_reported() {
    // Chance decides which undurable data survives, so try several seeds.
    for chance in 0..8 {
        let (mut world, disk) = world();
        world.coins = StdRng::seed_from_u64(chance);
        disk.fail_syncs_of(Some("root"));
        let block = Share::Computed(vec![7; 700]);
        let write = Request::Write { at: TreePoint::default(), block };
        assert_ne!(world.ask(0, &write), Answer::Done);
        disk.fail_syncs_of(None);
        // Only the process restarts.
        world.hosts[0] = Host::open(Box::new(disk), || Ok([2; 32])).unwrap();
        let reported_at = world.epochs()[0].at;
        assert_eq!(reported_at, AT);
        world.restart(0);
        assert_eq!(world.epochs()[0].at, reported_at);
        let slots = Slots { bucket: BucketId::ROOT, first: 0, count: 1 };
        assert_eq!(world.fetch(0, AT, slots), [7; 700]);
    }
}
