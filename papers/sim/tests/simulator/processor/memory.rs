//! Memories for tests. What they answer depends on what was asked by then, and on nothing else.

use std::collections::VecDeque;

use oblivio_sim::Cycle;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Fetch(u64),
    WriteBack(u64),
    Dropped(u64),
}

/// How a memory behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Cycles from one turn to the next. 0: each request has its turn at once.
    pub(crate) every: Cycle,
    /// Which of those that wait has its turn.
    pub(crate) order: Order,
    /// Cycles from the turn to the answer: from `latency` on, less than `latency + spread`, at random.
    pub(crate) latency: Cycle,
    pub(crate) spread: Cycle,
    /// From the cycle after each turn on, nothing retires for so many cycles.
    pub(crate) stops: Cycle,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Oldest,
    Newest,
    Random,
}

/// What memory says, and when it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) at: Cycle,
    /// The number of the fetch that is answered. `None`: a write-back is taken.
    pub(crate) answers: Option<usize>,
    /// From which cycle to before which nothing retires.
    pub(crate) stop: Option<[Cycle; 2]>,
}

#[derive(Clone, Debug)]
pub(crate) struct Memory {
    habits: Habits,
    fetches: usize,
    asked: VecDeque<(Cycle, Option<usize>)>,
    not_before: Cycle,
    turns: u64,
}

impl Memory {
    pub(crate) fn new(habits: Habits) -> Self {
        Self { habits, fetches: 0, asked: VecDeque::new(), not_before: 0, turns: 0 }
    }

    pub(crate) fn ask(&mut self, at: Cycle, what: What) {
        match what {
            What::Fetch(_) => {
                self.asked.push_back((at, Some(self.fetches)));
                self.fetches += 1;
            }
            What::WriteBack(_) => self.asked.push_back((at, None)),
            What::Dropped(_) => {}
        }
    }

    /// When something has its turn next, if nothing more is asked before.
    pub(crate) fn next_turn(&self) -> Option<Cycle> {
        let (asked, _) = *self.asked.front()?;
        let Habits { every, .. } = self.habits;
        Some(if every == 0 { asked } else { asked.max(self.not_before).next_multiple_of(every) })
    }

    /// All that was asked up to the next turn is known: it happens.
    pub(crate) fn take_turn(&mut self) -> Told {
        let Habits { every, order, latency, spread, stops } = self.habits;
        let now = self.next_turn().unwrap();
        self.not_before = now + every;
        self.turns += 1;
        let coin = self.turns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let waiting = self.asked.iter().take_while(|(asked, _)| *asked <= now).count();
        let place = match order {
            _ if every == 0 => 0,
            Order::Oldest => 0,
            Order::Newest => waiting - 1,
            Order::Random => coin as usize % waiting,
        };
        let (_, answers) = self.asked.remove(place).unwrap();
        // Write-backs are taken in order: only answers may overtake each other.
        let random = if answers.is_some() { coin % spread.max(1) } else { 0 };
        let stop = (stops > 0).then_some([now + 1, now + 1 + stops]);
        Told { at: now + latency + random, answers, stop }
    }
}
