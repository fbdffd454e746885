//! When instructions are fetched and retired.
//!
//! A cycle has `width` *slots* to fetch in and as many to retire in; they are numbered through, so slot
//! `s` is in cycle `s / width`. Instructions take slots in order:
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
//! A jump of retirement that leads to one of fetch leads to a further one only if the reorder buffer is
//! smaller than `width * depth`. Such a processor costs a few steps for each `rob` instructions.

use std::collections::VecDeque;

use super::fetches::{Fetches, Wait};
use super::spec::ProcessorSpec;
use super::tally::Stalls;
use crate::Cycle;

#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    width: u64,
    rob: u64,
    depth: Cycle,
    /// The last jump of fetch.
    fetched: Jump,
    /// The last jump of retirement.
    retired: Jump,
    /// Jumps of retirement that fetch has not come to.
    holding: VecDeque<Jump>,
    /// Where retirement may have to jump, in order.
    completing: VecDeque<Completion>,
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
            width: spec.width,
            rob: spec.rob,
            depth: spec.depth,
            fetched: Jump { index: 0, slot: 0 },
            retired: Jump { index: 0, slot: 0 },
            holding: VecDeque::new(),
            completing: VecDeque::from([first]),
        }
    }

    /// Fetches all instructions before `index`, none of which uses the LLC. Answers when `index` may be
    /// fetched. `None`: that depends on a fetch that has not been answered.
    pub(super) fn reach(
        &mut self,
        index: u64,
        fetches: &mut Fetches,
        stalls: &mut Stalls,
    ) -> Option<Cycle> {
        self.retire(fetches);
        while let Some(jump) = self.next_held(index) {
            self.holding.pop_front();
            let (held, cycle) = (jump.index + self.rob, jump.slot / self.width);
            if jump.slot > self.fetched.slot_of(held) {
                stalls.rob += cycle.saturating_sub(self.idle_from(held));
                self.fetch(held, cycle, 0, None);
                self.retire(fetches);
            }
        }
        if index >= self.rob && !self.is_known(index - self.rob) {
            return None;
        }
        let held = self.holding.front().filter(|jump| jump.index + self.rob == index);
        let slot = self.fetched.slot_of(index).max(held.map_or(0, |jump| jump.slot));
        Some(slot / self.width)
    }

    /// Fetches instruction `index` at `cycle` or as soon as there is a slot. It completes `extra` cycles
    /// later than others do, and not before what it waits for.
    pub(super) fn fetch(&mut self, index: u64, cycle: Cycle, extra: Cycle, wait: Option<Wait>) {
        self.holding.pop_front_if(|jump| jump.index + self.rob == index);
        let slot = cycle * self.width;
        if slot > self.fetched.slot_of(index) {
            self.fetched = Jump { index, slot };
        }
        self.completing.push_back(Completion { index, at: cycle + self.depth + extra, wait });
    }

    /// The first cycle in which fetch stands still if instruction `index`, the next, is not fetched.
    pub(super) fn idle_from(&self, index: u64) -> Cycle {
        let before = index.checked_sub(1);
        before.map_or(0, |before| self.fetched.slot_of(before) / self.width + 1)
    }

    /// When `index`, the last instruction, retires. `None`: that depends on a fetch that has not been
    /// answered.
    pub(super) fn retires(&mut self, index: u64, fetches: &mut Fetches) -> Option<Cycle> {
        self.retire(fetches);
        self.is_known(index).then(|| self.retired.slot_of(index) / self.width)
    }

    /// Follows retirement as far as answers go.
    fn retire(&mut self, fetches: &mut Fetches) {
        while let Some(&Completion { index, at, wait }) = self.completing.front() {
            let come = match wait {
                None => Some(at),
                Some(wait) => fetches.end(wait),
            };
            let Some(come) = come else { return };
            self.completing.pop_front();
            let slot = at.max(come) * self.width;
            if slot > self.retired.slot_of(index) {
                self.retired = Jump { index, slot };
                // Only the first instruction jumps twice: out of nothing, and when its line comes.
                self.holding.pop_back_if(|jump| jump.index == index);
                self.holding.push_back(self.retired);
            }
        }
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
