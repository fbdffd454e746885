//! The times at which instructions are fetched and retired.
//!
//! A cycle has a number of *slots* for fetch, and the same number or fewer for retirement. Each
//! kind is numbered consecutively, so slot `s` of fetch is in cycle `s / fetch_width`. Instructions
//! take slots in order:
//!
//! - Fetch takes the next slot, or the first slot of the cycle in which the instruction `rob`
//!   places earlier retires, whichever is later.
//! - Retirement takes the next slot, or the first slot of the cycle in which the instruction
//!   completes, whichever is later.
//!
//! So both usually advance by one slot per instruction, and sometimes *jump* to the start of a
//! cycle. Between jumps, everything follows from the last jump. An instruction that waits for
//! nothing completes `depth` cycles after its fetch, so it makes retirement jump only where fetch
//! jumped. Fetch jumps only where retirement jumped `rob` instructions earlier, or where the caller
//! requires it. So it is enough to track the jumps, however many instructions lie between them.
//!
//! If fewer instructions retire per cycle than are fetched, fetch reaches the end of the reorder
//! buffer without any jump of retirement, and continues at the pace of retirement. So an
//! instruction is fetched in the cycle of its slot, or in the cycle in which the instruction `rob`
//! places earlier retires, whichever is later. Once that retirement is later than the slot, this
//! remains so until the caller makes fetch jump: retirement is slower, and its jumps only make it
//! later. In this state, an instruction that waits for nothing does not make retirement jump, since
//! it follows the previous one at the pace at which both retire. The first such instruction does
//! not either: if `rob` were less than `retire_width * depth`, the last jump of retirement would
//! have made fetch jump earlier.
//!
//! The caller can *stop* retirement, and a stop also makes it jump: the first instruction that
//! would retire during the stop takes the first slot after it. A stop is announced only when it
//! begins, so nothing after the caller's horizon is decided.
//!
//! A jump of retirement that causes a jump of fetch causes another jump of retirement only if the
//! reorder buffer is smaller than `fetch_width * depth`. Such a processor costs a few steps per
//! `rob` instructions.

use std::collections::VecDeque;

use super::fetches::{Fetches, Wait};
use super::spec::ProcessorSpec;
use super::tally::Stalls;
use crate::Cycle;

#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    fetch_width: u64,
    retire_width: u64,
    rob: u64,
    depth: Cycle,
    /// The last jump of fetch.
    fetched: Jump,
    /// The last jump of retirement.
    retired: Jump,
    /// The latest jump of retirement that already delays fetch: fetch has reached the instruction
    /// `rob` places after the jump.
    fetch_hold: Jump,
    /// Jumps of retirement that do not delay fetch yet: the instruction `rob` places after the jump
    /// is not fetched yet.
    pending_holds: VecDeque<Jump>,
    /// The completions of instructions at which retirement may have to jump, in order.
    completing: VecDeque<Completion>,
    /// Whether the caller may stop retirement.
    can_stop: bool,
    /// Stops that retirement has not passed yet, in order of time and disjoint.
    stops: VecDeque<Stop>,
}

/// A period in which no instruction retires: the cycles `from..until`.
#[derive(Clone, Copy, Debug)]
struct Stop {
    from: Cycle,
    until: Cycle,
}

/// The time of an event of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// The event is at this cycle.
    At(Cycle),
    /// The event is at this cycle or later, which is past the horizon.
    Later(Cycle),
    /// The time depends on a fetch without an answer.
    Waits,
}

/// A jump: instruction `index` takes `slot`, and the following instructions take the next slots, up
/// to the next jump.
#[derive(Clone, Copy, Debug)]
struct Jump {
    index: u64,
    slot: u64,
}

impl Jump {
    fn slot_of(self, index: u64) -> u64 {
        self.slot + (index - self.index)
    }
}

/// The completion of an instruction: at cycle `at`, or when its line arrives, whichever is later.
#[derive(Clone, Copy, Debug)]
struct Completion {
    index: u64,
    at: Cycle,
    wait: Option<Wait>,
}

