//! Points that test the model on real servers: timed accesses and evictions of the scheme that
//! volumes use.

use std::path::Path;
use std::time::Duration;

use oblivio_core::durable::{AnyStore, Contents, Durable, DurableConfig, Want};
use oblivio_core::store::TreeShape;
use oblivio_core::{Error, MasterKey, Op};
use oblivio_shares::durable::S3OramParams;
use oblivio_shares::host::{TILES_AT_ONCE, part_bytes, slots_at_once};
use oblivio_shares::servers::{AnyServers, into_store, share_servers};
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::{Preset, Tree};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::files::{Files, Pattern};
use super::ground::Testbed;
use super::metered::{Metered, TimedQuestion};
use super::place::DelayParts;
use super::rates::{Effort, Rates};
use super::spread::Spread;
use super::work::{Sizes, THREE, Works, shares};
use super::{Clock, Clocks};
use crate::LabError;
use oblivio_models::link::Link;

/// Share servers on this machine, provided by the program.
pub trait Servers {
    /// Creates a volume on `servers` servers, of which `colluding` may collude, and connects to it
    /// directly.
    ///
    /// # Errors
    /// The volume cannot be created.
    fn create(&mut self, servers: u8, colluding: u8) -> Result<AnyStore, LabError>;

    /// Connects to the latest volume behind a link that all servers share. Earlier connections are
    /// lost.
    ///
    /// # Errors
    /// The servers cannot be reached.
    fn connect_behind(&mut self, link: Link) -> Result<AnyStore, LabError>;

    /// Removes the latest volume.
    ///
    /// # Errors
    /// The volume cannot be removed.
    fn remove(&mut self) -> Result<(), LabError>;

    /// Creates a volume of these trees on a bucket server, and connects to it behind a link.
    /// Earlier connections behind a link are lost.
    ///
    /// # Errors
    /// The volume cannot be created.
    fn create_alone(&mut self, trees: &[TreeShape], link: Link) -> Result<AnyStore, LabError>;

    /// Removes the volume on the bucket server, if any.
    ///
    /// # Errors
    /// The volume cannot be removed.
    fn remove_alone(&mut self) -> Result<(), LabError>;

    /// The folder of the servers' files.
    fn folder(&self) -> &Path;
}

/// A tree to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredTree {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// The height of the tree, the paper's *H*.
    pub height: u8,
    /// The number of slots per bucket, the paper's *Z*.
    pub slots: u16,
    /// The number of accesses per eviction, the paper's *A*.
    pub accesses: u16,
    /// The number of timed evictions with direct connections, and behind the link. Zero means no
    /// measurement.
    pub evictions: [u64; 2],
    /// The number of servers, the paper's *ℓ*. Results of earlier versions used three servers.
    #[serde(default = "three")]
    pub servers: u8,
    /// The number of servers that may collude, the paper's *t*.
    #[serde(default = "one")]
    pub colluding: u8,
    /// Whether all blocks are placed in the leaves before the first access (Algorithm 3). If not,
    /// accesses fill the tree.
    #[serde(default)]
    pub is_loaded: bool,
}

fn three() -> u8 {
    THREE.0
}

fn one() -> u8 {
    THREE.1
}

impl MeasuredTree {
    /// The shapes for which times of the authors' implementation are known, a shape with long
    /// blocks in long buckets, and shapes with five and seven servers. With long blocks, paths are
    /// evicted more often than necessary, to shorten the measurement.
    pub const FULL: [Self; 9] = [
        Self::LONG,
        Self::SHORT,
        Self { slots: 333, accesses: 44, evictions: [3, 1], ..Self::LONG },
        Self::LONG.among(5, 1),
        Self::LONG.among(5, 2),
        Self::LONG.among(7, 3),
        Self::SHORT.among(5, 1),
        Self::SHORT.among(5, 2),
        Self::SHORT.among(7, 3),
    ];

    /// A disk of 1.4 GiB in blocks of 128 KiB, as in volumes. It takes 25 GB on three servers once
    /// every block is written.
    pub const LARGE: Self = Self {
        height: 6,
        slots: 333,
        accesses: 176,
        evictions: [1, 1],
        is_loaded: true,
        ..Self::LONG
    };

    /// Long blocks on three servers. `SHORT` has short blocks.
    const LONG: Self = Self {
        block_bytes: 128 << 10,
        height: 2,
        slots: 74,
        accesses: 16,
        evictions: [8, 3],
        servers: THREE.0,
        colluding: THREE.1,
        is_loaded: false,
    };
    const SHORT: Self = Self {
        block_bytes: 4 << 10,
        height: 4,
        slots: 333,
        accesses: 176,
        evictions: [6, 2],
        ..Self::LONG
    };

