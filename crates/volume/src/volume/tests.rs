//! Tests of properties that users of a volume cannot observe.

use oblivio_core::durable::Save;
use oblivio_core::{LayoutKind, MemoryStore};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;
use zeroize::Zeroizing;

use super::*;
use crate::coins::Coins;
use crate::keys::{Cost, NewSlot, Secret, VolumeKey};
use crate::plan::ArrayRequirements;
use crate::schemes;
use crate::state_dir::FsStateDir;
use crate::superblock::{Superblock, Unlocked};

fn params(scheme: &str) -> VolumeParams {
    VolumeParams::plan(&ArrayRequirements {
        block_bytes: 512,
        ..ArrayRequirements::new(64 * 512, scheme)
    })
    .unwrap()
}

/// A volume on a copied machine: the clients of all these volumes draw the same numbers.
fn copied_volume(scheme: &str) -> (Volume, TempDir) {
    let mut coins = StdRng::seed_from_u64(1);
    let volume_key = VolumeKey::draw(&mut coins);
    let secret = Secret::KeyFile(Zeroizing::new(vec![5; 32]));
    let slot = NewSlot { secret: &secret, cost: Cost::weak_for_tests(), label: "" };
    let superblock = Superblock::create(params(scheme), &volume_key, &slot, &mut coins).unwrap();
    let owner = Unlocked { superblock, volume_key, slot: 0 };
    let store = MemoryStore::new(&shapes(&params(scheme)).unwrap(), LayoutKind::Striped).unwrap();
    let parent = tempfile::tempdir().unwrap();
    let dir = FsStateDir::create(&parent.path().join("client")).unwrap();
    let coins = Coins::of_a_copied_machine();
    let volume = Volume::create(store, Box::new(dir), &owner, VolumeOptions::default(), coins);
    (volume.unwrap(), parent)
}

#[test]
fn copies_of_a_client_draw_other_leaves_and_other_keys_from_a_checkpoint_on() {
    for scheme in schemes::SCHEMES.iter().filter(|scheme| !scheme.needs_servers()) {
        check_copies_part_ways(scheme.name());
    }
}

fn check_copies_part_ways(scheme: &str) {
    let [(mut one, _at), (mut other, _there)] = [0; 2].map(|_| copied_volume(scheme));
    let number = |volume: &mut Volume| volume.live.coins.next_u64();
    // Keys are the part of a saved state that does not follow from the accesses.
    let state = |volume: &Volume| {
        let mut sections = Vec::new();
        volume.live.array.save(Save::Changes, &mut |section| sections.push(section.to_vec()));
        sections
    };
    assert_eq!(state(&one), state(&other));
    assert_eq!(number(&mut one), number(&mut other));
    one.checkpoint().unwrap();
    other.checkpoint().unwrap();
    assert_ne!(state(&one), state(&other));
    assert_ne!(number(&mut one), number(&mut other));
}
