//! What can be typed after `oblivio plan`, and what a new volume shall be like.

use std::path::PathBuf;

use clap::Args;
use oblivio_core::durable::rotating::DurableRaw;
use oblivio_core::durable::{DurableScheme, RangePolicy};
use oblivio_models::alloc_search::SEARCHED_LEAF_LEVEL;
use oblivio_models::link::Link;
use oblivio_models::medium::Medium;
use oblivio_store::StoreKind;
use oblivio_volume::schemes::{self, SCHEMES};

use super::values::{parse_percent, parse_range_policy, parse_size};
use super::{WorkloadName, link_help};

#[derive(Args, Clone)]
pub(crate) struct WishArgs {
    // Its help comes from the table of schemes.
    #[arg(long, value_name = "NAME", help = scheme_help())]
    pub(crate) scheme: Option<String>,
    /// Bytes of a block, from 16 to 1M [default: 4K, and 128K on share servers].
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) block: Option<u64>,
    /// Slots of a bucket (Z) [default: 5, and 333 on share servers].
    #[arg(long, value_name = "Z")]
    pub(crate) slots: Option<u16>,
    /// Accesses between evictions (A) [default: 5, and 176 on share servers].
    #[arg(long, value_name = "A")]
    pub(crate) evict_period: Option<u32>,
    /// Blocks that may be left in the stash (C) [default: 64].
    #[arg(long, value_name = "C")]
    pub(crate) stash: Option<u32>,
    /// Bytes of the blocks in buckets that the client keeps itself, at most: those of twelve levels of the tree
    /// if they fit [default: 48M, and no more than half of the disk].
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) tree_top: Option<u64>,
    /// Keep the blocks of those buckets in sets of so many, in which they are found by their address
    /// (IR-Stash); 0 for bucket by bucket. What is found so may be served without an access: see
    /// --serve-hits of `serve` and `mount`. Which blocks meet in a set decides how often
    /// the stash is full, and so how many evictions there are [default: 0].
    #[arg(long, value_name = "WAYS")]
    pub(crate) tree_top_ways: Option<u16>,
    /// With `--scheme range`: bytes of the ranges that are read and written at once, ascending, those of a block among
    /// them; each has a tree of its own. Storage sees how many of each size there were [default: a block and the most
    /// blocks within 1M and the disk; with `--range-policy exact`, also those of 8 and 64 blocks].
    #[arg(long, value_name = "SIZES", value_parser = parse_size, value_delimiter = ',')]
    pub(crate) range_classes: Option<Vec<u64>>,
    /// With `--scheme range`: which ranges a disk asks for. `classes` cuts requests at the borders of ranges, and storage sees
    /// which parts were long; with `exact` each request takes two ranges of the first size that is as long, and storage sees which that
    /// was; with `fixed=SIZE` every access is to a range of that size, and storage sees how many there were. With the last two, the
    /// volume is larger by up to a range. At a fixed rate, accesses are to ranges with `fixed=SIZE`, and to blocks otherwise
    /// [default: classes].
    #[arg(long, value_name = "POLICY", value_parser = parse_range_policy)]
    pub(crate) range_policy: Option<RangePolicy<u64>>,
    /// Bytes of client memory for those buckets, the stash and the position map together. A position
    /// map that does not fit lies in the tree, which costs accesses; where that is not enough, the client
    /// keeps fewer buckets, which makes accesses move more. The cache and the data of requests under way
    /// come on top.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "48M")]
    pub(crate) client_memory: u64,
    /// Take the slots of each level from a file that `oblivio plan --alloc-output` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) alloc_from: Option<PathBuf>,
}

/// Bytes of a block, unless others are asked for.
const BLOCK_BYTES: u64 = 4 << 10;

/// The same, where a block costs little more than a link needs for it, and small ones take as long.
const BLOCK_BYTES_OF_SHARES: u64 = 128 << 10;

impl WishArgs {
    /// The scheme for a volume on a store of this kind: the one that is asked for, or the only one that can be there.
    pub(crate) fn scheme(&self, kind: StoreKind) -> String {
        let default = match kind {
            StoreKind::Shares { .. } => SCHEMES.iter().find(|scheme| scheme.needs_servers()),
            _ => None,
        };
        let default = default.copied().unwrap_or(schemes::default());
        self.scheme.clone().unwrap_or_else(|| default.name().to_owned())
    }

    /// Whether the scheme that is asked for stands on share servers alone.
    pub(crate) fn is_for_share_servers(&self) -> bool {
        let named = self.scheme.as_deref();
        SCHEMES.iter().any(|scheme| scheme.needs_servers() && named == Some(scheme.name()))
    }

    /// Bytes of a block of such a volume.
    pub(crate) fn block_bytes(&self, kind: StoreKind) -> u64 {
        let default = match kind {
            StoreKind::Shares { .. } => BLOCK_BYTES_OF_SHARES,
            _ => BLOCK_BYTES,
        };
        self.block.unwrap_or(default)
    }

