//! The workloads: programs from trace files, a mix of three of them, synthetic traces, and the
//! program of Tiny ORAM.
//!
//! Every trace is moved into the protected space by pages, as [`Pages`] determines. A trace shorter
//! than the requested number of records is repeated.

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

/// The program of Tiny ORAM whose time the paper's text states (section V-E). Its trace was
/// recorded behind an LLC.
pub const SJENG: &str = "sjeng";

/// Programs of SPEC06, from the traces of Ramulator 1.0, which are misses of a last-level cache.
pub const REAL: [&str; 5] = ["403.gcc", "445.gobmk", "456.hmmer", "458.sjeng", "464.h264ref"];

/// A mix of three programs that take turns. The paper does not name the programs of its mix. Here,
/// gcc makes few requests, mcf reads, and lbm writes.
pub const MIX: &str = "mix";

const MIXED: [&str; 3] = ["gcc", "mcf", "lbm"];

/// Instructions that a program executes before the next one continues.
const MIX_SLICE: u64 = 100_000;

/// Synthetic traces, which need no file.
pub const MADE: [&str; 4] = ["uniform", "scan", "pointer-chase", "store-stream"];

/// The random traces of Fig. 16, which only differ in their seeds.
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

/// The maximum number of lines of a chased list: 64 MiB, far larger than any LLC.
const CHASED_LINES_MAX: u64 = 1 << 20;

/// The names and lines of lists shorter than `pointer-chase`'s: 4, 8 and 16 MiB, all larger than
/// the paper's LLC.
const SHORT_CHASES: [(&str, u64); 3] = [
    ("pointer-chase-4-mib", 1 << 16),
    ("pointer-chase-8-mib", 1 << 17),
    ("pointer-chase-16-mib", 1 << 18),
];

/// Instructions before each record of a synthetic trace: 20 records per 1000 instructions, as mcf
/// in Table II.
const MADE_GAP: u32 = 49;

/// The fraction of writes in uniformly random traces.
const UNIFORM_WRITES: f64 = 0.25;

/// All workloads that a manifest may name. The position of a workload determines its seed, so new
/// ones must be appended.
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

/// The description of workloads that need no file.
const OF_MADE: &str = "made traces";

/// The origin of the traces of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The samples that come with the simulator.
    Samples,
    /// Traces recorded by the user.
    Recorded,
    /// The samples in some recorded runs, and recorded traces in others.
    Both,
}

impl Source {
    /// A description for readers of figures.
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

/// The available traces of programs.
#[derive(Clone, Debug)]
pub struct Programs {
    traces: Vec<(&'static str, Trace)>,
    /// Workloads of recorded runs, which need no traces.
    ran: Vec<String>,
    source: Source,
}

impl Programs {
    /// Returns the short samples that come with the simulator.
    ///
    /// # Errors
    /// [`LabError::Simulation`] if a sample is not a trace.
    pub fn samples() -> Result<Self, LabError> {
        let read = |(name, file): (&'static str, &[u8])| Ok((name, Trace::read(name, file)?));
        let traces = SAMPLES.into_iter().map(read).collect::<Result<_, LabError>>()?;
        Ok(Self { traces, ran: Vec::new(), source: Source::Samples })
    }

    /// The program whose trace is in a file called `name`: one of [`PROGRAMS`], [`SJENG`] or
    /// [`REAL`]. The file name is the program's, possibly followed by a dot and an extension.
    pub fn known(name: &str) -> Option<&'static str> {
        let is_of = |program: &str| {
            let rest = name.strip_prefix(program);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        PROGRAMS.into_iter().chain([SJENG]).chain(REAL).find(|program| is_of(program))
    }

    /// Creates the set of recorded traces from pairs of a file name and a trace. Traces of
    /// [unknown](Self::known) programs are ignored.
    pub fn recorded(traces: impl IntoIterator<Item = (String, Trace)>) -> Self {
        let known = |(name, trace): (String, Trace)| Some((Self::known(&name)?, trace));
        Self {
            traces: traces.into_iter().filter_map(known).collect(),
            ran: Vec::new(),
            source: Source::Recorded,
        }
    }

    /// Creates a set without traces that has the workloads of `runs` and the synthetic ones, for
    /// figures of these runs.
    pub fn of_runs(runs: &[RunRecord]) -> Self {
        let mut ran: Vec<_> = runs.iter().map(|run| run.workload.clone()).collect();
        ran.sort_unstable();
        ran.dedup();
        // Synthetic traces do not depend on the traces of programs.
        let of_programs = || runs.iter().filter(|run| !is_made(&run.workload));
        let source = match of_programs().filter(|run| run.samples).count() {
            0 => Source::Recorded,
            all if all == of_programs().count() => Source::Samples,
            _ => Source::Both,
        };
        Self { traces: Vec::new(), ran, source }
    }

    /// The origin of the programs' traces, for readers of a figure.
    pub(crate) fn words(&self) -> &'static str {
        self.source.words()
    }

