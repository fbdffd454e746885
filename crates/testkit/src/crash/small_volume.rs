//! A volume so small that a run has only a few hundred operations, so that tests can crash at each
//! of them.

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
use oblivio_volume::keys::{Cost, NewSlot, Secret, UnlockLimits, VolumeKey};
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
use super::{
    CrashDir, CrashStore, FailedSync, Life, Loss, TickingDisk, Trial, TrialOutcome, World,
};

/// Bytes per block: one sector, the worst case for torn writes.
pub const BLOCK_BYTES: u32 = 512;

/// Default number of blocks of the disk.
pub const BLOCKS: u64 = 64;

/// Number of accesses per eviction.
pub const EVICT_PERIOD: u32 = 3;

/// Slots per bucket of shares: about the minimum with which evictions do not overflow.
const SHARE_SLOTS: u16 = 24;

/// The contents of the key file of all small volumes.
const KEY_FILE: [u8; 32] = [5; 32];

/// Parameters of a volume and of its use. A volume is deterministic: with equal [`Life`] values, it
/// gives the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallVolume {
    /// Number of steps of the workload, over all lives.
    pub steps: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// The time at which moves become durable.
    pub sync_moves: SyncMoves,
    /// The effect of failed syncs.
    pub failed_sync: FailedSync,
    /// Number of disks that the store is striped over.
    pub disks: usize,
    /// The scheme of the volume. The fields about leaves, slots, the tree top and the stash apply
    /// only to schemes with trees.
    pub scheme: SmallScheme,
    /// Level of the leaves. The tree has `2^leaf_level` leaves. With many leaves, two accesses
    /// rarely show the same leaf by chance.
    pub leaf_level: u8,
    /// Number of blocks of the disk.
    pub blocks: u64,
    /// Slots per bucket.
    pub slots: u16,
    /// Slots per bucket at the leaves, if different.
    pub leaf_slots: Option<u16>,
    /// Associativity of the tree top if it is stored in sets, else 0. With sets, the volume serves
    /// blocks on the client without an access.
    pub tree_top_ways: u16,
    /// The recursion of the position map, if part of it is in the tree.
    pub recursion: Option<MapRecursion>,
    /// Number of levels on the client. At most `2^tree_top_levels` evictions happen between two
    /// checkpoints.
    pub tree_top_levels: u8,
    /// Maximum number of blocks in the stash.
    pub stash_blocks_max: u32,
    /// Maximum size of the state file in bytes. A small value makes snapshots frequent.
    pub state_file_bytes_max: u64,
    /// The disk between requests and the volume.
    pub device: Device,
    /// Whether to open the volume although tampering was found before: the owner has restored
    /// storage.
    pub after_tampering: bool,
}

/// The scheme of a small volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmallScheme {
    /// RAW ORAM.
    Raw,
    /// rORAM, with blocks and one class of ranges.
    Range {
        /// The class of the ranges.
        class: u8,
    },
    /// rORAM with the policy [`RangePolicy::Fixed`]: the disk accesses only ranges of one class.
    FixedRange {
        /// The class of the ranges.
        class: u8,
    },
    /// rORAM with two classes of ranges and the policy [`RangePolicy::Exact`].
    ExactRange {
        /// The class of the shorter ranges.
        between: u8,
        /// The class of the longer ranges.
        class: u8,
    },
    /// The trivial ORAM.
    Scan {
        /// Maximum number of accesses between two checkpoints.
        spare: u64,
    },
    /// S³ORAM, with share servers in addition to the store. One server alone learns nothing.
    Shares {
        /// Number of servers.
        servers: u8,
        /// Whether the position map is in a tree of its own instead of on the client.
        has_map_in_trees: bool,
    },
}

impl SmallScheme {
    /// The usual parameters of a scheme in tests.
    pub fn from_scheme(scheme: VolumeScheme) -> Self {
        match scheme {
            VolumeScheme::Raw => Self::Raw,
            VolumeScheme::Range => Self::Range { class: 3 },
            VolumeScheme::Scan => Self::Scan { spare: 10 },
            VolumeScheme::S3Oram => Self::Shares { servers: 3, has_map_in_trees: false },
        }
    }

