//! `oblivio-lab run alloc-search`.

use std::num::NonZeroUsize;

use indicatif::ProgressBar;
use oblivio_cli::clock::Stopwatch;
use oblivio_cli::error::CliError;
use oblivio_cli::files::OutputDir;
use oblivio_cli::{output, progress};
use oblivio_lab::alloc_search::{
    Judge, Plan, Search, SearchTables, TimeJudge, TimedRecord, full_plan, quick_plan, run, svg,
};
use oblivio_lab::{Host, LabError};

use super::runs::{Here, RunsFile, VERSION};
use super::threads;
use crate::args::{AllocSearchArgs, JudgeName};
use crate::error::ProgramError;

/// A line for each run that took time.
const RUNS: &str = "alloc-search.jsonl";

/// The paper's tree: a search by time needs no smaller one.
const TIMED_LEAF_LEVEL: u8 = 24;

/// Records of a run that takes time, and of one that is to be quick.
const RECORDS: [u64; 2] = [20_000, 4000];

/// `oblivio-lab run alloc-search`.
pub(crate) fn run_alloc_search(args: &AllocSearchArgs) -> Result<(), ProgramError> {
    let plan = plan(args)?;
    let output_dir = OutputDir::prepare(&args.output)?;

    let stopwatch = Stopwatch::start();
    let threads = threads(args.measuring.threads);
    let (search, runs) = match plan.judge {
        Judge::Slots => (search(&plan, threads)?, None),
        Judge::Time(_) => {
            (search_by_time(&plan, threads, &output_dir)?, Some(output_dir.path(RUNS)))
        }
    };
    let seconds = stopwatch.elapsed().as_secs_f64();

    let results = search.to_json()?;
    let results_path = output_dir.write("alloc-search.json", &results)?;
    let plot = plot(&search, &output_dir)?;
    if args.json {
        return Ok(output::print(&results)?);
    }
    let runs = runs.map_or_else(String::new, |path| format!("\nruns     {}", path.display()));
    Ok(output::print(&format!(
        "{}\n{seconds:.0} s{runs}\nresults  {}{plot}",
        text(&search),
        results_path.display()
    ))?)
}

/// Searches under a progress bar.
fn search(plan: &Plan, threads: NonZeroUsize) -> Result<Search, ProgramError> {
    let host = Watched(progress::bar(0));
    let search = run(plan, &[], threads, &host)?;
    host.0.finish_and_clear();
    Ok(search)
}

/// The same, with a file of the runs: a search that was interrupted goes on where it was.
fn search_by_time(
    plan: &Plan,
    threads: NonZeroUsize,
    output_dir: &OutputDir,
) -> Result<Search, ProgramError> {
    let (file, kept) = RunsFile::open_named::<TimedRecord>(output_dir, RUNS)?;
    let host = Here::new(file, "records");
    let search = run(plan, &kept, threads, &host)?;
    host.bar.finish_and_clear();
    Ok(search)
}

/// The tables of a search, and its plot if it has one.
pub(super) fn draw(search: &Search, output_dir: &OutputDir) -> Result<String, ProgramError> {
    Ok(format!("{}{}", text(search), plot(search, output_dir)?))
}

fn plan(args: &AllocSearchArgs) -> Result<Plan, ProgramError> {
    let by_time = args.judge == JudgeName::Time;
    if !by_time && (args.ir_stash || args.channels.is_some() || args.pace.is_some()) {
        return Err(CliError::Usage(
            "--ir-stash, --channels and --pace are of a simulated processor: add --judge time"
                .to_owned(),
        )
        .into());
    }
    let plan = if args.quick { quick_plan() } else { full_plan() };
    let default_level = if by_time && !args.quick { TIMED_LEAF_LEVEL } else { plan.leaf_level };
    let mut plan = plan.on_tree(args.levels.unwrap_or(default_level));
    if by_time {
        let judge = TimeJudge {
            ir_stash: args.ir_stash,
            channels: args.channels.unwrap_or(TimeJudge::PAPER.channels),
            pace: args.pace.unwrap_or(TimeJudge::PAPER.pace),
            ..TimeJudge::PAPER
        };
        plan = plan.by_time(Judge::Time(judge), RECORDS[usize::from(args.quick)]);
    }
    let plan = Plan {
        tree_top_levels: args.tree_top.unwrap_or(plan.tree_top_levels),
        stash_blocks_max: args.stash.unwrap_or(plan.stash_blocks_max),
        workload: args.workload.into(),
        space_loss_max: args.space_loss_max.unwrap_or(plan.space_loss_max),
        extra_evictions_max: args.extra_evictions_max.unwrap_or(plan.extra_evictions_max),
        accesses: args.accesses.unwrap_or(plan.accesses),
        runs: args.seeds.unwrap_or(plan.runs),
        seed: args.measuring.seed,
        ..plan
    };
    Ok(plan.with_load(args.load))
}

fn text(search: &Search) -> String {
    format!("{}\n{}\n{}", search.table(), search.paper_table(), search.summary())
}

/// Says where the plot is. Runs that took time did not look where blocks are, so there is nothing to plot.
fn plot(search: &Search, output_dir: &OutputDir) -> Result<String, ProgramError> {
    if search.plan.judge != Judge::Slots {
        return Ok(String::new());
    }
    let path = output_dir.write("alloc-search.svg", &svg(search)?)?;
    Ok(format!("\nplot     {}", path.display()))
}

/// A search that keeps no runs: they take no time.
struct Watched(ProgressBar);

impl Host<TimedRecord> for Watched {
    fn seconds(&self) -> f64 {
        0.0
    }

    fn planned(&self, steps: u64) {
        self.0.inc_length(steps);
    }

    fn made(&self, steps: u64) {
        self.0.inc(steps);
    }

    fn keep(&self, _: &TimedRecord) -> Result<(), LabError> {
        Ok(())
    }

    fn foreseen(&self, text: &str) {
        self.remark(text);
    }

    fn remark(&self, text: &str) {
        self.0.suspend(|| output::remark(text));
    }

    fn machine(&self) -> &str {
        ""
    }

    fn version(&self) -> &str {
        VERSION
    }
}
