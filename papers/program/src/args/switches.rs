//! Switches of a simulated machine: shared by all machines of an evaluation, or for a single one.

use clap::{Args, ValueEnum};
use oblivio_lab::evaluation::{Pages, Switches};
use oblivio_sim::controller::{Initial, Pace, WriteWatermarks};
use oblivio_sim::system::Layout;

#[derive(Args)]
pub(crate) struct SwitchArgs {
    /// When paths start: `free`, `when-idle`, `gap` or `start-to-start`; all but the first with a
    /// number of cycles if not 1000, such as `gap:500`. The default reveals nothing about requests.
    /// It seems to match published runs: 2131 cycles from path to path on one channel, where a path
    /// takes 1884. `when-idle` reveals when requests arrive.
    #[arg(long, value_name = "PACE", default_value = "gap:250", value_parser = pace)]
    pub(crate) pace: Pace,
    /// Positions per position-map block: 16, or 32 if they are compressed.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 16,
        value_parser = clap::value_parser!(u64).range(2..=32)
    )]
    pub(crate) fan_out: u64,
    /// Number of DRAM channels.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=8)
    )]
    pub(crate) channels: u32,
    /// The size of the LLC [default: 2048].
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u64).range(1..=65536))]
    pub(crate) llc_kib: Option<u64>,
    /// A write that misses the LLC first fetches its line.
    #[arg(long)]
    pub(crate) fetch_on_write_miss: bool,
    /// The layout of trees in DRAM.
    #[arg(long, value_enum, default_value_t = LayoutName::Balanced)]
    pub(crate) layout: LayoutName,
    /// The contents of the ORAM before the first request.
    #[arg(long, value_enum, default_value_t = InitialName::Placed)]
    pub(crate) initial: InitialName,
    /// Maximum number of lines that the processor may have in flight.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 16,
        value_parser = clap::value_parser!(u64).range(1..=4096)
    )]
    pub(crate) fetch_room: u64,
    /// Each path of the ORAM stops retirement until it is read. With --fetch-room 1 and a fixed
    /// pace, this is an in-order front end.
    #[arg(long)]
    pub(crate) paths_stop_retirement: bool,
    /// DRAM answers the reads of evictions and dummies from its write queue, so that they cost half
    /// and never stop retirement. Not oblivious: the bus shows which paths these are.
    #[arg(long)]
    pub(crate) write_queue_answers: bool,
    /// Ways of the PLB per level of the position map: 1 makes it direct-mapped.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    pub(crate) plb_ways: u16,
    /// Blocks per set of the S-Stash.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    pub(crate) tree_top_ways: u16,
    /// Stash bound: if the stash holds more blocks, background eviction begins.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=65536)
    )]
    pub(crate) stash_blocks: u32,
    /// Keep the on-chip caches at the sizes of the paper's tree. Without it, they shrink with
    /// --levels.
    #[arg(long)]
    pub(crate) whole_chip: bool,
    /// Cycles after which the program is switched out: its stash is flushed to the tree, and the
    /// tree top moves to memory and back. Without it, the program is never switched out.
    #[arg(
        long,
        value_name = "CYCLES",
        value_parser = clap::value_parser!(u64).range(10_000..=1_000_000_000_000)
    )]
    pub(crate) context_switch: Option<u64>,
}

/// Switches that also apply to a machine given by --spec.
#[derive(Args)]
pub(crate) struct RequestArgs {
    /// Numbers of waiting write-backs at which they go before reads, and at which reads go first
    /// again. 1/0 makes each victim leave before the miss that evicted it [default: 40/20].
    #[arg(long, value_name = "HIGH/LOW", value_parser = write_marks)]
    pub(crate) write_marks: Option<WriteWatermarks>,
    /// The placement of the programs' pages in the protected space.
    #[arg(long, value_enum, default_value_t = PagesName::Scattered)]
    pub(crate) pages: PagesName,
    /// The records that fill the LLC (--fill-llc) also fill the small tree of Rho. Without it, that
    /// tree starts empty.
    #[arg(long)]
    pub(crate) fill_small_tree: bool,
}