    /// Whether the scheme needs servers in addition to the store.
    pub fn needs_servers(self) -> bool {
        matches!(self, Self::Shares { .. })
    }

    /// Returns one of each scheme that needs only a store. Tests of all schemes use these.
    pub fn each() -> impl Iterator<Item = Self> {
        VolumeScheme::ALL
            .iter()
            .copied()
            .map(Self::from_scheme)
            .filter(|scheme| !scheme.needs_servers())
    }
}

/// The disk between requests and the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// No cache: see [`RawDisk`].
    Raw,
    /// A [`Disk`].
    Disk {
        /// Maximum number of blocks in the cache.
        cache_blocks_max: u64,
    },
    /// A [`Disk`] that makes accesses only at ticks.
    Scheduled {
        /// Maximum number of blocks in the cache.
        cache_blocks_max: u64,
        /// Number of accesses at each tick.
        accesses: usize,
    },
}

/// A change to the key slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotChange {
    /// Adds a slot for a key file that repeats one byte.
    Add {
        /// The byte of the key file.
        key_file: u8,
    },
    /// Removes a slot.
    Remove {
        /// The number of the slot.
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
    /// Returns this volume with a recursive position map. It has more blocks, because one
    /// position-map block covers about a hundred blocks.
    pub fn with_map_in_tree(self) -> Self {
        let recursion = Some(MapRecursion { client_entries_max: 8, plb_blocks: 4 });
        Self { blocks: 700, leaf_level: 8, recursion, ..self }
    }

    /// Returns this volume with each scheme of [`SmallScheme::each`]. With the trivial ORAM, whose
    /// accesses read all blocks, the volume has fewer blocks.
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
                    VolumeParams::plan(requirements).expect("the parameters avoid overflow")
                };
                let params = plan(&requirements);
                if !has_map_in_trees {
                    return params;
                }
                let config = params.config().expect("the scheme is known");
                let on_client = config.cost().expect("the trees have a cost").client_bytes();
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

    /// Creates a world with storage for the volume.
    pub fn world(&self) -> World {
        let world = World::striped(&self.trial().shapes, self.disks);
        world.set_failed_sync(self.failed_sync);
        world
    }

    /// Runs `lives`: see [`Trial::run`].
    ///
    /// # Errors
    /// If the volume violates the contract of a disk.
    pub fn run(&self, lives: &[Life]) -> Result<TrialOutcome, Loss> {
        self.run_over(lives, Ok)
    }

    /// Runs `lives` as [`Self::run`] does. `reach` wraps the store of the world, or connects to it.
    ///
    /// # Errors
    /// If the volume violates the contract of a disk.
    pub fn run_over<S: BucketStore + Send + 'static>(
        &self,
        lives: &[Life],
        reach: impl FnMut(CrashStore) -> Result<S, DiskError>,
    ) -> Result<TrialOutcome, Loss> {
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
    ) -> Result<TrialOutcome, Loss> {
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

    /// Creates the volume.
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

    /// Creates the volume with `contents`, after removing all files from `dir`.
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
        // Remove the files of an attempt that failed.
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

    /// Opens the volume.
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

    /// Opens the volume if `exists` is set or a superblock can be read. Otherwise creates the
    /// volume, which an earlier life may have left incomplete.
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

    /// The shapes of the trees of the volume's store.
    pub fn shapes(&self) -> Vec<TreeShape> {
        shapes(&self.params()).expect("the parameters are valid")
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
        // A fixed rate covers the opening, too: see `Lengths::Constant`.
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

/// Unlocks the superblock with the key file of small volumes.
///
/// # Errors
/// If the superblock does not open.
pub fn owner_of(store: &mut impl BucketStore) -> Result<Unlocked, VolumeError> {
    Ok(read_copies(store).unlock(&secret(), UnlockLimits::default())?)
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
            let scheme = SmallScheme::from_scheme(*scheme);
            assert_eq!(scheme.needs_servers(), description.needs_servers());
            let params = SmallVolume { scheme, ..SmallVolume::default() }.params();
            assert_eq!(params.scheme.as_str(), description.name());
        }
    }
}
