//! The client's random number generator.
//!
//! An attacker who reads a generator's state from memory can compute its output back to the last
//! seed. Two copies of a running machine draw the same numbers. So each checkpoint mixes a new seed
//! from the generator and the system: earlier output cannot be computed from later memory, and
//! copies of a client diverge.

use std::convert::Infallible;

use rand::rngs::{StdRng, SysRng};
use rand::{Rng, SeedableRng, TryRng};
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use crate::error::{VolumeError, VolumeErrorKind};

/// Bytes of a seed.
const SEED_BYTES: usize = 32;

/// A generator that can be reseeded. Secret; wiped when dropped.
pub struct Coins {
    generator: StdRng,
    /// The source of the randomness that a new seed mixes with the generator's own output.
    fresh: Fresh,
}

/// The source of fresh randomness.
#[derive(Clone, Copy)]
enum Fresh {
    System,
    /// No source: the numbers of a test run then depend on its first seed alone.
    Nowhere,
}

impl Coins {
    /// Seeds a generator from the system.
    ///
    /// # Errors
    /// [`VolumeErrorKind::Io`] when the system provides no randomness.
    pub fn from_system() -> Result<Self, VolumeError> {
        let mut coins =
            Self { generator: StdRng::from_seed(*system_seed()?), fresh: Fresh::System };
        coins.renew()?;
        Ok(coins)
    }

    /// A generator for tests of a machine that is copied while it runs: every copy draws the same
    /// numbers until it renews the seed.
    #[cfg(test)]
    pub(crate) fn of_a_copied_machine() -> Self {
        Self { generator: StdRng::seed_from_u64(1), fresh: Fresh::System }
    }

    /// Draws a new seed. Earlier output cannot be computed from the state after this.
    ///
    /// # Errors
    /// [`VolumeErrorKind::Io`] when the system provides no randomness.
    pub fn renew(&mut self) -> Result<(), VolumeError> {
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        self.generator.fill_bytes(&mut *seed);
        if let Fresh::System = self.fresh {
            let system = system_seed()?;
            seed.iter_mut().zip(system.iter()).for_each(|(byte, system)| *byte ^= system);
        }
        self.generator = StdRng::from_seed(*seed);
        Ok(())
    }
}

/// A deterministic generator, for tests and benchmarks.
impl From<StdRng> for Coins {
    fn from(generator: StdRng) -> Self {
        Self { generator, fresh: Fresh::Nowhere }
    }
}

fn system_seed() -> Result<Zeroizing<[u8; SEED_BYTES]>, VolumeError> {
    let mut seed = Zeroizing::new([0; SEED_BYTES]);
    SysRng.try_fill_bytes(&mut *seed).map_err(|error| {
        let message = format!("the system provides no randomness: {error}");
        VolumeError::caused_by(VolumeErrorKind::Io, message, error)
    })?;
    Ok(seed)
}

impl TryRng for Coins {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.generator.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.generator.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.generator.try_fill_bytes(bytes)
    }
}

impl TryCryptoRng for Coins {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_copies_of_a_client_part_ways_when_they_renew() {
        let [mut one, mut other] = [0; 2].map(|_| Coins::of_a_copied_machine());
        assert_eq!(one.next_u64(), other.next_u64());
        one.renew().unwrap();
        other.renew().unwrap();
        assert_ne!(one.next_u64(), other.next_u64());
    }

    #[test]
    fn a_seed_gives_the_same_numbers_renewed_or_not_and_others_after() {
        let coins = || Coins::from(StdRng::seed_from_u64(1));
        let (mut one, mut other, mut not_renewed) = (coins(), coins(), coins());
        one.renew().unwrap();
        other.renew().unwrap();
        let numbers = |coins: &mut Coins| [coins.next_u64(), coins.next_u64()];
        let renewed = numbers(&mut one);
        assert_eq!(renewed, numbers(&mut other));
        let before: Vec<_> = (0..100).map(|_| not_renewed.next_u64()).collect();
        assert!(renewed.iter().all(|number| !before.contains(number)));
    }
}
