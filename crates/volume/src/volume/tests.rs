//! What no user of a volume can see from outside.

use oblivio_core::{LayoutKind, MemoryStore};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

use super::*;
use crate::keys::{Cost, NewSlot, Secret};
use crate::state_dir::FsStateDir;
use crate::superblock::{SchemeId, Slots};

fn params() -> VolumeParams {
    VolumeParams {
        blocks: 64,
        block_bytes: 512,
        scheme: SchemeId::Rotating,
        leaf_level: 5,
        slots: Slots::Same(4),
        evict_period: 3,
        stash_blocks_max: 40,
        tree_top_levels: 2,
        tree_top_ways: 0,
        recursion: None,
    }
}

/// A volume on a machine that is copied now.
fn copied_volume() -> (Volume<MemoryStore>, TempDir) {
    let mut coins = StdRng::seed_from_u64(1);
    let volume_key = VolumeKey::draw(&mut coins);
    let secret = Secret::KeyFile(Zeroizing::new(vec![5; 32]));
    let slot = NewSlot { secret: &secret, cost: Cost::weak_for_tests(), label: "" };
    let superblock = Superblock::create(params(), &volume_key, &slot, &mut coins).unwrap();
    let owner = Unlocked { superblock, volume_key, slot: 0 };
    let store = MemoryStore::new(&shapes(&params()).unwrap(), LayoutKind::Striped).unwrap();
    let parent = tempfile::tempdir().unwrap();
    let dir = FsStateDir::create(&parent.path().join("client")).unwrap();
    let coins = Coins::of_a_copied_machine();
    let volume = Volume::create(store, Box::new(dir), &owner, VolumeOptions::default(), coins);
    (volume.unwrap(), parent)
}

#[test]
fn copies_of_a_client_draw_other_leaves_and_other_keys_from_a_checkpoint_on() {
    let [(mut one, _at), (mut other, _there)] = [0; 2].map(|_| copied_volume());
    let number = |volume: &mut Volume<MemoryStore>| volume.oram.coins_mut().next_u64();
    let eras = |volume: &Volume<MemoryStore>| {
        let eras = volume.oram.backend().sealer().eras();
        eras.cloned().collect::<Vec<_>>()
    };
    assert_eq!(eras(&one), eras(&other));
    assert_eq!(number(&mut one), number(&mut other));
    one.checkpoint().unwrap();
    other.checkpoint().unwrap();
    assert_ne!(eras(&one).last(), eras(&other).last());
    assert_ne!(number(&mut one), number(&mut other));
}
