//! `oblivio-lab run` without the name of an experiment: all figures, or the chosen ones, and the
//! report.

use std::path::PathBuf;

use clap::Args;
use oblivio_cli::files::{AtomicFile, OutputDir};
use oblivio_cli::output;
use oblivio_lab::blocks::{self, Blocks, FIGURES};
use oblivio_lab::evaluation::{self, Evaluation, Manifest};
use oblivio_lab::report::{self, About};
use oblivio_lab::{Experiment, LabError, chosen, dram, links, roram};

use super::models::roram_plan;
use super::runs::{self, RunsArgs, VERSION};
use super::{ExperimentOutput, perform, threads};
use crate::args::TITLE;
use crate::error::ProgramError;

// A doc comment would become the help of the command.
#[derive(Args)]
pub(crate) struct AllArgs {
    /// Small trees, few records and paths, and an LLC of 32 KiB: takes minutes, gives rough
    /// figures. Without it, trees have the papers' sizes and traces are long: a day or two.
    #[arg(long)]
    quick: bool,
    /// Make only these figures, such as fig10 fig03 dram roram links. `oblivio-lab list` names
    /// them.
    #[arg(long, value_name = "ID", num_args = 1..)]
    figure: Vec<String>,
    /// Directory for the results: one directory per experiment, and the report. Created if missing.
    /// Runs recorded there are not repeated.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    output: PathBuf,
    /// Print the figures as JSON instead of tables.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    runs: RunsArgs,
}

/// Runs `oblivio-lab run` without the name of an experiment. Performs those of evaluation, blocks,
/// dram, roram and links that make the chosen figures, and writes a report of these figures.
pub(crate) fn run_all(args: &AllArgs) -> Result<(), ProgramError> {
    let AllArgs { quick, figure, output, json, runs } = args;
    // Figures that take a night are made only if `--figure` names them.
    let mut manifests = Manifest::all()?;
    manifests.retain(|it| !it.overnight || figure.contains(&it.id));
    let ids = manifests.iter().map(|it| it.id.clone());
    let ids = ids.chain(FIGURES.iter().map(|it| it.id.to_owned()));
    let whole =
        [dram::DramPlan::NAME, roram::RoramPlan::NAME, links::LinksPlan::NAME].map(str::to_owned);
    let ids = chosen(ids.chain(whole).collect(), String::as_str, figure)?;
    let is_chosen = |id: &str| ids.iter().any(|it| it == id);
    manifests.retain(|it| is_chosen(&it.id));
    let blocks_figures: Vec<_> = FIGURES.iter().filter(|it| is_chosen(it.id)).collect();

    let (blocks_plan, evaluation_plan) = if *quick {
        (blocks::BlocksPlan::quick(), evaluation::EvaluationPlan::quick())
    } else {
        (blocks::BlocksPlan::full(), evaluation::EvaluationPlan::full())
    };
    let evaluation_plan = evaluation::EvaluationPlan { seed: runs.seed, ..evaluation_plan }
        .with_machines_of(&manifests)?;
    let blocks_plan = blocks::BlocksPlan { seed: runs.seed, ..blocks_plan };
    let programs = runs.programs()?;
    let page = OutputDir::prepare(output)?.path("report.html");

    let mut all = AllExperiments { args, performed: Vec::new() };
    if !manifests.is_empty() {
        let programs = Some(programs.clone());
        all.perform(Evaluation { plan: evaluation_plan, manifests, programs, trees: None })?;
    }
    if !blocks_figures.is_empty() {
        let chosen = blocks_figures;
        all.perform(Blocks { plan: blocks_plan, chosen, programs, trees: None })?;
    }
    if is_chosen(dram::DramPlan::NAME) {
        all.perform(dram::DramPlan { seed: runs.seed })?;
    }
    if is_chosen(roram::RoramPlan::NAME) {
        all.perform(roram_plan(*quick, runs.seed))?;
    }
    if is_chosen(links::LinksPlan::NAME) {
        all.perform(links::LinksPlan { disk_bytes: links::PAPER_DISK_BYTES })?;
    }

    let performed = all.performed;
    let figures: Vec<_> = performed.iter().flat_map(|it| it.figures.iter().cloned()).collect();
    let about = About {
        title: TITLE.to_owned(),
        version: VERSION.to_owned(),
        machine: runs::machine(),
        when: String::new(),
    };
    AtomicFile::with(&page, &report::html(&figures, &about))?.persist()?;
    if *json {
        return Ok(output::print(
            &serde_json::to_string_pretty(&figures).map_err(LabError::from)?,
        )?);
    }
    let ends: Vec<_> = performed.iter().map(|performed| performed.end.as_str()).collect();
    let summary = report::summary(&figures);
    Ok(output::print(&format!("{summary}\n{}\nreport   {}", ends.join("\n"), page.display()))?)
}

/// Runs experiments, and collects their outputs.
struct AllExperiments<'a> {
    args: &'a AllArgs,
    performed: Vec<ExperimentOutput>,
}

impl AllExperiments<'_> {
    /// Runs an experiment, and writes its output to the directory with the experiment's name.
    fn perform<E: Experiment>(&mut self, experiment: E) -> Result<(), ProgramError> {
        let output = self.args.output.join(E::NAME);
        output::print_remark(&format!("{}: writing to {}", E::NAME, output.display()));
        self.performed.push(perform(experiment, threads(self.args.runs.jobs), &output)?);
        Ok(())
    }
}
