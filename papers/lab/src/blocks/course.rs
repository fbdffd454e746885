//! Courses: sequences of the requests of a run, divided into stretches.

use super::plan::BlocksPlan;
use crate::evaluation::{PROGRAMS, Programs};

/// The sequence of requests of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// All programs in sequence, and then random requests, as in Fig. 3.
    Mix,
    /// The requests of one program.
    Program(&'static str),
    /// Random requests.
    Uniform,
}

/// A part of a course with one source of requests. Snapshots are taken after equal numbers of
/// paths; the last snapshot is taken at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    pub(super) source: RequestSource,
    pub(super) paths: u64,
    pub(super) snapshots: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RequestSource {
    Program(&'static str),
    Uniform,
}

/// Number of equal parts of the mixed course. Programs make the paths of 37 parts, as they make 3.7
/// of the 4 billion paths in Fig. 3.
const MIX_PARTS: u64 = 40;
const MIX_PROGRAM_PARTS: u64 = 37;

/// The number of paths in Fig. 3 per path in a course of Fig. 4.
const ALONE_PART: u64 = 4;

/// Number of snapshots per stretch.
const SNAPSHOTS: u64 = 4;

impl Course {
    /// The name of the course in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mix => "programs-then-uniform",
            Self::Program(name) => name,
            Self::Uniform => RequestSource::UNIFORM,
        }
    }

    /// Whether `programs` has the traces that the course needs. [`Self::Mix`] needs at least one
    /// program.
    pub fn is_there(self, programs: &Programs) -> bool {
        match self {
            Self::Mix => !those_there(programs).is_empty(),
            Self::Program(name) => programs.has(name),
            Self::Uniform => true,
        }
    }

    pub(super) fn stretches(self, plan: &BlocksPlan, programs: &Programs) -> Vec<Stretch> {
        let stretch = |source, paths| Stretch { source, paths, snapshots: SNAPSHOTS };
        let alone = plan.paths / ALONE_PART;
        match self {
            Self::Mix => {
                let there = those_there(programs);
                let of_programs = plan.paths * MIX_PROGRAM_PARTS / MIX_PARTS;
                let each = of_programs / there.len().max(1) as u64;
                let parts =
                    there.into_iter().map(|name| stretch(RequestSource::Program(name), each));
                let uniform = stretch(RequestSource::Uniform, plan.paths - of_programs);
                parts.chain([uniform]).collect()
            }
            Self::Program(name) => vec![stretch(RequestSource::Program(name), alone)],
            Self::Uniform => vec![stretch(RequestSource::Uniform, alone)],
        }
    }
}

impl RequestSource {
    pub(super) const UNIFORM: &str = "uniform";

    /// The name of the source of requests in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Program(name) => name,
            Self::Uniform => Self::UNIFORM,
        }
    }
}

pub(super) fn those_there(programs: &Programs) -> Vec<&'static str> {
    PROGRAMS.into_iter().filter(|program| programs.has(program)).collect()
}