    /// Describes the origin of `workloads`.
    pub(super) fn words_of(&self, workloads: &[&str]) -> &'static str {
        if workloads.iter().all(|name| is_made(name)) { OF_MADE } else { self.words() }
    }

    /// Whether the traces are the samples.
    pub(super) fn are_samples(&self) -> bool {
        self.source == Source::Samples
    }

    /// Whether all traces that `workload` needs are available. A workload of recorded runs, and a
    /// synthetic one, need none.
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

    /// The trace of a program in a protected space of `lines` lines.
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

    /// The first `count` records of `workload` in a protected space of `lines` lines.
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
            // First move the pages together: the addresses of a process are spread widely.
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

/// The first `count` records of `trace`, which is repeated if it has fewer, in a protected space of
/// `lines` lines.
///
/// # Errors
/// [`LabError::Simulation`] if the trace touches more pages than the protected space has.
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
        Pages::AsIs => Placing::Preserving,
    }
}

/// Whether a workload is synthetic.
fn is_made(name: &str) -> bool {
    MADE.contains(&name) || RANDOM.contains(&name) || short_chase(name).is_some()
}

/// The lines of the list in a short pointer chase.
fn short_chase(name: &str) -> Option<u64> {
    SHORT_CHASES.into_iter().find(|(chase, _)| *chase == name).map(|(_, lines)| lines)
}

/// Makes the synthetic trace `name` over `lines`: one of [`MADE`] or [`RANDOM`], or a short pointer
/// chase.
///
/// # Errors
/// [`LabError::Simulation`] if `lines` or `records` is zero.
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

/// Derives the seeds for the synthetic trace and for the placement of pages.
fn seeds(seed: u64) -> (u64, u64) {
    let mut seeds = StdRng::seed_from_u64(seed);
    (seeds.next_u64(), seeds.next_u64())
}

fn missing(name: &str) -> LabError {
    LabError::Plan(format!(
        "there is no trace of {name}: record it with `oblivio-lab trace record-set`, or omit \
         --traces to use the samples"
    ))
}

#[cfg(test)]
mod tests {
    use oblivio_sim::trace::AccessKind;

    use super::*;
    use crate::{KeptRecords, unpack};

    const LINES: u64 = 4 << 16;

    #[test]
    fn every_workload_has_the_requested_number_of_records() {
        let samples = Programs::samples().unwrap();
        for name in names() {
            if REAL.contains(&name) {
                continue; // These have no samples.
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

    /// Checks which placements keep the distance between two lines if it is the size of the LLC.
    /// Such lines share a set of a direct-mapped PLB, and IR-Stash gains from this.
    #[test]
    fn only_pages_as_is_keep_distances_within_a_program() {
        let far = (2 << 20) / 64;
        let lines = (0..50).flat_map(|page| [64 * page, 64 * page + far]);
        let record = |line| Record { gap: 3, kind: AccessKind::Write, line };
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
            assert_eq!(asked[..5], asked[lines as usize..], "{name} is repeated");
            asked.sort_unstable();
            asked.dedup();
            assert!(asked.into_iter().eq(0..lines), "{name}");
            assert!(records.iter().all(|record| record.kind == AccessKind::Read), "{name}");
        }
    }

    /// Checks that a figure of recorded runs states the origin of their traces, even if the traces
    /// are not available.
    #[test]
    fn runs_of_samples_are_not_called_recorded() {
        let runs = include_bytes!("../../results/evaluation/results.jsonl.gz");
        let runs = unpack("runs", &runs[..]).unwrap();
        let run: RunRecord = KeptRecords::read("runs", &runs).unwrap().records.remove(0);
        let recorded = RunRecord { workload: "gcc".into(), ..run };
        let of_samples = RunRecord { samples: true, ..recorded.clone() };
        let what = |runs: &[RunRecord]| Programs::of_runs(runs).words();
        assert_eq!(what(std::slice::from_ref(&of_samples)), Programs::samples().unwrap().words());
        assert_eq!(what(std::slice::from_ref(&recorded)), Programs::recorded([]).words());
        let samples = Programs::of_runs(std::slice::from_ref(&of_samples));
        let words =
            [&["scan", "random-1"][..], &["scan", "gcc"]].map(|names| samples.words_of(names));
        assert_eq!(words, [OF_MADE, Source::Samples.words()]);
        let made = RunRecord { workload: "scan".into(), ..of_samples.clone() };
        assert_eq!(what(&[recorded.clone(), made]), Source::Recorded.words());
        let both = what(&[recorded, of_samples]);
        assert!(both.starts_with("recorded traces, and the samples"), "{both}");
    }

    #[test]
    fn a_short_trace_is_repeated() {
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
    fn programs_without_a_trace_are_missing() {
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
