//! Damage on one server's disk does not spread to other servers in an eviction, even if servers
//! roll back, restart or do not deal.

use oblivio_core::StoreErrorKind;
use oblivio_core::durable::WrongServers;
use oblivio_shares::message::TreePoint;

use crate::owner::{Owner, PRESET};
use crate::parties;
use crate::repair::check_and_repair;

/// Bytes of the root's file before the first slot.
const HEAD_BYTES: usize = 8192;

/// The number of blocks that the owner has written.
const WRITTEN: u64 = 20;

/// Creates an owner with five servers, one of which may collude.
fn owner() -> Owner {
    let mut owner = Owner::new(parties(5, 1), 3);
    (0..WRITTEN).for_each(|i| owner.write(i, i as u8).unwrap());
    owner
}

/// Reads until the root holds `written` blocks.
fn read_until(owner: &mut Owner, written: usize) {
    while owner.servers.world().points()[0].written != written {
        owner.read(1).unwrap();
    }
}

/// Flips a bit in the root's file on server `server`, at byte `byte` of slot `slot`. A negative
/// `byte` counts from the end of the slot.
fn flips_a_bit(owner: &Owner, server: usize, at: TreePoint, (slot, byte): (usize, isize)) {
    let disk = owner.servers.world().disks[server].clone();
    let accesses = usize::from(PRESET.accesses);
    // Each slot has one checksum, after all slots.
    let slot_bytes = (disk.content("root").len() - HEAD_BYTES) / (2 * accesses) - 4;
    let first_slot = at.evictions as usize % 2 * accesses;
    let from = if byte < 0 { slot + 1 } else { slot };
    let from = (HEAD_BYTES + (first_slot + from) * slot_bytes) as isize;
    disk.flips_a_bit_at("root", (from + byte) as usize);
}

/// Checks that no data is lost, and that a repair of the damaged server fixes all damage.
fn assert_nothing_is_lost(mut owner: Owner, damaged: usize) {
    (0..WRITTEN).for_each(|i| owner.read(i).unwrap());
    owner.checkpoint().unwrap();
    check_and_repair(&owner, damaged).unwrap();
    owner.reopen().unwrap();
    owner.read_all();
    owner.array.check(&mut |_| ()).unwrap();
}

/// Fills the root with an access whose eviction fails on server 2 and succeeds on the other
/// servers. Returns the point of server 2.
fn fails_to_evict(owner: &mut Owner) -> TreePoint {
    read_until(owner, 3);
    {
        let mut world = owner.servers.world();
        (world.failing_evictions, world.failing_server) = (1, 1);
        // Stop the client after a select, a write, the servers' points, links, and the eviction.
        let at = world.asked + 5;
        world.stop = Some((at, vec![true; 5]));
    }
    owner.read(2).unwrap_err();
    owner.servers.connect();
    owner.servers.world().failing_evictions = 0;
    let points = owner.servers.world().points();
    assert_eq!(points[1].written, 4, "{points:?}");
    assert_eq!(points[0], TreePoint { evictions: points[1].evictions + 1, written: 0 });
    points[1]
}

/// A server that restarts after a rollback does not accept its damaged data as right. Server 1
/// restarts at every step of the opening that repeats the eviction.
#[test]
fn a_restart_after_going_back_does_not_take_damage_for_right() {
    for trips in 2..7 {
        let mut owner = owner();
        let before = fails_to_evict(&mut owner);
        flips_a_bit(&owner, 0, before, (3, -20));
        let at = owner.servers.world().asked + trips;
        owner.servers.world().starts_again = vec![(at, 0)];
        owner.reopen().unwrap();
        assert_nothing_is_lost(owner, 0);
    }
}

/// A server that restarts does not accept damage before a torn block as right. A bad page of the
/// disk covers the last two slots of a full root, and the last block counts as torn.
#[test]
fn a_restart_does_not_take_damage_before_a_torn_block_for_right() {
    for starts in 0..3 {
        let mut owner = owner();
        read_until(&mut owner, 3);
        let at = owner.servers.world().asked + 3;
        // Stop the client after a select and a write.
        owner.servers.world().stop = Some((at, vec![false; 5]));
        owner.read(2).unwrap_err();
        owner.servers.connect();
        let at = owner.servers.world().points()[0];
        assert_eq!(at.written, 4);
        flips_a_bit(&owner, 0, at, (2, -20));
        flips_a_bit(&owner, 0, at, (3, 20));
        (0..starts).for_each(|_| owner.servers.world().restart(0));
        owner.reopen().unwrap();
        assert_nothing_is_lost(owner, 0);
    }
}

/// Damage in the root of one of five servers does not prevent evictions. Server 5 does not deal.
/// Server 2 deals until its damage is found.
#[test]
fn damage_in_the_root_of_one_server_of_five_stops_no_eviction() {
    for damaged in [4, 1] {
        let mut owner = owner();
        read_until(&mut owner, 2);
        let at = owner.servers.world().points()[0];
        flips_a_bit(&owner, damaged, at, (0, 40));
        (0..100).for_each(|i| owner.read(i % WRITTEN).unwrap());
        assert_eq!(owner.wrong.listed(), [damaged]);
        owner.reopen().unwrap();
        assert_nothing_is_lost(owner, damaged);
    }
}

/// A rebuilt server refuses to roll back, but is not listed as wrong, because its shares are right.
#[test]
fn a_repaired_server_that_cannot_go_back_is_not_listed() {
    let mut owner = owner();
    fails_to_evict(&mut owner);
    check_and_repair(&owner, 4).unwrap();
    assert_eq!(owner.servers.world().points()[4].written, 0);
    let error = owner.reopen().unwrap_err();
    assert_eq!(error.store_kind(), Some(StoreErrorKind::Damaged), "{error}");
    assert_eq!(owner.wrong.listed(), [0; 0]);
}
