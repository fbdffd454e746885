//! What runs on the machines: programs from trace files, a mix of three of them, made traces, and the program
//! of Tiny ORAM.
//!
//! Every trace is moved into the protected space, page by page, as [`Pages`] says. One that is shorter than
//! the records asked for begins again.

use oblivio_models::workload::Workload;
use oblivio_sim::samples::SAMPLES;
use oblivio_sim::trace::synthetic::{Gap, Pattern, Synthetic};
use oblivio_sim::trace::{Placing, Record, Trace};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::record::RunRecord;
use super::switches::Pages;
use crate::LabError;

/// The programs of IR-ORAM, Table II.
pub const PROGRAMS: [&str; 13] = [
    "gcc",
    "mcf",
    "xz",
    "xalancbmk",
    "deepsjeng",
    "bwaves",
    "lbm",
    "cam4",
    "imagick",
    "roms",
    "blackscholes",
    "streamcluster",
    "freqmine",
];

/// The program of Tiny ORAM whose time its text states (section V-E). Its trace is past an LLC already.
pub const SJENG: &str = "sjeng";

/// Programs of SPEC06 as they are, from the traces that come with Ramulator 1.0: of misses in a last-level cache.
pub const REAL: [&str; 5] = ["403.gcc", "445.gobmk", "456.hmmer", "458.sjeng", "464.h264ref"];

/// Three programs in turns. The paper does not say which: these are a quiet one, one that reads, and one
/// that writes.
pub const MIX: &str = "mix";

const MIXED: [&str; 3] = ["gcc", "mcf", "lbm"];

/// Instructions of a turn.
const MIX_SLICE: u64 = 100_000;

/// Traces that need no file.
pub const MADE: [&str; 4] = ["uniform", "scan", "pointer-chase", "store-stream"];

/// The random traces of Fig. 16, which differ in their coins alone.
pub const RANDOM: [&str; 13] = [
    "random-1",
    "random-2",
    "random-3",
    "random-4",
    "random-5",
    "random-6",
    "random-7",
    "random-8",
    "random-9",
    "random-10",
    "random-11",
    "random-12",
    "random-13",
];

/// A list of 64 MiB: far more than any LLC.
const CHASED_LINES_MAX: u64 = 1 << 20;

/// Shorter lists than that of `pointer-chase`, and their lines: 4, 8 and 16 MiB, all more than the LLC of the paper.
const SHORT_CHASES: [(&str, u64); 3] = [
    ("pointer-chase-4-mib", 1 << 16),
    ("pointer-chase-8-mib", 1 << 17),
    ("pointer-chase-16-mib", 1 << 18),
];

/// Instructions before each record of a made trace: 20 records per 1000, as mcf in Table II.
const MADE_GAP: u32 = 49;

/// The part of uniformly random records that write.
const UNIFORM_WRITES: f64 = 0.25;

/// All workloads that a manifest may name. The place of each decides its coins, so a new one comes last.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let short_chases = SHORT_CHASES.into_iter().map(|(name, _)| name);
    PROGRAMS
        .into_iter()
        .chain([MIX])
        .chain(MADE)
        .chain([SJENG])
        .chain(REAL)
        .chain(RANDOM)
        .chain(short_chases)
}

/// What those are called that need no file.
const OF_MADE: &str = "made traces";

/// Where the traces of programs are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// They come with the simulator.
    Samples,
    /// Somebody recorded them.
    Recorded,
    /// Kept runs were made with some of each.
    Both,
}

impl Source {
    /// What a reader of a figure must know of it.
    fn words(self) -> &'static str {
        match self {
            Self::Samples => "the samples, the first 3000 records of each program",
            Self::Recorded => "recorded traces",
            Self::Both => {
                "recorded traces, and the samples, the first 3000 records of each program"
            }
        }
    }
}

