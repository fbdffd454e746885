//! The experiments of Oblivio: what the papers state, measured on the engine itself.
//!
//! An experiment is a module with a plan (its parameters), a `run` that gives results, and ways to
//! show them: a file that holds everything needed to draw them again, a table, a plot. The same
//! plan gives the same results, on any machine and any number of threads.

pub mod alloc_search;
pub mod blocks;
mod choice;
#[cfg(test)]
mod counting;
pub mod dram;
#[cfg(test)]
mod drawer;
mod error;
pub mod evaluation;
mod kept_studies;
pub mod links;
mod markdown;
pub mod range_media;
pub mod range_stash;
pub mod raw_traffic;
mod records;
pub mod relay;
pub mod report;
pub mod roram;
pub mod s3oram;
pub mod share_overflow;
pub mod stash_study;
pub mod techniques;

pub use choice::chosen;
pub use error::LabError;
use oblivio_models::workers;
pub use oblivio_models::workload::Workload;
pub use oblivio_sim::trace::Trace;
pub use records::{Host, Kept, Trees, counted_runs, line_of, unpack};

/// What the command line lists.
pub struct Experiment {
    /// How it is called.
    pub name: &'static str,
    /// The question it answers, in one line.
    pub question: &'static str,
}

/// Every experiment there is.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: stash_study::NAME,
        question: "How large must the stash be, so that it overflows with probability 2^-80 at most?",
    },
    Experiment {
        name: raw_traffic::NAME,
        question: "What does RAW ORAM move and encrypt for each Z and A, and how large is its stash?",
    },
    Experiment {
        name: alloc_search::NAME,
        question: "How small may the buckets of the middle levels be (IR-Alloc)?",
    },
    Experiment {
        name: techniques::NAME,
        question: "What does each technique gain, alone and with others?",
    },
    Experiment {
        name: evaluation::NAME,
        question: "How fast is a processor with IR-ORAM, and why? The timed figures of the paper",
    },
    Experiment {
        name: blocks::NAME,
        question: "Where are blocks in the tree, and what does IR-Alloc make of it?",
    },
    Experiment {
        name: dram::NAME,
        question: "Is the simulated DRAM as fast as that of published simulators?",
    },
    Experiment {
        name: range_stash::NAME,
        question: "How many blocks are left on the client of an ORAM of ranges?",
    },
    Experiment {
        name: share_overflow::NAME,
        question: "How full do the buckets of S³ORAM get, and for how many blocks does Lemma 4.1 hold?",
    },
    Experiment {
        name: roram::NAME,
        question: "What do ranges gain on a disk, an SSD and a link? Figs. 6 and 7 of rORAM, on models of them",
    },
    Experiment {
        name: links::NAME,
        question: "How fast are ORAMs behind links of homes, phones and servers? By a model, beside what S³ORAM states",
    },
    Experiment {
        name: s3oram::NAME,
        question: "Is S³ORAM as fast as its paper states? Table 1 and Figs. 3 to 8 by a model, and the model beside real servers",
    },
    Experiment {
        name: range_media::NAME,
        question: "Is the model of volumes on a medium right? Beside volumes with data",
    },
];

/// The name of the experiment that a results file is of.
///
/// # Errors
/// [`LabError::Results`] when it is none.
pub fn experiment_of(results: &str) -> Result<String, LabError> {
    #[derive(serde::Deserialize)]
    struct Named {
        experiment: String,
    }
    Ok(serde_json::from_str::<Named>(results)?.experiment)
}
