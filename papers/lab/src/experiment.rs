//! What all experiments have in common, and the list of them.

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
            StashStudy stash_study::Plan,
            RawTraffic raw_traffic::Plan,
            AllocSearch alloc_search::Plan,
            Techniques techniques::Comparison,
            Evaluation evaluation::Evaluation,
            Blocks blocks::Blocks,
            Dram dram::Plan,
            RangeStash range_stash::Plan,
            ShareOverflow share_overflow::Plan,
            Roram roram::Plan,
            Links links::Plan,
            S3oram s3oram::Evaluation,
            RangeMedia range_media::Plan,
        }
    };
}

/// An experiment with its parameters. The same parameters give the same results, but for times.
pub trait Experiment: Sized {
    /// The name in commands and results files.
    const NAME: &'static str;
    /// The results file.
    const RESULTS: &'static str = "results.json";
    /// The unit of the progress.
    const STEPS: &'static str;
    /// The line kept of each run; `()` if runs are not kept.
    type Record: Serialize + DeserializeOwned;
    /// The contents of the results file.
    type Results: DeserializeOwned;

    /// The file with a line for each run, if runs are kept.
    fn runs_file(&self) -> Option<&'static str> {
        None
    }

    /// Makes the runs that are not among `kept`, on `threads` threads.
    ///
    /// # Errors
    /// [`LabError::Plan`] for parameters that cannot be followed, and errors of the engine, the
    /// simulator and `host`.
    fn run(
        self,
        kept: &[Self::Record],
        threads: NonZeroUsize,
        host: &impl Host<Self::Record>,
    ) -> Result<Self::Results, LabError>;

    /// The results file.
    ///
    /// # Errors
    /// [`LabError::Results`] if a number is not finite.
    fn to_json(results: &Self::Results) -> Result<String, LabError>;

    /// Reads a results file.
    ///
    /// # Errors
    /// [`LabError::Results`] if it is not one.
    fn from_json(text: &str) -> Result<Self::Results, LabError> {
        Ok(serde_json::from_str(text)?)
    }

    /// The tables for a terminal: those of the figures by default.
    fn text(results: &Self::Results) -> String {
        Self::figures(results).iter().map(section).collect::<Vec<_>>().join("\n")
    }

    /// The figures of the report.
    fn figures(_: &Self::Results) -> Vec<Figure> {
        Vec::new()
    }

    /// Pictures as SVG, with their file names.
    ///
    /// # Errors
    /// [`LabError::Plot`].
    fn pictures(_: &Self::Results) -> Result<Vec<(&'static str, String)>, LabError> {
        Ok(Vec::new())
    }
}

/// A results file that names the experiment `E` before its results.
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
/// [`LabError::Results`] if the file names none.
pub fn experiment_of(results: &str) -> Result<String, LabError> {
    #[derive(Deserialize)]
    struct Named {
        experiment: String,
    }
    Ok(serde_json::from_str::<Named>(results)?.experiment)
}
