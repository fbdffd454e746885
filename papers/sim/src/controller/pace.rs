//! The times at which paths may start.

use serde::{Deserialize, Serialize};

use crate::Cycle;

/// The rule for when paths start. It determines what the start times of paths reveal to an observer
/// of the bus (IR-ORAM, section II-C: one path access per T cycles). The paper does not define the
/// ends of the interval T, and they decide the gain of shorter paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// A path starts as soon as a request waits. Start times reveal when requests arrive.
    Free,
    /// `T` cycles from one start to the next, or the duration of the path if it is longer.
    StartToStart(Cycle),
    /// `T` cycles from the end of one path to the start of the next.
    Gap(Cycle),
    /// A path starts as soon as a request waits. If none arrives within `T` cycles after a path, a
    /// dummy starts. This is not oblivious. Published measurements seem to have used this pace.
    WhenIdle(Cycle),
}

impl Pace {
    /// The default pace, which reveals nothing about requests. Published runs with T = 1000 on one
    /// channel take 2131 cycles from path to path. A path takes 1884 of these, which leaves a gap
    /// of about 250.
    pub const DEFAULT: Self = Self::Gap(250);

    /// Whether start times are independent of requests. Only then do they reveal nothing.
    pub fn is_fixed(self) -> bool {
        match self {
            Self::StartToStart(_) | Self::Gap(_) => true,
            Self::Free | Self::WhenIdle(_) => false,
        }
    }
}

/// Determines when a bus may start its next path.
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

    /// The start of the next path, if the first waiting request arrived at `waiting`. `None` if no
    /// path starts before another request arrives.
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

    /// Notes that a path has taken this slot.
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
    fn a_fixed_rate_does_not_depend_on_requests() {
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
    fn dummies_come_after_a_while_without_requests() {
        let slots = after_a_path(Pace::WhenIdle(1000));
        let starts = [None, Some(50), Some(900), Some(5000)].map(|since| slots.next(since));
        assert_eq!(starts, [Some(1700), Some(700), Some(900), Some(1700)]);
    }
}