    /// Changes the shape to more servers, with direct connections only and fewer evictions.
    const fn among(self, servers: u8, colluding: u8) -> Self {
        Self { servers, colluding, evictions: [4, 0], ..self }
    }

    /// The number of servers, and the number that may collude.
    pub(super) fn sizes(self) -> Sizes {
        (self.servers, self.colluding)
    }

    /// The number of evictions before timing starts. Without loading, they fill all leaves. In a
    /// loaded tree, they fill the upper levels and a part of the lower ones.
    fn warm_up(self) -> u64 {
        const LOADED: u64 = 4;
        let all = 1 << (self.height - 1);
        if self.is_loaded { LOADED.min(all) } else { all }
    }

    /// The total number of accesses, including those before timing starts.
    pub fn total_accesses(self) -> u64 {
        let evictions = self.warm_up() + self.evictions.iter().sum::<u64>();
        u64::from(self.accesses) * evictions
    }

    /// The number of blocks that the tree holds.
    pub(super) fn blocks(self) -> Result<u64, LabError> {
        Ok(self.params()?.1.blocks_max())
    }

    fn preset(self) -> Preset {
        Preset { slots: self.slots, accesses: self.accesses }
    }

    fn params(self) -> Result<(S3OramParams, Tree), LabError> {
        let plan = |error: &dyn std::fmt::Display| LabError::Plan(error.to_string());
        let parties = Parties::new(self.servers, self.colluding).map_err(|error| plan(&error))?;
        let tree = Tree::new(self.height, self.preset()).map_err(|error| plan(&error))?;
        let params =
            S3OramParams::new(tree.blocks_max(), self.block_bytes, parties, self.preset())?;
        Ok((params, tree))
    }
}

/// Measured times of an operation, and the model's times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Seconds of the whole operation.
    pub whole: Spread,
    /// Seconds of computing on the client. For the rest of the time, the client waits for servers.
    pub client: Spread,
    /// Processor seconds of all participants. Results of earlier versions lack this field.
    #[serde(default)]
    pub worked: Spread,
    /// The time that the model computes.
    pub modelled: DelayParts,
    /// The processor time that the model computes.
    #[serde(default)]
    pub modelled_worked: f64,
}

/// The relative error above which a result of the model is reported.
pub(super) const OFF_MAX: f64 = 0.05;

/// Whether a relative error of the model is small enough.
pub(super) fn is_near(off_by: f64) -> bool {
    off_by.abs() <= OFF_MAX
}

impl Timed {
    /// The error of the model, relative to the measured mean.
    pub fn off_by(&self) -> f64 {
        self.modelled.seconds() / self.whole.mean - 1.0
    }

    /// The error of the model, relative to the median, which other load on the machine affects
    /// less.
    pub fn off_median_by(&self) -> f64 {
        self.modelled.seconds() / self.whole.median - 1.0
    }

    /// Whether the error relative to the mean is small enough.
    pub fn fits(&self) -> bool {
        is_near(self.off_by())
    }
}

/// The measurements of a tree, direct or behind a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The shape of the tree, and its servers.
    pub shape: MeasuredTree,
    /// The link. `None` if the connections were direct.
    pub link: Option<Link>,
    /// The times of an access without an eviction.
    pub access: Timed,
    /// Seconds of the two requests of an access: select a block, and write one.
    pub questions: [Spread; 2],
    /// The times of an eviction.
    pub eviction: Timed,
    /// Bytes of an access's messages to and from the servers, in this order.
    pub access_bytes: [f64; 2],
    /// Bytes of an eviction's messages to and from the servers, in this order.
    pub eviction_bytes: [f64; 2],
    /// The times of file reads and writes: first in the pattern of an access, then in that of an
    /// eviction. Results of earlier versions lack this field.
    #[serde(default)]
    pub files: [Files; 2],
}

/// The measurements of all shapes.
pub(super) struct Points {
    pub(super) ground: Testbed,
    pub(super) measured: Vec<Measured>,
}

