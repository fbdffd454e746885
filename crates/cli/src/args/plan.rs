//! Arguments of `oblivio plan`, and the parameters of a new volume.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use oblivio_core::durable::rotating::DurableRaw;
use oblivio_core::durable::{DurableScheme, RangePolicy};
use oblivio_models::alloc_search::SEARCHED_LEAF_LEVEL;
use oblivio_models::link::Link;
use oblivio_models::medium::Medium;
use oblivio_models::objects::{S3_PRICES, ServiceKind};
use oblivio_store::{CloudService, Engine, StoreKind};
use oblivio_volume::schemes::{self, SCHEMES};

use super::values::{parse_millis, parse_percent, parse_range_policy, parse_size};
use super::{WorkloadName, link_help};

#[derive(Args, Clone)]
pub(crate) struct VolumeRequirementsArgs {
    // Its help comes from the table of schemes.
    #[arg(long, value_name = "NAME", help = scheme_help())]
    pub(crate) scheme: Option<String>,
    /// Block size in bytes, from 16 to 1M [default: 4K, and 128K on share servers].
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) block: Option<u64>,
    /// Slots of a bucket (Z) [default: 5, and 333 on share servers].
    #[arg(long, value_name = "Z")]
    pub(crate) slots: Option<u16>,
    /// Accesses between evictions (A) [default: 5, and 176 on share servers].
    #[arg(long, value_name = "A")]
    pub(crate) evict_period: Option<u32>,
    /// Maximum number of blocks in the stash when an access begins (C) [default: 64].
    #[arg(long, value_name = "C")]
    pub(crate) stash: Option<u32>,
    /// Maximum bytes of the blocks in the tree top, the upper levels of the tree, which the client
    /// keeps: twelve levels if they fit [default: 48M, and at most half of the disk].
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) tree_top: Option<u64>,
    /// Keep the blocks of the tree top in sets of this size, in which they are found by their
    /// address (IR-Stash); 0 keeps them bucket by bucket. Blocks found this way may be served
    /// without an access: see --serve-hits of `serve` and `mount`. Which blocks share a set decides
    /// how often the stash is full, and so how many evictions there are [default: 0].
    #[arg(long, value_name = "WAYS")]
    pub(crate) tree_top_ways: Option<u16>,
    /// With `--scheme range`: sizes in bytes of the ranges that are read and written at once,
    /// ascending, including the size of a block. Each size has a tree of its own. Storage sees the
    /// number of accesses of each size [default: one block, and the most blocks within 1M and the
    /// disk; with `--range-policy exact`, also 8 and 64 blocks].
    #[arg(long, value_name = "SIZES", value_parser = parse_size, value_delimiter = ',')]
    pub(crate) range_classes: Option<Vec<u64>>,
    /// With `--scheme range`: which ranges a disk requests. `classes` cuts requests at the borders
    /// of ranges, and storage sees which parts were long. With `exact` each request takes two
    /// ranges of the first size that is long enough, and storage sees that size. With `fixed=SIZE`
    /// every access is to a range of that size, and storage sees their number. With `exact` and
    /// `fixed`, the volume is larger by up to one range. At a fixed rate, accesses are to ranges
    /// with `fixed=SIZE`, and to blocks otherwise [default: classes].
    #[arg(long, value_name = "POLICY", value_parser = parse_range_policy)]
    pub(crate) range_policy: Option<RangePolicy<u64>>,
    /// Bytes of client memory for the tree top, the stash and the position map together. A position
    /// map that does not fit is kept in the tree, which costs accesses. If that is not enough, the
    /// client keeps fewer buckets, which makes each access move more bytes. The cache and the data
    /// of requests in flight are not included.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "48M")]
    pub(crate) client_memory: u64,
    /// Take the slots of each level from a file written by `oblivio plan --alloc-output`.
    #[arg(long, value_name = "FILE")]
    pub(crate) alloc_from: Option<PathBuf>,
}

/// Default block size in bytes.
pub(crate) const BLOCK_BYTES: u64 = 4 << 10;

/// Default bytes of a block on share servers, where an access to a small block takes as long as one
/// to a large block.
const BLOCK_BYTES_OF_SHARES: u64 = 128 << 10;

impl VolumeRequirementsArgs {
    /// The scheme for a volume on a store of this kind: the named one, or the default for the kind.
    pub(crate) fn scheme(&self, kind: StoreKind) -> String {
        let default = match kind {
            StoreKind::Shares { .. } => SCHEMES.iter().find(|scheme| scheme.needs_servers()),
            _ => None,
        };
        let default = default.copied().unwrap_or(schemes::default());
        self.scheme.clone().unwrap_or_else(|| default.name().to_owned())
    }

