//! What a processor says to memory.

use crate::Cycle;

/// Names a fetch: they are numbered from 0 in the order in which they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchId(pub(super) u64);

/// What memory is asked for, or told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// The LLC needs a line. To be answered: [`Processor::answer`](super::Processor::answer).
    Fetch {
        /// Which fetch it is.
        id: FetchId,
        /// Which line.
        line: u64,
    },
    /// A changed line leaves the LLC. It keeps its place in the room for write-backs until
    /// [`Processor::written_back`](super::Processor::written_back).
    WriteBack {
        /// Which line.
        line: u64,
    },
    /// A line that memory has as it is leaves the LLC. Only who remaps blocks when they leave (LLC-D of
    /// IR-ORAM, section IV-D) has something to do.
    Dropped {
        /// Which line.
        line: u64,
    },
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A request, in order of time.
    Ask {
        /// When it reaches memory.
        at: Cycle,
        /// What it is.
        request: Request,
    },
    /// No more is fetched up to the horizon that uses the LLC.
    Later {
        /// The next instruction that does is fetched then, or later.
        at: Cycle,
    },
    /// What comes next depends on a fetch that has not been answered, or a write-back that has not been
    /// taken.
    Waits,
    /// All records up to the [mark](super::Processor::mark_after) were run. It is said once.
    Marked {
        /// When the instruction behind them that uses the LLC is fetched, or would be if nothing held it up.
        at: Cycle,
    },
    /// The trace is over.
    Done {
        /// When the last instruction retires; 0 if there was none.
        at: Cycle,
    },
}
