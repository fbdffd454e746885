//! The size of the client's directory while files are created and removed in it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallScheme, SmallVolume};
use oblivio_testkit::crash::{CrashDir, CrashStore, DirStep, WatchedDir};
use oblivio_volume::keys::{Cost, NewSlot, Secret, VolumeKey};
use oblivio_volume::plan::StateRoom;
use oblivio_volume::state_dir::{FILLER_BYTES, StateDir};
use oblivio_volume::superblock::{Superblock, Unlocked};
use oblivio_volume::{Lengths, Volume, VolumeOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use zeroize::Zeroizing;

fn bytes_in(dir: &CrashDir) -> io::Result<u64> {
    dir.names()?.iter().map(|name| Ok(dir.read(name)?.len() as u64)).sum()
}

/// Writes and forgets random blocks and closes the volume. Returns the largest size of its
/// directory meanwhile, and its final size.
fn measure(setup: &SmallVolume, lengths: Lengths, steps: usize, forgets: f64) -> StateRoom {
    let world = setup.world();
    let mut coins = StdRng::seed_from_u64(7);
    let bytes_max = Arc::new(AtomicU64::new(0));
    // The directory is largest with both the old state file and the new one.
    let (most, held) = (bytes_max.clone(), world.clone());
    let dir = WatchedDir::new(world.dir(), move |step| {
        if step == DirStep::Remove {
            most.fetch_max(bytes_in(&held.dir()).unwrap(), Ordering::Relaxed);
        }
    });
    let mut volume = create(setup, lengths, world.store(), dir);
    for _ in 0..steps {
        let address = coins.random_range(0..setup.blocks);
        if coins.random_bool(forgets) {
            volume.forget(address..address + 1).unwrap();
        } else {
            let data = [coins.random(); BLOCK_BYTES as usize];
            volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
        }
    }
    volume.close().unwrap();
    StateRoom {
        in_use_bytes_max: bytes_max.load(Ordering::Relaxed),
        closed_bytes_max: bytes_in(&world.dir()).unwrap(),
    }
}

fn create(setup: &SmallVolume, lengths: Lengths, store: CrashStore, dir: WatchedDir) -> Volume {
    let mut coins = StdRng::seed_from_u64(setup.seed);
    let volume_key = VolumeKey::draw(&mut coins);
    let secret = Secret::KeyFile(Zeroizing::new(vec![5; 32]));
    let slot = NewSlot { secret: &secret, cost: Cost::weak_for_tests(), label: "" };
    let superblock = Superblock::create(setup.params(), &volume_key, &slot, &mut coins).unwrap();
    let owner = Unlocked { superblock, volume_key, slot: 0 };
    let state_file_bytes_max = setup.state_file_bytes_max;
    let options = VolumeOptions::default()
        .with_state_file_bytes_max(state_file_bytes_max)
        .with_lengths(lengths);
    Volume::create(store, Box::new(dir), &owner, options, coins).unwrap()
}

#[test]
fn the_clients_directory_stays_within_its_room_and_comes_near_it() {
    // As in a volume of the usual size, the tree top dominates.
    let flat = SmallVolume {
        blocks: 200,
        leaf_level: 6,
        tree_top_levels: 5,
        stash_blocks_max: 8,
        state_file_bytes_max: 1000,
        ..SmallVolume::default()
    };
    let in_sets = SmallVolume { tree_top_ways: 4, ..flat };
    let on_each = SmallScheme::each().map(|scheme| SmallVolume { scheme, ..flat });
    for setup in on_each.chain([flat.with_map_in_tree(), in_sets]) {
        let room = StateRoom::of(&setup.params(), setup.state_file_bytes_max).unwrap();
        let [held, padded] = [Lengths::Needed, Lengths::Constant]
            .map(|lengths| [0.0, 0.5, 0.99].map(|forgets| measure(&setup, lengths, 2000, forgets)));
        for held in held.iter().chain(&padded) {
            assert!(held.in_use_bytes_max <= room.in_use_bytes_max, "{held:?} {room:?} {setup:?}");
            assert!(held.closed_bytes_max <= room.closed_bytes_max, "{held:?} {room:?} {setup:?}");
        }
        // Without forgotten ranges the size is largest. Filler is small in this world.
        let most = held[0].in_use_bytes_max;
        let room_for_records = room.in_use_bytes_max - 2 * FILLER_BYTES;
        assert!(most > room_for_records / 8, "{held:?} {room:?} {setup:?}");
    }
}
