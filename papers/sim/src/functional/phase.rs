//! The phases of a study: the requests of each phase, and its length in paths.

use rand::RngExt;
use rand::rngs::StdRng;

use crate::SimError;
use crate::cache::{Cache, CacheShape};
use crate::trace::{AccessKind, Record, Trace};

/// A phase of a study.
#[derive(Clone, Copy, Debug)]
pub struct Phase<'a> {
    /// The requests of the phase.
    pub requests: Requests<'a>,
    /// Number of paths after which the phase ends.
    pub paths: u64,
}

/// The blocks that a phase requests.
#[derive(Clone, Copy, Debug)]
pub enum Requests<'a> {
    /// Uniformly random blocks.
    Uniform,
    /// The requests of a trace behind a last-level cache that is empty at first: the reads that
    /// miss, and the dirty victims. The trace is repeated without end.
    Trace {
        /// Misses and write-backs of a first-level cache, of one program or of a
        /// [mix](Trace::mix).
        trace: &'a Trace,
        /// The last-level cache: `{ lines: 32768, ways: 8 }` for 2 MB in 8 ways. A store that
        /// misses fetches nothing, and a dirty victim is requested after the miss. Without a cache,
        /// each record is a request.
        llc: Option<CacheShape>,
    },
}

/// The endless sequence of requested lines.
pub(super) enum LineSource<'a> {
    Uniform { data_blocks: u64, coins: Box<StdRng> },
    Trace(Misses<'a>),
}

impl<'a> LineSource<'a> {
    pub(super) fn new(
        requests: &Requests<'a>,
        data_blocks: u64,
        coins: StdRng,
    ) -> Result<Self, SimError> {
        match *requests {
            Requests::Uniform => Ok(Self::Uniform { data_blocks, coins: coins.into() }),
            Requests::Trace { trace, llc } => {
                Ok(Self::Trace(Misses::new(trace, llc, data_blocks)?))
            }
        }
    }

    #[inline]
    pub(super) fn next_line(&mut self) -> Result<u64, SimError> {
        match self {
            Self::Uniform { data_blocks, coins } => Ok(coins.random_range(0..*data_blocks)),
            Self::Trace(misses) => misses.next_line(),
        }
    }
}

/// The requests of a trace that reach memory: reads that miss the cache, and its dirty victims.
/// Without a cache, all records.
pub(super) struct Misses<'a> {
    trace: &'a Trace,
    next: usize,
    llc: Option<Cache>,
    /// The second request of a miss, which is for its dirty victim.
    second: Option<u64>,
}

impl<'a> Misses<'a> {
    fn new(trace: &'a Trace, llc: Option<CacheShape>, data_blocks: u64) -> Result<Self, SimError> {
        let outside = trace.records().iter().position(|record| record.line >= data_blocks);
        if let Some(record) = outside {
            return Err(SimError::Spec(format!(
                "record {} of {} names a line past the {data_blocks} blocks of the ORAM: remap the \
                 trace first",
                record + 1,
                trace.name()
            )));
        }
        let llc = llc.map(Cache::new).transpose()?;
        Ok(Self { trace, next: 0, llc, second: None })
    }

    fn next_line(&mut self) -> Result<u64, SimError> {
        if let Some(line) = self.second.take() {
            return Ok(line);
        }
        // The first pass fills the cache. If the second pass has no miss either, there will never
        // be one.
        for _ in 0..2 * self.trace.records().len() {
            let record = self.trace.records()[self.next];
            self.next = (self.next + 1) % self.trace.records().len();
            if let Some(line) = self.miss(record) {
                return Ok(line);
            }
        }
        Err(SimError::Spec(format!(
            "{} fits the last-level cache, so it never misses: use a smaller cache",
            self.trace.name()
        )))
    }

    /// Returns the first request that a record causes, if any. If the record causes two, the other
    /// is stored in [`Self::second`].
    fn miss(&mut self, Record { kind, line, .. }: Record) -> Option<u64> {
        let Some(cache) = &mut self.llc else { return Some(line) };
        let is_write = kind == AccessKind::Write;
        if cache.touch(line, is_write) {
            return None;
        }
        let victim = cache.insert(line, is_write).filter(|victim| victim.dirty);
        let leaving = victim.map(|victim| victim.line);
        let fetched = (!is_write).then_some(line);
        self.second = fetched.and(leaving);
        fetched.or(leaving)
    }
}
