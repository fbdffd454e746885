//! The list of the study's figures, with the runs that each figure needs.

use super::course::Course;
use super::figure::BlocksFigure;
use super::plan::Run;
use super::setting::RequestSetting;
use super::{found, makers, migration};

const fn run(variant: &'static str, course: Course) -> Run {
    run_as(variant, course, RequestSetting::MapInTree)
}

const fn run_as(variant: &'static str, course: Course, setting: RequestSetting) -> Run {
    Run { variant, course, setting }
}

const BASELINE: &str = "baseline";
const IR_ALLOC: &str = "ir-alloc-4";

/// All figures, in the order of the paper.
pub const FIGURES: &[BlocksFigure] = &[
    BlocksFigure {
        id: "fig03",
        title: "Utilisation of the levels under programs, and then chance",
        paper: "IR-ORAM, Fig. 3",
        runs: &[run(BASELINE, Course::Mix)],
        reasons: &[
            "The last level is 77 to 78 % full from the start, when each block was accessed once, \
             and more paths do not change that. The paper's plot has 70 %. Level 3 has 32 slots, \
             and one snapshot finds all of them empty.",
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
        title: "Where requested blocks are found",
        paper: "IR-ORAM, Fig. 6",
        runs: &[run(BASELINE, Course::Mix)],
        reasons: &[
            "This figure counts requests for data. The paper may count paths for the position map \
             as well: a direct-mapped PLB throws out blocks that the next request needs, and those \
             are near the root.",
        ],
        make: found::found,
    },
    BlocksFigure {
        id: "fig13",
        title: "Utilisation of the levels with IR-Alloc 4, under programs, and then chance",
        paper: "IR-ORAM, Fig. 13",
        runs: &[run(IR_ALLOC, Course::Mix)],
        reasons: &[
            "The mean is over levels 10 to 21. Levels 10 to 15, which have one slot in place of \
             four, are 61 % full on the whole.",
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
        title: "Utilisation of the levels under programs, and then chance: all positions on the \
                client",
        paper: "IR-ORAM, Fig. 3",
        runs: &[run_as(BASELINE, Course::Mix, RequestSetting::AllOnClient)],
        reasons: &[
            "The snapshot after programs is the one after freqmine, a scan. On a small tree scans \
             and streams leave the middle levels as full as random requests do.",
        ],
        make: makers::baseline_levels,
    },
    BlocksFigure {
        id: "fig04-client",
        title: "Utilisation of the levels under one program, and under chance: all positions on \
                the client",
        paper: "IR-ORAM, Fig. 4",
        runs: &[
            run_as(BASELINE, Course::Program("gcc"), RequestSetting::AllOnClient),
            run_as(BASELINE, Course::Program("lbm"), RequestSetting::AllOnClient),
            run_as(BASELINE, Course::Uniform, RequestSetting::AllOnClient),
        ],
        reasons: &[],
        make: makers::levels_of_each,
    },
    BlocksFigure {
        id: "fig05",
        title: "Levels that blocks of the stash go to",
        paper: "IR-ORAM, Fig. 5(a)",
        runs: &[run_as(BASELINE, Course::Mix, RequestSetting::AllOnClient)],
        reasons: &[],
        make: migration::of_the_stash,
    },
    BlocksFigure {
        id: "fig05-path",
        title: "Levels that blocks of the path go to, from where they were",
        paper: "IR-ORAM, Fig. 5(b)",
        runs: &[run_as(BASELINE, Course::Mix, RequestSetting::AllOnClient)],
        reasons: &[],
        make: migration::of_the_path,
    },
    BlocksFigure {
        id: "fig06-client",
        title: "Where requested data is found: all positions on the client, and no LLC",
        paper: "IR-ORAM, Fig. 6",
        runs: &[run_as(BASELINE, Course::Mix, RequestSetting::AllOnClient)],
        reasons: &[
            "This figure counts requests for data. The paper may count paths for the position map \
             as well.",
        ],
        make: found::found,
    },
    BlocksFigure {
        id: "fig06-paths",
        title: "Where blocks of data and of the position map are found",
        paper: "IR-ORAM, Fig. 6",
        runs: &[run(BASELINE, Course::Mix)],
        reasons: &[
            "All blocks that are found in the tree top are of the position map. How many depends \
             on the programs, and the paper does not say how it mixed them.",
        ],
        make: found::found_by_all,
    },
    BlocksFigure {
        id: "fig13-client",
        title: "Utilisation of the levels with IR-Alloc 4: all positions on the client",
        paper: "IR-ORAM, Fig. 13",
        runs: &[run_as(IR_ALLOC, Course::Mix, RequestSetting::AllOnClient)],
        reasons: &[
            "The mean is over levels 10 to 21. Levels 10 to 15, which have one slot in place of \
             four, are 61 % full on the whole; the levels below are 11 to 24 % full.",
        ],
        make: makers::alloc_levels,
    },
];
