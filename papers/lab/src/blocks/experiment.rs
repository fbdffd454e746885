//! The study of blocks as an experiment.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{BlocksFigure, BlocksPlan, BlocksRecord, figures, run};
use crate::evaluation::Programs;
use crate::report::Figure;
use crate::{Experiment, Host, LabError, Trees};

/// The study: its parameters, figures, traces and saved trees.
pub struct Blocks {
    /// The parameters of the study.
    pub plan: BlocksPlan,
    /// The figures to make.
    pub chosen: Vec<&'static BlocksFigure>,
    /// The traces of the programs.
    pub programs: Arc<Programs>,
    /// Storage for initial trees and interrupted runs.
    pub trees: Option<Box<dyn Trees>>,
}

impl Experiment for Blocks {
    const NAME: &'static str = "blocks";
    const RESULTS: &'static str = "figures.json";
    const STEPS: &'static str = "paths";
    type Record = BlocksRecord;
    type Results = Vec<Figure>;

    fn runs_file(&self) -> Option<&'static str> {
        Some("results.jsonl")
    }

    fn run(
        self,
        kept: &[BlocksRecord],
        threads: NonZeroUsize,
        host: &impl Host<BlocksRecord>,
    ) -> Result<Vec<Figure>, LabError> {
        let Self { plan, chosen, programs, trees } = &self;
        let runs = plan.runs(chosen, programs)?;
        host.runs(runs.len());
        let records = run(plan, &runs, programs, kept, threads, host, trees.as_deref())?;
        figures(chosen, plan, programs, &records)
    }

    fn to_json(figures: &Vec<Figure>) -> Result<String, LabError> {
        Ok(serde_json::to_string_pretty(figures)?)
    }

    fn figures(figures: &Vec<Figure>) -> Vec<Figure> {
        figures.clone()
    }
}
