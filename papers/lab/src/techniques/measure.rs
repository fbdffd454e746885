//! One run: a row under a workload.

use std::fmt;
use std::iter::Cycle;
use std::slice::Iter;

use oblivio_core::{Access, ErrorKind, Op};
use oblivio_models::workload::Addresses;
use oblivio_sim::trace::{AccessKind, Record};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::build::{BLOCK_BYTES, build};
use super::subject::Subject;
use super::technique::Setup;
use super::{Run, TechniquesPlan};
use crate::{LabError, Trace, Workload};

/// The workload of a run.
#[derive(Clone, Copy)]
pub(super) enum Load<'a> {
    /// A synthetic workload, in which a random half of the requests write.
    Made(Workload),
    Trace(&'a Trace),
}

impl fmt::Display for Load<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Made(Workload::Scan) => "scan",
            Self::Made(Workload::Uniform) => "uniform",
            Self::Made(Workload::Zipf) => "Zipf",
            Self::Trace(trace) => trace.name(),
        })
    }
}

/// The maximum number of background evictions before one request. A tree that needs more is too
/// full.
const EVICTIONS_AT_ONCE_MAX: u64 = 10_000;

/// The number of requests between progress reports.
const REQUESTS_AT_ONCE: u64 = 1 << 12;

/// Fills the ORAM of `setup` by a scan, runs `load` to warm up, and then counts. Finally checks
/// that every block is on its path.
pub(super) fn measure(
    plan: &TechniquesPlan,
    setup: &Setup,
    load: Load<'_>,
    seed: u64,
    progress: &dyn Fn(u64),
) -> Result<Run, LabError> {
    let mut coins = StdRng::seed_from_u64(seed);
    let mut requests = Requests::new(load, plan.capacity, &mut coins);
    let mut driver = Driver {
        subject: build(plan, setup, coins)?,
        block: [0; BLOCK_BYTES],
        stash_blocks_peak: 0,
    };

    let mut fill = Addresses::scan(plan.capacity);
    driver.ask_all(plan.capacity, progress, || Request {
        address: fill.next_address(),
        writes: true,
    })?;
    driver.ask_all(plan.warm_up, progress, || requests.next())?;
    driver.stash_blocks_peak = 0;
    let before = driver.subject.counts();
    driver.ask_all(plan.requests, progress, || requests.next())?;
    let counts = driver.subject.counts().since(&before);
    driver.subject.oram.check_invariants()?;
    let stash_blocks_peak = driver.stash_blocks_peak;
    Ok(Run { workload: load.to_string(), counts, stash_blocks_peak })
}

/// A request for a block.
#[derive(Clone, Copy)]
struct Request {
    address: u64,
    writes: bool,
}

/// The endless requests of a load.
enum Requests<'a> {
    Made {
        addresses: Box<Addresses>,
        coins: Box<StdRng>,
    },
    /// A trace, which is repeated. The line numbers are mapped to blocks, modulo the number of
    /// blocks.
    Trace {
        records: Cycle<Iter<'a, Record>>,
        capacity: u64,
    },
}

impl<'a> Requests<'a> {
    fn new(load: Load<'a>, capacity: u64, coins: &mut StdRng) -> Self {
        match load {
            Load::Made(workload) => {
                let addresses = Addresses::new(workload, capacity, StdRng::from_rng(coins));
                let (addresses, coins) = (Box::new(addresses), Box::new(StdRng::from_rng(coins)));
                Self::Made { addresses, coins }
            }
            Load::Trace(trace) => Self::Trace { records: trace.records().iter().cycle(), capacity },
        }
    }

    fn next(&mut self) -> Request {
        match self {
            Self::Made { addresses, coins } => {
                Request { address: addresses.next_address(), writes: coins.random() }
            }
            Self::Trace { records, capacity } => {
                let Record { kind, line, .. } = records.next().expect("a trace has records");
                Request { address: line % *capacity, writes: *kind == AccessKind::Write }
            }
        }
    }
}

/// Makes requests, and evictions when the stash is full.
struct Driver {
    subject: Subject,
    block: [u8; BLOCK_BYTES],
    stash_blocks_peak: usize,
}

impl Driver {
    fn ask_all(
        &mut self,
        count: u64,
        progress: &dyn Fn(u64),
        mut next: impl FnMut() -> Request,
    ) -> Result<(), LabError> {
        let mut left = count;
        while left > 0 {
            let now = left.min(REQUESTS_AT_ONCE);
            (0..now).try_for_each(|_| self.ask(next()))?;
            progress(now);
            left -= now;
        }
        Ok(())
    }

    fn ask(&mut self, Request { address, writes }: Request) -> Result<(), LabError> {
        self.subject.requests += 1;
        for _ in 0..EVICTIONS_AT_ONCE_MAX {
            let op = if writes { Op::Write(&self.block) } else { Op::Read(&mut self.block) };
            match self.subject.access(Access { address, op }) {
                Err(error) if error.kind() == ErrorKind::StashFull => {
                    self.subject.make_room()?;
                }
                answer => {
                    answer?;
                    let blocks = self.subject.oram.stash_blocks();
                    self.stash_blocks_peak = self.stash_blocks_peak.max(blocks);
                    return Ok(());
                }
            }
        }
        Err(LabError::Plan("the tree is too full: use a deeper one".to_owned()))
    }
}
