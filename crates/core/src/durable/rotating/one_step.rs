//! An ordinary `Oram` over [`DurableRawOram`]: it makes both steps of an access at once, with its
//! own random generator.

use alloc::vec::Vec;

use rand_core::CryptoRng;

use super::{DurableRawOram, ignored_ops};
use crate::error::Error;
use crate::front::{Access, Oram, check_requests};
use crate::scheme::Move;
use crate::store::BucketStore;

impl<S: BucketStore, R: CryptoRng> DurableRawOram<S, R> {
    /// Step 1 of the accesses to `addresses`, in this order: draws a fresh leaf per access. Changes
    /// nothing, and shows storage nothing.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if an address is past the end, or
    /// [needs](Self::missing_positions_to_access) positions that are not on the client.
    pub fn plan_accesses(&mut self, addresses: &[u64]) -> Result<Vec<Move>, Error> {
        addresses.iter().try_for_each(|address| self.check_address(*address))?;
        let Self { positions, coins, .. } = self;
        positions.draw_moves(&[], addresses.iter().copied().map(Some), coins)
    }

    /// Step 1 of dummy accesses, which storage cannot distinguish from other accesses.
    pub fn plan_dummies(&mut self, accesses: usize) -> Vec<Move> {
        let Self { positions, coins, .. } = self;
        (0..accesses).map(|_| Move::dummy(positions.draw(coins))).collect()
    }

    /// The random generator that draws leaves.
    pub fn coins_mut(&mut self) -> &mut R {
        &mut self.coins
    }

    /// Begins an era of the seal: from the next eviction on, everything is sealed under fresh keys.
    pub fn begin_era(&mut self) {
        self.backend.begin_era(&mut self.coins);
    }
}

/// An `Oram` that never returns to an earlier state: the state at the start of each window counts
/// as durable.
impl<S: BucketStore, R: CryptoRng> Oram for DurableRawOram<S, R> {
    fn capacity(&self) -> u64 {
        self.config.data_blocks()
    }

    fn block_bytes(&self) -> usize {
        self.config.raw.tree.block_bytes
    }

    fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error> {
        check_requests(self, batch)?;
        let window_max = self.window_accesses_max();
        let mut rest = batch;
        while !rest.is_empty() {
            self.backend.mark_durable();
            let fitting = self.backend.accesses_left().min(rest.len().min(window_max) as u64);
            let addresses: Vec<_> =
                rest[..fitting as usize].iter().map(|request| request.address).collect();
            let needed = if self.has_flat_map() {
                Vec::new()
            } else {
                self.missing_positions_to_access(&addresses)?
            };
            if !needed.is_empty() {
                let steps = self.plan_accesses(&needed)?;
                self.carry_out(&steps, &mut ignored_ops(steps.len()))?;
                continue;
            }
            let (now, later) = core::mem::take(&mut rest).split_at_mut(fitting as usize);
            let steps = self.plan_accesses(&addresses)?;
            let mut ops: Vec<_> = now.iter_mut().map(|request| request.op.reborrow()).collect();
            self.carry_out_checked(&steps, &mut ops)?;
            rest = later;
        }
        Ok(())
    }
}
