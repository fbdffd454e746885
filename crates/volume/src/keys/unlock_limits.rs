//! Limits on the slots that an opening tries, and on the memory and work that it spends.
//!
//! Key slots state the cost of trying them, and this statement is authentic only after a slot has
//! opened. Without a bound, storage could make an opening run out of memory or take an hour.

use super::cost::Cost;
use super::error::{KeyError, KeyErrorKind};

/// Number of times that an opening may fill the maximum memory of a slot, over all slots that it
/// tries.
const FILLS_MAX: u64 = 64;

/// The slots that an opening may try, and the memory that it may spend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnlockLimits {
    /// The one slot to try; `None` for all of the secret's kind.
    pub slot: Option<u8>,
    /// Maximum memory for a slot, in KiB. All slots together may fill it 64 times.
    pub memory_kib_max: u32,
}

/// All slots, within the costs that [`Cost::calibrate`] chooses.
impl Default for UnlockLimits {
    fn default() -> Self {
        Self { slot: None, memory_kib_max: Cost::CALIBRATED_MEMORY_KIB_MAX }
    }
}

/// The work on key derivation that an opening may still do.
pub(crate) struct Budget {
    pub(crate) limits: UnlockLimits,
    work_kib: u64,
}

impl Budget {
    pub(crate) fn new(limits: UnlockLimits) -> Self {
        Self { limits, work_kib: FILLS_MAX * u64::from(limits.memory_kib_max) }
    }

    /// Whether the limits include this slot.
    pub(crate) fn tries(&self, slot: u8) -> bool {
        self.limits.slot.is_none_or(|wanted| wanted == slot)
    }

    /// Spends the cost of a slot, if it is within bounds.
    pub(crate) fn spend(&mut self, cost: Cost) -> Result<(), KeyError> {
        if cost.memory_kib() > self.limits.memory_kib_max {
            return Err(KeyError::new(
                KeyErrorKind::TooCostly,
                format!(
                    "a key slot needs {cost}, and an opening spends {} KiB on a slot at most: \
                     allow more if you made the slot so. If you did not, do not trust \
                     this storage",
                    self.limits.memory_kib_max
                ),
            ));
        }
        self.work_kib = self.work_kib.checked_sub(cost.work_kib()).ok_or_else(|| {
            KeyError::new(
                KeyErrorKind::TooCostly,
                "the key slots together need more work than an opening spends: name the slot to \
                 try, or allow more memory, which allows more work as well. If you did not make \
                 them so, do not trust this storage",
            )
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SLOTS_MAX;

    fn cost(memory_mib: u32, passes: u32) -> Cost {
        Cost::new(memory_mib << 10, passes, 1).unwrap()
    }

    #[test]
    fn a_slot_has_a_bound_and_all_slots_together_have_one() {
        let mut budget = Budget::new(UnlockLimits::default());
        let kind = |spent: Result<(), KeyError>| spent.map_err(|error| error.kind());
        assert_eq!(kind(budget.spend(cost(1025, 3))), Err(KeyErrorKind::TooCostly));
        for _ in 0..2 {
            assert_eq!(kind(budget.spend(cost(1024, 30))), Ok(()));
        }
        assert_eq!(kind(budget.spend(cost(1024, 5))), Err(KeyErrorKind::TooCostly));
        // A cheaper slot is still tried.
        assert_eq!(kind(budget.spend(cost(1024, 4))), Ok(()));
        assert_eq!(kind(budget.spend(cost(64, 3))), Err(KeyErrorKind::TooCostly));

        let mut budget =
            Budget::new(UnlockLimits { memory_kib_max: 4 << 20, ..UnlockLimits::default() });
        assert_eq!(kind(budget.spend(cost(4096, 64))), Ok(()));
        assert_eq!(kind(budget.spend(cost(64, 3))), Err(KeyErrorKind::TooCostly));
    }

    #[test]
    fn slots_of_calibrated_costs_are_tried_together_whatever_machine_made_them() {
        for floor_micros in [0, 1, 1_000, 30_000, 1_000_000] {
            for target_millis in [1, 1_000, u32::MAX] {
                let mut times = [0, floor_micros].into_iter();
                let clock = || std::time::Duration::from_micros(times.next().unwrap());
                let cost = Cost::calibrate(target_millis, clock).unwrap();
                let mut budget = Budget::new(UnlockLimits::default());
                for _ in 0..SLOTS_MAX {
                    budget.spend(cost).unwrap_or_else(|error| panic!("{cost}: {error}"));
                }
            }
        }
    }
}
