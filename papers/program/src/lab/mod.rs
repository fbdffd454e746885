//! `oblivio-lab`: the measurements behind the documentation.

mod all;
mod alloc_search;
mod blocks;
mod dram;
mod evaluation;
mod links;
mod made;
mod range_media;
mod range_stash;
mod raw_traffic;
mod relay;
mod roram;
mod runs;
mod s3oram;
mod share_overflow;
mod share_servers;
mod stash_study;
mod trees;

pub(crate) use all::run_all;
pub(crate) use alloc_search::run_alloc_search;
pub(crate) use blocks::run_blocks;
pub(crate) use dram::run_dram;
pub(crate) use evaluation::run_evaluation;
pub(crate) use links::run_links;
pub(crate) use range_media::run_range_media;
pub(crate) use range_stash::run_range_stash;
pub(crate) use raw_traffic::run_raw_traffic;
pub(crate) use relay::relay;
pub(crate) use roram::run_roram;
pub(crate) use s3oram::run_s3oram;
pub(crate) use share_overflow::run_share_overflow;
pub(crate) use stash_study::run_stash_study;

use std::num::NonZeroUsize;
use std::path::Path;

use oblivio_cli::clock::Stopwatch;
use oblivio_cli::error::CliError;
use oblivio_cli::files::{self, OutputDir};
use oblivio_cli::output::shell_word;
use oblivio_cli::{output, progress};
use oblivio_lab::alloc_search::Search;
use oblivio_lab::stash_study::Study;
use oblivio_lab::techniques::{self, Results};
use oblivio_lab::{EXPERIMENTS, LabError, experiment_of};

use crate::args::{DrawArgs, TechniquesArgs};
use crate::error::ProgramError;
use crate::trace;

/// More than any results file of this lab has.
const RESULTS_BYTES_MAX: u64 = 64 << 20;

/// `oblivio-lab list`.
pub(crate) fn list() -> Result<(), ProgramError> {
    let lines = EXPERIMENTS
        .iter()
        .map(|experiment| format!("{:14} {}", experiment.name, experiment.question));
    let experiments = lines.collect::<Vec<_>>().join("\n");
    Ok(output::print(&format!(
        "{experiments}\n\nfigures of evaluation:\n{}\n\nfigures of blocks:\n{}\n\n\
         dram, roram and links make their own, and are chosen as a whole: `oblivio-lab run --figure fig10 fig03 dram roram links`",
        evaluation::list()?,
        blocks::list()
    ))?)
}

/// Keeps a results file, and shows it, or what it says for people.
fn keep_and_show(
    output_dir: &OutputDir,
    file: &str,
    results: &str,
    for_people: &str,
    as_json: bool,
) -> Result<(), ProgramError> {
    let path = output_dir.write(file, results)?;
    if as_json {
        return Ok(output::print(results)?);
    }
    Ok(output::print(&format!("{for_people}\nresults  {}", path.display()))?)
}

/// `oblivio-lab run techniques`.
pub(crate) fn run_techniques(args: &TechniquesArgs) -> Result<(), ProgramError> {
    let plan = techniques_plan(args);
    let traces = trace::read_all(&args.trace)?;
    let output_dir = OutputDir::prepare(&args.output)?;

    let stopwatch = Stopwatch::start();
    let bar = progress::bar_of(plan.total_requests(traces.len()), "requests");
    let measured =
        techniques::run(&plan, &traces, threads(args.measuring.threads), &|done| bar.inc(done))?;
    bar.finish_and_clear();
    let seconds = stopwatch.elapsed().as_secs_f64();

    let results = measured.to_json()?;
    let results_path = output_dir.write("techniques.json", &results)?;
    if args.json {
        return Ok(output::print(&results)?);
    }
    Ok(output::print(&format!(
        "{}\n{} requests in {seconds:.0} s\nresults  {}",
        measured.text(),
        plan.total_requests(traces.len()),
        results_path.display(),
    ))?)
}

/// `oblivio-lab draw`.
pub(crate) fn draw(args: &DrawArgs) -> Result<(), ProgramError> {
    let text = files::read_regular_text(&args.results, RESULTS_BYTES_MAX)?;
    let output_dir = || OutputDir::prepare(&args.output);
    let experiment =
        experiment_of(&text).map_err(|error| not_results(&args.results, &text, error))?;
    if experiment == techniques::NAME {
        return Ok(output::print(&Results::from_json(&text)?.text())?);
    }
    if experiment == oblivio_lab::dram::NAME {
        return dram::draw(&text);
    }
    if experiment == oblivio_lab::raw_traffic::NAME {
        return raw_traffic::draw(&text);
    }
    if experiment == oblivio_lab::range_media::NAME {
        return range_media::draw(&text);
    }
    if experiment == oblivio_lab::range_stash::NAME {
        return range_stash::draw(&text);
    }
    if experiment == oblivio_lab::share_overflow::NAME {
        return share_overflow::draw(&text);
    }
    if experiment == oblivio_lab::s3oram::NAME {
        return s3oram::draw(&text);
    }
    if experiment == oblivio_lab::links::NAME {
        return links::draw(&text);
    }
    if experiment == oblivio_lab::roram::NAME {
        return roram::draw(&text);
    }
    if experiment == oblivio_lab::alloc_search::NAME {
        return Ok(output::print(&alloc_search::draw(
            &Search::from_json(&text)?,
            &output_dir()?,
        )?)?);
    }
    let study = Study::from_json(&text)?;
    let plot_path = stash_study::write_plot(&study, &output_dir()?)?;
    Ok(output::print(&format!("{}\nplot     {}", study.table(), plot_path.display()))?)
}

/// What is in a file that holds no results.
fn not_results(path: &Path, text: &str, error: LabError) -> CliError {
    let path = path.display();
    if oblivio_lab::report::read(text).is_ok() {
        let word = shell_word(path.to_string());
        return CliError::Input(format!(
            "{path} holds figures and no results: oblivio-lab report {word} makes a page of them"
        ));
    }
    CliError::Input(format!("{path}: {error}; give a file that this program wrote"))
}

fn techniques_plan(args: &TechniquesArgs) -> techniques::Plan {
    let plan = if args.quick { techniques::Plan::quick() } else { techniques::Plan::full() };
    let levels = args.levels.unwrap_or(plan.leaf_level);
    let requests = args.requests.unwrap_or(plan.requests);
    techniques::Plan { seed: args.measuring.seed, ..techniques::Plan::new(levels, requests) }
}

pub(crate) fn threads(wanted: Option<NonZeroUsize>) -> NonZeroUsize {
    wanted.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}
