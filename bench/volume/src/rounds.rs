//! Measures every subject under every load, in turns, so that a slow phase of the machine affects
//! all of them equally. The ratios between subjects stay meaningful even if the figures themselves
//! vary.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::fio::{self, Answers, PERCENTILES, Until};
use crate::floor::Floor;
use crate::load::{FILL, LOADS, Load};
use crate::spread::Spread;
use crate::subjects::{Description, Subject, Testbed};
use crate::tools::{self, End, Usage};

/// The lengths of the measurement, and the size of the disks.
#[derive(Clone, Copy)]
pub struct BenchPlan {
    pub rounds: u32,
    /// Duration of each load in each round.
    pub time: Duration,
    pub disk_bytes: u64,
}

/// The results of one subject.
pub struct Measured {
    pub description: Description,
    pub disk_bytes: u64,
    /// Time from the start of the subject until the disk can be used.
    pub set_up: Duration,
    /// The run that filled the disk, if it was filled.
    pub fill: Option<Answers>,
    /// The results of each load, in the order of the loads.
    pub loads: Vec<Rounds>,
    /// Requests per second of the [`Floor`] for each load. `None` if the floor was not measured.
    pub floors: Vec<Option<f64>>,
}

/// The results of one load in all rounds.
pub struct Rounds {
    pub load: Load,
    pub rounds: Vec<Round>,
}

/// The results of one load in one round.
pub struct Round {
    pub answers: Answers,
    /// CPU time and bytes of the server during the load, if there is a server.
    pub usage: Option<Usage>,
    /// Peak memory in bytes of the server and of the storage process, if they exist.
    pub server_peak: Option<u64>,
    pub storage_peak: Option<u64>,
}

impl Rounds {
    pub fn requests_per_second(&self) -> Spread {
        self.over(|round| round.answers.requests_per_second)
    }

    pub fn bytes_per_second(&self) -> Spread {
        self.over(|round| round.answers.bytes_per_second)
    }

    /// Latencies in milliseconds at each of [`PERCENTILES`].
    pub fn latencies(&self) -> [Spread; PERCENTILES.len()] {
        std::array::from_fn(|i| self.over(|round| round.answers.latencies[i]))
    }

    /// CPU time of the server per request. `None` without a server.
    pub fn cpu_microseconds(&self) -> Option<Spread> {
        self.per_request(|usage| usage.cpu_seconds * 1e6)
    }

    /// Bytes that the server read per request. `None` without a server.
    pub fn read_bytes(&self) -> Option<Spread> {
        self.per_request(|usage| usage.read_bytes as f64)
    }

    /// Bytes that the server wrote per request. `None` without a server.
    pub fn written_bytes(&self) -> Option<Spread> {
        self.per_request(|usage| usage.written_bytes as f64)
    }

    /// Peak memory of the server in bytes.
    pub fn server_peak(&self) -> Option<u64> {
        self.rounds.iter().filter_map(|round| round.server_peak).max()
    }

    /// Peak memory of the storage process in bytes.
    pub fn storage_peak(&self) -> Option<u64> {
        self.rounds.iter().filter_map(|round| round.storage_peak).max()
    }

    fn per_request(&self, figure: impl Fn(&Usage) -> f64) -> Option<Spread> {
        let per_request = |round: &Round| {
            round.usage.as_ref().map(|usage| figure(usage) / round.answers.requests as f64)
        };
        let values: Option<Vec<_>> = self.rounds.iter().map(per_request).collect();
        values.map(Spread::from_values)
    }

    fn over(&self, figure: impl Fn(&Round) -> f64) -> Spread {
        Spread::from_values(self.rounds.iter().map(figure))
    }
}

/// Starts, fills, measures and stops the subjects.
pub fn measure(
    descriptions: &[Description],
    plan: &BenchPlan,
    testbed: &Testbed,
    end: &End,
) -> Result<(Vec<Measured>, Option<Floor>), String> {
    let steps = 2 * descriptions.len() + plan.rounds as usize * LOADS.len() * descriptions.len();
    let progress = progress(steps as u64);
    let mut running = Vec::new();
    for description in descriptions {
        running.push(start(description, plan, testbed, end, &progress)?);
    }
    let subjects = running.iter_mut().map(|(subject, measured)| {
        let Measured { description: Description { name, is_fuse, .. }, loads, .. } = measured;
        SubjectTurn { name, subject: &mut **subject, is_fuse: *is_fuse, loads }
    });
    let has_floor = descriptions.iter().any(|description| description.is_volume);
    let mut floor = has_floor.then(|| Floor::prepare(testbed)).transpose()?;
    let mut measure_floor = || floor.as_mut().map_or(Ok(()), Floor::round);
    in_turns(subjects.collect(), &mut measure_floor, plan, end, &progress)?;
    progress.finish_and_clear();
    let stop = |(mut subject, mut measured): (Box<dyn Subject>, Measured)| {
        let floor = floor.as_ref().filter(|_| measured.description.is_volume);
        let of_load = |load| floor.and_then(|floor| floor.requests_per_second(load));
        measured.floors = measured.loads.iter().map(of_load).collect();
        subject.stop().map(|()| measured)
    };
    let measured = running.into_iter().map(stop).collect::<Result<_, _>>()?;
    Ok((measured, floor))
}

