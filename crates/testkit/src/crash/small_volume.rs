//! A volume so small that a run has a few hundred operations: each can be tried as the last.

use oblivio_core::durable::ArrayRequirements;
use oblivio_core::durable::Contents;
use oblivio_core::durable::RangePolicy;
use oblivio_core::durable::Slots;
use oblivio_core::durable::range::RangeParams;
use oblivio_core::durable::rotating::{MapRecursion, RawParams};
use oblivio_core::durable::scan::ScanParams;
use oblivio_core::schemes::VolumeScheme;
use oblivio_core::store::TreeShape;
use oblivio_core::{BucketStore, HitPolicy};
use oblivio_volume::device::{BlockDevice, DiskError};
use oblivio_volume::key_change;
use oblivio_volume::keys::{Attempt, Cost, NewSlot, Secret, VolumeKey};
use oblivio_volume::state_dir::StateDir;
use oblivio_volume::superblock::copies::read_copies;
use oblivio_volume::superblock::{Superblock, Unlocked, VolumeParams};
use oblivio_volume::volume::shapes;
use oblivio_volume::{
    Disk, DiskOptions, Lengths, Recovery, SyncMoves, Volume, VolumeError, VolumeOptions,
};
use rand::SeedableRng;
use rand::rngs::StdRng;
use zeroize::Zeroizing;

use super::raw_disk::{RawDisk, disk_error};
use super::{CrashDir, CrashStore, FailedSync, Life, Loss, Ran, TickingDisk, Trial, World};

/// Bytes of a block: a sector, as in the worst case for tearing.
pub const BLOCK_BYTES: u32 = 512;

/// Blocks of the disk, unless a volume says otherwise.
pub const BLOCKS: u64 = 64;

/// Accesses between evictions.
pub const EVICT_PERIOD: u32 = 3;

/// Slots of a bucket of shares: about the fewest that evictions do not overflow.
const SHARE_SLOTS: u16 = 24;

/// Every volume here opens with this key file.
const KEY_FILE: [u8; 32] = [5; 32];

/// How the volume is made and used. The same volume with the same lives is the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallVolume {
    /// Steps of the workload, over all lives.
    pub steps: usize,
    /// Where all coins come from.
    pub seed: u64,
    /// When moves become durable.
    pub sync_moves: SyncMoves,
    /// What failed syncs do.
    pub failed_sync: FailedSync,
    /// Over so many disks its store is striped.
    pub disks: usize,
    /// What it stands on. What follows says how it is with a tree.
    pub scheme: SmallScheme,
    /// The tree has `2^leaf_level` leaves: with many, two accesses seldom show the same one by chance.
    pub leaf_level: u8,
    /// Blocks of the disk.
    pub blocks: u64,
    /// Slots of a bucket.
    pub slots: u16,
    /// Slots of a bucket of the leaves, if they are others.
    pub leaf_slots: Option<u16>,
    /// Ways of the sets of the tree top, if it is in sets. Then the volume serves what is on the client
    /// without an access.
    pub tree_top_ways: u16,
    /// What part of the position map lies in the tree.
    pub recursion: Option<MapRecursion>,
    /// `2^tree_top_levels` evictions lie between two checkpoints at most.
    pub tree_top_levels: u8,
    /// Blocks that may be left in the stash.
    pub stash_blocks_max: u32,
    /// With few bytes, snapshots follow each other soon.
    pub state_file_bytes_max: u64,
    /// What requests go through.
    pub device: Device,
    /// The owner says that storage holds again what it held, whatever was found before.
    pub after_tampering: bool,
}

/// What a small volume stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmallScheme {
    /// RAW ORAM.
    Raw,
    /// rORAM, with blocks and one class of ranges.
    Range {
        /// The class.
        class: u8,
    },
    /// The same, and all accesses of a disk are to ranges of that class.
    FixedRange {
        /// The class.
        class: u8,
    },
    /// rORAM with another class between, and requests of a disk take ranges that are as long.
    ExactRange {
        /// That of ranges between blocks and the longest.
        between: u8,
        /// That of the longest ranges.
        class: u8,
    },
    /// The trivial ORAM.
    Scan {
        /// As many accesses lie between two checkpoints at most.
        spare: u64,
    },
    /// S³ORAM, whose store has servers beside it. None of them learns anything alone.
    Shares {
        /// How many.
        servers: u8,
        /// Whether its position map is in a tree of its own, because it does not fit on the client.
        has_map_in_trees: bool,
    },
}