impl Pipeline {
    pub(super) fn new(spec: &ProcessorSpec) -> Self {
        let first = Completion { index: 0, at: spec.depth, wait: None };
        Self {
            fetch_width: spec.width,
            retire_width: spec.retired_at_once(),
            rob: spec.rob,
            depth: spec.depth,
            fetched: Jump { index: 0, slot: 0 },
            retired: Jump { index: 0, slot: 0 },
            fetch_hold: Jump { index: 0, slot: 0 },
            pending_holds: VecDeque::new(),
            completing: VecDeque::from([first]),
            can_stop: spec.paths_stop_retirement,
            stops: VecDeque::new(),
        }
    }

    /// Stops retirement in the cycles `from..until`. `from` must be past all horizons so
    /// far.
    pub(super) fn stop(&mut self, from: Cycle, until: Cycle) {
        assert!(self.can_stop, "paths do not stop the retirement of this processor");
        match self.stops.back_mut() {
            Some(last) if from <= last.until => last.until = last.until.max(until),
            _ => self.stops.push_back(Stop { from, until }),
        }
    }

    /// Fetches all instructions before `index`, which do not use the LLC. Returns the time at which
    /// `index` can be fetched.
    pub(super) fn fetch_up_to(
        &mut self,
        index: u64,
        fetches: &mut Fetches,
        stalls: &mut Stalls,
        horizon: Cycle,
    ) -> When {
        loop {
            let next = self.retire(fetches, horizon);
            if let Some(jump) = self.next_held(index) {
                self.pending_holds.pop_front();
                let (held, cycle) = (jump.index + self.rob, jump.slot / self.retire_width);
                // Earlier instructions were delayed by the previous jump.
                let idle_from = self.idle_from(held);
                self.fetch_hold = jump;
                if self.is_jump(held, cycle) {
                    stalls.rob += cycle.saturating_sub(idle_from);
                    self.fetch(held, cycle, 0, None);
                }
                continue;
            }
            // All fetches before `index` are known, and so is retirement without jumps.
            let Some(oldest) = index.checked_sub(self.rob) else { break };
            if !self.is_known(oldest) {
                return next;
            }
            match self.apply_stop(oldest, horizon) {
                Passing::Passed => {}
                Passing::NotYet(until) => return When::Later(until),
                Passing::NoneBefore => break,
            }
        }
        let held = self.pending_holds.front().filter(|jump| jump.index + self.rob == index);
        let free_from = held.map_or(0, |jump| jump.slot / self.retire_width);
        When::At(self.fetch_cycle(index).max(free_from))
    }

    /// Fetches instruction `index` at `cycle`, or at the next free slot. It completes `extra`
    /// cycles later than usual, and not before the end of `wait`.
    pub(super) fn fetch(&mut self, index: u64, cycle: Cycle, extra: Cycle, wait: Option<Wait>) {
        let reached_hold = self.pending_holds.pop_front_if(|jump| jump.index + self.rob == index);
        self.fetch_hold = reached_hold.unwrap_or(self.fetch_hold);
        if self.is_jump(index, cycle) {
            self.fetched = Jump { index, slot: cycle * self.fetch_width };
        }
        self.completing.push_back(Completion { index, at: cycle + self.depth + extra, wait });
    }

    /// The first cycle in which fetch stalls if the next instruction, `index`, is not fetched.
    pub(super) fn idle_from(&self, index: u64) -> Cycle {
        let before = index.checked_sub(1);
        before.map_or(0, |before| self.fetch_cycle(before) + 1)
    }

    /// The cycle in which instruction `index` is fetched, if neither fetch nor the retirement that
    /// delays it jumps again.
    fn fetch_cycle(&self, index: u64) -> Cycle {
        let cycle = self.fetched.slot_of(index) / self.fetch_width;
        // If both widths are equal, fetch jumped together with the retirement that delays it, and
        // is not earlier.
        let held = index.checked_sub(self.rob).map(|oldest| self.fetch_hold.slot_of(oldest));
        held.map_or(cycle, |slot| cycle.max(slot / self.retire_width))
    }

