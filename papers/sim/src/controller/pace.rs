//! When the next path may start.

use serde::{Deserialize, Serialize};

use crate::Cycle;

/// What an observer of the bus may learn from *when* paths start (IR-ORAM, section II-C: one path access
/// per T cycles). What T counts is not said there, and decides what shorter paths gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As soon as there is something to do: no protection.
    Free,
    /// From one start to the next: `T` cycles, or as long as the path takes if that is more.
    StartToStart(Cycle),
    /// From the end of one path to the start of the next: `T` cycles.
    Gap(Cycle),
    /// At once if there is a request, and a dummy after `T` cycles without one. Not oblivious: it is what
    /// published runs seem to have measured.
    WhenIdle(Cycle),
}

impl Pace {
    /// The pace where none is asked for, which tells nothing of requests. Published runs on one channel take 2131
    /// cycles from path to path where a path takes 1884: with T = 1000, a gap of some 250.
    pub const DEFAULT: Self = Self::Gap(250);

    /// Whether a path starts at a time that depends on no request: only then do starts tell nothing of them.
    pub fn is_fixed(self) -> bool {
        match self {
            Self::StartToStart(_) | Self::Gap(_) => true,
            Self::Free | Self::WhenIdle(_) => false,
        }
    }
}

/// The slots of a bus, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    pace: Pace,
    start: Cycle,
    end: Cycle,
}

impl Slots {
    pub(super) fn new(pace: Pace) -> Self {
        Self { pace, start: 0, end: 0 }
    }

    /// When the next path starts, if the first request that waits came at `waiting`. `None`: not
    /// before there is one.
    pub(super) fn next(&self, waiting: Option<Cycle>) -> Option<Cycle> {
        match self.pace {
            Pace::Free => waiting.map(|since| since.max(self.end)),
            Pace::StartToStart(period) => Some((self.start + period).max(self.end)),
            Pace::Gap(gap) => Some(self.end + gap),
            Pace::WhenIdle(wait) => {
                let dummy = self.end + wait;
                Some(waiting.map_or(dummy, |since| since.max(self.end).min(dummy)))
            }
        }
    }

    /// A path took this slot.
    pub(super) fn take(&mut self, start: Cycle, end: Cycle) {
        (self.start, self.end) = (start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_a_path(pace: Pace) -> Slots {
        let mut slots = Slots::new(pace);
        slots.take(100, 700);
        slots
    }

    #[test]
    fn free_paths_wait_for_requests_and_for_the_bus() {
        let slots = after_a_path(Pace::Free);
        assert_eq!(
            [None, Some(50), Some(900)].map(|since| slots.next(since)),
            [None, Some(700), Some(900)]
        );
    }

    #[test]
    fn a_fixed_rate_asks_nobody() {
        for (pace, start) in [
            (Pace::StartToStart(1000), 1100),
            (Pace::StartToStart(200), 700),
            (Pace::Gap(1000), 1700),
        ] {
            let slots = after_a_path(pace);
            for waiting in [None, Some(50), Some(5000)] {
                assert_eq!(slots.next(waiting), Some(start), "{pace:?}");
            }
        }
    }

    #[test]
    fn dummies_come_when_nobody_asked_for_a_while() {
        let slots = after_a_path(Pace::WhenIdle(1000));
        let starts = [None, Some(50), Some(900), Some(5000)].map(|since| slots.next(since));
        assert_eq!(starts, [Some(1700), Some(700), Some(900), Some(1700)]);
    }
}
