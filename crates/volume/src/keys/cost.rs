//! The cost of guessing a passphrase: Argon2id (RFC 9106) and its parameters.

use std::time::Duration;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use zeroize::Zeroizing;

use super::error::{KeyError, KeyErrorKind};
use super::volume_key::KEY_BYTES;

/// Memory and time of one guess. Public: it is stored in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

impl Cost {
    /// The lowest cost of new slots: the second recommendation of RFC 9106, on one lane.
    pub const FLOOR: Self = Self { memory_kib: 64 << 10, passes: 3, lanes: 1 };

    /// The highest cost that may be spent on a slot. Stored costs are not authentic: without a
    /// ceiling, storage could make an opening run out of memory.
    pub const CEILING: Self = Self { memory_kib: 4 << 20, passes: 64, lanes: 16 };

    /// Maximum memory that [`Self::calibrate`] chooses, so that smaller machines can open the
    /// volume.
    pub const CALIBRATED_MEMORY_KIB_MAX: u32 = 1 << 20;

    /// Maximum number of passes that [`Self::calibrate`] chooses. Even if all slots have this
    /// number of passes over the maximum memory, an opening can try all of them within the default
    /// [`UnlockLimits`](super::UnlockLimits).
    const CALIBRATED_PASSES_MAX: u32 = 8;

    /// A cost of the owner's choice. Lanes are filled one after the other: more lanes help only an
    /// attacker with many cores.
    ///
    /// # Errors
    /// [`KeyErrorKind::InvalidRequest`] below [`Self::FLOOR`] or above [`Self::CEILING`].
    pub fn new(memory_kib: u32, passes: u32, lanes: u32) -> Result<Self, KeyError> {
        let cost = Self { memory_kib, passes, lanes };
        let (floor, ceiling) = (Self::FLOOR, Self::CEILING);
        if cost.is_within(ceiling) && floor.is_within(cost) {
            Ok(cost)
        } else {
            Err(KeyError::invalid(format!("a cost is {floor} to {ceiling}, not {cost}")))
        }
    }

    /// A minimal cost, for tests alone: a passphrase under it is guessed at once.
    pub fn weak_for_tests() -> Self {
        Self { memory_kib: Params::MIN_M_COST, passes: 1, lanes: 1 }
    }

    /// A cost that takes about `target_millis` on this machine: at least [`Self::FLOOR`], which is
    /// run once to measure the machine, and at most 8 passes over
    /// [`Self::CALIBRATED_MEMORY_KIB_MAX`]. `clock` returns the time since any fixed moment.
    ///
    /// # Errors
    /// [`KeyErrorKind::TooCostly`] when the memory for the floor is not available.
    pub fn calibrate(
        target_millis: u32,
        mut clock: impl FnMut() -> Duration,
    ) -> Result<Self, KeyError> {
        let start = clock();
        Self::FLOOR.stretch(b"calibration", &[0; 32])?;
        let floor_time = clock().saturating_sub(start);
        Ok(Self::for_speed(Duration::from_millis(target_millis.into()), floor_time))
    }

    /// The cost that takes about `target`, if [`Self::FLOOR`] takes `floor_time`. Time grows with
    /// memory times passes. Memory makes guessing expensive, so it is raised first.
    fn for_speed(target: Duration, floor_time: Duration) -> Self {
        let floor = Self::FLOOR;
        let floor_micros = floor_time.as_micros().max(1);
        let floor_work = u128::from(floor.memory_kib) * u128::from(floor.passes);
        let work = target.as_micros() * floor_work / floor_micros;
        let between =
            |value: u128, min: u32, max: u32| u32::try_from(value).unwrap_or(max).clamp(min, max);
        let memory_kib = between(
            work / u128::from(floor.passes),
            floor.memory_kib,
            Self::CALIBRATED_MEMORY_KIB_MAX,
        );
        let passes =
            between(work / u128::from(memory_kib), floor.passes, Self::CALIBRATED_PASSES_MAX);
        Self { memory_kib, passes, lanes: floor.lanes }
    }

    /// A cost as it is stored, if Argon2 can run at it. It may be above the ceiling.
    pub(crate) fn from_stored(memory_kib: u32, passes: u32, lanes: u32) -> Option<Self> {
        let cost = Self { memory_kib, passes, lanes };
        cost.params().is_ok().then_some(cost)
    }

    /// Memory of one guess, in KiB.
    pub fn memory_kib(&self) -> u32 {
        self.memory_kib
    }

