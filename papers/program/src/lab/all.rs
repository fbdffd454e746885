//! `oblivio-lab run` without the name of an experiment: every figure, or those chosen, and the report.

use std::path::PathBuf;

use clap::Args;
use oblivio_cli::files::{OutputDir, Unnamed};
use oblivio_cli::output;
use oblivio_lab::blocks::{self, Blocks, BlocksFigure, FIGURES};
use oblivio_lab::evaluation::{self, Evaluation, Manifest};
use oblivio_lab::report::{self, About};
use oblivio_lab::{Experiment, LabError, chosen, dram, links, roram};

use super::models::roram_plan;
use super::runs::{self, RunsArgs, VERSION};
use super::{Performed, perform, threads};
use crate::args::TITLE;
use crate::error::ProgramError;

// A comment for rustdoc would become the help of the command.
#[derive(Args)]
pub(crate) struct AllArgs {
    /// Small trees, few records and paths, and an LLC of 32 KiB: some minutes, and rough figures. Without it
    /// the trees are the papers' and the traces long: a day or two.
    #[arg(long)]
    quick: bool,
    /// Make these figures alone: fig10 fig03 dram roram links, say. `oblivio-lab list` names them.
    #[arg(long, value_name = "ID", num_args = 1..)]
    figure: Vec<String>,
    /// Where everything goes: a directory for each experiment, and the report. Made if missing. Runs that are
    /// recorded there are not made again.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    output: PathBuf,
    /// Print the figures as JSON instead of tables.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    runs: RunsArgs,
}

/// `oblivio-lab run`: the experiments that make figures, one after the other, and one page of all.
pub(crate) fn run_all(args: &AllArgs) -> Result<(), ProgramError> {
    let AllArgs { quick, figure, output, json, runs } = args;
    let chosen = Chosen::of(figure)?;
    let (blocks_plan, evaluation_plan) = if *quick {
        (blocks::Plan::quick(), evaluation::Plan::quick())
    } else {
        (blocks::Plan::full(), evaluation::Plan::full())
    };
    let evaluation_plan = evaluation::Plan { seed: runs.seed, ..evaluation_plan }
        .with_machines_of(&chosen.evaluation)?;
    let blocks_plan = blocks::Plan { seed: runs.seed, ..blocks_plan };
    let programs = runs.programs()?;
    let page = OutputDir::prepare(output)?.path("report.html");

    let mut all = AllPerformed { args, performed: Vec::new() };
    if !chosen.evaluation.is_empty() {
        all.perform(Evaluation {
            plan: evaluation_plan,
            manifests: chosen.evaluation,
            programs: Some(programs.clone()),
            trees: None,
        })?;
    }
    if !chosen.blocks.is_empty() {
        let chosen = chosen.blocks;
        all.perform(Blocks { plan: blocks_plan, chosen, programs, trees: None })?;
    }
    if chosen.has_dram {
        all.perform(dram::Plan { seed: runs.seed })?;
    }
    if chosen.has_roram {
        all.perform(roram_plan(*quick, runs.seed))?;
    }
    if chosen.has_links {
        all.perform(links::Plan { disk_bytes: links::PAPER_DISK_BYTES })?;
    }

    let performed = all.performed;
    let figures: Vec<_> = performed.iter().flat_map(|it| it.figures.iter().cloned()).collect();
    let about = About {
        title: TITLE.to_owned(),
        version: VERSION.to_owned(),
        machine: runs::machine(),
        when: String::new(),
    };
    Unnamed::with(&page, &report::html(&figures, &about))?.name()?;
    if *json {
        return Ok(output::print(
            &serde_json::to_string_pretty(&figures).map_err(LabError::from)?,
        )?);
    }
    let ends: Vec<_> = performed.iter().map(|performed| performed.end.as_str()).collect();
    let summary = report::summary(&figures);
    Ok(output::print(&format!("{summary}\n{}\nreport   {}", ends.join("\n"), page.display()))?)
}

/// The experiments so far.
struct AllPerformed<'a> {
    args: &'a AllArgs,
    performed: Vec<Performed>,
}

impl AllPerformed<'_> {
    /// Runs one more, into a directory of its name.
    fn perform<E: Experiment>(&mut self, experiment: E) -> Result<(), ProgramError> {
        let output = self.args.output.join(E::NAME);
        output::remark(&format!("{}: to {}", E::NAME, output.display()));
        self.performed.push(perform(experiment, threads(self.args.runs.jobs), &output)?);
        Ok(())
    }
}

/// Figures of each experiment.
#[derive(Default)]
struct Chosen {
    evaluation: Vec<Manifest>,
    blocks: Vec<&'static BlocksFigure>,
    has_dram: bool,
    has_roram: bool,
    has_links: bool,
}

impl Chosen {
    /// Those called `ids`; or if there are none, all but those that take a night.
    fn of(ids: &[String]) -> Result<Self, ProgramError> {
        let evaluation = Manifest::all()?.into_iter();
        let evaluation = evaluation.filter(|figure| !figure.overnight || ids.contains(&figure.id));
        let evaluation = evaluation.map(|figure| Figure::Evaluation(figure.into()));
        let blocks = FIGURES.iter().map(Figure::Blocks);
        let all =
            evaluation.chain(blocks).chain([Figure::Dram, Figure::Roram, Figure::Links]).collect();
        let mut of = Self::default();
        for figure in chosen(all, Figure::id, ids)? {
            match figure {
                Figure::Evaluation(figure) => of.evaluation.push(*figure),
                Figure::Blocks(figure) => of.blocks.push(figure),
                Figure::Dram => of.has_dram = true,
                Figure::Roram => of.has_roram = true,
                Figure::Links => of.has_links = true,
            }
        }
        Ok(of)
    }
}

/// A figure; or the table of DRAM, or the figures of rORAM or of links, which are made as a whole.
enum Figure {
    Evaluation(Box<Manifest>),
    Blocks(&'static BlocksFigure),
    Dram,
    Roram,
    Links,
}

impl Figure {
    fn id(&self) -> &str {
        match self {
            Self::Evaluation(figure) => &figure.id,
            Self::Blocks(figure) => figure.id,
            Self::Dram => dram::Plan::NAME,
            Self::Roram => roram::Plan::NAME,
            Self::Links => links::Plan::NAME,
        }
    }
}
