//! The trait that all experiments implement, and their list.

use std::num::NonZeroUsize;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::report::{Figure, section};
use crate::{Host, LabError};

/// Passes the list of all experiments, each with its module and the type that implements
/// [`Experiment`], to the macro `$with`.
#[macro_export]
macro_rules! experiments {
    ($with:ident) => {
        $with! {
            StashStudy stash_study::StashStudyPlan,
            RawTraffic raw_traffic::RawTrafficPlan,
            AllocSearch alloc_search::SearchPlan,
            Techniques techniques::Comparison,
            Evaluation evaluation::Evaluation,
            Blocks blocks::Blocks,
            Dram dram::DramPlan,
            RangeStash range_stash::RangeStashPlan,
            ShareOverflow share_overflow::ShareOverflowPlan,
            Roram roram::RoramPlan,
            Links links::LinksPlan,
            S3oram s3oram::Evaluation,
            RangeMedia range_media::RangeMediaPlan,
        }
    };
}

/// An experiment with its parameters. The same parameters give the same results, except for times.
pub trait Experiment: Sized {
    /// The name of the experiment in commands and results files.
    const NAME: &'static str;
    /// The name of the results file.
    const RESULTS: &'static str = "results.json";
    /// The unit of progress.
    const STEPS: &'static str;
    /// The type of the record of a run, which is one line of a file. `()` if runs are not recorded.
    type Record: Serialize + DeserializeOwned;
    /// The type of the contents of the results file.
    type Results: DeserializeOwned;

    /// The name of the file with a line per run, if runs are recorded.
    fn runs_file(&self) -> Option<&'static str> {
        None
    }

    /// Makes the runs that are not in `kept`, on `threads` threads, and returns the results of all
    /// runs.
    ///
    /// # Errors
    /// [`LabError::Plan`] for invalid parameters, and errors of the engine, the simulator and
    /// `host`.
    fn run(
        self,
        kept: &[Self::Record],
        threads: NonZeroUsize,
        host: &impl Host<Self::Record>,
    ) -> Result<Self::Results, LabError>;

    /// Serializes the results file.
    ///
    /// # Errors
    /// [`LabError::Results`] if serialization fails.
    fn to_json(results: &Self::Results) -> Result<String, LabError>;

    /// Reads a results file.
    ///
    /// # Errors
    /// [`LabError::Results`] if the file is not a results file.
    fn from_json(text: &str) -> Result<Self::Results, LabError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Returns tables for a terminal. By default, these are the tables of the figures.
    fn text(results: &Self::Results) -> String {
        Self::figures(results).iter().map(section).collect::<Vec<_>>().join("\n")
    }

    /// Returns the figures for the report.
    fn figures(_: &Self::Results) -> Vec<Figure> {
        Vec::new()
    }

    /// Draws the plots as SVG. Returns them with their file names.
    ///
    /// # Errors
    /// [`LabError::Plot`] if a plot cannot be drawn.
    fn pictures(_: &Self::Results) -> Result<Vec<(&'static str, String)>, LabError> {
        Ok(Vec::new())
    }
}

/// Serializes a results file that starts with the name of the experiment `E`.
pub(crate) fn named_json<E: Experiment>(results: &impl Serialize) -> Result<String, LabError> {
    #[derive(Serialize)]
    struct Named<'a, T> {
        experiment: &'a str,
        #[serde(flatten)]
        results: &'a T,
    }
    Ok(serde_json::to_string(&Named { experiment: E::NAME, results })? + "\n")
}

/// The experiment that a results file names.
///
/// # Errors
/// [`LabError::Results`] if the file names no experiment.
pub fn experiment_of(results: &str) -> Result<String, LabError> {
    #[derive(Deserialize)]
    struct Named {
        experiment: String,
    }
    Ok(serde_json::from_str::<Named>(results)?.experiment)
}