/// The traces of programs that are at hand.
#[derive(Clone, Debug)]
pub struct Programs {
    traces: Vec<(&'static str, Trace)>,
    /// Workloads of which there are runs, whose traces need not be there.
    ran: Vec<String>,
    source: Source,
}

impl Programs {
    /// The short samples that come with the simulator.
    ///
    /// # Errors
    /// [`LabError::Simulation`] if one of them is no trace.
    pub fn samples() -> Result<Self, LabError> {
        let read = |(name, file): (&'static str, &[u8])| Ok((name, Trace::read(name, file)?));
        let traces = SAMPLES.into_iter().map(read).collect::<Result<_, LabError>>()?;
        Ok(Self { traces, ran: Vec::new(), source: Source::Samples })
    }

    /// The program whose trace a file called `name` is, if traces of it are of use: one of [`PROGRAMS`], [`SJENG`] or
    /// one of [`REAL`], alone or before a dot.
    pub fn known(name: &str) -> Option<&'static str> {
        let is_of = |program: &str| {
            let rest = name.strip_prefix(program);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        PROGRAMS.into_iter().chain([SJENG]).chain(REAL).find(|program| is_of(program))
    }

    /// Recorded ones, each with the name of its file. Others than the [known](Self::known) are left out.
    pub fn recorded(traces: impl IntoIterator<Item = (String, Trace)>) -> Self {
        let known = |(name, trace): (String, Trace)| Some((Self::known(&name)?, trace));
        Self {
            traces: traces.into_iter().filter_map(known).collect(),
            ran: Vec::new(),
            source: Source::Recorded,
        }
    }

    /// None, in place of those that `runs` were made with: for figures of these alone.
    pub fn of_runs(runs: &[RunRecord]) -> Self {
        let mut ran: Vec<_> = runs.iter().map(|run| run.workload.clone()).collect();
        ran.sort_unstable();
        ran.dedup();
        // Traces that are made are made whatever the programs are.
        let of_programs = || runs.iter().filter(|run| !is_made(&run.workload));
        let source = match of_programs().filter(|run| run.samples).count() {
            0 => Source::Recorded,
            all if all == of_programs().count() => Source::Samples,
            _ => Source::Both,
        };
        Self { traces: Vec::new(), ran, source }
    }

    /// What the programs are, for readers of a figure.
    pub(crate) fn words(&self) -> &'static str {
        self.source.words()
    }

    /// What `workloads` are.
    pub(super) fn words_of(&self, workloads: &[&str]) -> &'static str {
        if workloads.iter().all(|name| is_made(name)) { OF_MADE } else { self.words() }
    }

    /// Whether they are the samples.
    pub(super) fn are_samples(&self) -> bool {
        self.source == Source::Samples
    }

    /// Whether there is everything that `workload` is made of.
    pub fn has(&self, workload: &str) -> bool {
        if self.ran.iter().any(|ran| ran == workload) {
            return true;
        }
        match workload {
            MIX => MIXED.iter().all(|program| self.program(program).is_some()),
            made if is_made(made) => true,
            program => self.program(program).is_some(),
        }
    }

    /// The trace of a program in a protected space of `lines`.
    pub(crate) fn placed(
        &self,
        name: &str,
        lines: u64,
        pages: Pages,
        seed: u64,
    ) -> Result<Trace, LabError> {
        let trace = self.program(name).ok_or_else(|| missing(name))?;
        let place = names().position(|known| known == name).unwrap_or_default();
        Ok(trace.remap(lines, placing(pages, seed.wrapping_add(place as u64)))?)
    }

    /// The trace of a program as it is in its file.
    pub(crate) fn program(&self, name: &str) -> Option<&Trace> {
        self.traces.iter().find(|(program, _)| *program == name).map(|(_, trace)| trace)
    }

    /// Records of `workload` on the lines of a protected space.
    pub(super) fn records(
        &self,
        workload: &str,
        count: u64,
        lines: u64,
        pages: Pages,
        seed: u64,
    ) -> Result<Vec<Record>, LabError> {
        let trace = match workload {
            MIX => self.mix(count as usize, lines)?,
            name if is_made(name) => make(name, count as usize, lines, seed)?,
            name => self.program(name).cloned().ok_or_else(|| missing(name))?,
        };
        place(&trace, count, lines, pages, seed)
    }

    fn mix(&self, count: usize, lines: u64) -> Result<Trace, LabError> {
        let part = |name| {
            // Near each other first: the addresses of a process are spread wide.
            let trace = self.program(name).ok_or_else(|| missing(name))?;
            let trace = trace.remap(lines, Placing::InOrder)?;
            let records = trace.records().iter().copied().cycle().take(count).collect();
            Ok(Trace::new(name, records)?)
        };
        let parts = MIXED.into_iter().map(part).collect::<Result<Vec<_>, LabError>>()?;
        let mixed = Trace::mix(MIX, &parts, MIX_SLICE)?;
        Ok(Trace::new(MIX, mixed.records()[..count].to_vec())?)
    }
}

