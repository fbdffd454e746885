//! Chooses the next command and its time, by FR-FCFS (first ready, first come, first served) with
//! open rows.
//!
//! Each bank with requests has one useful command. It is a read or write for the oldest request to
//! the open row. If no request is for the open row, the command closes the row. If no row is open,
//! it opens the row of the oldest request. The scheduler sends the command that is possible first.
//! Among commands possible at the same time, reads and writes precede others, and then older
//! requests precede younger ones.
//!
//! A rank that is due for refresh gets only commands that close its rows, and then the refresh.

use super::Clock;
use super::device::Device;
use super::refresh::Refreshes;
use super::view::View;

/// A command to a bank or rank of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScheduledCommand {
    Activate { bank: u32 },
    Precharge { bank: u32 },
    Column { bank: u32 },
    Refresh { rank: u32 },
}

/// The earliest time of a command, and its priority among commands possible at that time. The
/// smaller value goes first.
type CommandPriority = (Clock, u64);

/// The bit set in the priority of commands that move no data.
const NO_DATA: u64 = 1 << 63;

/// The best of the commands that were offered so far.
struct BestCommand {
    priority: CommandPriority,
    step: Option<ScheduledCommand>,
}

impl BestCommand {
    #[inline]
    fn offer(&mut self, at: Clock, rest: u64, step: ScheduledCommand) {
        if (at, rest) < self.priority {
            *self = Self { priority: (at, rest), step: Some(step) };
        }
    }
}

/// The next command and its time, not before `now`, for the current requests of `view` and for
/// refreshes. `None` if neither a request nor a refresh waits.
pub(super) fn next(
    view: &View,
    device: &Device,
    refreshes: &Refreshes,
    now: Clock,
) -> Option<(Clock, ScheduledCommand)> {
    let (kind, window) = (view.direction(), view.window());
    let now = now.max(device.bus_free());
    let mut best = BestCommand { priority: (Clock::MAX, u64::MAX), step: None };
    let asked = window.banks() & !refreshes.waiting_banks();
    let hits = asked & window.hits();
    for bank in ones(hits) {
        let at = device.column_at(bank, kind).max(now);
        best.offer(at, window.age(bank), ScheduledCommand::Column { bank });
    }
    if best.priority.0 > now {
        let misses = asked & !hits;
        for bank in ones(misses & device.open_banks()) {
            let at = device.precharge_at(bank).max(now);
            best.offer(at, NO_DATA | window.age(bank), ScheduledCommand::Precharge { bank });
        }
        for bank in ones(misses & !device.open_banks()) {
            let at = device.activate_at(bank).max(now);
            best.offer(at, NO_DATA | window.age(bank), ScheduledCommand::Activate { bank });
        }
        for rank in ones(refreshes.waiting()) {
            offer_refresh(&mut best, device, rank, now);
        }
    }
    best.step.map(|step| (best.priority.0, step))
}

/// Offers the command that brings a due rank closer to its refresh.
fn offer_refresh(best: &mut BestCommand, device: &Device, rank: u32, now: Clock) {
    let open = ones(device.open_banks()).filter(|bank| device.banks_of(rank).contains(bank));
    let mut closed = true;
    for bank in open {
        closed = false;
        best.offer(
            device.precharge_at(bank).max(now),
            NO_DATA,
            ScheduledCommand::Precharge { bank },
        );
    }
    if closed {
        best.offer(device.refresh_at(rank).max(now), NO_DATA, ScheduledCommand::Refresh { rank });
    }
}

/// The positions of the one bits in `bits`.
fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros();
        // If `bits` is 0, it stays 0.
        let rest = bits & bits.wrapping_sub(1);
        (std::mem::replace(&mut bits, rest) != 0).then_some(place)
    })
}
