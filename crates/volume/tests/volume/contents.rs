//! Tests whether a volume reports that it may have contents, which matters before it is
//! overwritten.

use oblivio_core::{Access, Op};
use oblivio_testkit::crash::World;
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallVolume};
use oblivio_volume::Volume;
use rand::SeedableRng;
use rand::rngs::StdRng;

fn volume(setup: SmallVolume) -> (World, Volume) {
    let world = setup.world();
    let volume = setup.create(world.store(), world.dir(), StdRng::seed_from_u64(1)).unwrap();
    (world, volume)
}

fn write(volume: &mut Volume, address: u64) {
    let data = [7; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
}

fn read(volume: &mut Volume, address: u64) {
    let mut data = [0; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address, op: Op::Read(&mut data) }]).unwrap();
}

#[test]
fn a_volume_holds_nothing_until_it_is_written_and_after_all_was_trimmed() {
    let setup = SmallVolume::default();
    let (world, mut volume) = volume(setup);
    assert!(!volume.may_hold_contents());
    (0..volume.blocks()).for_each(|address| read(&mut volume, address));
    assert!(!volume.may_hold_contents(), "it was only read");
    let last = volume.blocks() - 1;
    write(&mut volume, 3);
    write(&mut volume, last);
    assert!(volume.may_hold_contents());
    volume.forget(0..last).unwrap();
    assert!(volume.may_hold_contents(), "the last block is left");
    volume.close().unwrap();
    let (mut volume, _) = setup.open(world.store(), world.dir(), StdRng::seed_from_u64(2)).unwrap();
    assert!(volume.may_hold_contents(), "opening it changes nothing");
    volume.forget(0..last + 1).unwrap();
    assert!(!volume.may_hold_contents());
}

#[test]
fn a_volume_with_its_map_in_the_tree_is_never_called_empty_wrongly() {
    let (_, mut volume) = volume(SmallVolume::default().with_map_in_tree());
    assert!(!volume.may_hold_contents());
    let last = volume.blocks() - 1;
    write(&mut volume, last);
    assert!(volume.may_hold_contents());
}