impl SwitchArgs {
    /// The switches of the command line, with an LLC of `llc_bytes` if `--llc-kib` is not given.
    pub(crate) fn switches(&self, requests: &RequestArgs, llc_bytes: u64) -> Switches {
        Switches {
            pace: self.pace,
            fan_out: self.fan_out,
            channels: self.channels,
            llc_bytes: self.llc_kib.map_or(llc_bytes, |kib| kib << 10),
            fetch_on_write_miss: self.fetch_on_write_miss,
            layout: self.layout.into(),
            initial: self.initial.into(),
            fetch_room: self.fetch_room,
            paths_stop_retirement: self.paths_stop_retirement,
            write_queue_answers: self.write_queue_answers,
            write_marks: requests.write_marks.unwrap_or(Switches::PAPER.write_marks),
            pages: requests.pages.into(),
            plb_ways: self.plb_ways,
            tree_top_ways: self.tree_top_ways,
            stash_blocks: self.stash_blocks as usize,
            shrinks_chip: !self.whole_chip,
            context_switch: self.context_switch,
            fills_small_tree: requests.fill_small_tree,
            ..Switches::PAPER
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum LayoutName {
    /// Level by level.
    Heap,
    /// Subtrees that fill a row of every channel together.
    Subtrees,
    /// Subtrees, with the lines of each path spread evenly over the channels.
    Balanced,
}

impl From<LayoutName> for Layout {
    fn from(name: LayoutName) -> Self {
        match name {
            LayoutName::Heap => Self::Heap,
            LayoutName::Subtrees => Self::Subtrees,
            LayoutName::Balanced => Self::Balanced,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum InitialName {
    /// Nothing: a block is created by its first request.
    Empty,
    /// Every block, in the deepest free slot of its path.
    Placed,
    /// Every block, accessed once in a random order: takes minutes per run at --levels 24.
    EachOnce,
    /// Placed, then 20 random requests per thousand blocks, so that the narrow levels of IR-Alloc
    /// are as full as in a tree that has run for long.
    Aged,
}

/// Random requests per thousand blocks, with `--initial aged`.
const AGING: u32 = 20;

impl From<InitialName> for Initial {
    fn from(name: InitialName) -> Self {
        match name {
            InitialName::Empty => Self::Empty,
            InitialName::Placed => Self::Placed,
            InitialName::EachOnce => Self::EachOnce,
            InitialName::Aged => Self::Aged(AGING),
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum PagesName {
    /// At random positions.
    Scattered,
    /// In the order of their first use.
    InOrder,
    /// At their own addresses, modulo the size of the space: distances within an array are kept.
    AsIs,
}

impl From<PagesName> for Pages {
    fn from(name: PagesName) -> Self {
        match name {
            PagesName::Scattered => Self::Scattered,
            PagesName::InOrder => Self::InOrder,
            PagesName::AsIs => Self::AsIs,
        }
    }
}

/// The maximum HIGH of `--write-marks`. No run has as many waiting write-backs.
const WRITE_BACKS_MAX: usize = 1 << 20;

fn write_marks(text: &str) -> Result<WriteWatermarks, String> {
    let marks = text.split_once('/').and_then(|(high, low)| {
        let (high, low) = (high.parse().ok()?, low.parse().ok()?);
        (low < high && high <= WRITE_BACKS_MAX).then_some(WriteWatermarks { high, low })
    });
    marks.ok_or_else(|| {
        format!("marks are HIGH/LOW, such as 40/20, with LOW < HIGH <= {WRITE_BACKS_MAX}")
    })
}

/// Default number of cycles of a pace: T of IR-ORAM.
const CYCLES: &str = "1000";

/// The maximum number of cycles of a pace. The paces of all figures have fewer.
const CYCLES_MAX: u64 = 1_000_000;

pub(crate) fn pace(text: &str) -> Result<Pace, String> {
    let (name, cycles) = text.split_once(':').unwrap_or((text, CYCLES));
    // A gap may be 0: a path may start when the previous path ends.
    let min = u64::from(name != "gap");
    let cycles = cycles.parse().ok().filter(|cycles| (min..=CYCLES_MAX).contains(cycles));
    let cycles = cycles.ok_or_else(|| format!("cycles must be from {min} to {CYCLES_MAX}"))?;
    match name {
        "free" if name == text => Ok(Pace::Free),
        "when-idle" => Ok(Pace::WhenIdle(cycles)),
        "gap" => Ok(Pace::Gap(cycles)),
        "start-to-start" => Ok(Pace::StartToStart(cycles)),
        _ => Err("a pace is free, when-idle, gap or start-to-start, as in gap:500".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    #[test]
    fn marks_are_two_numbers() {
        assert_eq!(write_marks("1/0"), Ok(WriteWatermarks { high: 1, low: 0 }));
        assert_eq!(write_marks("40/20"), Ok(Switches::PAPER.write_marks));
        for text in ["", "40", "20/40", "5/5", "-1/0", "1/0/0", "2000000/1", "a/b"] {
            assert!(write_marks(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_default_pace_is_that_of_the_simulator() {
        let command = SwitchArgs::augment_args(clap::Command::new("test"));
        let switches = |arguments: &[&str]| {
            let all = ["test"].iter().chain(arguments);
            SwitchArgs::from_arg_matches(&command.clone().get_matches_from(all)).unwrap()
        };
        assert_eq!(switches(&[]).pace, Pace::DEFAULT);
        assert!(Pace::DEFAULT.is_fixed(), "it would not be oblivious");
        assert_eq!(switches(&["--pace", "when-idle"]).pace, Pace::WhenIdle(1000));
    }

    #[test]
    fn a_pace_is_a_name_and_cycles() {
        for (text, expected) in [
            ("free", Pace::Free),
            ("when-idle", Pace::WhenIdle(1000)),
            ("gap:7", Pace::Gap(7)),
            ("gap:0", Pace::Gap(0)),
            ("start-to-start:500", Pace::StartToStart(500)),
        ] {
            assert_eq!(pace(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "fast",
            "free:1",
            "gap:",
            "when-idle:0",
            "start-to-start:0",
            "gap:-1",
            "gap:1000001",
            "gap:1:2",
        ] {
            assert!(pace(text).is_err(), "{text}");
        }
    }
}
