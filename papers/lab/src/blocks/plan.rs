//! The plan: the runs that all chosen figures need.

use oblivio_sim::cache::CacheShape;
use oblivio_sim::controller::{Initial, OramSpec};
use oblivio_sim::processor::ProcessorSpec;
use oblivio_sim::{LINE_BYTES, SimError};

use super::course::Course;
use super::figure::BlocksFigure;
use super::setting::RequestSetting;
use crate::LabError;
use crate::evaluation::{Programs, Switches, Variant};
use oblivio_models::paper::PAPER_LEAF_LEVEL;

/// The parameters of the experiment. With the traces, they determine every record except for its
/// seconds, machine and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlocksPlan {
    /// The level of the leaves.
    pub leaf_level: u8,
    /// Paths of the mixed course of Fig. 3, for which the paper has 4 billion. Other courses have a
    /// quarter of this number.
    pub paths: u64,
    /// The contents of the trees before the first request.
    pub initial: Initial,
    /// Size in bytes of the LLC in front of the ORAM.
    pub llc_bytes: u64,
    /// The seed of all random choices.
    pub seed: u64,
}

/// An ORAM and the requests made to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The ORAM, by the name of its machine in the [evaluation](crate::evaluation::VARIANTS).
    pub variant: &'static str,
    /// The sequence of requests of the run.
    pub course: Course,
    /// The LLC and the position map.
    pub setting: RequestSetting,
}

/// Allowed leaf levels. A smaller tree cannot hold the pages of a sample, and a larger one exceeds
/// the memory of usual machines.
const LEAF_LEVELS: std::ops::RangeInclusive<u8> = 10..=25;

/// Allowed numbers of paths. With fewer paths, some stretch of Fig. 3 would have none. No machine
/// makes more paths than the maximum in a week.
const PATHS: std::ops::RangeInclusive<u64> = 1000..=1_000_000_000_000;

impl BlocksPlan {
    /// The plan with the paper's tree and a tenth of the paper's paths: six per data block. After
    /// these paths, utilisation only fluctuates.
    pub fn full() -> Self {
        Self {
            leaf_level: PAPER_LEAF_LEVEL,
            paths: 400_000_000,
            initial: Initial::EachOnce,
            llc_bytes: Switches::PAPER.llc_bytes,
            seed: 1,
        }
    }

    /// A plan for rough figures, with a small tree and an LLC small enough for the samples.
    pub fn quick() -> Self {
        Self { leaf_level: 16, paths: 100_000, llc_bytes: 32 << 10, ..Self::full() }
    }

    /// The runs that `figures` need, without duplicates. Courses without traces in `programs` are
    /// omitted.
    ///
    /// # Errors
    /// [`LabError::Plan`] if no run remains, or the plan is invalid.
    pub fn runs(
        &self,
        figures: &[&BlocksFigure],
        programs: &Programs,
    ) -> Result<Vec<Run>, LabError> {
        self.check()?;
        let mut runs = Vec::new();
        for run in figures.iter().flat_map(|figure| figure.runs) {
            if run.course.is_there(programs) && !runs.contains(run) {
                runs.push(*run);
            }
        }
        if runs.is_empty() {
            let message = "there is no trace of any program of these figures: name files as \
                           `oblivio-lab trace record-set` does, or omit --traces to use the \
                           samples";
            return Err(LabError::Plan(message.to_owned()));
        }
        Ok(runs)
    }

    /// The specification of the ORAM of `run`.
    ///
    /// # Errors
    /// [`LabError::Plan`] for an unknown variant, and the errors of [`Variant::spec`].
    pub fn spec(&self, run: &Run) -> Result<OramSpec, LabError> {
        let system = Variant::named(run.variant)
            .map(|variant| variant.spec(self.leaf_level, &Switches::PAPER));
        let oram = system.transpose()?.and_then(|system| system.oram);
        let oram = oram.ok_or_else(|| LabError::Plan(format!("unknown ORAM {}", run.variant)))?;
        Ok(run.setting.spec(OramSpec { initial: self.initial, ..oram }))
    }

    /// The name of `run` in results. The key alone does not identify a run: two runs give the same
    /// result if their keys, traces and specifications are equal.
    pub fn key(&self, run: &Run) -> String {
        let Run { variant, course, setting } = run;
        let what = match course {
            Course::Uniform => self.paths.to_string(),
            Course::Mix | Course::Program(_) => format!("{}/llc{}", self.paths, self.llc_bytes),
        };
        let setting = setting.suffix();
        let Self { leaf_level, seed, .. } = self;
        format!("{variant}/{}/L{leaf_level}/{what}/seed{seed}{setting}", course.name())
    }

    /// The shape of the LLC in front of the ORAM.
    pub(super) fn llc(&self) -> Result<CacheShape, SimError> {
        let ways = ProcessorSpec::default().llc_ways;
        Ok(CacheShape { lines: (self.llc_bytes / LINE_BYTES) as usize, ways })
    }

    fn check(&self) -> Result<(), LabError> {
        let ranges = [
            (u64::from(self.leaf_level), bounds(LEAF_LEVELS), "leaves on level", "--levels"),
            (self.paths, bounds(PATHS), "paths:", "--paths"),
        ];
        match ranges.iter().find(|(value, (least, most), ..)| value < least || value > most) {
            None => Ok(()),
            Some((value, (least, most), what, option)) => Err(LabError::Plan(format!(
                "{what} {value} is out of range, which is {least} to {most}: choose other {option}"
            ))),
        }
    }
}

fn bounds<T: Into<u64>>(range: std::ops::RangeInclusive<T>) -> (u64, u64) {
    let (least, most) = range.into_inner();
    (least.into(), most.into())
}