/// Measures each shape directly, then behind `link`. `progress` is called with the number of new
/// accesses. Returns `None` if `shapes` is empty.
pub(super) fn measure(
    shapes: &[MeasuredTree],
    link: Link,
    servers: &mut dyn Servers,
    (rates, effort): (&Rates, Effort),
    clocks: &Clocks,
    progress: &dyn Fn(u64),
) -> Result<Option<Points>, LabError> {
    let (mut ground, mut measured) = (None, Vec::new());
    for shape in shapes {
        let mut timing = Timing::new(*shape, servers, clocks, progress)?;
        let ground = match ground {
            Some(ground) => ground,
            None => *ground.insert(timing.ground()?),
        };
        timing.samples(shape.warm_up())?;
        let files = timing.files(servers.folder())?;
        let part_bytes = files[1].piece_bytes;
        let of_evictions = rates.of_evictions(
            shape.sizes(),
            (shape.slots.into(), part_bytes),
            effort,
            &clocks.thread,
        )?;
        let rates = [*rates, of_evictions];
        let [directly, behind] = shape.evictions;
        let timed = [(directly, None), (behind, Some(link))];
        for (evictions, link) in timed.into_iter().filter(|(evictions, _)| *evictions > 0) {
            if let Some(link) = link {
                timing.metered.replace_connections(servers_in(servers.connect_behind(link)?)?);
                // Connection set-up does not count.
                timing.ask_nothing()?;
            }
            let samples = timing.samples(evictions)?;
            let works = shares(shape.sizes(), timing.tree, shape.block_bytes.into());
            let modelled = [0, 1].map(|which| {
                let (work, rates, files) =
                    ([works.access, works.eviction][which], &rates[which], &files[which]);
                let parts = ground.place(link, shape.servers, files).parts(&work, rates);
                (parts, ground.worked(&work, rates, shape.servers, files))
            });
            measured.push(Measured { files, ..summed(*shape, link, &samples, modelled) });
        }
        drop(timing);
        servers.remove()?;
    }
    Ok(ground.map(|ground| Points { ground, measured }))
}

/// The time and traffic of one access, and of the eviction after it if one was due.
struct Sample {
    seconds: f64,
    /// Processor seconds of all participants.
    worked: f64,
    asked: Vec<TimedQuestion>,
}

/// The initial contents of a tree, in which each block contains its own address.
struct Anything;

impl Contents for Anything {
    fn block(&mut self, address: u64, data: &mut [u8]) -> Result<bool, Error> {
        data[..8].copy_from_slice(&address.to_le_bytes());
        Ok(true)
    }
}

/// The share servers of a store.
fn servers_in(store: AnyStore) -> Result<AnyServers, LabError> {
    share_servers(store).map_err(|_| LabError::Plan("this store has no share servers".to_owned()))
}

/// A measurement in progress.
struct Timing<'p> {
    shape: MeasuredTree,
    tree: Tree,
    array: Box<dyn Durable>,
    metered: Metered,
    coins: StdRng,
    clocks: &'p Clocks,
    progress: &'p dyn Fn(u64),
}

impl<'p> Timing<'p> {
    fn new(
        shape: MeasuredTree,
        servers: &mut dyn Servers,
        clocks: &'p Clocks,
        progress: &'p dyn Fn(u64),
    ) -> Result<Self, LabError> {
        let (params, tree) = shape.params()?;
        let store = servers_in(servers.create(shape.servers, shape.colluding)?)?;
        let metered = Metered::new(store, clocks.wall.clone());
        let mut coins = StdRng::seed_from_u64(1);
        let key = MasterKey::from_bytes([0; 32]);
        let store = into_store(metered.another());
        let mut array = params.create(key, &[], store, &mut coins)?;
        if shape.is_loaded && !array.load(&mut Anything, &mut coins)? {
            return Err(LabError::Plan(
                "this array cannot be loaded with initial \
                                       contents"
                    .to_owned(),
            ));
        }
        metered.take();
        Ok(Self { shape, tree, array, metered, coins, clocks, progress })
    }

    fn ground(&mut self) -> Result<Testbed, LabError> {
        let slot_bytes = self.slot_bytes();
        Testbed::measure(&mut self.metered, (self.tree, slot_bytes), self.clocks)
    }

    /// Measures reads and writes of files in `folder`, first in the pattern of an access, then in
    /// that of an eviction.
    fn files(&self, folder: &Path) -> Result<[Files; 2], LabError> {
        let (slots, slot_bytes) = (self.tree.slots(), self.slot_bytes());
        let of = |pattern| Files::measure(folder, pattern, self.clocks);
        let piece_bytes = part_bytes(slot_bytes, slots);
        let run = slots_at_once(slot_bytes) * slot_bytes;
        Ok([
            of(Pattern { slots: 1, slot_bytes: run, piece_bytes: run, under_way: 1 })?,
            of(Pattern { slots, slot_bytes, piece_bytes, under_way: TILES_AT_ONCE })?,
        ])
    }

    fn slot_bytes(&self) -> usize {
        self.shape.block_bytes as usize + oblivio_core::seal::BLOCK_SEAL_BYTES
    }

    /// Completes the set-up of connections, and discards the measurements of its requests.
    fn ask_nothing(&mut self) -> Result<(), LabError> {
        self.array.probe_rollback(0, 0)?;
        self.metered.take();
        Ok(())
    }