    /// The same disk with another scheme, as that is by default.
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

/// What there is to choose from, as each scheme says it.
fn scheme_help() -> String {
    let about = |scheme: &&dyn DurableScheme| format!("`{}` ({})", scheme.name(), scheme.about());
    let schemes: Vec<_> = SCHEMES.iter().map(about).collect();
    format!(
        "How blocks are hidden: {}. The options about stash and tree top are those of `{}` \
         [default: {}, and on share servers the one for them]",
        schemes.join(", or "),
        DurableRaw.name(),
        schemes::default().name()
    )
}

pub(crate) const PLAN_EXAMPLES: &str = "\
Examples:
  oblivio plan --size 1G
  oblivio plan --size 1T --block 64K --json
  oblivio plan --size 1G --alloc --alloc-output slots.json
  oblivio plan --size 1G --alloc-from slots.json
  oblivio plan --size 1G --link home
  oblivio plan --size 40G --block 64K --link 50/10/30 --json
  oblivio plan --size 40G --servers 3

--alloc takes about a minute for 1G. What it finds depends on --slots, --evict-period, --stash, the depth
of the tree, and the requests that it is tried with (--alloc-workload). What a volume holds later does not
change it.";

const ALLOC_HELP: &str = "\
Search how many slots each level needs (IR-Alloc), and show the plan with and without.

Fewer slots in the middle of the tree make an access move fewer bytes. What finds no place there waits in the \
stash, and where it fills up, evictions come ahead of their time. Storage sees that: it says something of \
how the volume is used. With --evictions-max 0% only what needed none is found, and with --alloc-workload \
scan what needed none in the worst case known.";

#[derive(Args)]
pub(crate) struct PlanArgs {
    /// Bytes of the disk, such as 64M, 1G, 1T.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, required_unless_present = "sizes")]
    pub(crate) size: Option<u64>,
    /// Compare disks from 1 GiB to 16 TiB instead of planning one.
    #[arg(long, conflicts_with = "size")]
    pub(crate) sizes: bool,
    #[command(flatten)]
    pub(crate) wish: WishArgs,
    /// Plan a volume on so many share servers, from 3 to 7.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(3..=7), conflicts_with_all = ["sizes", "medium", "alloc"])]
    pub(crate) servers: Option<u8>,
    /// How many of them may put together what they know, and learn nothing [default: all but one, halved].
    #[arg(long, value_name = "T", requires = "servers", value_parser = clap::value_parser!(u8).range(1..=3))]
    pub(crate) colluding: Option<u8>,
    /// Compare the schemes on a medium, by a model: in seeks, bytes and seconds of a read. `hdd`, `ssd`, `link` (1 ms,
    /// 1000 Mbit/s), or `link=MILLISECONDS,MEGABITS`.
    #[arg(long, value_name = "MEDIUM", conflicts_with_all = ["sizes", "alloc"])]
    pub(crate) medium: Option<Medium>,
    // Its help comes from the table of links.
    #[arg(long, value_name = "LINK", conflicts_with_all = ["sizes", "alloc", "medium"], help = format!("How fast the volume would be with its storage behind a link, by a model of bytes and trips, beside other schemes and blocks. {}", link_help()))]
    pub(crate) link: Option<Link>,
    #[command(flatten)]
    pub(crate) alloc: AllocArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the slots of each level are searched.
#[derive(Args)]
pub(crate) struct AllocArgs {
    /// Search how many slots each level needs (IR-Alloc), and show the plan with and without.
    #[arg(long, conflicts_with_all = ["alloc_from", "sizes"], long_help = ALLOC_HELP)]
    pub(crate) alloc: bool,
    /// The part of all slots that may be lost.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, default_value = "1%", requires = "alloc")]
    pub(crate) space_loss_max: f64,
    /// How much evictions ahead of their time may add to the paths that accesses read and write.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, default_value = "15%", requires = "alloc")]
    pub(crate) evictions_max: f64,
    /// The level of the leaves of the tree that is searched, where the volume's is deeper. A level more
    /// takes twice the time.
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(1..=24), default_value_t = SEARCHED_LEAF_LEVEL, requires = "alloc")]
    pub(crate) alloc_level: u8,
    /// Which addresses the search asks for. A scan needs the most evictions.
    #[arg(long, value_enum, default_value_t = WorkloadName::Uniform, requires = "alloc")]
    pub(crate) alloc_workload: WorkloadName,
    /// Accesses counted for each profile, over both of its runs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2000..=1_000_000_000_000), default_value_t = 500_000, requires = "alloc")]
    pub(crate) alloc_accesses: u64,
    /// Where all randomness of the search comes from.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "alloc")]
    pub(crate) seed: u64,
    /// Save what was found and measured to this file, for --alloc-from. One that is there is replaced, and nothing else is.
    #[arg(long, value_name = "FILE", requires = "alloc")]
    pub(crate) alloc_output: Option<PathBuf>,
}
