//! Second attempts at slow reads.
//!
//! A get that takes longer than 95 % of the latest thousand gets is sent a second time, and the
//! first answer counts. A budget bounds the share of second attempts, so that they do not add load
//! to a service that has become slow as a whole.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of latencies that are kept.
const LATENCIES: usize = 1000;

/// No get is sent twice before this number of latencies is known.
const LATENCIES_MIN: usize = 100;

/// The number of gets that permit one second attempt.
const GETS_PER_HEDGE: u32 = 10;

/// Maximum number of second attempts that the budget permits at once.
const HEDGES_MAX: u32 = 20;

/// After this number of gets the percentile is computed again.
const COMPUTE_EVERY: usize = 50;

#[derive(Default)]
pub(super) struct Hedging {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The latest latencies, in microseconds: a ring.
    latencies: Vec<u32>,
    recorded: usize,
    percentile: Option<Duration>,
    /// The gets that have not paid for a second attempt.
    unspent: u32,
}

impl Hedging {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long to wait for the first answer; `None` while too few latencies are known.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.state().percentile
    }

    /// Takes a second attempt from the budget. Returns whether the budget permits it.
    pub(super) fn spend(&self) -> bool {
        let mut state = self.state();
        let left = state.unspent.checked_sub(GETS_PER_HEDGE);
        state.unspent = left.unwrap_or(state.unspent);
        left.is_some()
    }

    /// Records the latency of a get that was answered.
    pub(super) fn record(&self, latency: Duration) {
        let mut state = self.state();
        let micros = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        let at = state.recorded % LATENCIES;
        match state.latencies.get_mut(at) {
            Some(oldest) => *oldest = micros,
            None => state.latencies.push(micros),
        }
        state.recorded += 1;
        state.unspent = (state.unspent + 1).min(HEDGES_MAX * GETS_PER_HEDGE);
        if state.recorded >= LATENCIES_MIN && state.recorded.is_multiple_of(COMPUTE_EVERY) {
            let mut sorted = state.latencies.clone();
            let at = sorted.len() * 95 / 100;
            let (_, percentile, _) = sorted.select_nth_unstable(at);
            state.percentile = Some(Duration::from_micros((*percentile).into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_the_95th_percentile_of_the_latest_thousand() {
        let hedging = Hedging::default();
        for latency in 0..99 {
            hedging.record(Duration::from_millis(latency));
        }
        assert_eq!(hedging.patience(), None);
        hedging.record(Duration::from_millis(99));
        assert_eq!(hedging.patience(), Some(Duration::from_millis(95)));
        for _ in 0..1000 {
            hedging.record(Duration::from_millis(7));
        }
        assert_eq!(hedging.patience(), Some(Duration::from_millis(7)));
    }

    #[test]
    fn a_tenth_of_all_gets_is_sent_twice_at_most() {
        let hedging = Hedging::default();
        let mut hedges = 0;
        for _ in 0..10_000 {
            hedging.record(Duration::from_millis(1));
            hedges += u32::from(hedging.spend());
        }
        assert_eq!(hedges, 1000);
        for _ in 0..10_000 {
            hedging.record(Duration::from_millis(1));
        }
        let burst = (0..100).filter(|_| hedging.spend()).count();
        assert_eq!(burst, HEDGES_MAX as usize);
    }
}
