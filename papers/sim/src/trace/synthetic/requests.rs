//! The requests of a pattern.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Pattern, Synthetic};
use crate::trace::AccessKind;
use oblivio_models::workload::{Addresses, Workload};

/// A request of a pattern.
pub(super) struct Request {
    pub(super) kind: AccessKind,
    pub(super) line: u64,
    /// Whether this is the write of an update, which directly follows its read.
    pub(super) follows: bool,
}

/// The endless requests of a pattern.
pub(super) enum Requests {
    Coins { addresses: Box<Addresses>, writes: f64, coins: Box<StdRng> },
    Stride { next: u64, stride: u64, lines: u64, writes: f64, coins: Box<StdRng> },
    Chase { next: Vec<u32>, at: u32 },
    Stores(Box<Addresses>),
    Updates { addresses: Box<Addresses>, read: Option<u64> },
}

impl Requests {
    pub(super) fn new(synthetic: &Synthetic, coins: &mut StdRng) -> Self {
        let lines = synthetic.lines;
        let mut more = || Box::new(StdRng::from_rng(coins));
        match synthetic.pattern {
            Pattern::Workload { workload, writes } => {
                let addresses = Box::new(Addresses::new(workload, lines, *more()));
                Self::Coins { addresses, writes, coins: more() }
            }
            Pattern::Stride { lines: stride, writes } => {
                Self::Stride { next: 0, stride: stride % lines, lines, writes, coins: more() }
            }
            Pattern::PointerChase => Self::Chase { next: cycle(lines as u32, &mut more()), at: 0 },
            Pattern::StoreStream => Self::Stores(Box::new(Addresses::scan(lines))),
            Pattern::HashUpdates => {
                let addresses = Box::new(Addresses::new(Workload::Uniform, lines, *more()));
                Self::Updates { addresses, read: None }
            }
        }
    }

    pub(super) fn next(&mut self) -> Request {
        let (kind, line, follows) = match self {
            Self::Coins { addresses, writes, coins } => {
                (kind(coins, *writes), addresses.next_address(), false)
            }
            Self::Stride { next, stride, lines, writes, coins } => {
                let line = *next;
                // `line` and `stride` are below 2^58, so their sum cannot overflow.
                *next = (line + *stride) % *lines;
                (kind(coins, *writes), line, false)
            }
            Self::Chase { next, at } => {
                let line = *at;
                *at = next[line as usize];
                (AccessKind::Read, u64::from(line), false)
            }
            Self::Stores(addresses) => (AccessKind::Write, addresses.next_address(), false),
            Self::Updates { addresses, read } => match read.take() {
                Some(line) => (AccessKind::Write, line, true),
                None => (AccessKind::Read, *read.insert(addresses.next_address()), false),
            },
        };
        Request { kind, line, follows }
    }
}

fn kind(coins: &mut StdRng, writes: f64) -> AccessKind {
    if coins.random_bool(writes) { AccessKind::Write } else { AccessKind::Read }
}

/// The successor of each of `lines` lines, in one random cycle through all (Sattolo, 1986).
fn cycle(lines: u32, coins: &mut StdRng) -> Vec<u32> {
    let mut next: Vec<u32> = (0..lines).collect();
    for last in (1..next.len()).rev() {
        next.swap(last, coins.random_range(0..last));
    }
    next
}
