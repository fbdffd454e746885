//! When instructions are fetched and retired.
//!
//! A cycle has *slots* to fetch in and slots to retire in, as many or fewer; each kind is numbered through, so slot
//! `s` of fetch is in cycle `s / fetch_width`. Instructions take slots in order:
//!
//! - fetch takes the next slot, or the first of the cycle in which the instruction `rob` places before
//!   it retires, whichever is later,
//! - retirement takes the next slot, or the first of the cycle in which the instruction completes.
//!
//! So both go up by one slot an instruction, and now and then *jump* to the start of a cycle. Between
//! jumps nothing happens that is not known from the last jump. An instruction that waits for nothing
//! completes `depth` cycles after its fetch: it can make retirement jump only where fetch jumped. And
//! fetch jumps only where retirement jumped `rob` instructions before, or where somebody wants it to.
//! So it is enough to follow the jumps, however many instructions lie between them.
//!
//! Where fewer retire in a cycle than are fetched, fetch runs into the end of the reorder buffer without any jump of
//! retirement, and goes on at the pace of that. So the cycle in which an instruction is fetched is that of its slot
//! or that in which the one `rob` places before it retires, whichever is later. Once it is the second, it stays so
//! until somebody makes fetch jump: retirement is the slower one, and jumps later only. And no instruction that
//! waits for nothing makes retirement jump there: it follows the one before at the pace at which both retire. Nor does
//! the first of them: were `rob` less than `retire_width * depth`, the last jump of retirement would have made fetch
//! jump before.
//!
//! Where retirement can be *stopped* from outside, a stop makes it jump as well: the first instruction that would
//! retire in it takes the first slot after it. A stop is told when it begins and not before, so nothing is decided then
//! that comes after the caller's horizon.
//!
//! A jump of retirement that leads to one of fetch leads to a further one only if the reorder buffer is
//! smaller than `fetch_width * depth`. Such a processor costs a few steps for each `rob` instructions.

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
    /// The last jump of retirement that fetch has come to, `rob` instructions later.
    held: Jump,
    /// Jumps of retirement that fetch has not come to.
    holding: VecDeque<Jump>,
    /// Where retirement may have to jump, in order.
    completing: VecDeque<Completion>,
    /// Whether retirement is stopped now and then.
    can_stop: bool,
    /// Stops that retirement has not passed, in order of time and apart from each other.
    stops: VecDeque<Stop>,
}

/// Cycles from `from` to before `until`, in which nothing retires.
#[derive(Clone, Copy, Debug)]
struct Stop {
    from: Cycle,
    until: Cycle,
}

/// When something happens to an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// At this cycle.
    At(Cycle),
    /// At this cycle, which is past the horizon, or later.
    Later(Cycle),
    /// That depends on a fetch that has not been answered.
    Waits,
}

/// Instruction `index` takes `slot`, and those after it the next ones up to the next jump.
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

