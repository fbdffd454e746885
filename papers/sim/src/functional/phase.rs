//! What is asked of the ORAM, and for how long.

use rand::RngExt;
use rand::rngs::StdRng;

use crate::SimError;
use crate::cache::{Cache, CacheShape};
use crate::trace::{Kind, Record, Trace};

/// A stretch of a study.
#[derive(Clone, Copy, Debug)]
pub struct Phase<'a> {
    /// Which blocks are asked for.
    pub requests: Requests<'a>,
    /// Until so many paths were made.
    pub paths: u64,
}

/// Which blocks are asked for.
#[derive(Clone, Copy, Debug)]
pub enum Requests<'a> {
    /// Uniformly random ones.
    Uniform,
    /// What a trace asks for past a last-level cache that is empty at first: misses, and the changed lines that
    /// leave it. A trace that has ended begins again.
    Trace {
        /// Misses of the first-level cache, of one program or of a [mix](Trace::mix).
        trace: &'a Trace,
        /// The last-level cache: 2 MB in 8 ways are `{ lines: 32768, ways: 8 }`. A store that
        /// misses fetches nothing, and a changed line leaves after the miss. Without a cache each
        /// record asks the ORAM.
        llc: Option<CacheShape>,
    },
}

/// The lines of [`Requests`], without end.
pub(super) enum Lines<'a> {
    Uniform { data_blocks: u64, coins: Box<StdRng> },
    Trace(Misses<'a>),
}

impl<'a> Lines<'a> {
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

/// What goes past a last-level cache.
pub(super) struct Misses<'a> {
    trace: &'a Trace,
    next: usize,
    llc: Option<Cache>,
    /// The second line of a miss.
    second: Option<u64>,
}

impl<'a> Misses<'a> {
    fn new(trace: &'a Trace, llc: Option<CacheShape>, data_blocks: u64) -> Result<Self, SimError> {
        let outside = trace.records().iter().position(|record| record.line >= data_blocks);
        if let Some(record) = outside {
            return Err(SimError::Spec(format!(
                "record {} of {} asks for a line past the {data_blocks} blocks of the ORAM: remap the \
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
        // What a whole turn leaves in the cache may be what the next one asks for, and then for ever.
        for _ in 0..2 * self.trace.records().len() {
            let record = self.trace.records()[self.next];
            self.next = (self.next + 1) % self.trace.records().len();
            if let Some(line) = self.miss(record) {
                return Ok(line);
            }
        }
        Err(SimError::Spec(format!(
            "{} fits the last-level cache, and asks nothing of an ORAM: use a smaller cache",
            self.trace.name()
        )))
    }

    /// The line that a record asks the ORAM for, before the [second](Self::second) one.
    fn miss(&mut self, Record { kind, line, .. }: Record) -> Option<u64> {
        let Some(cache) = &mut self.llc else { return Some(line) };
        let is_write = kind == Kind::Write;
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