    /// Whether the named scheme runs on share servers only.
    pub(crate) fn is_for_share_servers(&self) -> bool {
        let named = self.scheme.as_deref();
        SCHEMES.iter().any(|scheme| scheme.needs_servers() && named == Some(scheme.name()))
    }

    /// The block size in bytes of a volume on a store of this kind.
    pub(crate) fn block_bytes(&self, kind: StoreKind) -> u64 {
        let default = match kind {
            StoreKind::Shares { .. } => BLOCK_BYTES_OF_SHARES,
            _ => BLOCK_BYTES,
        };
        self.block.unwrap_or(default)
    }

    /// The same requirements with another scheme: the same block size and client memory, and the
    /// default parameters of `scheme`.
    pub(crate) fn with_scheme(&self, scheme: &str) -> Self {
        Self {
            scheme: Some(scheme.to_owned()),
            slots: None,
            evict_period: None,
            stash: None,
            tree_top: None,
            tree_top_ways: None,
            range_classes: None,
            range_policy: None,
            alloc_from: None,
            ..self.clone()
        }
    }
}

/// Help of `--scheme`: the description that each scheme gives of itself.
fn scheme_help() -> String {
    let about = |scheme: &&dyn DurableScheme| format!("`{}` ({})", scheme.name(), scheme.about());
    let schemes: Vec<_> = SCHEMES.iter().map(about).collect();
    format!(
        "How accesses are hidden: {}. The options about stash and tree top apply to `{}` \
         [default: {}, and on share servers the scheme for them]",
        schemes.join(", or "),
        DurableRaw.name(),
        schemes::default().name()
    )
}

const PLAN_EXAMPLES: &str = "\
Examples:
  oblivio plan --size 1G
  oblivio plan --size 1T --block 64K --json
  oblivio plan --size 1G --alloc --alloc-output slots.json
  oblivio plan --size 1G --alloc-from slots.json
  oblivio plan --size 1G --link home
  oblivio plan --size 40G --block 64K --link 50/10/30 --json
  oblivio plan --size 40G --servers 3
  oblivio plan --size 1T --store s3
  oblivio plan --size 16G --store s3 --link home --near 4G --prices prices.toml

--alloc takes about a minute for 1G. Its result depends on --slots, --evict-period, --stash, the
depth of the tree, and the addresses that the search accesses (--alloc-workload). It does not
depend on what a volume holds later.";

/// Examples, and the built-in prices as a price file.
pub(crate) fn plan_examples() -> String {
    let prices = S3_PRICES.lines().filter(|line| !line.starts_with('#'));
    let prices: String = prices.map(|line| format!("\n  {line}")).collect();
    format!("{PLAN_EXAMPLES}\n\nThe built-in prices, in dollars, as a file for --prices:{prices}")
}

const ALLOC_HELP: &str = "\
Search how many slots each level needs (IR-Alloc), and show the plan with and without the result.

With fewer slots in the middle of the tree, an access moves fewer bytes. Blocks that find no slot \
there wait in the stash, and when the stash is full, evictions come early. Storage sees that, and \
it reveals something about how the volume is used. With --evictions-max 0%, the search finds only \
allocations that needed no early evictions; with --alloc-workload scan, even in the worst known \
case.";

#[derive(Args)]
pub(crate) struct PlanArgs {
    /// Bytes of the disk, such as 64M, 1G, 1T.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, required_unless_present = "sizes")]
    pub(crate) size: Option<u64>,
    /// Compare disks from 1 GiB to 16 TiB instead of planning one.
    #[arg(long, conflicts_with = "size")]
    pub(crate) sizes: bool,
    #[command(flatten)]
    pub(crate) requirements: VolumeRequirementsArgs,
    /// Plan a volume on this number of share servers, from 3 to 7.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(3..=7),
        conflicts_with_all = ["sizes", "medium", "alloc"]
    )]
    pub(crate) servers: Option<u8>,
    /// Number of share servers that may collude and still learn nothing [default: half of all but
    /// one].
    #[arg(
        long,
        value_name = "T",
        requires = "servers",
        value_parser = clap::value_parser!(u8).range(1..=3)
    )]
    pub(crate) colluding: Option<u8>,
    /// Compare the schemes on a medium, by a model: seeks, bytes and seconds of a read. The medium
    /// is `hdd`, `ssd`, `link` (1 ms, 1000 Mbit/s), or `link=MILLISECONDS,MEGABITS`.
    #[arg(long, value_name = "MEDIUM", conflicts_with_all = ["sizes", "alloc"])]
    pub(crate) medium: Option<Medium>,
    /// Plan a volume on this kind of store. With objects (s3, gs, az, redis, folder), also show
    /// requests, bytes, round trips, money, and what a bucket server would take. The block size is
    /// then, unless --block states it: 64K in a cloud, 16K with --link; with redis and folder 4K,
    /// above 16G 16K.
    #[arg(
        long,
        value_name = "STORE",
        value_enum,
        conflicts_with_all = ["sizes", "servers", "medium"]
    )]
    pub(crate) store: Option<PlannedStore>,
    /// With a store over objects: take prices from this TOML file instead of those of S3, which are
    /// shown below.
    #[arg(long, value_name = "FILE", requires = "store")]
    pub(crate) prices: Option<PathBuf>,
    /// With a store over objects: keep the highest levels of the tree in a local file of at most
    /// this size as well. They are then read from the file.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, requires = "store")]
    pub(crate) near: Option<u64>,
    /// With a store over objects: milliseconds until the store answers a short request, without
    /// those of --link [default: 30 with s3, gs and az].
    #[arg(long, value_name = "MILLISECONDS", value_parser = parse_millis, requires = "store")]
    pub(crate) latency: Option<Duration>,
    // Its help comes from the table of links.
    #[arg(
        long,
        value_name = "LINK",
        conflicts_with_all = ["sizes", "alloc", "medium"],
        help = format!(
            "How fast the volume would be with its storage behind a link, by a model of bytes \
             and trips, compared with other schemes and block sizes. With --store of objects, the \
             client is outside the cloud, behind this link. {}",
            link_help()
        )
    )]
    pub(crate) link: Option<Link>,
    #[command(flatten)]
    pub(crate) alloc: AllocArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A kind of store that a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlannedStore {
    /// Amazon S3, or a service with its interface.
    S3,
    /// Google Cloud Storage.
    Gs,
    /// Azure Blob Storage.
    Az,
    /// A Redis or Valkey cluster.
    Redis,
    /// A directory with one file per object.
    Folder,
    /// One local file.
    File,
    /// A bucket server.
    Server,
}

