//! `oblivio-lab run` without the name of an experiment: every figure, or those chosen, and the report.

use oblivio_cli::files::{OutputDir, Unnamed};
use oblivio_cli::output;
use oblivio_lab::blocks::{self, BlocksFigure, FIGURES};
use oblivio_lab::evaluation::{self, Manifest};
use oblivio_lab::report::{self, About};
use oblivio_lab::{LabError, chosen, dram, links, roram};

use super::made::Made;
use super::runs::{self, Making, VERSION};
use crate::args::{AllArgs, TITLE};
use crate::error::ProgramError;

/// `oblivio-lab run`: the experiments that make figures, one after the other, and one page of all.
pub(crate) fn run_all(args: &AllArgs) -> Result<(), ProgramError> {
    let AllArgs { quick, figure, output, runs } = args;
    let chosen = Chosen::of(figure)?;
    let (blocks_plan, evaluation_plan) = if *quick {
        (blocks::Plan::quick(), evaluation::Plan::quick())
    } else {
        (blocks::Plan::full(), evaluation::Plan::full())
    };
    let evaluation_plan = evaluation::Plan { seed: runs.seed, ..evaluation_plan }
        .with_machines_of(&chosen.evaluation)?;
    let blocks_plan = blocks::Plan { seed: runs.seed, ..blocks_plan };
    let programs = runs::programs(runs)?;
    let page = OutputDir::prepare(output)?.path("report.html");
    let making = |name: &str| {
        let output = output.join(name);
        output::remark(&format!("{name}: to {}", output.display()));
        Making::new(runs, &programs, &output)
    };

    let mut made = Vec::new();
    if !chosen.evaluation.is_empty() {
        let making = making(evaluation::NAME);
        made.push(super::evaluation::make(&evaluation_plan, &chosen.evaluation, &making, None)?);
    }
    if !chosen.blocks.is_empty() {
        let making = making(blocks::NAME);
        made.push(super::blocks::make(&blocks_plan, &chosen.blocks, &making, None)?);
    }
    if chosen.has_dram {
        made.push(super::dram::make(runs.seed, &making(dram::NAME).output)?.made);
    }
    if chosen.has_roram {
        let plan = super::roram::plan(*quick, runs.seed);
        made.push(super::roram::make(&plan, &making(roram::NAME).output)?.made);
    }
    if chosen.has_links {
        let output = making(links::NAME).output;
        made.push(super::links::make(links::PAPER_DISK_BYTES, &output)?.made);
    }

    let figures: Vec<_> = made.iter().flat_map(|made| made.figures.iter().cloned()).collect();
    let about = About {
        title: TITLE.to_owned(),
        version: VERSION.to_owned(),
        machine: runs::machine(),
        when: String::new(),
    };
    Unnamed::with(&page, &report::html(&figures, &about))?.name()?;
    if runs.json {
        return Ok(output::print(
            &serde_json::to_string_pretty(&figures).map_err(LabError::from)?,
        )?);
    }
    let ends: Vec<_> = made.iter().map(Made::end).collect();
    let summary = report::summary(&figures);
    Ok(output::print(&format!("{summary}\n{}\nreport   {}", ends.join("\n"), page.display()))?)
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
            Self::Dram => dram::NAME,
            Self::Roram => roram::NAME,
            Self::Links => links::NAME,
        }
    }
}