    /// Whether fetching instruction `index` at `cycle` needs a jump to the start of that cycle.
    fn is_jump(&self, index: u64, cycle: Cycle) -> bool {
        cycle * self.fetch_width > self.fetched.slot_of(index)
    }

    /// The time at which the last instruction, `index`, retires.
    pub(super) fn retires(&mut self, index: u64, fetches: &mut Fetches, horizon: Cycle) -> When {
        loop {
            let next = self.retire(fetches, horizon);
            if !self.is_known(index) {
                return next;
            }
            match self.apply_stop(index, horizon) {
                Passing::Passed => {}
                Passing::NotYet(until) => return When::Later(until),
                Passing::NoneBefore => break,
            }
        }
        let cycle = self.retired.slot_of(index) / self.retire_width;
        if self.is_past(cycle, horizon) { When::Later(cycle) } else { When::At(cycle) }
    }

    /// Follows retirement until an answer is missing or the horizon is reached. Returns the time at
    /// which it continues.
    fn retire(&mut self, fetches: &mut Fetches, horizon: Cycle) -> When {
        while let Some(&Completion { index, at, wait }) = self.completing.front() {
            let Some(arrival) = wait.map_or(Some(at), |wait| fetches.answered(wait)) else {
                return When::Waits;
            };
            match self.apply_stop(index, horizon) {
                Passing::Passed => continue,
                Passing::NotYet(until) => return When::Later(until),
                Passing::NoneBefore => {}
            }
            let cycle = self.after_stops(at.max(arrival));
            if self.is_past(cycle, horizon) {
                return When::Later(cycle);
            }
            self.completing.pop_front();
            if let Some(wait) = wait {
                fetches.end(wait);
            }
            self.jump(index, cycle * self.retire_width);
        }
        When::Waits
    }

    /// Makes retirement jump to `slot` at `index`, if the slot would be earlier otherwise.
    fn jump(&mut self, index: u64, slot: u64) {
        if slot > self.retired.slot_of(index) {
            self.retired = Jump { index, slot };
            // The same instruction may jump several times: on its own, out of a stop, or when its
            // line arrives.
            self.pending_holds.pop_back_if(|jump| jump.index == index);
            self.pending_holds.push_back(self.retired);
        }
    }

    /// Moves retirement past the next stop, if one of the instructions up to `index` would retire
    /// during or after the stop. Apart from stops, the slots of all these instructions must be
    /// known.
    fn apply_stop(&mut self, index: u64, horizon: Cycle) -> Passing {
        let Some(&Stop { from, until }) = self.stops.front() else { return Passing::NoneBefore };
        let first = from * self.retire_width;
        if index < self.retired.index || self.retired.slot_of(index) < first {
            return Passing::NoneBefore;
        }
        if self.is_past(until, horizon) {
            return Passing::NotYet(until);
        }
        self.stops.pop_front();
        let index = self.retired.index + first.saturating_sub(self.retired.slot);
        self.jump(index, until * self.retire_width);
        Passing::Passed
    }

    /// The first cycle from `cycle` on that is not in a stop.
    fn after_stops(&self, cycle: Cycle) -> Cycle {
        let reached = self.stops.iter().take_while(|stop| stop.from <= cycle);
        reached.fold(cycle, |cycle, stop| cycle.max(stop.until))
    }

    /// Whether a later stop may still change the instructions that retire at `cycle`.
    fn is_past(&self, cycle: Cycle, horizon: Cycle) -> bool {
        self.can_stop && cycle > horizon
    }

    /// The next jump of retirement that delays an instruction before `index`, if it is known.
    fn next_held(&self, index: u64) -> Option<Jump> {
        let jump = *self.pending_holds.front()?;
        (jump.index + self.rob < index && self.is_known(jump.index)).then_some(jump)
    }

    /// Whether the retirement of `index` is known.
    fn is_known(&self, index: u64) -> bool {
        self.completing.front().is_none_or(|completion| index < completion.index)
    }
}

/// The result of [`Pipeline::apply_stop`].
enum Passing {
    /// Retirement is past the stop.
    Passed,
    /// The stop ends past the horizon, at this cycle.
    NotYet(Cycle),
    /// No stop affects these instructions.
    NoneBefore,
}
