//! The figures: which runs each needs, and what all have in common.

use super::course::Course;
use super::plan::{Plan, Run};
use super::record::BlocksRecord;
use super::setting::Setting;
use super::{found, makers, migration};
use crate::LabError;
use crate::choice::chosen;
use crate::evaluation::{Programs, initial_words};
use crate::paper::PAPER_LEAF_LEVEL;
use crate::report::{Figure, Plot, Stated};

/// A figure to be made.
#[derive(Debug)]
pub struct BlocksFigure {
    /// What it is called here: `fig03`.
    pub id: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// Which figure of which paper it is.
    pub paper: &'static str,
    /// The runs it is made of.
    pub runs: &'static [Run],
    /// Why ours differ from the paper's numbers, where they do.
    pub reasons: &'static [&'static str],
    make: fn(&Made<'_>) -> Result<Content, LabError>,
}

/// What only this figure has.
pub(super) struct Content {
    pub(super) plot: Plot,
    pub(super) stated: Vec<Stated>,
    pub(super) remarks: Vec<String>,
}

/// The runs of a figure that could be made.
pub(super) struct Made<'a> {
    pub(super) plan: &'a Plan,
    runs: Vec<(Run, &'a BlocksRecord)>,
}

impl<'a> Made<'a> {
    pub(super) fn runs(&self) -> impl Iterator<Item = (Run, &'a BlocksRecord)> {
        self.runs.iter().copied()
    }

    /// The only run, or the first one.
    pub(super) fn first(&self) -> Result<&'a BlocksRecord, LabError> {
        let first = self.runs.first().map(|(_, record)| *record);
        first.ok_or_else(no_runs)
    }

    /// How requests came, and where the positions were.
    pub(super) fn setting_remark(&self) -> Result<String, LabError> {
        let first = self.runs.first().map(|(run, _)| run.setting.remark().to_owned());
        first.ok_or_else(no_runs)
    }

    /// How its tree differs from the paper's.
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
    LabError::Plan("a figure has none of its runs".to_owned())
}

const fn run(variant: &'static str, course: Course) -> Run {
    run_as(variant, course, Setting::MapInTree)
}

const fn run_as(variant: &'static str, course: Course, setting: Setting) -> Run {
    Run { variant, course, setting }
}

const BASELINE: &str = "baseline";
const IR_ALLOC: &str = "ir-alloc-4";

