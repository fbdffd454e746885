//! What shares are drawn from.

use chacha20::ChaCha20Rng;
use oblivio_core::Error;
use oblivio_core::seal::BlockSealer;
use oblivio_core::wiped::WipedBytes;
use rand_core::{CryptoRng, Rng, SeedableRng};
use zeroize::Zeroizing;

use super::impossible;
use crate::sharing::Seed;

/// The coins of an era: none before the first has begun. Secret.
#[derive(Default)]
pub(super) struct EraCoins(Option<ChaCha20Rng>);

impl EraCoins {
    /// Draws what shares are drawn from, from now on.
    pub(super) fn draw(&mut self, coins: &mut dyn CryptoRng) {
        let mut seed = Zeroizing::new(Seed::default());
        coins.fill_bytes(&mut *seed);
        self.0 = Some(ChaCha20Rng::from_seed(*seed));
    }

    /// What is drawn from now on follows from this, too: copies of this client that go on with something else share otherwise.
    pub(super) fn mix_in(
        &mut self,
        sealer: &BlockSealer,
        what_is_next: &[u8],
    ) -> Result<(), Error> {
        let mut mixed = WipedBytes::zeros(size_of::<Seed>());
        self.drawn()?.fill_bytes(&mut mixed);
        mixed.extend_from_slice(what_is_next);
        self.0 = Some(ChaCha20Rng::from_seed(*sealer.seed(&mixed)));
        Ok(())
    }

    /// Those of the era that has begun.
    pub(super) fn drawn(&mut self) -> Result<&mut ChaCha20Rng, Error> {
        self.0.as_mut().ok_or_else(|| impossible("an era has to begin before anything is shared"))
    }
}
