//! A small volume in the crash world.

use oblivio_testkit::crash::{CrashDir, CrashStore, FailedSync, Life, Ran, Trial};
use oblivio_volume::device::{DiskError, DiskErrorKind};
use oblivio_volume::keys::{Cost, NewSlot, Secret, VolumeKey};
use oblivio_volume::state_dir::StateDir;
use oblivio_volume::superblock::copies::read_copies;
use oblivio_volume::superblock::{
    SchemeId, Superblock, SuperblockErrorKind, Unlocked, VolumeParams,
};
use oblivio_volume::volume::shapes;
use oblivio_volume::{Disk, DiskOptions, SyncMoves, Volume, VolumeError, VolumeOptions};
use rand::SeedableRng;
use rand::rngs::StdRng;
use zeroize::Zeroizing;

pub(crate) const BLOCK_BYTES: u32 = 512;
pub(crate) const BLOCKS: u64 = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) steps: usize,
    pub(crate) seed: u64,
    pub(crate) sync_moves: SyncMoves,
    pub(crate) failed_sync: FailedSync,
    pub(crate) tree_top_levels: u8,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            steps: 100,
            seed: 1,
            sync_moves: SyncMoves::BeforeReads,
            failed_sync: FailedSync::Drops,
            tree_top_levels: 2,
        }
    }
}

impl Setup {
    pub(crate) fn params(&self) -> VolumeParams {
        VolumeParams {
            blocks: BLOCKS,
            block_bytes: BLOCK_BYTES,
            scheme: SchemeId::Rotating,
            leaf_level: 5,
            slots: 4,
            evict_period: 3,
            stash_blocks_max: 40,
            tree_top_levels: self.tree_top_levels,
        }
    }

    /// Lives through `lives`.
    pub(crate) fn run(&self, lives: &[Life]) -> Result<Ran, String> {
        let params = self.params();
        let trial = Trial {
            shapes: shapes(&params).unwrap().to_vec(),
            bytes: BLOCKS * u64::from(BLOCK_BYTES),
            block_bytes: BLOCK_BYTES,
            steps: self.steps,
            seed: self.seed,
            failed_sync: self.failed_sync,
        };
        let mut openings = self.seed << 32;
        trial.run(lives, |store, dir| {
            openings += 1;
            self.open(store, dir, StdRng::seed_from_u64(openings))
        })
    }

    /// Opens the volume, or creates it where its creation was never finished.
    fn open(&self, store: CrashStore, dir: CrashDir, coins: StdRng) -> Result<Disk, DiskError> {
        // Blocks leave the cache soon.
        let options = DiskOptions { cache_bytes_max: 8 * u64::from(BLOCK_BYTES) };
        self.open_volume(store, dir, coins)
            .and_then(|volume| Disk::start(volume, &options))
            .map_err(|error| {
                DiskError::new(DiskErrorKind::Failed, format!("{:?}: {error}", error.kind()))
            })
    }

    fn open_volume(
        &self,
        mut store: CrashStore,
        mut dir: CrashDir,
        mut coins: StdRng,
    ) -> Result<Volume<CrashStore>, VolumeError> {
        let options = VolumeOptions { sync_moves: self.sync_moves, state_file_bytes_max: 20_000 };
        let secret = Secret::KeyFile(Zeroizing::new(vec![5; 32]));
        match read_copies(&mut store).newest() {
            Ok(superblock) => {
                let owner = superblock.unlock(&secret)?;
                Ok(Volume::open(store, Box::new(dir), &owner, options, coins)?.0)
            }
            Err(error) if error.kind() == SuperblockErrorKind::NotAVolume => {
                // Whoever begins anew throws away what there is.
                for name in dir.names()? {
                    dir.remove(&name)?;
                }
                let key = VolumeKey::draw(&mut coins);
                let slot = NewSlot { secret: &secret, cost: Cost::weak_for_tests(), label: "" };
                let superblock = Superblock::create(self.params(), &key, &slot, &mut coins)?;
                let owner = Unlocked { superblock, volume_key: key, slot: 0 };
                Volume::create(store, Box::new(dir), &owner, options, coins)
            }
            Err(error) => Err(error.into()),
        }
    }
}
