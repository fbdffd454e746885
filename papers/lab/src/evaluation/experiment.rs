//! The evaluation as an experiment.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{EvaluationPlan, Manifest, Programs, RunRecord, figures, kept_runs, run};
use crate::report::Figure;
use crate::{Experiment, Host, LabError, Trees, counted_runs};

/// The evaluation: its parameters, figures, traces and saved trees.
pub struct Evaluation {
    /// The parameters of the evaluation.
    pub plan: EvaluationPlan,
    /// The figures to make.
    pub manifests: Vec<Manifest>,
    /// The traces. Without them, figures are made only from recorded runs.
    pub programs: Option<Arc<Programs>>,
    /// Storage for initial trees.
    pub trees: Option<Box<dyn Trees>>,
}

impl Experiment for Evaluation {
    const NAME: &'static str = "evaluation";
    const RESULTS: &'static str = "figures.json";
    const STEPS: &'static str = "records";
    type Record = RunRecord;
    type Results = Vec<Figure>;

    fn runs_file(&self) -> Option<&'static str> {
        Some("results.jsonl")
    }

    fn run(
        self,
        kept: &[RunRecord],
        threads: NonZeroUsize,
        host: &impl Host<RunRecord>,
    ) -> Result<Vec<Figure>, LabError> {
        let Self { plan, manifests, programs, trees } = &self;
        let (programs, records) = match programs {
            Some(programs) => {
                let runs = plan.runs(manifests, programs)?;
                let trees = trees.as_deref();
                (Arc::clone(programs), run(plan, &runs, programs, kept, threads, host, trees)?)
            }
            None => {
                let programs = Programs::of_runs(kept);
                let (records, missing) = kept_runs(plan, &plan.runs(manifests, &programs)?, kept)?;
                check_recorded(records.len(), missing, host)?;
                (programs.into(), records)
            }
        };
        host.runs(records.len());
        figures(manifests, plan, &programs, &records)
    }

    fn to_json(figures: &Vec<Figure>) -> Result<String, LabError> {
        Ok(serde_json::to_string_pretty(figures)?)
    }

    fn figures(figures: &Vec<Figure>) -> Vec<Figure> {
        figures.clone()
    }
}

/// Refuses figures without any recorded run, and reports how many runs are missing.
fn check_recorded(
    records: usize,
    missing: usize,
    host: &impl Host<RunRecord>,
) -> Result<(), LabError> {
    let runs = counted_runs(missing);
    if records == 0 {
        return Err(LabError::Input(format!(
            "none of the {runs} of these figures is recorded in --output: choose figures that are, \
             with the --records, --warm-up, --levels and other switches that they were made with"
        )));
    }
    if missing > 0 {
        let (are, them) = if missing == 1 { ("is", "it") } else { ("are", "them") };
        host.remark(&format!(
            "{runs} of these figures {are} not recorded: values that need {them} are missing"
        ));
    }
    Ok(())
}