/// The first `count` records of `trace`, again and again if it has fewer, on the lines of a protected space.
///
/// # Errors
/// [`LabError::Simulation`] when it touches more pages than there are.
pub fn place(
    trace: &Trace,
    count: u64,
    lines: u64,
    pages: Pages,
    seed: u64,
) -> Result<Vec<Record>, LabError> {
    let (_, seed) = seeds(seed);
    let moved = trace.remap(lines, placing(pages, seed))?;
    Ok(moved.records().iter().copied().cycle().take(count as usize).collect())
}

fn placing(pages: Pages, seed: u64) -> Placing {
    match pages {
        Pages::Scattered => Placing::Random { seed },
        Pages::InOrder => Placing::InOrder,
        Pages::AsIs => Placing::AsItIs,
    }
}

/// Whether a workload needs no file.
fn is_made(name: &str) -> bool {
    MADE.contains(&name) || RANDOM.contains(&name) || short_chase(name).is_some()
}

/// The lines of the list that a short pointer chase follows.
fn short_chase(name: &str) -> Option<u64> {
    SHORT_CHASES.into_iter().find(|(chase, _)| *chase == name).map(|(_, lines)| lines)
}

/// The trace called `name` over `lines`: one of [`MADE`] or [`RANDOM`], or a short pointer chase.
///
/// # Errors
/// [`LabError::Simulation`] when there are no lines or no records.
pub fn make(name: &str, records: usize, lines: u64, seed: u64) -> Result<Trace, LabError> {
    let (seed, _) = seeds(seed);
    let of = |workload, writes| (Pattern::Workload { workload, writes }, lines);
    let (pattern, lines) = match name {
        "uniform" => of(Workload::Uniform, UNIFORM_WRITES),
        name if RANDOM.contains(&name) => of(Workload::Uniform, UNIFORM_WRITES),
        "scan" => of(Workload::Scan, 0.0),
        "pointer-chase" => (Pattern::PointerChase, lines.min(CHASED_LINES_MAX)),
        name if let Some(chased) = short_chase(name) => (Pattern::PointerChase, lines.min(chased)),
        _ => (Pattern::StoreStream, lines),
    };
    let made = Synthetic { pattern, lines, gap: Gap::Constant(MADE_GAP), records, seed };
    Ok(made.make(name)?)
}

/// Of what is made, and of where pages go.
fn seeds(seed: u64) -> (u64, u64) {
    let mut seeds = StdRng::seed_from_u64(seed);
    (seeds.next_u64(), seeds.next_u64())
}

fn missing(name: &str) -> LabError {
    LabError::Plan(format!(
        "there is no trace of {name}: record it with `oblivio-lab trace record-set`, or leave --traces out to \
         use the samples"
    ))
}

#[cfg(test)]
mod tests {
    use oblivio_sim::trace::Kind;

    use super::*;
    use crate::{Kept, unpack};

    const LINES: u64 = 4 << 16;

    #[test]
    fn every_workload_has_as_many_records_as_it_is_asked_for() {
        let samples = Programs::samples().unwrap();
        for name in names() {
            if REAL.contains(&name) {
                continue; // There are no samples of them.
            }
            assert!(samples.has(name), "{name}");
            let records = samples.records(name, 7000, LINES, Pages::Scattered, 1).unwrap();
            assert_eq!(records.len(), 7000, "{name}");
            assert!(records.iter().all(|record| record.line < LINES), "{name}");
            assert_eq!(
                records,
                samples.records(name, 7000, LINES, Pages::Scattered, 1).unwrap(),
                "{name}"
            );
            assert_ne!(
                records,
                samples.records(name, 7000, LINES, Pages::Scattered, 2).unwrap(),
                "{name}"
            );
        }
    }

