//! What can be typed.

mod all;
mod blocks;
mod evaluation;
mod report;
mod runs;
mod serving;
mod simulate;
mod switches;
mod trace;
mod trace_record;
mod volume;

pub(crate) use all::*;
pub(crate) use blocks::*;
pub(crate) use evaluation::*;
pub(crate) use report::*;
pub(crate) use runs::*;
pub(crate) use serving::*;
pub(crate) use simulate::*;
pub(crate) use switches::*;
pub(crate) use trace::*;
pub(crate) use trace_record::*;
pub(crate) use volume::*;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use oblivio_lab::Workload;

const EXIT_CODES: &str = "\
Exit codes:
  0   all went well
  1   something failed: a disk, the system, the engine
  2   the command line is not understood
  3   the input cannot be used: missing, empty, too large, not what it should be
  4   the output cannot be written
  5   what was read back differs from what was written
  6   wrong key: no key slot opens with it
  7   tampered or damaged: storage does not hold what was written
  8   rolled back: storage is older than the client knows
  9   locked: somebody else uses the volume
  10  no space left
  11  the client's directory is missing, damaged, or of another volume
  12  the client's directory is older than storage
  13  a newer version of this program wrote it
  14  the volume was not closed and needs recovery (`info --require-clean` only)
  15  storage does not answer

A command that was run (`serve nbd --run`, `view record --run`, `trace record`) and did not end well hands on \
its exit code; 128 and the number of the signal if one ended it.";

/// Oblivious storage: a disk on storage you do not trust, which does not learn which blocks you use.
#[derive(Parser)]
#[command(name = "oblivio", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Keep a real file system on a volume, kill its server, and look at it all from both sides.
    ///
    /// Makes a volume and an ext4 with the files of a folder, writes and reads it as a network block
    /// device, kills the server in the middle, as root also that of a mounted file system, recovers,
    /// compares every file, and shows what the owner did beside what storage saw.
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Say what a volume would cost, before anything is created.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Create a volume.
    #[command(
        after_help = "Examples:\n  oblivio create disk.obl --size 1G\n  oblivio create disk.obl --size 64M --key-file disk.key --state ./disk.state"
    )]
    Create(CreateArgs),
    /// Say what a volume is.
    Info(InfoArgs),
    /// Read all of a volume, and check that everything is what was written last.
    ///
    /// It reads every bucket that was ever written. Accesses write buckets, reads included, so a disk of a TiB
    /// that has been in use takes hours, however little it holds.
    Check(CheckArgs),
    /// Save what is left of a volume whose storage is damaged, as a plain disk image.
    ///
    /// It takes every block that still authenticates, and says which are lost, and which may be older than
    /// the latest. It reads all of storage, whatever is in use, and changes nothing: the store and the client's
    /// directory may be on read-only media. Exit code 7 if anything is lost or damaged, copies of the header and
    /// of the superblock included.
    #[command(after_help = RESCUE_EXAMPLES)]
    Rescue(RescueArgs),
    /// Serve a volume to other programs.
    Serve {
        #[command(subcommand)]
        command: ServeCommand,
    },
    /// Mount a volume: as a file system, made where the disk is empty, or as a raw disk.
    #[command(
        after_help = "Examples:\n  oblivio mount disk.obl /mnt          (as root)\n  oblivio mount disk.obl ./dir --raw\nA file system is made if no block of the disk holds anything.\n\nIt runs until the directory is unmounted: with oblivio umount or umount, or by a signal\n(Ctrl-C, SIGTERM, a terminal that closes). One in use stays until it is not, however many\nsignals come."
    )]
    Mount(MountArgs),
    /// Unmount what `oblivio mount` mounted, and wait until its volume is closed.
    Umount(UmountArgs),
    /// Work with the keys of a volume.
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Measure how fast a volume is on this machine.
    ///
    /// Makes a volume, fills it, reads and writes it in several ways, and removes it.
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Work with recorded views: what storage saw.
    View {
        #[command(subcommand)]
        command: ViewCommand,
    },
    /// Work with memory traces: what programs asked memory for.
    #[command(after_help = TRACE_FORMATS)]
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// Run a trace on a simulated processor with ORAM, and say how long it takes and why.
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(Box<SimulateArgs>),
    /// Rerun the measurements behind the documentation.
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Write man pages to a directory, one for each command.
    Man {
        /// The directory. Made if missing.
        directory: PathBuf,
    },
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  oblivio completions bash > ~/.local/share/bash-completion/completions/oblivio"
    )]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether the key of a volume is in memory while it runs. Those of a benchmark and of the
    /// demonstration are drawn for them alone.
    pub(crate) fn holds_keys(&self) -> bool {
        match self {
            Self::Create(_)
            | Self::Info(_)
            | Self::Check(_)
            | Self::Rescue(_)
            | Self::Serve { .. }
            | Self::Mount(_)
            | Self::Key { .. }
            | Self::View { command: ViewCommand::Record(_) } => true,
            Self::Demo(_)
            | Self::Plan(_)
            | Self::Umount(_)
            | Self::View { .. }
            | Self::Bench(_)
            | Self::Man { .. }
            | Self::Trace { .. }
            | Self::Simulate(_)
            | Self::Lab { .. }
            | Self::Completions { .. } => false,
        }
    }
}