impl PlannedStore {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gs => "gs",
            Self::Az => "az",
            Self::Redis => "redis",
            Self::Folder => "folder",
            Self::File => "file",
            Self::Server => "server",
        }
    }

    /// The kind of service, if the store is over objects.
    pub(crate) fn service(self) -> Option<ServiceKind> {
        match self {
            Self::S3 | Self::Gs | Self::Az => Some(ServiceKind::Cloud),
            Self::Redis => Some(ServiceKind::Redis),
            Self::Folder => Some(ServiceKind::Folder),
            Self::File | Self::Server => None,
        }
    }

    /// The kind of store.
    pub(crate) fn kind(self) -> StoreKind {
        match self {
            Self::S3 => StoreKind::Objects(Engine::Cloud(CloudService::S3)),
            Self::Gs => StoreKind::Objects(Engine::Cloud(CloudService::Gcs)),
            Self::Az => StoreKind::Objects(Engine::Cloud(CloudService::Azure)),
            Self::Redis => StoreKind::Objects(Engine::Redis),
            Self::Folder => StoreKind::Objects(Engine::Folder),
            Self::File => StoreKind::File,
            Self::Server => StoreKind::Remote,
        }
    }
}

/// Options of the search for the slots of each level.
#[derive(Args)]
pub(crate) struct AllocArgs {
    /// Search how many slots each level needs (IR-Alloc), and show the plan with and without the
    /// result.
    #[arg(long, conflicts_with_all = ["alloc_from", "sizes"], long_help = ALLOC_HELP)]
    pub(crate) alloc: bool,
    /// The most slots that the search may leave out, in percent of all slots.
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = parse_percent,
        default_value = "1%",
        requires = "alloc"
    )]
    pub(crate) space_loss_max: f64,
    /// Maximum fraction that early evictions may add to the paths that accesses read and write.
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = parse_percent,
        default_value = "15%",
        requires = "alloc"
    )]
    pub(crate) evictions_max: f64,
    /// The level of the leaves of the searched tree, if the volume's tree is deeper. One more
    /// level takes twice the time.
    #[arg(
        long,
        value_name = "L",
        value_parser = clap::value_parser!(u8).range(1..=24),
        default_value_t = SEARCHED_LEAF_LEVEL,
        requires = "alloc"
    )]
    pub(crate) alloc_level: u8,
    /// Distribution of the addresses that the search accesses. A scan needs the most evictions.
    #[arg(long, value_enum, default_value_t = WorkloadName::Uniform, requires = "alloc")]
    pub(crate) alloc_workload: WorkloadName,
    /// Accesses counted for each profile, over both of its runs.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(2000..=1_000_000_000_000),
        default_value_t = 500_000,
        requires = "alloc"
    )]
    pub(crate) alloc_accesses: u64,
    /// Seed of all randomness of the search.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "alloc")]
    pub(crate) seed: u64,
    /// Save the result and its measurements to this file, for --alloc-from. An existing result is
    /// replaced; any other file is refused.
    #[arg(long, value_name = "FILE", requires = "alloc")]
    pub(crate) alloc_output: Option<PathBuf>,
}