    /// Memory that one guess fills, summed over all passes, in KiB.
    pub(crate) fn work_kib(&self) -> u64 {
        u64::from(self.memory_kib) * u64::from(self.passes)
    }

    /// Number of times that the memory is filled.
    pub fn passes(&self) -> u32 {
        self.passes
    }

    /// Number of parts of the memory that could be filled in parallel.
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// The key that a passphrase gives at this cost. Fails if the cost is above the ceiling, or if
    /// there is not enough memory.
    pub(crate) fn stretch(
        &self,
        passphrase: &[u8],
        salt: &[u8; 32],
    ) -> Result<Zeroizing<[u8; KEY_BYTES]>, KeyError> {
        if !self.is_within(Self::CEILING) {
            return Err(too_costly(format!(
                "a key slot needs {self}, and this program spends {} at most: the slot was \
                 tampered with, or a newer program made it",
                Self::CEILING
            )));
        }
        let params = self.params().map_err(|error| KeyError::invalid(error.to_string()))?;
        let mut memory = Zeroizing::new(Vec::new());
        memory.try_reserve_exact(params.block_count()).map_err(|_| {
            too_costly(format!("a key slot needs {} KiB of memory: free some", self.memory_kib))
        })?;
        memory.resize(params.block_count(), Block::new());
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into_with_memory(passphrase, salt, &mut *key, &mut memory[..])
            .map_err(|error| KeyError::invalid(error.to_string()))?;
        Ok(key)
    }

    fn is_within(&self, bound: Self) -> bool {
        self.memory_kib <= bound.memory_kib
            && self.passes <= bound.passes
            && self.lanes <= bound.lanes
    }

    fn params(&self) -> Result<Params, argon2::Error> {
        Params::new(self.memory_kib, self.passes, self.lanes, Some(KEY_BYTES))
    }
}

fn too_costly(message: String) -> KeyError {
    KeyError::new(KeyErrorKind::TooCostly, message)
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { memory_kib, passes, lanes } = self;
        write!(f, "{memory_kib} KiB x {passes} passes x {lanes} lanes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_machine_is_given_more_to_do() {
        let cost = |floor_millis| {
            let cost = Cost::for_speed(Duration::from_secs(2), Duration::from_millis(floor_millis));
            (cost.memory_kib >> 10, cost.passes)
        };
        assert_eq!(cost(10_000), (64, 3), "a slow machine");
        assert_eq!(cost(2_000), (64, 3));
        assert_eq!(cost(1_000), (128, 3));
        assert_eq!(cost(125), (1024, 3));
        assert_eq!(cost(60), (1024, 6));
        assert_eq!(cost(25), (1024, 8));
        assert_eq!(cost(0), (1024, 8), "a clock that does not move");
    }

    #[test]
    fn calibration_asks_the_clock_around_the_work() {
        let mut millis = [1_000, 1_500].into_iter();
        let clock = || Duration::from_millis(millis.next().unwrap());
        let cost = Cost::calibrate(1_000, clock).unwrap();
        assert_eq!(cost, Cost::new(128 << 10, 3, 1).unwrap());
    }

    #[test]
    fn owners_choose_between_floor_and_ceiling() {
        let Cost { memory_kib, passes, lanes } = Cost::CEILING;
        assert!(Cost::new(memory_kib, passes, lanes).is_ok());
        for (memory_kib, passes, lanes) in [
            (memory_kib + 1, passes, lanes),
            (memory_kib, passes + 1, lanes),
            (memory_kib, passes, lanes + 1),
            (Cost::FLOOR.memory_kib - 1, 3, 1),
            (Cost::FLOOR.memory_kib, 2, 1),
            (Cost::FLOOR.memory_kib, 3, 0),
        ] {
            let error = Cost::new(memory_kib, passes, lanes).unwrap_err();
            assert_eq!(error.kind(), KeyErrorKind::InvalidRequest, "{error}");
        }
    }

    #[test]
    fn above_the_ceiling_nothing_is_tried() {
        let Cost { memory_kib, passes, lanes } = Cost::CEILING;
        for (memory_kib, passes, lanes) in
            [(memory_kib + 1, 1, 1), (8, passes + 1, 1), (1 << 10, 1, lanes + 1), (u32::MAX, 1, 1)]
        {
            let cost = Cost::from_stored(memory_kib, passes, lanes).unwrap();
            let error = cost.stretch(b"passphrase", &[0; 32]).unwrap_err();
            assert_eq!(error.kind(), KeyErrorKind::TooCostly, "{error}");
        }
    }
}
