//! Runs searches by slots and by time.

use std::num::NonZeroUsize;

use oblivio_models::alloc_search as search;

use super::plot::svg;
use super::timed::{TimedRecord, time};
use super::{Judge, PAPER_PROFILES, Profile, Run, Scheme, Search, SearchPlan, SearchTables};
use crate::{Experiment, Host, LabError};
use oblivio_models::paper::PAPER_SLOTS;

/// The plan of the search in the documentation.
pub fn full_plan() -> SearchPlan {
    SearchPlan::like_the_paper(15)
}

/// The plan of a search on a smaller tree with fewer accesses, for rough figures.
pub fn quick_plan() -> SearchPlan {
    SearchPlan { accesses: 100_000, endurance_accesses: 200_000, ..SearchPlan::like_the_paper(13) }
}

/// Runs the search, and compares the result with the profiles of the paper if the scheme is Path
/// ORAM with the paper's Z. Steps are accesses or, in a search by time, records. The runs of a
/// search by time are recorded.
impl Experiment for SearchPlan {
    const NAME: &'static str = search::NAME;
    const RESULTS: &'static str = "alloc-search.json";
    const STEPS: &'static str = "accesses or records";
    type Record = TimedRecord;
    type Results = Search;

    fn runs_file(&self) -> Option<&'static str> {
        matches!(self.judge, Judge::Time(_)).then_some("alloc-search.jsonl")
    }

    fn run(
        self,
        kept: &[TimedRecord],
        threads: NonZeroUsize,
        host: &impl Host<TimedRecord>,
    ) -> Result<Search, LabError> {
        let is_the_papers = self.scheme == Scheme::Path && self.slots == PAPER_SLOTS;
        let paper = if is_the_papers { &PAPER_PROFILES[..] } else { &[] };
        let compared = paper
            .iter()
            .map(|paper| (format!("IR-Alloc {}", paper.number), paper.scaled_to(self.leaf_level)));
        let bench = Bench { judge: self.judge, kept, host, began: host.seconds() };
        search::run(&self, compared.collect(), threads, &bench)
    }

    fn to_json(search: &Search) -> Result<String, LabError> {
        Ok(search.to_json()?)
    }

    fn text(search: &Search) -> String {
        format!("{}\n{}\n{}", search.table(), search.paper_table(), search.summary())
    }

    /// A search by time has no plot: its runs do not count blocks on levels.
    fn pictures(search: &Search) -> Result<Vec<(&'static str, String)>, LabError> {
        Ok(match search.plan.judge {
            Judge::Slots => vec![("alloc-search.svg", svg(search)?)],
            Judge::Time(_) => Vec::new(),
        })
    }
}

/// Runs profiles on the engine or on a simulated processor.
struct Bench<'a, H> {
    judge: Judge,
    kept: &'a [TimedRecord],
    host: &'a H,
    /// The time when the search began, on the clock of `host`.
    began: f64,
}

impl<H: Host<TimedRecord>> search::Bench<Judge> for Bench<'_, H> {
    type Error = LabError;

    fn planned(&self, steps: u64) {
        self.host.planned(steps);
    }

    fn run(
        &self,
        plan: &SearchPlan,
        profile: &Profile,
        accesses: u64,
        seed: u64,
    ) -> Result<Run, LabError> {
        match &plan.judge {
            Judge::Slots => {
                let progress = |made| self.host.made(made);
                Ok(search::measure(plan, profile, accesses, seed, &progress)?)
            }
            Judge::Time(judge) => {
                time(judge, plan, profile, (accesses, seed), self.kept, self.host)
            }
        }
    }

    /// Estimates the duration of a search by time from its first profiles.
    fn has_compared(&self, profiles: usize) {
        let seconds = self.host.seconds() - self.began;
        if matches!(self.judge, Judge::Time(_)) {
            let each = seconds / profiles.max(1) as f64;
            self.host.foreseen(&format!(
                "{profiles} profiles to compare with took {seconds:.0} s; a search tries another \
                 15 to 50, in {:.0} to {:.0} minutes",
                each * 15.0 / 60.0,
                each * 50.0 / 60.0
            ));
        }
    }
}
