//! A volume in a world, and what storage saw of it.

use oblivio_core::geometry::BucketId;
use oblivio_core::store::{BucketStore, Part, Piece, TreeId};
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::World;
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallVolume};
use oblivio_volume::volume::shapes;
use oblivio_volume::{Recovery, Volume, VolumeError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::support::seen::{DATA_TREE, leaves};

pub(crate) struct Bench {
    pub(crate) setup: SmallVolume,
    pub(crate) world: World,
    pub(crate) coins: StdRng,
    /// Maximum number of evictions seen by storage that an opening may have forgotten.
    pub(crate) evictions_forgotten_max: u64,
}

impl Bench {
    /// A new volume that was used a little, and closed.
    pub(crate) fn new(setup: SmallVolume, seed: u64) -> Self {
        let world = setup.world();
        let mut coins = StdRng::seed_from_u64(seed);
        let create = StdRng::seed_from_u64(coins.random());
        let mut volume = setup.create(world.store(), world.dir(), create).unwrap();
        (0..5).try_for_each(|_| read(&mut volume, 0)).unwrap();
        volume.close().unwrap();
        Self { setup, world, coins, evictions_forgotten_max: 0 }
    }

    /// Opens the volume with new coins.
    pub(crate) fn open(&mut self) -> Result<(Volume, Recovery), VolumeError> {
        let coins = StdRng::seed_from_u64(self.coins.random());
        self.setup.open(self.world.store(), self.world.dir(), coins)
    }

    /// The leaves of all accesses, numbered in the order of evictions, as storage can determine
    /// them.
    pub(crate) fn leaves(&self) -> Vec<u64> {
        leaves(&self.setup, &self.world.view(), self.evictions_forgotten_max)
    }
}

/// Whether `repeated` equals `shown` from some point on, plus at most `new_max` new leaves:
/// accesses that were logged but not made.
pub(crate) fn is_repetition(repeated: &[u64], shown: &[u64], new_max: usize) -> bool {
    (0..=shown.len()).any(|from| {
        let (seen, new) = repeated.split_at((shown.len() - from).min(repeated.len()));
        seen == &shown[from..] && new.len() <= new_max
    })
}

/// All places of buckets of blocks, in every tree that has such buckets.
pub(crate) fn places(setup: &SmallVolume) -> impl Iterator<Item = Piece> {
    let trees = (0..).map(TreeId).zip(shapes(&setup.params()).unwrap());
    // Trees up to 3 are not the scheme's, except for its first.
    let of_blocks = trees.filter(|(tree, shape)| {
        *tree == DATA_TREE || tree.0 > 3 && shape.levels().iter().any(|level| level.slots > 0)
    });
    of_blocks.flat_map(|(tree, shape)| {
        let levels: Vec<_> = shape.levels().iter().map(|level| level.buckets).collect();
        (0..).zip(levels).flat_map(move |(level, buckets)| {
            (0..buckets).map(move |index| {
                let bucket = BucketId::new(level, index);
                Piece { tree, bucket, part: Part::Whole }
            })
        })
    })
}

/// The contents of a place in storage.
pub(crate) fn get(world: &World, piece: Piece) -> Vec<u8> {
    world.store().read(&[piece]).unwrap().get(0).to_vec()
}

pub(crate) fn read(volume: &mut Volume, address: u64) -> Result<(), VolumeError> {
    let mut block = [0; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address, op: Op::Read(&mut block) }])
}

pub(crate) fn write(volume: &mut Volume, address: u64, fill: u8) -> Result<(), VolumeError> {
    let data = [fill; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address, op: Op::Write(&data) }])
}