/// A subject while it is measured in turns with others.
pub struct SubjectTurn<'a> {
    pub name: &'a str,
    pub subject: &'a mut dyn Subject,
    pub is_fuse: bool,
    pub loads: &'a mut Vec<Rounds>,
}

/// Runs the rounds. Each round measures the floor, and every subject under all of its loads.
pub fn in_turns(
    mut subjects: Vec<SubjectTurn<'_>>,
    measure_floor: &mut dyn FnMut() -> Result<(), String>,
    plan: &BenchPlan,
    end: &End,
    progress: &ProgressBar,
) -> Result<(), String> {
    let loads_max = subjects.iter().map(|turn| turn.loads.len()).max().unwrap_or(0);
    for round in 0..plan.rounds {
        measure_floor()?;
        for index in 0..loads_max {
            for SubjectTurn { name, subject, is_fuse, loads } in &mut subjects {
                let Some(Rounds { load, rounds }) = loads.get_mut(index) else { continue };
                progress.set_message(format!("{name}: {}", load.name));
                // Different offsets in every round, so that no cache holds the blocks already.
                let seed = round * loads_max as u32 + index as u32 + 1;
                let mut measured = one_round(&**subject, load, plan, seed, end)
                    .map_err(|error| format!("{name}, {}: {error}", load.name))?;
                if *is_fuse {
                    measured.deduct_requests(load);
                }
                rounds.push(measured);
                progress.inc(1);
            }
        }
    }
    Ok(())
}

impl Round {
    /// Subtracts the data of the load's requests, because it passes through the FUSE device and so
    /// is counted like data of files. The server reads the data of writes, and writes the answers
    /// of reads.
    fn deduct_requests(&mut self, load: &Load) {
        let Some(usage) = &mut self.usage else { return };
        let through = if load.writes() { &mut usage.read_bytes } else { &mut usage.written_bytes };
        *through = through.saturating_sub(self.answers.requests * load.request_bytes);
    }
}

/// Measures a subject under a load once.
pub fn one_round(
    subject: &dyn Subject,
    load: &Load,
    plan: &BenchPlan,
    seed: u32,
    end: &End,
) -> Result<Round, String> {
    let usage = |subject: &dyn Subject| subject.server().map(Usage::read).transpose();
    let processes = [subject.server(), subject.storage()];
    processes.into_iter().flatten().try_for_each(tools::forget_peak_memory)?;
    let before = usage(subject)?;
    let until = Until::Time(plan.time);
    let answers = fio::run(&subject.target(), subject.bytes(), load, until, seed, end)?;
    let after = usage(subject)?;
    let usage = before.zip(after).map(|(before, after)| after.since(&before));
    let peak = |process: Option<u32>| process.map(tools::peak_memory).transpose();
    let [server_peak, storage_peak] = processes.map(peak);
    Ok(Round { answers, usage, server_peak: server_peak?, storage_peak: storage_peak? })
}

fn start(
    description: &Description,
    plan: &BenchPlan,
    testbed: &Testbed,
    end: &End,
    progress: &ProgressBar,
) -> Result<(Box<dyn Subject>, Measured), String> {
    let name = description.name;
    let failed = |error| format!("{name}: {error}");
    progress.set_message(format!("{name}: set-up"));
    let clock = Instant::now();
    let subject = (description.start)(plan.disk_bytes, testbed, end).map_err(failed)?;
    let set_up = clock.elapsed();
    progress.inc(1);
    progress.set_message(format!("{name}: fill"));
    let fill = description
        .is_filled
        .then(|| fio::run(&subject.target(), subject.bytes(), &FILL, Until::End, 0, end));
    let fill = fill.transpose().map_err(failed)?;
    progress.inc(1);
    let loads = LOADS.map(|load| Rounds { load, rounds: Vec::new() }).into();
    let disk_bytes = subject.bytes();
    let floors = Vec::new();
    Ok((subject, Measured { description: *description, disk_bytes, set_up, fill, loads, floors }))
}

/// Creates a progress bar of `steps` steps, with a message.
pub fn progress(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    match ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
