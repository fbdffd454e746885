//! A random generator whose state can be saved.

use std::convert::Infallible;
use std::io::{self, Read, Write};

use chacha20::ChaCha12Rng;
use oblivio_core::image::{Image, refuse};
use rand::{SeedableRng, TryCryptoRng, TryRng};

/// A generator of the same numbers as [`StdRng`](rand::rngs::StdRng). It replaces `StdRng`, whose
/// position cannot be read or saved.
pub(crate) struct Coins(ChaCha12Rng);

/// Bytes of the seed, the stream, and the position in words.
const STATE_BYTES: usize = 32 + 8 + 9;

/// The top bytes of the position, which are always zero in practice.
const WORDS_TOP: std::ops::Range<usize> = STATE_BYTES - 2..STATE_BYTES;

impl SeedableRng for Coins {
    type Seed = [u8; 32];

    fn from_seed(seed: Self::Seed) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }
}

impl TryRng for Coins {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    #[inline]
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(bytes)
    }
}

impl TryCryptoRng for Coins {}

impl Image for Coins {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&self.0.serialize_state())
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        let mut state = [0; STATE_BYTES];
        from.read_exact(&mut state)?;
        if state[WORDS_TOP].iter().any(|byte| *byte != 0) {
            return Err(refuse("an impossible state of the random generator"));
        }
        self.0 = ChaCha12Rng::deserialize_state(&state);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, RngExt};

    use super::*;

    /// Draws one value from `coins`. `number` selects its type or length.
    fn throw(coins: &mut impl Rng, number: usize) -> u64 {
        match number % 5 {
            0 => coins.next_u32().into(),
            1 | 2 => coins.next_u64(),
            3 => coins.random_range(0..1000),
            _ => {
                let mut bytes = [0; 8];
                coins.fill_bytes(&mut bytes[..number % 9]);
                u64::from_le_bytes(bytes)
            }
        }
    }

    #[test]
    fn they_match_the_standard_generator() {
        let (mut ours, mut theirs) = (Coins::seed_from_u64(7), StdRng::seed_from_u64(7));
        for number in 0..5000 {
            assert_eq!(throw(&mut ours, number), throw(&mut theirs, number), "{number}");
        }
        let (mut ours, mut theirs) = (Coins::from_rng(&mut ours), StdRng::from_rng(&mut theirs));
        assert_eq!(throw(&mut ours, 1), throw(&mut theirs, 1));
    }

    #[test]
    fn they_continue_from_a_saved_state() {
        let mut coins = Coins::seed_from_u64(7);
        for thrown in 0..300 {
            let mut image = Vec::new();
            coins.write_image(&mut image).unwrap();
            let mut again = Coins::seed_from_u64(8);
            again.read_image(&mut &image[..]).unwrap();
            let mut ahead = StdRng::seed_from_u64(7);
            (0..thrown).for_each(|number| {
                throw(&mut ahead, number);
            });
            for number in thrown..thrown + 200 {
                assert_eq!(throw(&mut again, number), throw(&mut ahead, number), "{thrown}");
            }
            throw(&mut coins, thrown);
        }
    }

    #[test]
    fn impossible_states_are_refused() {
        let mut coins = Coins::seed_from_u64(7);
        assert!(coins.read_image(&mut &[0; STATE_BYTES - 1][..]).is_err());
        assert!(coins.read_image(&mut &[1; STATE_BYTES][..]).is_err());
        coins.read_image(&mut &[0; STATE_BYTES][..]).unwrap();
    }
}
