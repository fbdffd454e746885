//! Synthetic traces, with typical access patterns of programs.

mod requests;
#[cfg(test)]
mod tests;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{LINES_MAX, RECORDS_MAX, Record, Trace};
use crate::SimError;
use oblivio_models::workload::Workload;
use requests::{Request, Requests};

/// The access pattern of a synthetic trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Addresses of a workload.
    Workload {
        /// The workload that determines the addresses.
        workload: Workload,
        /// Probability of a write, from 0 to 1.
        writes: f64,
    },
    /// A fixed stride, modulo the footprint, as in a column of a table. If stride and footprint
    /// have a common divisor, only some of the lines are accessed.
    Stride {
        /// Lines from one access to the next.
        lines: u64,
        /// Probability of a write, from 0 to 1.
        writes: f64,
    },
    /// Reads of a linked list in random order, which goes through all lines before it repeats.
    PointerChase,
    /// Writes of all lines in turn, as when filling memory.
    StoreStream,
    /// A read and then a write of a random line, as for counters in a hash table.
    HashUpdates,
}

/// The number of instructions before a record. In [`Pattern::HashUpdates`], a write has no
/// instructions before it, since it directly follows its read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gap {
    /// A constant number of instructions.
    Constant(u32),
    /// A geometrically distributed number of instructions.
    Geometric {
        /// The mean number of instructions.
        mean: f64,
    },
}

/// The parameters of a synthetic trace. Equal parameters give equal records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthetic {
    /// The access pattern of the trace.
    pub pattern: Pattern,
    /// Number of lines, from line 0 on.
    pub lines: u64,
    /// The instructions before each record.
    pub gap: Gap,
    /// Number of records.
    pub records: usize,
    /// The seed of all randomness.
    pub seed: u64,
}

/// The maximum number of lines of a pointer chase.
const CHASE_LINES_MAX: u64 = RECORDS_MAX as u64;

impl Synthetic {
    /// Makes the trace with these parameters.
    ///
    /// # Errors
    /// [`SimError::Spec`] if a parameter is out of range, or `name` is not a valid name. The
    /// message names the parameter.
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
            return Err(format!("the number of lines must be 1 to {lines_max}, not {lines}"));
        }
        match pattern {
            Pattern::Workload { writes, .. } | Pattern::Stride { writes, .. }
                if !(0.0..=1.0).contains(&writes) =>
            {
                Err(format!("the fraction of writes must be 0 to 1, not {writes}"))
            }
            Pattern::Stride { lines: 0, .. } => Err("a stride must be at least 1".to_owned()),
            _ => gap.check(),
        }
    }
}

impl Gap {
    fn check(self) -> Result<(), String> {
        match self {
            Self::Geometric { mean } if !(0.0..=f64::from(u32::MAX)).contains(&mean) => {
                Err(format!("the mean gap must be 0 to {}, not {mean:e}", u32::MAX))
            }
            _ => Ok(()),
        }
    }

    fn draw(self, coins: &mut StdRng) -> u32 {
        match self {
            Self::Constant(gap) => gap,
            Self::Geometric { mean: 0.0 } => 0,
            Self::Geometric { mean } => {
                // The number of failures before the first success. A failure has probability mean /
                // (1 + mean). `coin` is below 1, so the logarithm is finite.
                let coin: f64 = coins.random();
                (-(-coin).ln_1p() / mean.recip().ln_1p()) as u32
            }
        }
    }
}
