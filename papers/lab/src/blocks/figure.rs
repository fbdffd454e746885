//! Figures of the study: the runs that they need, and the parts that they have in common.

use super::catalogue::FIGURES;
use super::course::{Course, those_there};
use super::plan::{BlocksPlan, Run};
use super::record::BlocksRecord;
use crate::LabError;
use crate::choice::chosen;
use crate::evaluation::{PROGRAMS, Programs, initial_words};
use crate::report::{Figure, Plot, Stated};
use oblivio_models::paper::PAPER_LEAF_LEVEL;

/// A figure that the study can make.
#[derive(Debug)]
pub struct BlocksFigure {
    /// The name of the figure, such as `fig03`.
    pub id: &'static str,
    /// The title of the figure, in one line.
    pub title: &'static str,
    /// The reproduced figure, and its paper.
    pub paper: &'static str,
    /// The runs that the figure needs.
    pub runs: &'static [Run],
    /// Reasons for differences from the paper's numbers.
    pub reasons: &'static [&'static str],
    pub(super) make: fn(&Made<'_>) -> Result<Content, LabError>,
}

/// The parts of a figure that are specific to it.
pub(super) struct Content {
    pub(super) plot: Plot,
    pub(super) stated: Vec<Stated>,
    pub(super) remarks: Vec<String>,
}

/// The available runs of a figure.
pub(super) struct Made<'a> {
    runs: Vec<(Run, &'a BlocksRecord)>,
}

impl<'a> Made<'a> {
    pub(super) fn runs(&self) -> impl Iterator<Item = (Run, &'a BlocksRecord)> {
        self.runs.iter().copied()
    }

    /// The record of the figure's first available run.
    pub(super) fn first(&self) -> Result<&'a BlocksRecord, LabError> {
        let first = self.runs.first().map(|(_, record)| *record);
        first.ok_or_else(no_runs)
    }

    /// A sentence about the setting: the LLC and the position map.
    pub(super) fn setting_remark(&self) -> Result<String, LabError> {
        let first = self.runs.first().map(|(run, _)| run.setting.remark().to_owned());
        first.ok_or_else(no_runs)
    }

    /// If a course of all programs lacks some traces: the number of available programs, and the
    /// number of programs in the paper.
    fn fewer_programs(&self, programs: &Programs) -> Option<[u32; 2]> {
        let [there, all] = [those_there(programs).len(), PROGRAMS.len()].map(|count| count as u32);
        let is_of_all = self.runs.iter().any(|(run, _)| run.course == Course::Mix);
        (is_of_all && there < all).then_some([there, all])
    }

    /// A sentence about the size of the tree, if it is not the paper's.
    fn scale(&self) -> Result<Option<String>, LabError> {
        let leaf_level = self.first()?.spec.leaf_level();
        let text = || {
            format!(
                "On a tree with leaves on level {leaf_level}; the paper's are on level \
                 {PAPER_LEAF_LEVEL}."
            )
        };
        Ok((leaf_level != PAPER_LEAF_LEVEL).then(text))
    }
}

fn no_runs() -> LabError {
    LabError::Plan("none of a figure's runs was made".to_owned())
}

impl BlocksFigure {
    /// The figures named in `ids`, or all figures if `ids` is empty.
    ///
    /// # Errors
    /// [`LabError::Plan`] for an unknown id.
    pub fn chosen(ids: &[String]) -> Result<Vec<&'static Self>, LabError> {
        chosen(FIGURES.iter().collect(), |figure| figure.id, ids)
    }
}

/// The `chosen` figures, from the records that [`run`](super::run()) returned for `plan`. Figures
/// without any run are omitted.
///
/// # Errors
/// [`LabError::Plan`] if a record lacks snapshots, or lacks the moves of blocks that Fig. 5 needs.
pub fn figures(
    chosen: &[&BlocksFigure],
    plan: &BlocksPlan,
    programs: &Programs,
    records: &[BlocksRecord],
) -> Result<Vec<Figure>, LabError> {
    let mut figures = Vec::new();
    for figure in chosen {
        let record = |run: &Run| {
            let key = plan.key(run);
            Some((*run, records.iter().find(|record| record.key == key)?))
        };
        let made = Made { runs: figure.runs.iter().filter_map(record).collect() };
        if made.runs.is_empty() {
            continue;
        }
        let Content { plot, mut stated, mut remarks } = (figure.make)(&made)?;
        remarks.extend(made.scale()?);
        let of = made.fewer_programs(programs);
        stated.iter_mut().filter(|number| number.ours.is_some()).for_each(|number| number.of = of);
        let made = Figure {
            id: figure.id.to_owned(),
            title: figure.title.to_owned(),
            paper: figure.paper.to_owned(),
            plot,
            stated,
            remarks,
            origin: origin(plan, programs, &made),
        };
        figures.push(made.explained(figure.reasons));
    }
    Ok(figures)
}

fn origin(plan: &BlocksPlan, programs: &Programs, made: &Made<'_>) -> String {
    let mut versions: Vec<_> = made.runs().map(|(_, record)| record.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let BlocksPlan { leaf_level, paths, initial, llc_bytes, seed } = plan;
    format!(
        "{paths} paths of programs and chance ({}); leaves on level {leaf_level}; {}; LLC of {} \
         KiB; seed {seed}; version {}",
        programs.words(),
        initial_words(*initial),
        llc_bytes >> 10,
        versions.join(", ")
    )
}