/// An instruction completes at a cycle, or when its line comes if that is later.
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
            held: Jump { index: 0, slot: 0 },
            holding: VecDeque::new(),
            completing: VecDeque::from([first]),
            can_stop: spec.paths_stop_retirement,
            stops: VecDeque::new(),
        }
    }

    /// Nothing retires from cycle `from`, which is past all horizons so far, to before `until`.
    pub(super) fn stop(&mut self, from: Cycle, until: Cycle) {
        assert!(self.can_stop, "the retirement of this processor is not stopped by paths");
        match self.stops.back_mut() {
            Some(last) if from <= last.until => last.until = last.until.max(until),
            _ => self.stops.push_back(Stop { from, until }),
        }
    }

    /// Fetches all instructions before `index`, none of which uses the LLC, and tells when `index` may be
    /// fetched.
    pub(super) fn reach(
        &mut self,
        index: u64,
        fetches: &mut Fetches,
        stalls: &mut Stalls,
        horizon: Cycle,
    ) -> When {
        loop {
            let next = self.retire(fetches, horizon);
            if let Some(jump) = self.next_held(index) {
                self.holding.pop_front();
                let (held, cycle) = (jump.index + self.rob, jump.slot / self.retire_width);
                // What came before it was held up by the jump before.
                let idle_from = self.idle_from(held);
                self.held = jump;
                if self.is_jump(held, cycle) {
                    stalls.rob += cycle.saturating_sub(idle_from);
                    self.fetch(held, cycle, 0, None);
                }
                continue;
            }
            // All that is fetched before `index` is known, and so is what retires without a jump.
            let Some(oldest) = index.checked_sub(self.rob) else { break };
            if !self.is_known(oldest) {
                return next;
            }
            match self.pass_stop(oldest, horizon) {
                Passing::Passed => {}
                Passing::NotYet(until) => return When::Later(until),
                Passing::NoneBefore => break,
            }
        }
        let held = self.holding.front().filter(|jump| jump.index + self.rob == index);
        let free_from = held.map_or(0, |jump| jump.slot / self.retire_width);
        When::At(self.fetch_cycle(index).max(free_from))
    }

    /// Fetches instruction `index` at `cycle` or as soon as there is a slot. It completes `extra` cycles
    /// later than others do, and not before what it waits for.
    pub(super) fn fetch(&mut self, index: u64, cycle: Cycle, extra: Cycle, wait: Option<Wait>) {
        let come_to = self.holding.pop_front_if(|jump| jump.index + self.rob == index);
        self.held = come_to.unwrap_or(self.held);
        if self.is_jump(index, cycle) {
            self.fetched = Jump { index, slot: cycle * self.fetch_width };
        }
        self.completing.push_back(Completion { index, at: cycle + self.depth + extra, wait });
    }

    /// The first cycle in which fetch stands still if instruction `index`, the next, is not fetched.
    pub(super) fn idle_from(&self, index: u64) -> Cycle {
        let before = index.checked_sub(1);
        before.map_or(0, |before| self.fetch_cycle(before) + 1)
    }

    /// When instruction `index` is fetched, if neither fetch nor the retirement that holds it up has jumped since
    /// their last jumps.
    fn fetch_cycle(&self, index: u64) -> Cycle {
        let cycle = self.fetched.slot_of(index) / self.fetch_width;
        // Where as many retire as are fetched, fetch jumped with what holds it up, and is no sooner than that.
        let held = index.checked_sub(self.rob).map(|oldest| self.held.slot_of(oldest));
        held.map_or(cycle, |slot| cycle.max(slot / self.retire_width))
    }

    /// Whether instruction `index`, fetched at `cycle`, is fetched at the start of a cycle that it would not be in
    /// without.
    fn is_jump(&self, index: u64, cycle: Cycle) -> bool {
        cycle * self.fetch_width > self.fetched.slot_of(index)
    }

    /// When instruction `index`, the last, retires.
    pub(super) fn retires(&mut self, index: u64, fetches: &mut Fetches, horizon: Cycle) -> When {
        loop {
            let next = self.retire(fetches, horizon);
            if !self.is_known(index) {
                return next;
            }
            match self.pass_stop(index, horizon) {
                Passing::Passed => {}
                Passing::NotYet(until) => return When::Later(until),
                Passing::NoneBefore => break,
            }
        }
        let cycle = self.retired.slot_of(index) / self.retire_width;
        if self.is_past(cycle, horizon) { When::Later(cycle) } else { When::At(cycle) }
    }

    /// Follows retirement as far as answers and the horizon go, and tells when it goes on.
    fn retire(&mut self, fetches: &mut Fetches, horizon: Cycle) -> When {
        while let Some(&Completion { index, at, wait }) = self.completing.front() {
            let Some(come) = wait.map_or(Some(at), |wait| fetches.answered(wait)) else {
                return When::Waits;
            };
            match self.pass_stop(index, horizon) {
                Passing::Passed => continue,
                Passing::NotYet(until) => return When::Later(until),
                Passing::NoneBefore => {}
            }
            let cycle = self.after_stops(at.max(come));
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

    /// Makes retirement jump to `slot` at `index`, if it is not there without.
    fn jump(&mut self, index: u64, slot: u64) {
        if slot > self.retired.slot_of(index) {
            self.retired = Jump { index, slot };
            // Where the same instruction jumps again, out of nothing, out of a stop, or when its line comes.
            self.holding.pop_back_if(|jump| jump.index == index);
            self.holding.push_back(self.retired);
        }
    }

    /// Passes the next stop, if one of the instructions up to `index` would retire in it or after it. The slots of
    /// all of them are known but for stops.
    fn pass_stop(&mut self, index: u64, horizon: Cycle) -> Passing {
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

    /// The first cycle from `cycle` on that is in no stop.
    fn after_stops(&self, cycle: Cycle) -> Cycle {
        let reached = self.stops.iter().take_while(|stop| stop.from <= cycle);
        reached.fold(cycle, |cycle, stop| cycle.max(stop.until))
    }

    /// Whether a stop may still change what retires at `cycle`.
    fn is_past(&self, cycle: Cycle, horizon: Cycle) -> bool {
        self.can_stop && cycle > horizon
    }

    /// The next jump of retirement that holds up an instruction before `index`, if it is known.
    fn next_held(&self, index: u64) -> Option<Jump> {
        let jump = *self.holding.front()?;
        (jump.index + self.rob < index && self.is_known(jump.index)).then_some(jump)
    }

    /// Whether it is known when `index` retires.
    fn is_known(&self, index: u64) -> bool {
        self.completing.front().is_none_or(|completion| index < completion.index)
    }
}

/// What came of an attempt to pass a stop.
enum Passing {
    /// It is behind.
    Passed,
    /// It ends past the horizon, at this cycle.
    NotYet(Cycle),
    /// None begins before.
    NoneBefore,
}
