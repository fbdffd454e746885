//! ORAMs that S³ORAM is compared with, timed on a bucket server behind the same link. These are
//! Path ORAM as the paper counts it, and a default volume.

use std::time::Duration;

use oblivio_core::durable::rotating::DurableRaw;
use oblivio_core::durable::{
    AccessPlan, AnyStore, ArrayRequirements, Durable, DurableConfig, DurableScheme, Want,
    find_number,
};
use oblivio_core::store::{BucketStore, TreeId};
use oblivio_core::{Geometry, Key, MasterKey, Op, Oram, PathOram, Sealer, TreeConfig};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::points::{MeasuredTree, Servers};
use super::spread::Spread;
use super::{Clock, Clocks};
use crate::LabError;
use crate::links::path;
use oblivio_models::link::{Link, Traffic, VolumeOnLink};

/// An ORAM whose server does not compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparedOram {
    /// Path ORAM with five slots per bucket, one to two blocks per leaf, and only positions and
    /// stash on the client.
    PathZ5,
    /// RAW ORAM with a volume's defaults: the client keeps the levels that fit its memory.
    DefaultVolume,
}

/// The measured time of an access.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OramComparison {
    /// The measured ORAM.
    pub other: ComparedOram,
    /// The number of blocks of the ORAM.
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// The link between client and server.
    pub link: Link,
    /// Seconds of an access with its share of evictions, without overlap. Each eviction period
    /// gives one value; in Path ORAM, each access gives one.
    pub alone: Spread,
    /// The value of `alone` that the model computes.
    pub alone_modelled: f64,
    /// Seconds of an access with several accesses in flight. `None` if the ORAM serves one access
    /// at a time.
    pub together: Option<Spread>,
    /// The value of `together` that the model computes.
    pub together_modelled: Option<f64>,
}

impl ComparedOram {
    /// All ORAMs.
    pub const ALL: [Self; 2] = [Self::PathZ5, Self::DefaultVolume];

    /// The name of the ORAM in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::PathZ5 => "Path ORAM Z5, all levels on the server",
            Self::DefaultVolume => "default volume (RAW ORAM)",
        }
    }
}

/// Number of accesses to Path ORAM that are timed.
const PATH_ACCESSES: usize = 6;

/// Number of eviction periods of the volume that each measurement times.
const PERIODS: usize = 6;

/// Number of repetitions of the measurement with several accesses in flight.
const ROUNDS: usize = 3;

/// Creates an ORAM with the number of blocks that `shape` holds, on a bucket server behind `link`,
/// and times accesses. The ORAM may be empty: the traffic of a path does not depend on its
/// contents.
///
/// # Errors
/// The errors of the server and of the ORAM.
pub(super) fn measure(
    other: ComparedOram,
    shape: MeasuredTree,
    link: Link,
    servers: &mut dyn Servers,
    clocks: &Clocks,
) -> Result<OramComparison, LabError> {
    let (blocks, block_bytes) = (shape.blocks()?, shape.block_bytes);
    let measured = match other {
        ComparedOram::PathZ5 => of_path(blocks, block_bytes, link, servers, &clocks.wall),
        ComparedOram::DefaultVolume => of_volume(blocks, block_bytes, link, servers, &clocks.wall),
    };
    servers.remove_alone()?;
    measured
}

fn of_path(
    blocks: u64,
    block_bytes: u32,
    link: Link,
    servers: &mut dyn Servers,
    wall: &Clock,
) -> Result<OramComparison, LabError> {
    const SLOTS: u16 = 5;
    const STASH_BLOCKS_MAX: usize = 200;
    let levels = blocks.max(1).ilog2() + 1;
    let geometry = Geometry::uniform((levels - 1) as u8, SLOTS)?;
    let tree = TreeConfig::new(blocks, block_bytes as usize, geometry, STASH_BLOCKS_MAX);
    let store = servers.create_alone(&[tree.shape()?], link)?;
    let mut coins = StdRng::seed_from_u64(1);
    let sealer = Sealer::aes128(Key::draw(&mut coins), TreeId(0));
    let mut oram = PathOram::path(&tree, sealer, store, coins)?;
    let mut block = vec![0; block_bytes as usize];
    let mut times = Vec::new();
    // The first access finds a cold connection and does not count.
    for address in 0..=PATH_ACCESSES as u64 {
        let start = wall();
        oram.read(address * 997 % blocks, &mut block)?;
        // Without a flush, written buckets would stay cached and not be downloaded again.
        oram.store_mut().flush().map_err(oblivio_core::Error::from)?;
        times.push(seconds_since(wall, start));
    }
    let traffic = path(levels, SLOTS.into(), block_bytes);
    Ok(OramComparison {
        other: ComparedOram::PathZ5,
        blocks,
        block_bytes,
        link,
        alone: Spread::from_values(times.drain(1..)),
        alone_modelled: traffic.serial_seconds(link),
        together: None,
        together_modelled: None,
    })
}