    /// What lies as far apart as the LLC is large has one place in a direct-mapped PLB: that IR-Stash gains there rests on it.
    #[test]
    fn pages_as_they_are_keep_the_distances_within_a_program_and_no_others_do() {
        let far = (2 << 20) / 64;
        let lines = (0..50).flat_map(|page| [64 * page, 64 * page + far]);
        let record = |line| Record { gap: 3, kind: Kind::Write, line };
        let trace = Trace::new("far", lines.map(record).collect()).unwrap();
        let are_as_far = |pages| {
            let placed = place(&trace, 100, LINES, pages, 1).unwrap();
            placed.chunks(2).all(|two| (two[1].line + LINES - two[0].line) % LINES == far)
        };
        assert!(are_as_far(Pages::AsIs));
        assert!(!are_as_far(Pages::InOrder) && !are_as_far(Pages::Scattered));
    }

    #[test]
    fn a_short_chase_follows_a_list_of_its_length() {
        for (name, lines) in SHORT_CHASES {
            let trace = make(name, lines as usize + 5, 1 << 20, 1).unwrap();
            let records = trace.records();
            let mut asked: Vec<_> = records.iter().map(|record| record.line).collect();
            assert_eq!(asked[..5], asked[lines as usize..], "{name} begins again");
            asked.sort_unstable();
            asked.dedup();
            assert!(asked.into_iter().eq(0..lines), "{name}");
            assert!(records.iter().all(|record| record.kind == Kind::Read), "{name}");
        }
    }

    /// Figures of kept runs say what these were made with, and have no trace that would.
    #[test]
    fn runs_of_samples_are_not_called_recorded() {
        let runs = include_bytes!("../../results/evaluation/results.jsonl.gz");
        let runs = unpack("runs", &runs[..]).unwrap();
        let run: RunRecord = Kept::read("runs", &runs).unwrap().records.remove(0);
        let recorded = RunRecord { workload: "gcc".into(), ..run };
        let of_samples = RunRecord { samples: true, ..recorded.clone() };
        let what = |runs: &[RunRecord]| Programs::of_runs(runs).words();
        assert_eq!(what(std::slice::from_ref(&of_samples)), Programs::samples().unwrap().words());
        assert_eq!(what(std::slice::from_ref(&recorded)), Programs::recorded([]).words());
        let samples = Programs::of_runs(std::slice::from_ref(&of_samples));
        let said =
            [&["scan", "random-1"][..], &["scan", "gcc"]].map(|names| samples.words_of(names));
        assert_eq!(said, [OF_MADE, Source::Samples.words()]);
        let made = RunRecord { workload: "scan".into(), ..of_samples.clone() };
        assert_eq!(what(&[recorded.clone(), made]), Source::Recorded.words());
        let both = what(&[recorded, of_samples]);
        assert!(both.starts_with("recorded traces, and the samples"), "{both}");
    }

    #[test]
    fn a_short_trace_begins_again() {
        let records =
            Programs::samples().unwrap().records("mcf", 3005, LINES, Pages::Scattered, 1).unwrap();
        assert_eq!(records[..5], records[3000..]);
    }

    #[test]
    fn the_mix_has_all_of_its_programs() {
        let samples = Programs::samples().unwrap();
        let pages = |name| {
            let records = samples.records(name, 20_000, LINES, Pages::Scattered, 1).unwrap();
            let mut pages: Vec<_> = records.iter().map(|record| record.line / 64).collect();
            pages.sort_unstable();
            pages.dedup();
            pages.len()
        };
        assert!(pages(MIX) > pages("mcf") && pages(MIX) > pages("lbm") + pages("gcc"));
    }

    #[test]
    fn what_is_not_recorded_is_not_there() {
        let trace = Programs::samples().unwrap().program("gcc").unwrap().clone();
        let named = |name: &str| (name.to_owned(), trace.clone());
        let programs = Programs::recorded([named("gcc"), named("doom")]);
        assert!(programs.has("gcc") && programs.has("uniform"));
        let missing = ["doom", "lbm", MIX, SJENG];
        assert!(missing.iter().all(|name| !programs.has(name)));
        assert!(Programs::recorded([named(SJENG)]).has(SJENG));
        let of_files =
            ["gcc.trace.gz", "403.gcc.gz", "lbm", "gcc2.trace", "403"].map(Programs::known);
        assert_eq!(of_files, [Some("gcc"), Some("403.gcc"), Some("lbm"), None, None]);
        let error =
            programs.records("lbm", 10, LINES, Pages::Scattered, 1).unwrap_err().to_string();
        assert!(error.contains("no trace of lbm"), "{error}");
    }
}