const RESCUE_EXAMPLES: &str = "\
Examples:
  oblivio rescue disk.obl ./disk.img
  mount -o ro,loop ./disk.img /mnt      (a file system; ext4 that was not unmounted: ro,noload,loop)
  nbdkit --readonly file ./disk.img     (any disk, for NBD clients)

Reading the image shows storage nothing. `oblivio serve nbd --rescued` makes no image, and serves
the same to be read.

A store that was cut off is taken as well. What says which blocks are in a bucket, and vouches
for them, is kept behind all buckets: in the last 40th of a store with blocks of 4 KiB. If a cut
takes all of that, what is left are the blocks that the client holds.";

const DEMO_EXAMPLES: &str = "\
Examples:
  oblivio demo
  oblivio demo --folder ~/photos
  oblivio demo --without-mount --output /tmp/demo --json

It needs mke2fs, e2fsck and debugfs (Debian: e2fsprogs) and nbdcopy (libnbd-bin). As root, where there
are FUSE and loop devices, it also mounts.";

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// The folder whose files are kept; this program and its manual if not given.
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Where everything goes. Made if missing; what an earlier demonstration left is replaced.
    #[arg(long, value_name = "DIR", default_value = "oblivio-demo")]
    pub(crate) output: PathBuf,
    /// Mount nothing, even where it would be possible.
    #[arg(long)]
    pub(crate) without_mount: bool,
    /// Print the figures as JSON instead of the story and pictures.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum ViewCommand {
    /// Say what storage saw: how often, how much, which levels.
    Show(ViewShowArgs),
    /// Record what storage sees while a command uses the volume as a network block device.
    #[command(
        after_help = "Example:\n  oblivio view record disk.obl --output disk.view --run 'nbdcopy photo.jpg \"$uri\"'"
    )]
    Record(ViewRecordArgs),
    /// Turn a view file into comma-separated values, one event a line.
    #[command(
        after_help = "Examples:\n  oblivio view export oblivio-demo/demo.view --csv view.csv\n  oblivio view export oblivio-demo/demo.view | head"
    )]
    Export(ExportArgs),
}

#[derive(Args)]
pub(crate) struct ViewShowArgs {
    /// The view file.
    pub(crate) file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ViewRecordArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// The view file. Replaced if there is one.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// A shell command, run with `$uri` and `$unixsocket` set.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) run: String,
    /// The socket file [default: `nbd.sock` in the client's directory].
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Bytes of the write-back cache. What it answers, storage does not see.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "16M")]
    pub(crate) cache: u64,
}

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// The view file.
    pub(crate) file: PathBuf,
    /// Where the values go; `-` is standard output.
    #[arg(long, value_name = "OUT", default_value = "-")]
    pub(crate) csv: PathBuf,
}

