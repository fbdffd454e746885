//! The randomness of a client.
//!
//! A generator that is read out of memory can be run backwards to its last seed, and a machine that is
//! copied while it runs draws the same numbers twice. So the seed is renewed with each checkpoint, from
//! the generator itself and from the system: what was drawn before cannot be computed from what is in
//! memory after, and copies of a client part ways.

use std::convert::Infallible;

use rand::rngs::{StdRng, SysRng};
use rand::{Rng, SeedableRng, TryRng};
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use crate::error::{VolumeError, VolumeErrorKind};

/// Bytes of a seed.
const SEED_BYTES: usize = 32;

/// A generator whose seed is renewed. Secret; wiped when dropped.
pub struct Coins {
    generator: StdRng,
    /// What is mixed into a new seed besides what the generator itself gives.
    fresh: Fresh,
}

/// Where fresh randomness comes from.
#[derive(Clone, Copy)]
enum Fresh {
    System,
    /// Nowhere: so that a run of a test is a seed.
    Nowhere,
}

impl Coins {
    /// Randomness from the system.
    ///
    /// # Errors
    /// [`VolumeErrorKind::Io`] when the system gives none.
    pub fn from_system() -> Result<Self, VolumeError> {
        let mut coins =
            Self { generator: StdRng::from_seed(*system_seed()?), fresh: Fresh::System };
        coins.renew()?;
        Ok(coins)
    }

    /// Those of a machine that is copied while it runs: the same for each copy, until they are renewed.
    #[cfg(test)]
    pub(crate) fn of_a_copied_machine() -> Self {
        Self { generator: StdRng::seed_from_u64(1), fresh: Fresh::System }
    }

    /// Draws a new seed: from here on nothing leads back.
    ///
    /// # Errors
    /// [`VolumeErrorKind::Io`] when the system gives none.
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

/// Numbers that follow from a seed, for tests and benchmarks.
impl From<StdRng> for Coins {
    fn from(generator: StdRng) -> Self {
        Self { generator, fresh: Fresh::Nowhere }
    }
}

fn system_seed() -> Result<Zeroizing<[u8; SEED_BYTES]>, VolumeError> {
    let mut seed = Zeroizing::new([0; SEED_BYTES]);
    SysRng.try_fill_bytes(&mut *seed).map_err(|error| {
        let message = format!("the system gives no randomness: {error}");
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
