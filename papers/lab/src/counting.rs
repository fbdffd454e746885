//! Test helpers: a host that records its calls, and checks of results files.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::{Experiment, Host, LabError, experiment_of, line_of};

/// Runs an experiment on `threads` threads, without recorded runs.
pub(crate) fn results_of<E: Experiment>(
    experiment: E,
    threads: usize,
) -> Result<E::Results, LabError> {
    experiment.run(&[], NonZeroUsize::new(threads).unwrap(), &Counting::default())
}

/// Writes the results to the JSON of a results file, and reads them back. Checks that the file
/// names its experiment, and that the results give the same text afterwards. The results themselves
/// are not compared, because JSON can change the last bit of a number.
pub(crate) fn assert_survive_their_file<E: Experiment>(results: &E::Results) {
    let file = E::to_json(results).unwrap();
    assert_eq!(experiment_of(&file).unwrap(), E::NAME);
    assert_eq!(E::text(&E::from_json(&file).unwrap()), E::text(results));
    assert!(E::from_json("{}").is_err());
}

/// A host that records its calls. Its clock advances by a second each time it is read.
#[derive(Default)]
pub(crate) struct Counting {
    clock_reads: AtomicU64,
    pub(crate) planned: AtomicU64,
    pub(crate) made: AtomicU64,
    /// The number of steps in the first report of completed steps.
    pub(crate) made_at_once: AtomicU64,
    pub(crate) file: Mutex<String>,
    pub(crate) foreseen: Mutex<Vec<String>>,
    pub(crate) remarks: Mutex<Vec<String>>,
}

impl<R: Serialize> Host<R> for Counting {
    fn seconds(&self) -> f64 {
        self.clock_reads.fetch_add(1, Ordering::Relaxed) as f64
    }

    fn planned(&self, steps: u64) {
        self.planned.fetch_add(steps, Ordering::Relaxed);
    }

    fn made(&self, steps: u64) {
        if self.made.fetch_add(steps, Ordering::Relaxed) == 0 {
            self.made_at_once.store(steps, Ordering::Relaxed);
        }
    }

    fn keep(&self, record: &R) -> Result<(), LabError> {
        self.file.lock().unwrap().push_str(&line_of(record)?);
        Ok(())
    }

    fn foreseen(&self, text: &str) {
        self.foreseen.lock().unwrap().push(text.to_owned());
    }

    fn remark(&self, text: &str) {
        self.remarks.lock().unwrap().push(text.to_owned());
    }

    fn machine(&self) -> &str {
        "an abacus"
    }

    fn version(&self) -> &str {
        "0"
    }
}