#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Name the experiments.
    List,
    /// Run an experiment, or all that make figures.
    ///
    /// With --quick or another option and no name: evaluation, blocks and dram, one after the other, and the
    /// report of all their figures. What was interrupted goes on with the next run.
    #[command(
        args_conflicts_with_subcommands = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  oblivio lab run --quick\n  oblivio lab run --traces traces --output results\n  oblivio lab run dram"
    )]
    Run {
        #[command(flatten)]
        all: AllArgs,
        #[command(subcommand)]
        experiment: Option<RunCommand>,
    },
    /// Draw the table and the plot, if it has one, of a results file again, without measuring.
    #[command(
        after_help = "Examples:\n  oblivio lab draw lab-results/stash-study.json --output pictures\n  oblivio lab draw lab-results/alloc-search.json"
    )]
    Draw(DrawArgs),
    /// Put figures beside what the papers state, on one page with plots and tables.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
}

#[derive(Subcommand)]
pub(crate) enum RunCommand {
    /// How large must the stash be, so that it overflows with probability 2^-80 at most?
    #[command(
        after_help = "Examples:\n  oblivio lab run stash-study --quick\n  oblivio lab run stash-study --accesses 1000000000 --seeds 32"
    )]
    StashStudy(StashStudyArgs),
    /// How small may the buckets of the middle levels be (IR-Alloc)?
    ///
    /// Lowers the slots of levels step by step, runs the engine with each profile, and keeps what moves
    /// the fewest slots an access. The results file holds the profile. This is Path ORAM, as in the paper;
    /// for volumes there is `oblivio plan --alloc`.
    #[command(
        after_help = "Examples:\n  oblivio lab run alloc-search --quick\n  oblivio lab run alloc-search --levels 18 --workload zipf"
    )]
    AllocSearch(AllocSearchArgs),
    /// What does each technique gain, alone and with others?
    ///
    /// Runs the engine with each technique under scan, uniform and Zipf requests and under traces, and
    /// counts what a request costs: path accesses, bytes, AES blocks, the stash. Nothing is timed.
    #[command(
        after_help = "Examples:\n  oblivio lab run techniques --quick\n  oblivio lab run techniques --trace 403.gcc.gz 458.sjeng.gz\n\nA trace is in any format that `oblivio trace` reads. Addresses are folded: the number of the line of 64 bytes, modulo the blocks there are."
    )]
    Techniques(TechniquesArgs),
    /// How fast is a processor with IR-ORAM, and why? The timed figures of the paper.
    ///
    /// Runs the simulator for every figure, each machine and workload once, and keeps each run as a line
    /// of results.jsonl: an evaluation that was interrupted goes on where it was. The figures go to
    /// figures.json.
    #[command(
        after_help = "Examples:\n  oblivio lab run evaluation --quick\n  oblivio lab run evaluation --quick --figure fig10 fig14\n  oblivio lab run evaluation --traces traces --levels 20 --pace gap --output results-gap\n\nAt --levels 24 a run takes about 2 GB: give --jobs if there is not as much for each processor."
    )]
    Evaluation(EvaluationArgs),
    /// Where are blocks in the tree, and what does IR-Alloc make of it?
    ///
    /// Makes paths without timing them, as programs and as chance ask for them, and looks where blocks are
    /// and where they were found. Keeps each run as a line of results.jsonl: what was interrupted goes on
    /// with the next run. The figures go to figures.json.
    #[command(
        after_help = "Examples:\n  oblivio lab run blocks --quick\n  oblivio lab run blocks --figure fig03 fig06 --traces traces --levels 20 --paths 100000000\n  oblivio lab report lab-results/blocks/figures.json\n\nAt --levels 24 a run takes about 2 GB: give --jobs if there is not as much for each processor."
    )]
    Blocks(BlocksArgs),
    /// Is the simulated DRAM as fast as that of published simulators?
    ///
    /// Measures the bandwidth of DDR3-1600 under five loads and what a read takes at rest, on 1 and 4
    /// channels, and puts it beside USIMM, `DRAMsim3` and Ramulator 1. `oblivio lab report` draws the
    /// figures.
    #[command(
        after_help = "Example:\n  oblivio lab run dram && oblivio lab report lab-results/dram/figures.json"
    )]
    Dram(DramArgs),
}

