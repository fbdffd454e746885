//! The randomness (coins) from which the client draws shares.
//!
//! No seed is used for two secrets, or twice for one secret whose shares go to different servers.
//! From such a pair of sharings a single server could recover both secrets. This must hold across
//! all copies of a running client, for example after a snapshot of its machine. Copies start from
//! the same coins and draw the same salts, but servers may answer them differently, and each makes
//! its own accesses and checkpoints. So each seed is derived from all values in which two sharings
//! can differ:
//!
//! - **Queries and writes**, including those for dummies, are drawn from coins derived from the
//!   salt of the access and from what is shared ([`salted`]). The salt is drawn with the plan, and
//!   logged with it: a repeated access has the same shares. A salt belongs to one access number,
//!   and so to one turn: a plan draws the same number of bytes for every access, and the client
//!   draws no other bytes between checkpoints.
//! - **Matrices** are drawn from the coins of the era ([`EraCoins`]). Each attempt first mixes in
//!   the tree, the eviction, the attempt, and the matrices. Plans and forgotten ranges are mixed in
//!   as well.
//! - **Openings and checkpoints** draw new coins of the era, and mix the old ones in: copies
//!   whose coins differ have different new coins, even if their systems return the same randomness.
//! - **Repairs, and servers that catch up,** draw nothing: a missing share is computed from the
//!   others.
//!
//! A *turn* is a number that determines which servers receive a seed instead of a share. It follows
//! from the number of accesses alone.

use chacha20::ChaCha20Rng;
use oblivio_core::seal::BlockSealer;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Error, Leaf};
use rand_core::{CryptoRng, Rng, SeedableRng};
use zeroize::Zeroizing;

use super::impossible;
use crate::client::{EvictionPlan, Position};
use crate::message::TreePoint;
use crate::sharing::Seed;

/// Derives coins from the salt and the secret to be shared, given as `parts`. Parts with equal
/// concatenations give equal coins; other parts give independent coins.
pub(super) fn salted(sealer: &BlockSealer, parts: &[&[u8]]) -> ChaCha20Rng {
    let salted = Zeroizing::new(parts.concat());
    ChaCha20Rng::from_seed(*sealer.seed(&salted))
}

/// Encodes the secret of a query: the shown path, and the slot on the path if the query selects
/// one.
pub(super) fn query_bytes(position: Option<Position>, shown: Leaf) -> Zeroizing<Vec<u8>> {
    let place = position.map_or([u64::MAX; 2], |it| [it.level.into(), it.slot as u64]);
    Zeroizing::new([shown.0, place[0], place[1]].map(u64::to_le_bytes).concat())
}

/// The turn to set before sharing the query of access `access`. Sharing takes the turn after it.
pub(super) fn query_turn(access: u64) -> u64 {
    2 * access
}

/// The turn to set before sharing the block of access `access`. Sharing takes the turn after it.
pub(super) fn write_turn(access: u64) -> u64 {
    2 * access + 1
}

/// The turn before the first matrix of an eviction that follows `accesses` accesses, in every
/// attempt.
pub(super) fn eviction_turn(accesses: u64) -> u64 {
    2 * accesses
}

/// The coins of an era, which lasts from an opening or checkpoint to the next; `None` until the
/// client's first era begins. Secret.
#[derive(Default)]
pub(super) struct EraCoins(Option<ChaCha20Rng>);

impl EraCoins {
    /// Begins an era: draws new coins, and mixes in those of the era before.
    pub(super) fn draw(&mut self, sealer: &BlockSealer, coins: &mut dyn CryptoRng) {
        let mut mixed = WipedBytes::zeros(2 * size_of::<Seed>());
        let (fresh, before) = mixed.split_at_mut(size_of::<Seed>());
        coins.fill_bytes(fresh);
        if let Some(era) = &mut self.0 {
            era.fill_bytes(before);
        }
        self.0 = Some(ChaCha20Rng::from_seed(*sealer.seed(&mixed)));
    }

    /// Makes all later draws also depend on `what_is_next`.
    pub(super) fn mix_in(
        &mut self,
        sealer: &BlockSealer,
        what_is_next: &[u8],
    ) -> Result<(), Error> {
        self.mix_in_all(sealer, &[what_is_next])
    }

    /// The coins for one attempt at an eviction that begins at point `at` of a tree.
    pub(super) fn of_attempt(
        &mut self,
        sealer: &BlockSealer,
        (tree, at, attempt): (usize, TreePoint, u64),
        next: &EvictionPlan<u8>,
    ) -> Result<&mut ChaCha20Rng, Error> {
        let name = [tree as u64, at.evictions, attempt].map(u64::to_le_bytes).concat();
        let matrices = next.matrices().iter().map(|matrix| &matrix[..]);
        let parts: Vec<_> = std::iter::once(&name[..]).chain(matrices).collect();
        self.mix_in_all(sealer, &parts)?;
        self.drawn()
    }

    fn mix_in_all(&mut self, sealer: &BlockSealer, parts: &[&[u8]]) -> Result<(), Error> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let mut mixed = WipedBytes::with_capacity(size_of::<Seed>() + bytes);
        mixed.extend_with_zeros(size_of::<Seed>());
        self.drawn()?.fill_bytes(&mut mixed);
        parts.iter().for_each(|part| mixed.extend_from_slice(part));
        self.0 = Some(ChaCha20Rng::from_seed(*sealer.seed(&mixed)));
        Ok(())
    }

    /// The coins of the current era. Matrices must not be drawn from these, but from
    /// [`Self::of_attempt`].
    pub(super) fn drawn(&mut self) -> Result<&mut ChaCha20Rng, Error> {
        self.0
            .as_mut()
            .ok_or_else(|| impossible("internal error: no era has begun; report this bug"))
    }
}