impl SmallScheme {
    /// The usual small parameters of a scheme.
    pub fn of(scheme: VolumeScheme) -> Self {
        match scheme {
            VolumeScheme::Raw => Self::Raw,
            VolumeScheme::Range => Self::Range { class: 3 },
            VolumeScheme::Scan => Self::Scan { spare: 10 },
            VolumeScheme::S3Oram => Self::Shares { servers: 3, has_map_in_trees: false },
        }
    }

    /// Whether it stands on servers, and not on a store alone.
    pub fn needs_servers(self) -> bool {
        matches!(self, Self::Shares { .. })
    }

    /// One of each scheme that stands on a store alone. What holds for all schemes is tested over
    /// these.
    pub fn each() -> impl Iterator<Item = Self> {
        VolumeScheme::ALL.iter().copied().map(Self::of).filter(|scheme| !scheme.needs_servers())
    }
}

/// What stands between requests and the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Nothing: see [`RawDisk`].
    Raw,
    /// A [`Disk`].
    Disk {
        /// Blocks in its cache.
        cache_blocks_max: u64,
    },
    /// A [`Disk`] that makes accesses at ticks alone.
    Scheduled {
        /// Blocks in its cache.
        cache_blocks_max: u64,
        /// Accesses at each tick.
        accesses: usize,
    },
}

/// What an owner does to the key slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotChange {
    /// Adds one that a file full of this byte opens.
    Add {
        /// The byte.
        key_file: u8,
    },
    /// Empties one.
    Remove {
        /// Which.
        slot: u8,
    },
}

impl Default for SmallVolume {
    fn default() -> Self {
        Self {
            steps: 100,
            seed: 1,
            sync_moves: SyncMoves::BeforeReads,
            failed_sync: FailedSync::Drops,
            disks: 1,
            scheme: SmallScheme::Raw,
            leaf_level: 5,
            blocks: BLOCKS,
            slots: 4,
            leaf_slots: None,
            tree_top_ways: 0,
            recursion: None,
            tree_top_levels: 2,
            stash_blocks_max: 40,
            state_file_bytes_max: 20_000,
            device: Device::Disk { cache_blocks_max: 8 },
            after_tampering: false,
        }
    }
}

impl SmallVolume {
    /// The same volume with a position map in the tree, of more blocks than the client keeps. It is
    /// larger, because a position-map block is for a hundred others.
    pub fn with_map_in_tree(self) -> Self {
        let recursion = Some(MapRecursion { client_entries_max: 8, plb_blocks: 4 });
        Self { blocks: 700, leaf_level: 8, recursion, ..self }
    }

    /// The same volume on each scheme of [`SmallScheme::each`]. It has few blocks where each access
    /// reads all of them.
    pub fn on_each_scheme(self) -> impl Iterator<Item = Self> {
        SmallScheme::each().map(move |scheme| match scheme {
            SmallScheme::Scan { .. } => Self { scheme, blocks: 16, ..self },
            _ => Self { scheme, ..self },
        })
    }

    /// The parameters of the volume.
    pub fn params(&self) -> VolumeParams {
        match self.scheme {
            SmallScheme::Raw => VolumeParams::of(&self.raw_params()),
            SmallScheme::Range { class } => {
                VolumeParams::of(&self.range_params(&[0, class], RangePolicy::Classes))
            }
            SmallScheme::FixedRange { class } => {
                VolumeParams::of(&self.range_params(&[0, class], RangePolicy::Fixed(class)))
            }
            SmallScheme::ExactRange { between, class } => {
                VolumeParams::of(&self.range_params(&[0, between, class], RangePolicy::Exact))
            }
            SmallScheme::Scan { spare } => {
                let blocks = self.blocks;
                VolumeParams::of(&ScanParams { blocks, block_bytes: BLOCK_BYTES, spare })
            }
            SmallScheme::Shares { servers, has_map_in_trees } => {
                let requirements = ArrayRequirements {
                    block_bytes: BLOCK_BYTES,
                    slots: Some(Slots::Same(SHARE_SLOTS)),
                    evict_period: Some(EVICT_PERIOD),
                    servers: Some(servers),
                    colluding: Some(1),
                    ..ArrayRequirements::new(self.blocks * u64::from(BLOCK_BYTES), "s3oram")
                };
                let plan = |requirements: &ArrayRequirements| {
                    VolumeParams::plan(requirements).expect("a tree whose buckets do not overflow")
                };
                let params = plan(&requirements);
                if !has_map_in_trees {
                    return params;
                }
                let config = params.config().expect("a scheme of volumes");
                let on_client = config.cost().expect("a tree that there is").client_bytes();
                plan(&ArrayRequirements { client_bytes_max: on_client - 1, ..requirements })
            }
        }
    }