/// All of them, in the order of the paper.
pub const FIGURES: &[BlocksFigure] = &[
    BlocksFigure {
        id: "fig03",
        title: "Utilisation of the levels under programs, and then chance",
        paper: "IR-ORAM, Fig. 3",
        runs: &[run(BASELINE, Course::Mix)],
        reasons: &[
            "What chance leaves is what the tree has at the start, when each block was accessed once, and longer \
             runs do not change it: the paper's plot has 0.7 in the last level, and ours 0.77 to 0.78 at any time.",
            "Level 3 has 32 slots: among as many snapshots there is one with none of them taken.",
        ],
        make: makers::baseline_levels,
    },
    BlocksFigure {
        id: "fig04",
        title: "Utilisation of the levels under one program, and under chance",
        paper: "IR-ORAM, Fig. 4",
        runs: &[
            run(BASELINE, Course::Program("gcc")),
            run(BASELINE, Course::Program("lbm")),
            run(BASELINE, Course::Uniform),
        ],
        reasons: &[],
        make: makers::levels_of_each,
    },
    BlocksFigure {
        id: "fig06",
        title: "Where blocks are found that are asked for",
        paper: "IR-ORAM, Fig. 6",
        runs: &[run(BASELINE, Course::Mix)],
        reasons: &[
            "Data is not what the paper finds there. This figure counts requests for data, of which 0.3 % find their \
             block in the tree top. The paper's 23 % are inferred to be position-map blocks, which this figure does \
             not count: a direct-mapped PLB throws out what the next request needs.",
            "Which paths the paper counts is open, and so is how many position-map blocks are found in the tree top \
             under its settings.",
        ],
        make: found::found,
    },
    BlocksFigure {
        id: "fig13",
        title: "Utilisation of the levels with IR-Alloc 4, under programs, and then chance",
        paper: "IR-ORAM, Fig. 13",
        runs: &[run(IR_ALLOC, Course::Mix)],
        reasons: &[
            "The mean is over all middle levels, 10 to 21. Those that have one slot in place of four, 10 to 15, are \
             61 % full on the whole at full size. The tree has the same parts when each block was accessed once by chance, \
             so it is no matter of time.",
        ],
        make: makers::alloc_levels,
    },
    BlocksFigure {
        id: "fig13-evictions",
        title: "Background evictions under each program, and then chance",
        paper: "beside IR-ORAM, Fig. 13",
        runs: &[run(BASELINE, Course::Mix), run(IR_ALLOC, Course::Mix)],
        reasons: &[],
        make: makers::evictions,
    },
    BlocksFigure {
        id: "fig03-client",
        title: "Utilisation of the levels under programs, and then chance: all positions on the client",
        paper: "IR-ORAM, Fig. 3",
        runs: &[run_as(BASELINE, Course::Mix, Setting::AllOnClient)],
        reasons: &[],
        make: makers::baseline_levels,
    },
    BlocksFigure {
        id: "fig04-client",
        title: "Utilisation of the levels under one program, and under chance: all positions on the client",
        paper: "IR-ORAM, Fig. 4",
        runs: &[
            run_as(BASELINE, Course::Program("gcc"), Setting::AllOnClient),
            run_as(BASELINE, Course::Program("lbm"), Setting::AllOnClient),
            run_as(BASELINE, Course::Uniform, Setting::AllOnClient),
        ],
        reasons: &[],
        make: makers::levels_of_each,
    },
    BlocksFigure {
        id: "fig05",
        title: "Levels that blocks of the stash go to",
        paper: "IR-ORAM, Fig. 5(a)",
        runs: &[run_as(BASELINE, Course::Mix, Setting::AllOnClient)],
        reasons: &[],
        make: migration::of_the_stash,
    },
    BlocksFigure {
        id: "fig05-path",
        title: "Levels that blocks of the path go to, from where they were",
        paper: "IR-ORAM, Fig. 5(b)",
        runs: &[run_as(BASELINE, Course::Mix, Setting::AllOnClient)],
        reasons: &[],
        make: migration::of_the_path,
    },
    BlocksFigure {
        id: "fig06-client",
        title: "Where data is found that is asked for: all positions on the client, and no LLC",
        paper: "IR-ORAM, Fig. 6",
        runs: &[run_as(BASELINE, Course::Mix, Setting::AllOnClient)],
        reasons: &[],
        make: found::found,
    },
    BlocksFigure {
        id: "fig06-paths",
        title: "Where blocks of data and of the position map are found",
        paper: "IR-ORAM, Fig. 6",
        runs: &[run(BASELINE, Course::Mix)],
        reasons: &[],
        make: found::found_by_all,
    },
    BlocksFigure {
        id: "fig06-victim-first",
        title: "Where blocks of data and of the position map are found: victims before their misses",
        paper: "IR-ORAM, Fig. 6",
        runs: &[run_as(BASELINE, Course::Mix, Setting::VictimFirst)],
        reasons: &[],
        make: found::found_by_all,
    },
    BlocksFigure {
        id: "fig06-programs",
        title: "What each program finds in the stash and the tree top: victims before their misses",
        paper: "beside IR-ORAM, Fig. 6",
        runs: &[run_as(BASELINE, Course::Mix, Setting::VictimFirst)],
        reasons: &[],
        make: found::found_near_by_program,
    },
    BlocksFigure {
        id: "fig13-client",
        title: "Utilisation of the levels with IR-Alloc 4: all positions on the client",
        paper: "IR-ORAM, Fig. 13",
        runs: &[run_as(IR_ALLOC, Course::Mix, Setting::AllOnClient)],
        reasons: &[],
        make: makers::alloc_levels,
    },
    BlocksFigure {
        id: "reuse",
        title: "Background evictions against reuse past the last-level cache",
        paper: "not in the paper: whether reuse saves IR-Alloc its evictions",
        runs: &[
            run("ir-alloc-1", Course::Reuse),
            run("ir-alloc-2", Course::Reuse),
            run("ir-alloc-3", Course::Reuse),
            run(IR_ALLOC, Course::Reuse),
        ],
        reasons: &[],
        make: makers::reuse,
    },
];

impl BlocksFigure {
    /// The figures called `ids`, or all if there are none.
    ///
    /// # Errors
    /// [`LabError::Plan`] for an id that no figure has.
    pub fn chosen(ids: &[String]) -> Result<Vec<&'static Self>, LabError> {
        chosen(FIGURES.iter().collect(), |figure| figure.id, ids)
    }
}

/// The `chosen` figures, from what [`run`](super::run()) gave for `plan`. One that has no run at all is left
/// out.
///
/// # Errors
/// [`LabError::Plan`] when the records are not those of the plan.
pub fn figures(
    chosen: &[&BlocksFigure],
    plan: &Plan,
    programs: &Programs,
    records: &[BlocksRecord],
) -> Result<Vec<Figure>, LabError> {
    let mut figures = Vec::new();
    for figure in chosen {
        let record = |run: &Run| {
            let key = plan.key(run);
            Some((*run, records.iter().find(|record| record.key == key)?))
        };
        let made = Made { plan, runs: figure.runs.iter().filter_map(record).collect() };
        if made.runs.is_empty() {
            continue;
        }
        let Content { plot, stated, mut remarks } = (figure.make)(&made)?;
        remarks.extend(made.scale()?);
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

fn origin(plan: &Plan, programs: &Programs, made: &Made<'_>) -> String {
    let mut versions: Vec<_> = made.runs().map(|(_, record)| record.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let Plan { leaf_level, paths, reuse_paths, initial, llc_bytes, seed } = plan;
    format!(
        "{paths} paths of programs and chance, {reuse_paths} for each probability of reuse ({}); leaves on \
         level {leaf_level}; {}; LLC of {} KiB; seed {seed}; version {}",
        programs.what,
        initial_words(*initial),
        llc_bytes >> 10,
        versions.join(", ")
    )
}
