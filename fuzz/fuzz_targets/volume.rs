//! Opening and using a volume over storage that lies from the start: superblocks, anchors, buckets
//! and frames.
//!
//! ```text
//! input = setup, 16 requests, lies
//! ```
//!
//! The volumes are created once: one of each scheme, and one with most of its position map in the
//! tree. Each was in use when its client crashed, so an opening replays accesses. In every case,
//! the volume is intact once storage is honest again.
#![no_main]

#[path = "support/hostile.rs"]
mod hostile;

use std::sync::LazyLock;

use hostile::hostile;
use libfuzzer_sys::fuzz_target;
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallScheme, SmallVolume};
use oblivio_testkit::crash::{Snapshot, Survival, World};
use oblivio_volume::{Extent, Volume, VolumeError, VolumeErrorKind};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// Number of written blocks.
const BLOCKS: u64 = 30;

type Block = [u8; BLOCK_BYTES as usize];

/// One volume of each scheme, and one with a recursive position map.
static MADE: LazyLock<Vec<Made>> = LazyLock::new(|| {
    let setup = SmallVolume::default();
    let each = SmallScheme::each().map(|scheme| SmallVolume { scheme, ..setup });
    each.chain([setup.with_map_in_tree()]).map(Made::new).collect()
});

fuzz_target!(|input: &[u8]| {
    let Some(([setup], input)) = input.split_first_chunk() else { return };
    let Some((requests, lies)) = input.split_first_chunk::<16>() else { return };
    let Made { setup, left } = &MADE[usize::from(*setup) % MADE.len()];
    let world = setup.world();
    world.restore_store(left);
    world.restore_dir(left);

    let mut store = hostile(world.store());
    store.rule.lie(lies);
    let coins = StdRng::seed_from_u64(2);
    if let Ok((mut volume, _)) = setup.open(store, world.dir(), coins) {
        let mut addresses = requests.iter().map(|request| u64::from(*request) % setup.blocks);
        if addresses.any(|address| check_block(&mut volume, address).is_err()) {
            let error = check_block(&mut volume, 0).expect_err("the volume has failed");
            assert_eq!(error.kind(), VolumeErrorKind::MustReopen);
        }
    }
    is_whole(setup, &world);
});

/// Reads a block. If a range of several blocks begins with it, reads the whole range. A successful
/// read must return the data written.
fn check_block(volume: &mut Volume, address: u64) -> Result<(), VolumeError> {
    let extent = Extent::longest(&volume.range_classes().to_vec(), address, volume.blocks());
    if extent.class > 0 {
        let mut blocks = vec![[0; BLOCK_BYTES as usize]; extent.count()];
        let mut ops: Vec<_> = blocks.iter_mut().map(|block| Op::Read(block)).collect();
        volume.access_range(extent, &mut ops)?;
        assert!(extent.blocks().zip(blocks).all(|(address, block)| block == contents(address)));
        return Ok(());
    }
    let mut block = [0; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address, op: Op::Read(&mut block) }])?;
    assert!(block == contents(address));
    Ok(())
}

fn contents(address: u64) -> Block {
    [if address < BLOCKS { address as u8 + 1 } else { 0 }; BLOCK_BYTES as usize]
}

fn is_whole(setup: &SmallVolume, world: &World) {
    let coins = StdRng::seed_from_u64(3);
    // Noticed tampering is recorded. `after_tampering` declares that storage was restored.
    let setup = SmallVolume { after_tampering: true, ..*setup };
    let opened = setup.open(world.store(), world.dir(), coins);
    let (mut volume, _) = opened.expect("storage is honest again");
    (0..BLOCKS + 1).try_for_each(|address| check_block(&mut volume, address)).unwrap();
}

/// A volume that was in use when its client crashed.
struct Made {
    setup: SmallVolume,
    left: Snapshot,
}

impl Made {
    fn new(setup: SmallVolume) -> Self {
        let world = setup.world();
        let coins = StdRng::seed_from_u64(1);
        let mut volume = setup.create(world.store(), world.dir(), coins).unwrap();
        for address in 0..BLOCKS {
            let data = contents(address);
            volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
        }
        volume.flush().unwrap();
        world.crash(&mut StdRng::seed_from_u64(1), Survival::All);
        Self { setup, left: world.snapshot() }
    }
}