    fn range_params(&self, classes: &[u8], policy: RangePolicy) -> RangeParams {
        RangeParams {
            blocks: self.blocks,
            block_bytes: BLOCK_BYTES,
            leaf_level: self.leaf_level,
            tree_top_levels: self.tree_top_levels,
            slots: self.slots,
            evict_period: EVICT_PERIOD,
            stash_blocks_max: self.stash_blocks_max,
            classes: classes.to_vec(),
            policy,
        }
    }

    fn raw_params(&self) -> RawParams {
        let mut slots = Slots::Same(self.slots);
        if let Some(leaf_slots) = self.leaf_slots {
            let mut levels = vec![self.slots; usize::from(self.leaf_level)];
            levels.push(leaf_slots);
            slots = Slots::PerLevel(levels);
        }
        RawParams {
            blocks: self.blocks,
            block_bytes: BLOCK_BYTES,
            leaf_level: self.leaf_level,
            slots,
            evict_period: EVICT_PERIOD,
            stash_blocks_max: self.stash_blocks_max,
            tree_top_levels: self.tree_top_levels,
            tree_top_ways: self.tree_top_ways,
            recursion: self.recursion,
        }
    }

    /// A world with room for it.
    pub fn world(&self) -> World {
        let world = World::striped(&self.trial().shapes, self.disks);
        world.set_failed_sync(self.failed_sync);
        world
    }

    /// Lives through `lives`: see [`Trial::run`].
    ///
    /// # Errors
    /// With what the volume did wrong.
    pub fn run(&self, lives: &[Life]) -> Result<Ran, Loss> {
        self.run_over(lives, Ok)
    }