    /// Times `evictions` evictions and the accesses before them.
    fn samples(&mut self, evictions: u64) -> Result<Vec<Sample>, LabError> {
        let mut data = vec![0; self.shape.block_bytes as usize];
        let mut samples = Vec::new();
        for _ in 0..evictions * u64::from(self.shape.accesses) {
            if self.array.headroom()?.accesses == 0 {
                self.array.mark_durable();
            }
            let address = self.coins.random_range(0..self.array.facts().blocks);
            self.coins.fill(&mut data[..64]);
            self.metered.take();
            let (start, worked_before) = ((self.clocks.wall)(), (self.clocks.processors)());
            let plan = self.array.plan(&[Want::Block(address)], &[], &mut self.coins)?;
            self.array.carry_out(&plan, &mut [Op::Write(&data)])?;
            let since =
                |clock: &Clock, start: Duration| clock().saturating_sub(start).as_secs_f64();
            let seconds = since(&self.clocks.wall, start);
            let worked = since(&self.clocks.processors, worked_before);
            samples.push(Sample { seconds, worked, asked: self.metered.take() });
            (self.progress)(1);
        }
        Ok(samples)
    }
}

/// The number of requests of an access. Further requests belong to an eviction.
const QUESTIONS: usize = 2;

fn summed(
    shape: MeasuredTree,
    link: Option<Link>,
    samples: &[Sample],
    [access, eviction]: [(DelayParts, f64); 2],
) -> Measured {
    let waited = |asked: &[TimedQuestion]| asked.iter().map(|asked| asked.seconds).sum::<f64>();
    let alone = || samples.iter().filter(|sample| sample.asked.len() == QUESTIONS);
    let client_of = |sample: &Sample| sample.seconds - waited(&sample.asked);
    let client = Spread::from_values(alone().map(client_of));
    let evicting = || samples.iter().filter(|sample| sample.asked.len() > QUESTIONS);
    let client_evicts = |sample: &Sample| (client_of(sample) - client.mean).max(0.0);
    let evicted = |sample: &Sample| waited(&sample.asked[QUESTIONS..]) + client_evicts(sample);
    let worked_alone = Spread::from_values(alone().map(|sample| sample.worked));
    let bytes = |asked: &mut dyn Iterator<Item = &[TimedQuestion]>| {
        let all: Vec<_> = asked
            .map(|asked| {
                let of = |one: fn(&TimedQuestion) -> f64| asked.iter().map(one).sum::<f64>();
                [of(|it| it.up_bytes), of(|it| it.down_bytes)]
            })
            .collect();
        [0, 1].map(|way| Spread::from_values(all.iter().map(|bytes| bytes[way])).mean)
    };
    Measured {
        shape,
        link,
        access: Timed {
            whole: Spread::from_values(alone().map(|sample| sample.seconds)),
            client,
            worked: worked_alone,
            modelled: access.0,
            modelled_worked: access.1,
        },
        questions: [0, 1]
            .map(|it| Spread::from_values(alone().map(|sample| sample.asked[it].seconds))),
        eviction: Timed {
            whole: Spread::from_values(evicting().map(evicted)),
            client: Spread::from_values(evicting().map(client_evicts)),
            worked: Spread::from_values(evicting().map(|sample| sample.worked - worked_alone.mean)),
            modelled: eviction.0,
            modelled_worked: eviction.1,
        },
        access_bytes: bytes(&mut alone().map(|sample| &sample.asked[..])),
        eviction_bytes: bytes(&mut evicting().map(|sample| &sample.asked[QUESTIONS..])),
        files: Default::default(),
    }
}

impl Measured {
    /// Mean seconds of an access with its share of an eviction.
    pub fn with_evictions(&self) -> f64 {
        self.access.whole.mean + self.eviction.whole.mean / f64::from(self.shape.accesses)
    }

    /// The value of [`Self::with_evictions`] that the model computes, as in the figures.
    pub fn with_evictions_modelled(&self) -> f64 {
        let [access, eviction] = [&self.access, &self.eviction].map(|it| it.modelled.seconds());
        access + eviction / f64::from(self.shape.accesses)
    }

    /// The relative error of [`Self::with_evictions_modelled`].
    pub fn with_evictions_off_by(&self) -> f64 {
        self.with_evictions_modelled() / self.with_evictions() - 1.0
    }

    /// Modelled bytes, up and down, of an access and of an eviction.
    pub(super) fn modelled_bytes(&self) -> Result<[[f64; 2]; 2], LabError> {
        let (_, tree) = self.shape.params()?;
        let Works { access, eviction, .. } =
            shares(self.shape.sizes(), tree, self.shape.block_bytes.into());
        Ok([access, eviction].map(|work| [work.up_bytes, work.down_bytes]))
    }
}
