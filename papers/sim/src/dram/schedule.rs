//! Which command goes next, and when (FR-FCFS with open rows).
//!
//! For each bank that is asked for there is one command that helps its requests: read or write the
//! oldest of those for the open row; if there is none, close the row; if none is open, open that of the
//! oldest. Of these the one that may go first goes. Of those that may go at once, reads and writes go
//! before others, and then the one for the older request.
//!
//! A rank that is due for refresh gets no other commands than those that close its rows.

use super::Clock;
use super::device::Device;
use super::refresh::Refreshes;
use super::view::View;

/// A command to a bank or rank of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Activate { bank: u32 },
    Precharge { bank: u32 },
    Column { bank: u32 },
    Refresh { rank: u32 },
}

/// When a command may go, and which goes first of those that may go at once: the smaller.
type Turn = (Clock, u64);

/// Set in the second half of a [`Turn`] of a command that moves no data.
const NO_DATA: u64 = 1 << 63;

/// The best so far.
struct First {
    turn: Turn,
    step: Option<Step>,
}

impl First {
    #[inline]
    fn offer(&mut self, at: Clock, rest: u64, step: Step) {
        if (at, rest) < self.turn {
            *self = Self { turn: (at, rest), step: Some(step) };
        }
    }
}

/// The next command for the requests that `view` lets go, and for refreshes: not before `now`.
pub(super) fn next(
    view: &View,
    device: &Device,
    refreshes: &Refreshes,
    now: Clock,
) -> Option<(Clock, Step)> {
    let (kind, window) = (view.direction(), view.window());
    let now = now.max(device.bus_free());
    let mut first = First { turn: (Clock::MAX, u64::MAX), step: None };
    let asked = window.banks() & !refreshes.waiting_banks();
    let hits = asked & window.hits();
    for bank in ones(hits) {
        let at = device.column_at(bank, kind).max(now);
        first.offer(at, window.age(bank), Step::Column { bank });
    }
    if first.turn.0 > now {
        let misses = asked & !hits;
        for bank in ones(misses & device.open_banks()) {
            let at = device.precharge_at(bank).max(now);
            first.offer(at, NO_DATA | window.age(bank), Step::Precharge { bank });
        }
        for bank in ones(misses & !device.open_banks()) {
            let at = device.activate_at(bank).max(now);
            first.offer(at, NO_DATA | window.age(bank), Step::Activate { bank });
        }
        for rank in ones(refreshes.waiting()) {
            offer_refresh(&mut first, device, rank, now);
        }
    }
    first.step.map(|step| (first.turn.0, step))
}

/// What helps a rank that is due.
fn offer_refresh(first: &mut First, device: &Device, rank: u32, now: Clock) {
    let open = ones(device.open_banks()).filter(|bank| device.banks_of(rank).contains(bank));
    let mut closed = true;
    for bank in open {
        closed = false;
        first.offer(device.precharge_at(bank).max(now), NO_DATA, Step::Precharge { bank });
    }
    if closed {
        first.offer(device.refresh_at(rank).max(now), NO_DATA, Step::Refresh { rank });
    }
}

/// The places of the ones among `bits`.
fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros();
        // Of no ones, nothing is left.
        let rest = bits & bits.wrapping_sub(1);
        (std::mem::replace(&mut bits, rest) != 0).then_some(place)
    })
}
