//! The measuring loop. All subjects of a row run in one process, in turns, so that a slow phase of
//! the machine affects all of them equally. The ratios of their times stay meaningful even if the
//! times themselves vary.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::subject::{Description, Row, Subject};

/// The lengths of the measurement.
pub struct MeasurementPlan {
    pub rounds: usize,
    /// Minimum time that a subject runs in each round.
    pub batch: Duration,
    /// Time limit for writing every block once. A slower subject is measured partly filled.
    pub fill: Duration,
}

/// The results of one subject.
pub struct Measured {
    pub description: Description,
    pub set_up: Duration,
    /// The fill wrote all blocks below this address before the first round.
    pub filled: u64,
    /// Mean nanoseconds per access in each round.
    pub rounds: Vec<f64>,
}

impl MeasurementPlan {
    /// Number of steps of one subject on the progress bar.
    pub fn steps(&self) -> u64 {
        self.rounds as u64 + 2
    }
}

/// Builds, fills, measures and checks the subjects of one row, and drops them.
pub fn measure(
    descriptions: Vec<Description>,
    plan: &MeasurementPlan,
    progress: &ProgressBar,
) -> Result<Vec<Measured>, String> {
    let mut running = descriptions
        .into_iter()
        .map(|description| start(description, plan, progress))
        .collect::<Result<Vec<_>, _>>()?;

    let mut workload = Workload::new();
    for _ in 0..plan.rounds {
        for (subject, measured) in &mut running {
            let Description { name, row, .. } = &measured.description;
            progress.set_message(name.clone());
            measured.rounds.push(workload.batch(subject.as_mut(), *row, plan.batch));
            progress.inc(1);
        }
    }

    let finish = |(mut subject, measured): (Box<dyn Subject>, Measured)| {
        check(subject.as_mut(), &measured.description, measured.filled)?;
        Ok(measured)
    };
    running.into_iter().map(finish).collect()
}

/// Builds a subject, and times only the building. Then checks and fills the subject.
fn start(
    description: Description,
    plan: &MeasurementPlan,
    progress: &ProgressBar,
) -> Result<(Box<dyn Subject>, Measured), String> {
    progress.set_message(format!("{}: set-up", description.name));
    let clock = Instant::now();
    let mut subject = (description.build)();
    let set_up = clock.elapsed();
    progress.inc(1);

    progress.set_message(format!("{}: fill", description.name));
    check(subject.as_mut(), &description, 0)?;
    let filled = fill(subject.as_mut(), description.row, plan.fill);
    progress.inc(1);
    let rounds = Vec::with_capacity(plan.rounds);
    Ok((subject, Measured { description, set_up, filled, rounds }))
}

/// Returns an error if the subject loses blocks.
fn check(subject: &mut dyn Subject, description: &Description, filled: u64) -> Result<(), String> {
    let Description { name, row, .. } = description;
    subject.check(filled).map_err(|fault| format!("{name}, {row}: {fault}"))
}

/// Writes every block once, until the time limit. Returns the number of blocks written.
fn fill(subject: &mut dyn Subject, row: Row, limit: Duration) -> u64 {
    let clock = Instant::now();
    let blocks = row.blocks() as u64;
    for address in 0..blocks {
        if address % CHUNK as u64 == 0 && clock.elapsed() > limit {
            return address;
        }
        subject.access(address, true);
    }
    blocks
}

/// Number of accesses between two readings of the clock. Few enough to end a batch in time, and
/// enough to hide the cost of the readings.
const CHUNK: usize = 128;

/// Accesses to uniformly random addresses. Each is a write with probability 1/2.
struct Workload {
    rng: StdRng,
    accesses: [(u64, bool); CHUNK],
}

impl Workload {
    /// Creates a workload with a fixed seed.
    fn new() -> Self {
        Self { rng: StdRng::seed_from_u64(0), accesses: [(0, false); CHUNK] }
    }

    /// Measures the mean nanoseconds per access, over at least `time`. First runs for a quarter of
    /// that time as a warm-up, because the caches hold data of the previous subject.
    fn batch(&mut self, subject: &mut dyn Subject, row: Row, time: Duration) -> f64 {
        self.run(subject, row, time / 4);
        self.run(subject, row, time)
    }

    /// Runs accesses until they have taken `time`, and returns their mean nanoseconds. Drawing the
    /// addresses is not timed.
    fn run(&mut self, subject: &mut dyn Subject, row: Row, time: Duration) -> f64 {
        let blocks = row.blocks() as u64;
        let (mut elapsed, mut accesses) = (Duration::ZERO, 0);
        while elapsed < time {
            let rng = &mut self.rng;
            self.accesses.fill_with(|| (rng.random_range(0..blocks), rng.random()));
            let clock = Instant::now();
            for &(address, write) in &self.accesses {
                subject.access(address, write);
            }
            elapsed += clock.elapsed();
            accesses += CHUNK;
        }
        elapsed.as_nanos() as f64 / accesses as f64
    }
}