#[derive(Args)]
pub(crate) struct StashStudyArgs {
    /// Accesses counted for each setup, over all of its runs [default: 100,000,000; 20,000,000 with
    /// --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000_000))]
    pub(crate) accesses: Option<u64>,
    /// Independent runs of each setup, each with a seed of its own [default: 16; 8 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) seeds: Option<u32>,
    /// Where the seeds of all runs come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Which addresses are asked for.
    #[arg(long, value_enum, default_value_t = WorkloadName::Scan)]
    pub(crate) workload: WorkloadName,
    /// Threads [default: one for each processor]. They change the time, not the results.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Two loads on small trees, and fewer accesses: about a minute, and rough figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where results and plot go. Made if missing; files of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct AllocSearchArgs {
    /// The level of the leaves (L) [default: 15; 13 with --quick].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(1..=24))]
    pub(crate) levels: Option<u8>,
    /// Blocks for each leaf; 4 use half of all slots.
    #[arg(long, value_name = "BLOCKS", default_value_t = 4.0)]
    pub(crate) load: f64,
    /// Levels from the root on that the client keeps [default: L - 14, as in the paper].
    #[arg(long, value_name = "LEVELS")]
    pub(crate) tree_top: Option<u8>,
    /// Past so many blocks in the stash, background evictions come before the next access
    /// [default: 100].
    #[arg(long, value_name = "BLOCKS")]
    pub(crate) stash: Option<usize>,
    /// Which addresses are asked for.
    #[arg(long, value_enum, default_value_t = WorkloadName::Uniform)]
    pub(crate) workload: WorkloadName,
    /// The part of all slots that may be lost [default: 0.01].
    #[arg(long, value_name = "PART")]
    pub(crate) space_loss_max: Option<f64>,
    /// What background evictions may add beyond those of the uniform tree, as a part of the accesses
    /// [default: 0.15].
    #[arg(long, value_name = "EVICTIONS")]
    pub(crate) extra_evictions_max: Option<f64>,
    /// Accesses counted for each profile, over all of its runs [default: 500,000; 100,000 with
    /// --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000))]
    pub(crate) accesses: Option<u64>,
    /// Independent runs of each profile, each with a seed of its own [default: 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: Option<u32>,
    /// Where the seeds of all runs come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads [default: one for each processor]. They change the time, not the results.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// A small tree and fewer accesses: some seconds, and rough figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where results and plot go. Made if missing; files of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct TechniquesArgs {
    /// The level of the leaves (L), from 8 to 20 [default: 16; 10 with --quick].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(8..=20))]
    pub(crate) levels: Option<u8>,
    /// Requests counted for each technique and workload [default: 100,000; 3,000 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    pub(crate) requests: Option<u64>,
    /// A recorded trace, as one more workload.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) trace: Vec<PathBuf>,
    /// Where the seeds of all runs come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads [default: one for each processor]. They change the time, not the results.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// A small tree and few requests: some seconds, and rough figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where the results go. Made if missing; those of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct DramArgs {
    /// Where all coins come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where the results and the figures go. Made if missing; those of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results/dram")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct DrawArgs {
    /// The results file.
    pub(crate) results: PathBuf,
    /// Where the plot goes. Made if missing.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) output: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum WorkloadName {
    /// All addresses in turn: the worst case.
    Scan,
    /// Uniformly random addresses.
    Uniform,
    /// Few addresses often, most of them seldom.
    Zipf,
}

impl From<WorkloadName> for Workload {
    fn from(name: WorkloadName) -> Self {
        match name {
            WorkloadName::Scan => Self::Scan,
            WorkloadName::Uniform => Self::Uniform,
            WorkloadName::Zipf => Self::Zipf,
        }
    }
}
