//! What can be typed after `oblivio-lab run` and `oblivio-lab draw`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{
    AllocSearchArgs, BlocksArgs, DramArgs, EvaluationArgs, LinksArgs, RangeMediaArgs,
    RangeStashArgs, RawTrafficArgs, RoramArgs, S3oramArgs, ShareOverflowArgs, StashStudyArgs,
    TechniquesArgs,
};

#[derive(Subcommand)]
pub(crate) enum RunCommand {
    /// How large must the stash be, so that it overflows with probability 2^-80 at most?
    #[command(
        after_help = "Examples:\n  oblivio-lab run stash-study --quick\n  oblivio-lab run stash-study --accesses 1000000000 --seeds 32\n  oblivio-lab run stash-study --deep --output stash-20"
    )]
    StashStudy(StashStudyArgs),
    /// What does RAW ORAM move and encrypt for each Z and A, and how large is its stash?
    ///
    /// Counts what the engine asks of its store, beside the formulas of Tiny ORAM (Fig. 6), and measures the tail of
    /// the stash. `oblivio-lab report` draws the figures.
    #[command(
        after_help = "Examples:\n  oblivio-lab run raw-traffic --quick\n  oblivio-lab run raw-traffic --levels 18 --accesses 1000000000"
    )]
    RawTraffic(RawTrafficArgs),
    /// How small may the buckets of the middle levels be (IR-Alloc)?
    ///
    /// Lowers the slots of levels step by step, runs the engine with each profile, and keeps what moves
    /// the fewest slots an access. The results file holds the profile. This is Path ORAM, as in the paper;
    /// for volumes there is `oblivio plan --alloc`. With --judge time a simulated processor judges, by the time that it takes: each
    /// run is a line of alloc-search.jsonl, and a search that was interrupted goes on where it was.
    #[command(
        after_help = "Examples:\n  oblivio-lab run alloc-search --quick\n  oblivio-lab run alloc-search --levels 18 --workload zipf\n  oblivio-lab run alloc-search --judge time --ir-stash --levels 22 --output search-22"
    )]
    AllocSearch(AllocSearchArgs),
    /// What does each technique gain, alone and with others?
    ///
    /// Runs the engine with each technique under scan, uniform and Zipf requests and under traces, and
    /// counts what a request costs: path accesses, bytes, AES blocks, the stash. Nothing is timed.
    #[command(
        after_help = "Examples:\n  oblivio-lab run techniques --quick\n  oblivio-lab run techniques --trace 403.gcc.gz 458.sjeng.gz\n\nA trace is in any format that `oblivio-lab trace` reads. Addresses are folded: the number of the line of 64 bytes, modulo the blocks there are."
    )]
    Techniques(TechniquesArgs),
    /// How fast is a processor with IR-ORAM, and why? The timed figures of the paper.
    ///
    /// Runs the simulator for every figure, each machine and workload once, and keeps each run as a line
    /// of results.jsonl: an evaluation that was interrupted goes on where it was. The figures go to
    /// figures.json.
    #[command(
        after_help = "Examples:\n  oblivio-lab run evaluation --quick\n  oblivio-lab run evaluation --quick --figure fig10 fig14\n  oblivio-lab run evaluation --traces traces --levels 20 --pace gap --output results-gap\n\nAt --levels 24 a run takes about 2 GB: give --jobs if there is not as much for each processor."
    )]
    Evaluation(Box<EvaluationArgs>),
    /// Where are blocks in the tree, and what does IR-Alloc make of it?
    ///
    /// Makes paths without timing them, as programs and as chance ask for them, and looks where blocks are
    /// and where they were found. Keeps each run as a line of results.jsonl: what was interrupted goes on
    /// with the next run. The figures go to figures.json.
    #[command(
        after_help = "Examples:\n  oblivio-lab run blocks --quick\n  oblivio-lab run blocks --figure fig03 fig06 --traces traces --levels 20 --paths 100000000\n  oblivio-lab report lab-results/blocks/figures.json\n\nAt --levels 24 a run takes about 2 GB: give --jobs if there is not as much for each processor."
    )]
    Blocks(BlocksArgs),
    /// Is the simulated DRAM as fast as that of published simulators?
    ///
    /// Measures the bandwidth of DDR3-1600 under five loads and what a read takes at rest, on 1 and 4
    /// channels, and puts it beside USIMM, `DRAMsim3` and Ramulator 1. `oblivio-lab report` draws the
    /// figures.
    #[command(
        after_help = "Example:\n  oblivio-lab run dram && oblivio-lab report lab-results/dram/figures.json"
    )]
    Dram(DramArgs),
    /// Is the model of volumes on a medium right?
    ///
    /// Reads blocks and whole ranges from arrays with data, whose store counts what it is asked for, and makes the same reads by the
    /// model of `plan --medium`. The arrays lie in memory: with 2^18 blocks, what is read and written takes some gigabytes.
    #[command(
        after_help = "Examples:\n  oblivio-lab run range-media --quick\n  oblivio-lab run range-media --blocks 65536"
    )]
    RangeMedia(RangeMediaArgs),
    /// How many blocks are left on the client of an ORAM of ranges?
    ///
    /// Moves addresses, and no contents, through the published rORAM with one block a leaf and more, and through trees like those of
    /// `--scheme range`; counts what is left after each batch of evictions, and carries the tail on to 2^-80.
    #[command(
        after_help = "Examples:\n  oblivio-lab run range-stash --quick\n  oblivio-lab run range-stash --blocks 100000000"
    )]
    RangeStash(RangeStashArgs),
    /// How full do the buckets of S³ORAM get?
    ///
    /// Moves blocks, without contents, through trees whose buckets hold any number of them, and counts the most in a bucket of each eviction: inside
    /// the tree and in its leaves, for trees of A · 2^(H-1) blocks and of twice as many. Beside it stands what Lemma 4.1 promises.
    #[command(
        after_help = "Examples:\n  oblivio-lab run share-overflow --quick\n  oblivio-lab run share-overflow --evictions 10000000"
    )]
    ShareOverflow(ShareOverflowArgs),
    /// Is S³ORAM as fast as its paper states? Table 1 and Figs. 3 to 8, by a model, and the model beside real servers.
    ///
    /// Counts what an access takes, of S³ORAM as published and as it is here, of Path ORAM and Ring ORAM, and divides it by rates of links and disks and of this machine. Then it
    /// starts share servers, and times accesses and evictions on loopback, of three, five and seven of them, and behind `oblivio-lab relay`'s home link, of three: that takes some minutes, and some GB of the folder.
    #[command(
        after_help = "Examples:\n  oblivio-lab run s3oram --quick\n  oblivio-lab run s3oram --folder /srv/scratch\n\nWhat is measured depends on what else the machine does: spreads are shown."
    )]
    S3oram(S3oramArgs),
    /// What do ranges gain on a disk, an SSD and a link? Figs. 6 and 7 of rORAM, on models of them.
    ///
    /// Counts the requests of Path ORAM, rORAM and this project's volumes for ranges of each length, and for what an ext4 asked of a
    /// disk, and what they take on a model of each medium; and seeks, also where storage is in parts. Nothing is stored. `oblivio-lab
    /// report` draws the figures.
    #[command(
        after_help = "Examples:\n  oblivio-lab run roram && oblivio-lab report lab-results/roram/figures.json\n  oblivio-lab run roram --level 18 --ell 10"
    )]
    Roram(RoramArgs),
    /// How fast are ORAMs behind links of homes, phones and servers? And why does S³ORAM state 20.3 s for Path ORAM?
    ///
    /// Computes what Path ORAM, RAW ORAM and this project's volumes move for blocks of 4 to 512 KiB, and what that takes on each link,
    /// by the model of `plan --link`. Nothing is stored or sent. `oblivio-lab report` draws the figures.
    #[command(
        after_help = "Examples:\n  oblivio-lab run links && oblivio-lab report lab-results/links/figures.json\n  oblivio-lab run links --size 1T"
    )]
    Links(LinksArgs),
}

#[derive(Args)]
pub(crate) struct DrawArgs {
    /// The results file.
    pub(crate) results: PathBuf,
    /// Where the plot goes. Made if missing.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) output: PathBuf,
}
