//! Traces that are made: one for each way in which programs use memory.

mod requests;
#[cfg(test)]
mod tests;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{LINES_MAX, RECORDS_MAX, Record, Trace};
use crate::SimError;
use oblivio_models::workload::Workload;
use requests::{Request, Requests};

/// Which lines are asked for, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// As a workload has it.
    Workload {
        /// Which.
        workload: Workload,
        /// The probability of a write, from 0 to 1.
        writes: f64,
    },
    /// Every so many lines, around and around: columns of a table. If that number and the footprint
    /// have a common divisor, only a part of the lines is asked for.
    Stride {
        /// Lines from one to the next.
        lines: u64,
        /// The probability of a write, from 0 to 1.
        writes: f64,
    },
    /// Each line says which is next, and no line comes twice before all have come: a linked list in
    /// random order. Nothing is written.
    PointerChase,
    /// All lines in turn, and each is written only: a memory that is filled.
    StoreStream,
    /// A random line is read, and then written: counters in a hash table.
    HashUpdates,
}

/// How many instructions go before a record. Of a read and the write that belongs to it, the write has
/// none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gap {
    /// Always so many.
    Constant(u32),
    /// As many as there are failures before a success (geometric distribution).
    Geometric {
        /// How many there are on average.
        mean: f64,
    },
}

/// A trace to be made. The same one gives the same records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthetic {
    /// Which lines are asked for.
    pub pattern: Pattern,
    /// How many lines there are, from line 0 on.
    pub lines: u64,
    /// How many instructions go before.
    pub gap: Gap,
    /// How many records to make.
    pub records: usize,
    /// Where all coins come from.
    pub seed: u64,
}

/// The longest list that pointers can be chased through.
const CHASE_LINES_MAX: u64 = RECORDS_MAX as u64;

impl Synthetic {
    /// Makes it.
    ///
    /// # Errors
    /// [`SimError::Spec`] when it cannot be made. The message says which number to change.
    pub fn make(&self, name: &str) -> Result<Trace, SimError> {
        self.check().map_err(SimError::Spec)?;
        let mut coins = StdRng::seed_from_u64(self.seed);
        let mut requests = Requests::new(self, &mut coins);
        let mut gaps = StdRng::from_rng(&mut coins);
        let records = (0..self.records).map(|_| {
            let Request { kind, line, follows } = requests.next();
            let gap = if follows { 0 } else { self.gap.draw(&mut gaps) };
            Record { gap, kind, line }
        });
        Trace::new(name, records.collect())
    }

    fn check(&self) -> Result<(), String> {
        let Self { pattern, lines, gap, records, .. } = *self;
        if records == 0 || records > RECORDS_MAX {
            return Err(format!("a trace has from 1 to {RECORDS_MAX} records, not {records}"));
        }
        let lines_max = match pattern {
            Pattern::PointerChase => CHASE_LINES_MAX,
            _ => LINES_MAX,
        };
        if lines == 0 || lines > lines_max {
            return Err(format!("the lines to ask for are from 1 to {lines_max}, not {lines}"));
        }
        match pattern {
            Pattern::Workload { writes, .. } | Pattern::Stride { writes, .. }
                if !(0.0..=1.0).contains(&writes) =>
            {
                Err(format!("the part of writes is from 0 to 1, not {writes}"))
            }
            Pattern::Stride { lines: 0, .. } => Err("a stride is 1 at least".to_owned()),
            _ => gap.check(),
        }
    }
}

impl Gap {
    fn check(self) -> Result<(), String> {
        match self {
            Self::Geometric { mean } if !(0.0..=f64::from(u32::MAX)).contains(&mean) => {
                Err(format!("the mean of gaps is from 0 to {}, not {mean:e}", u32::MAX))
            }
            _ => Ok(()),
        }
    }

    fn draw(self, coins: &mut StdRng) -> u32 {
        match self {
            Self::Constant(gap) => gap,
            Self::Geometric { mean: 0.0 } => 0,
            Self::Geometric { mean } => {
                // A failure has probability mean / (1 + mean). A coin is less than 1.
                let coin: f64 = coins.random();
                (-(-coin).ln_1p() / mean.recip().ln_1p()) as u32
            }
        }
    }
}
