//! Loads under which other simulators were measured.
//!
//! The requests of a [`Load`] come from a processor that waits only for memory. It has up to
//! [`IN_FLIGHT`] requests in a reorder buffer, which admits and retires them in order. A read
//! retires when it is complete, and a write at once. The reads of [`Unloaded`] find the DRAM idle.
//! [`super::published`] has the figures of the other simulators.

use std::collections::VecDeque;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::{Clock, Dram, DramSpec, Request};
use crate::trace::AccessKind;
use crate::{LINE_BYTES, SimError};

/// Entries of the reorder buffer (IR-ORAM, Table I).
pub const IN_FLIGHT: usize = 128;
/// Lines of a bucket of 256 bytes.
const BUCKET_LINES: u64 = 4;
/// Buckets of a path below the tree top.
const PATH_BUCKETS: usize = 15;
/// Clocks from the completion of a read to the arrival of the next read, in an unloaded
/// measurement. By then, no earlier command delays the next read, except a refresh.
const REST: std::ops::Range<Clock> = 60..140;

/// A load of requests without pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Reads of consecutive lines.
    StreamRead,
    /// Reads of random lines.
    RandomRead,
    /// Consecutive lines, alternately read and written.
    StreamReadWrite,
    /// Random lines, each read or written at random.
    RandomReadWrite,
    /// 15 random buckets of 256 bytes are read and then written, repeatedly.
    PathLike,
}

impl Load {
    /// All loads.
    pub const ALL: [Self; 5] = [
        Self::StreamRead,
        Self::RandomRead,
        Self::StreamReadWrite,
        Self::RandomReadWrite,
        Self::PathLike,
    ];

    /// The first `count` requests to a DRAM of `lines` lines (a power of two). Each has a line, and
    /// whether it reads or writes. [`Self::PathLike`] completes its last path, so it may return
    /// more.
    pub fn requests(self, lines: u64, count: usize, seed: u64) -> Vec<(u64, AccessKind)> {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut coin = move || rng.random::<u64>();
        let alternate = |number: usize| [AccessKind::Read, AccessKind::Write][number % 2];
        match self {
            Self::StreamRead => {
                (0..count).map(|number| (number as u64 % lines, AccessKind::Read)).collect()
            }
            Self::StreamReadWrite => {
                (0..count).map(|number| (number as u64 % lines, alternate(number))).collect()
            }
            Self::RandomRead => (0..count).map(|_| (coin() % lines, AccessKind::Read)).collect(),
            Self::RandomReadWrite => {
                (0..count).map(|_| (coin() % lines, alternate((coin() >> 63) as usize))).collect()
            }
            Self::PathLike => {
                let mut requests = Vec::with_capacity(count);
                while requests.len() < count {
                    let buckets: Vec<_> =
                        (0..PATH_BUCKETS).map(|_| coin() % (lines / BUCKET_LINES)).collect();
                    for kind in [AccessKind::Read, AccessKind::Write] {
                        let first_lines = buckets.iter().map(|bucket| bucket * BUCKET_LINES);
                        let lines = first_lines.flat_map(|first| first..first + BUCKET_LINES);
                        requests.extend(lines.map(|line| (line, kind)));
                    }
                }
                requests
            }
        }
    }

    /// Bandwidth under this load in GB/s (10⁹) of `channels` channels of `spec`, from the first
    /// clock to the end of the last burst. The load has `count` requests, as in [`Self::requests`].
    ///
    /// # Errors
    /// The errors of [`Dram::new`].
    pub fn gb_per_second(
        self,
        spec: &DramSpec,
        channels: u32,
        count: usize,
        seed: u64,
    ) -> Result<f64, SimError> {
        let mut dram = Dram::new(spec, channels)?;
        let requests = self.requests(dram.lines(), count, seed);
        let clocks = replay(&mut dram, &requests)?;
        let bytes = requests.len() as f64 * LINE_BYTES as f64;
        let microseconds = clocks as f64 / spec.clock_mhz;
        Ok(bytes / microseconds / 1000.0)
    }
}

/// Passes `requests` through a reorder buffer. Returns the time at which the last request was
/// complete.
fn replay(dram: &mut Dram, requests: &[(u64, AccessKind)]) -> Result<Clock, SimError> {
    let mut clock = 0;
    // The requests in the buffer: whether each may retire.
    let mut released = VecDeque::with_capacity(IN_FLIGHT);
    let mut oldest = 0;
    for (id, &(line, kind)) in (0..).zip(requests) {
        while released.len() == IN_FLIGHT {
            if released[0] {
                released.pop_front();
                oldest += 1;
            } else if let Some(done) = dram.next_completion() {
                clock = done.clock;
                // A write may have retired already.
                if let Some(place) = done.id.checked_sub(oldest) {
                    released[place as usize] = true;
                }
            }
        }
        released.push_back(kind == AccessKind::Write);
        dram.enqueue(Request { id, line, kind, arrival: clock })?;
    }
    Ok(dram.run_until_idle(&mut Vec::new()).unwrap_or(clock))
}

/// Reads that arrive one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unloaded {
    /// Reads of random lines of a row, which stays open between refreshes.
    RowHit,
    /// Reads of random lines.
    Random,
}

impl Unloaded {
    /// The average clocks from the arrival of a read to its completion, over `count` reads on
    /// `channels` channels of `spec`.
    ///
    /// # Errors
    /// The errors of [`Dram::new`].
    pub fn clocks(
        self,
        spec: &DramSpec,
        channels: u32,
        count: u32,
        seed: u64,
    ) -> Result<f64, SimError> {
        let mut dram = Dram::new(spec, channels)?;
        let mut rng = StdRng::seed_from_u64(seed);
        let lines = match self {
            Self::RowHit => dram.row_span(),
            Self::Random => dram.lines(),
        };
        let (mut now, mut sum) = (0, 0);
        let mut done = Vec::new();
        for id in 0..count.into() {
            let arrival = now + rng.random_range(REST);
            let line = rng.random_range(0..lines);
            dram.enqueue(Request { id, line, kind: AccessKind::Read, arrival })?;
            now = dram.finish_reads(&mut done).unwrap_or(arrival);
            sum += now - arrival;
        }
        Ok(sum as f64 / f64::from(count))
    }
}
