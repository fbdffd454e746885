//! Memories for tests. Their answers depend only on the requests so far.

use std::collections::VecDeque;

use oblivio_sim::Cycle;

/// A request to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryRequest {
    Fetch(u64),
    WriteBack(u64),
    Dropped(u64),
}

/// The behaviour of a memory. It serves one waiting request at each *turn*.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryBehaviour {
    /// Cycles between two turns. If 0, each request is served at once.
    pub(crate) every: Cycle,
    /// The waiting request that a turn serves.
    pub(crate) order: TurnOrder,
    /// The latency from the turn to the answer. For a fetch, a random number below `spread` is
    /// added.
    pub(crate) latency: Cycle,
    pub(crate) spread: Cycle,
    /// Cycles for which retirement stops after each turn, starting with the next cycle.
    pub(crate) stops: Cycle,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum TurnOrder {
    Oldest,
    Newest,
    Random,
}

/// The effects of a turn on the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnResult {
    pub(crate) at: Cycle,
    /// The number of the answered fetch; `None` if a write-back is accepted.
    pub(crate) answers: Option<usize>,
    /// A stop of retirement, from the first cycle up to, but not including, the second.
    pub(crate) stop: Option<[Cycle; 2]>,
}

#[derive(Clone, Debug)]
pub(crate) struct Memory {
    behaviour: MemoryBehaviour,
    fetches: usize,
    asked: VecDeque<(Cycle, Option<usize>)>,
    not_before: Cycle,
    turns: u64,
}

impl Memory {
    pub(crate) fn new(behaviour: MemoryBehaviour) -> Self {
        Self { behaviour, fetches: 0, asked: VecDeque::new(), not_before: 0, turns: 0 }
    }

    pub(crate) fn ask(&mut self, at: Cycle, what: MemoryRequest) {
        match what {
            MemoryRequest::Fetch(_) => {
                self.asked.push_back((at, Some(self.fetches)));
                self.fetches += 1;
            }
            MemoryRequest::WriteBack(_) => self.asked.push_back((at, None)),
            MemoryRequest::Dropped(_) => {}
        }
    }

    /// The time of the next turn, if no further request arrives before it.
    pub(crate) fn next_turn(&self) -> Option<Cycle> {
        let (asked, _) = *self.asked.front()?;
        let MemoryBehaviour { every, .. } = self.behaviour;
        Some(if every == 0 { asked } else { asked.max(self.not_before).next_multiple_of(every) })
    }

    /// Takes the next turn. All requests up to the time of the turn must be known.
    pub(crate) fn take_turn(&mut self) -> TurnResult {
        let MemoryBehaviour { every, order, latency, spread, stops } = self.behaviour;
        let now = self.next_turn().unwrap();
        self.not_before = now + every;
        self.turns += 1;
        let coin = self.turns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let waiting = self.asked.iter().take_while(|(asked, _)| *asked <= now).count();
        let place = match order {
            _ if every == 0 => 0,
            TurnOrder::Oldest => 0,
            TurnOrder::Newest => waiting - 1,
            TurnOrder::Random => coin as usize % waiting,
        };
        let (_, answers) = self.asked.remove(place).unwrap();
        // Write-backs are accepted in order. Only answers may overtake each other.
        let random = if answers.is_some() { coin % spread.max(1) } else { 0 };
        let stop = (stops > 0).then_some([now + 1, now + 1 + stops]);
        TurnResult { at: now + latency + random, answers, stop }
    }
}