fn of_volume(
    blocks: u64,
    block_bytes: u32,
    link: Link,
    servers: &mut dyn Servers,
    wall: &Clock,
) -> Result<OramComparison, LabError> {
    let bytes = blocks * u64::from(block_bytes);
    let requirements =
        ArrayRequirements { block_bytes, ..ArrayRequirements::new(bytes, DurableRaw.name()) };
    let config = DurableRaw.plan(&requirements)?;
    let traffic = *VolumeOnLink::from_config(&*config)?.traffic();
    let store = servers.create_alone(&config.shapes()?, link)?;
    let mut volume = Volume::new(&*config, store)?;
    volume.one_by_one(1, wall)?;
    let alone = volume.one_by_one(PERIODS, wall)?;
    let together = volume.together(wall)?;
    Ok(OramComparison {
        other: ComparedOram::DefaultVolume,
        blocks,
        block_bytes,
        link,
        alone,
        alone_modelled: traffic.serial_seconds(link),
        together: Some(together),
        together_modelled: Some(Traffic::pipelined_seconds(&traffic, link)),
    })
}

fn seconds_since(wall: &Clock, start: Duration) -> f64 {
    wall().saturating_sub(start).as_secs_f64()
}

/// Accesses a volume's ORAM, one period of evictions at a time.
struct Volume {
    array: Box<dyn Durable>,
    period: usize,
    coins: StdRng,
}

impl Volume {
    fn new(config: &dyn DurableConfig, store: AnyStore) -> Result<Self, LabError> {
        let mut coins = StdRng::seed_from_u64(1);
        let key = MasterKey::from_bytes([0; 32]);
        let trees: Vec<_> = (0..).map(TreeId).take(config.shapes()?.len()).collect();
        let array = config.create(key, &trees, store, &mut coins)?;
        let period = find_number(&config.facts(), "evict_period").unwrap_or(1) as usize;
        Ok(Self { array, period, coins })
    }

    /// Makes accesses one at a time for `periods` eviction periods. Returns the spread of the
    /// periods' mean seconds per access. A period ends when its writes are durable.
    fn one_by_one(&mut self, periods: usize, wall: &Clock) -> Result<Spread, LabError> {
        let mut times = Vec::new();
        for _ in 0..periods {
            let start = wall();
            for _ in 0..self.period {
                let plan = self.plan(1, &[])?;
                self.carry_out(&plan, 1)?;
            }
            self.array.flush()?;
            times.push(seconds_since(wall, start) / self.period as f64);
        }
        Ok(Spread::from_values(times))
    }

    /// Mean seconds of an access in each of `ROUNDS` rounds of several periods. The accesses of a
    /// period are announced before the accesses of the previous period are carried out.
    fn together(&mut self, wall: &Clock) -> Result<Spread, LabError> {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let start = wall();
            let mut next = self.plan(self.period, &[])?;
            self.array.announce(&next)?;
            for _ in 1..PERIODS {
                let now = next;
                next = self.plan(self.period, &[&now])?;
                self.array.announce(&next)?;
                self.carry_out(&now, self.period)?;
            }
            self.carry_out(&next, self.period)?;
            self.array.flush()?;
            times.push(seconds_since(wall, start) / (self.period * PERIODS) as f64);
        }
        Ok(Spread::from_values(times))
    }

    fn plan(&mut self, accesses: usize, planned: &[&AccessPlan]) -> Result<AccessPlan, LabError> {
        let blocks = self.array.facts().blocks;
        let wanted: Vec<_> =
            (0..accesses).map(|_| Want::Block(self.coins.random_range(0..blocks))).collect();
        Ok(self.array.plan(&wanted, planned, &mut self.coins)?)
    }

    fn carry_out(&mut self, plan: &AccessPlan, accesses: usize) -> Result<(), LabError> {
        // Without a checkpoint, evictions would overwrite the state that a client could roll back
        // to.
        if self.array.headroom()?.accesses < accesses as u64 {
            self.array.flush()?;
            self.array.mark_durable();
        }
        let mut data = vec![vec![0; self.array.facts().block_bytes]; accesses];
        let mut ops: Vec<_> = data.iter_mut().map(|block| Op::Read(block)).collect();
        Ok(self.array.carry_out(plan, &mut ops)?)
    }
}