    /// The same, with the store of the world reached in some way.
    ///
    /// # Errors
    /// With what the volume did wrong.
    pub fn run_over<S: BucketStore + Send + 'static>(
        &self,
        lives: &[Life],
        reach: impl FnMut(CrashStore) -> Result<S, DiskError>,
    ) -> Result<Ran, Loss> {
        match self.device {
            Device::Raw => self.run_on(lives, reach, |volume| Ok(RawDisk::new(volume))),
            Device::Scheduled { cache_blocks_max, accesses } => {
                let cache_bytes_max = cache_blocks_max * u64::from(BLOCK_BYTES);
                self.run_on(lives, reach, |volume| {
                    TickingDisk::start(volume, cache_bytes_max, accesses)
                })
            }
            Device::Disk { cache_blocks_max } => {
                let cache_bytes_max = cache_blocks_max * u64::from(BLOCK_BYTES);
                self.run_on(lives, reach, |volume| {
                    Disk::start(
                        volume,
                        &DiskOptions::default().with_cache_bytes_max(cache_bytes_max),
                    )
                })
            }
        }
    }

    fn run_on<S: BucketStore + Send + 'static, D: BlockDevice>(
        &self,
        lives: &[Life],
        mut reach: impl FnMut(CrashStore) -> Result<S, DiskError>,
        start: impl Fn(Volume) -> Result<D, VolumeError>,
    ) -> Result<Ran, Loss> {
        let mut openings = self.seed << 32;
        let mut exists = false;
        self.trial().run(lives, |store, dir| {
            openings += 1;
            let store = reach(store)?;
            let volume = self.open_or_create(store, dir, exists, StdRng::seed_from_u64(openings));
            let disk = volume.and_then(&start).map_err(|error| disk_error(&error));
            exists |= disk.is_ok();
            disk
        })
    }

    /// Makes the volume.
    ///
    /// # Errors
    /// See [`Volume::create`].
    pub fn create(
        &self,
        store: impl BucketStore + Send + 'static,
        dir: impl StateDir + 'static,
        coins: StdRng,
    ) -> Result<Volume, VolumeError> {
        self.create_with(store, dir, coins, None)
    }

    /// Makes the volume with something in it.
    ///
    /// # Errors
    /// See [`Volume::create_with`].
    pub fn create_with(
        &self,
        store: impl BucketStore + Send + 'static,
        mut dir: impl StateDir + 'static,
        mut coins: StdRng,
        contents: Option<&mut dyn Contents>,
    ) -> Result<Volume, VolumeError> {
        // What is there is left of an attempt that failed.
        for name in dir.names()? {
            dir.remove(&name)?;
        }
        let secret = secret();
        let key = VolumeKey::draw(&mut coins);
        let slot = NewSlot { secret: &secret, cost: Cost::weak_for_tests(), label: "" };
        let superblock = Superblock::create(self.params(), &key, &slot, &mut coins)?;
        let owner = Unlocked { superblock, volume_key: key, slot: 0 };
        Volume::create_with(store, Box::new(dir), &owner, self.options(), coins, contents)
    }

    /// Opens it, whatever its store is wrapped in.
    ///
    /// # Errors
    /// See [`Volume::open`].
    pub fn open(
        &self,
        mut store: impl BucketStore + Send + 'static,
        dir: impl StateDir + 'static,
        coins: StdRng,
    ) -> Result<(Volume, Recovery), VolumeError> {
        let owner = owner_of(&mut store)?;
        Volume::open(store, Box::new(dir), &owner, self.options(), coins)
    }

    /// Changes the key slots of the volume, as its owner does.
    ///
    /// # Errors
    /// See [`key_change::change_slots`].
    pub fn change_slots(
        &self,
        mut store: CrashStore,
        mut dir: CrashDir,
        change: SlotChange,
    ) -> Result<(), VolumeError> {
        let mut owner = owner_of(&mut store)?;
        key_change::change_slots(store, &mut dir, &mut owner, |superblock, key| {
            match change {
                SlotChange::Add { key_file } => {
                    let secret = Secret::KeyFile(Zeroizing::new(vec![key_file; KEY_FILE.len()]));
                    let slot = NewSlot { secret: &secret, cost: Cost::weak_for_tests(), label: "" };
                    let mut coins = StdRng::seed_from_u64(u64::from(key_file));
                    superblock.add_slot(key, &slot, &mut coins).map(drop)
                }
                SlotChange::Remove { slot } => superblock.remove_slot(key, slot),
            }
            .map_err(VolumeError::from)
        })
    }

    /// A volume that does not exist yet may have been left half made.
    fn open_or_create(
        &self,
        mut store: impl BucketStore + Send + 'static,
        dir: CrashDir,
        exists: bool,
        coins: StdRng,
    ) -> Result<Volume, VolumeError> {
        match exists || read_copies(&mut store).newest().is_ok() {
            true => self.open(store, dir, coins).map(|(volume, _)| volume),
            false => self.create(store, dir, coins),
        }
    }

    /// The trees of its store.
    pub fn shapes(&self) -> Vec<TreeShape> {
        shapes(&self.params()).expect("sound parameters")
    }

    fn trial(&self) -> Trial {
        Trial {
            shapes: self.shapes(),
            disks: self.disks,
            bytes: self.blocks * u64::from(BLOCK_BYTES),
            block_bytes: BLOCK_BYTES,
            steps: self.steps,
            seed: self.seed,
            failed_sync: self.failed_sync,
        }
    }

    fn options(&self) -> VolumeOptions {
        let Self { sync_moves, state_file_bytes_max, after_tampering, .. } = *self;
        let hits = if self.tree_top_ways > 0 { HitPolicy::Serve } else { HitPolicy::Access };
        // At a fixed rate, the opening before it as well: see `Lengths::Constant`.
        let lengths = match self.device {
            Device::Scheduled { .. } => Lengths::Constant,
            Device::Raw | Device::Disk { .. } => Lengths::Needed,
        };
        VolumeOptions::default()
            .with_sync_moves(sync_moves)
            .with_lengths(lengths)
            .with_state_file_bytes_max(state_file_bytes_max)
            .with_hits(hits)
            .with_after_tampering(after_tampering)
    }
}

/// What the key file of every volume here unlocks.
///
/// # Errors
/// When the superblock does not open.
pub fn owner_of(store: &mut impl BucketStore) -> Result<Unlocked, VolumeError> {
    Ok(read_copies(store).unlock(&secret(), Attempt::default())?)
}

fn secret() -> Secret {
    Secret::KeyFile(Zeroizing::new(KEY_FILE.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_volume::schemes::SCHEMES;

    #[test]
    fn every_scheme_of_volumes_has_a_small_volume() {
        for (scheme, description) in VolumeScheme::ALL.iter().zip(SCHEMES) {
            let scheme = SmallScheme::of(*scheme);
            assert_eq!(scheme.needs_servers(), description.needs_servers());
            let params = SmallVolume { scheme, ..SmallVolume::default() }.params();
            assert_eq!(params.scheme.as_str(), description.name());
        }
    }
}
