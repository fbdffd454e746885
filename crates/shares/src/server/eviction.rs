//! Evictions: rounds of dealing and reducing, from the root to the leaves. Also their commit and
//! rollback.

use std::collections::VecDeque;
use std::sync::Arc;

use oblivio_core::BucketId;
use rand_core::CryptoRng;

use super::{Bucket, Refused, Server, WRONG_LENGTH};
use crate::field::Field;
use crate::message::{DealtShares, Evict};
use crate::multiplication::{reduce, reshare};
use crate::tree::Triplet;

/// An eviction in progress on this server.
pub(super) struct Evicting<E> {
    /// The rounds that remain, in order.
    triplets: VecDeque<Triplet>,
    /// The matrices of the remaining rounds in order, followed by the matrix for the sibling leaf.
    matrices: VecDeque<Vec<E>>,
    /// The slots of the source bucket of the next round, as they are after the rounds so far.
    source: Option<Bucket<E>>,
    /// The final contents of the buckets that no later round changes, in the order of the rounds;
    /// `None` for an emptied bucket.
    made: Vec<(BucketId, Option<Bucket<E>>)>,
}

/// The state before the last eviction, for a rollback.
pub(super) struct RollbackState<E> {
    /// The replaced buckets with their old contents, in the order in which they were replaced.
    buckets: Vec<(BucketId, Option<Bucket<E>>)>,
    written: usize,
}

const IS_NOT_EVICTING: Refused = Refused("no eviction is in progress");

impl<F: Field> Server<F> {
    /// Begins an eviction (Subroutine 3, step 18). One round follows for each level, in which all
    /// servers [deal](Self::deal) and [reduce](Self::reduce). If the eviction does not finish, the
    /// client begins it again as a later attempt, with the same matrices.
    ///
    /// # Errors
    /// If `number` is not the next eviction, or the attempt is not later than the last one. Also if
    /// the matrices are invalid, or an eviction is in progress or not committed.
    pub fn begin_eviction(&mut self, evict: Evict<F::Element>) -> Result<(), Refused> {
        let Evict { number, attempt, matrices } = evict;
        self.check_settled()?;
        if number != self.evictions {
            return Err(Refused("this is not the next eviction"));
        }
        if attempt <= self.attempt {
            return Err(Refused(
                "this server has already seen this attempt to evict, or a later one",
            ));
        }
        if matrices.len() != usize::from(self.tree.height()) + 1 {
            return Err(Refused(
                "an eviction needs one matrix for each level, and one for the sibling leaf",
            ));
        }
        let elements = 2 * self.tree.slots() * self.tree.slots();
        // Check all lengths before expanding any seed.
        if !matrices.iter().all(|share| share.has_length::<F>(elements)) {
            return Err(WRONG_LENGTH);
        }
        let matrices = matrices.into_iter().map(|share| share.into_elements::<F>(elements));
        let matrices = matrices.collect::<Option<_>>().ok_or(WRONG_LENGTH)?;
        // Subroutine 3, step 18: the buckets of the path, from the root down.
        let triplets = self.tree.triplets(number).collect();
        let source = self.buckets.get(&BucketId::ROOT).cloned();
        self.evicting = Some(Evicting { triplets, matrices, source, made: Vec::new() });
        (self.attempt, self.last_query) = (attempt, None);
        Ok(())
    }

    /// Creates the shares that this server, as a dealer, sends to each server (itself included) in
    /// the next round. Subroutine 3, step 23, and steps 2 to 4 of Protocol 1.
    ///
    /// # Errors
    /// If no eviction is in progress.
    pub fn deal(&self, coins: &mut dyn CryptoRng) -> Result<Vec<DealtShares<F::Element>>, Refused> {
        let evicting = self.evicting.as_ref().ok_or(IS_NOT_EVICTING)?;
        let triplet = evicting.triplet()?;
        let (number, attempt) = (self.evictions, self.attempt);
        let level = triplet.destination.level();
        let nothing = |_| DealtShares { number, attempt, tile: 0, level, shares: Vec::new() };
        let mut dealt: Vec<_> = self.parties.numbers().map(nothing).collect();
        // Subroutine 3, step 21: the destination; step 25: in the last round, also the sibling.
        for (child, matrix) in triplet.computed_buckets().zip(&evicting.matrices) {
            // Subroutine 3, steps 22 and 23: slots × matrix, for all chunks (Protocol 1, step 2).
            let source = self.slots_of(evicting.source.as_ref());
            let slots: Vec<_> = source.chain(self.slots(child)).collect();
            let mut product = vec![F::ZERO; self.bucket_elements()];
            F::combine(&mut product, matrix, self.tree.slots(), &slots);
            // Protocol 1, steps 3 and 4: share the product with all servers.
            let shares = reshare::<F>(self.parties, self.number, &product, coins);
            dealt.iter_mut().zip(shares).for_each(|(dealt, share)| dealt.shares.push(share));
        }
        Ok(dealt)
    }

    /// Combines the shares that 2*t* + 1 dealers sent to this server in this round into the new
    /// buckets. Subroutine 3, steps 19 and 24, and step 6 of Protocol 1. All servers must use the
    /// same dealers. Returns whether this server has finished the eviction. The eviction counts
    /// once all servers [commit](Self::commit).
    ///
    /// # Errors
    /// If no eviction is in progress, or the dealers are not 2*t* + 1 different servers. Also if
    /// the shares are invalid or from another round.
    pub fn reduce(
        &mut self,
        dealers: &[u8],
        dealt: Vec<DealtShares<F::Element>>,
    ) -> Result<bool, Refused> {
        let triplet = self.evicting.as_ref().ok_or(IS_NOT_EVICTING)?.triplet()?;
        let made: Vec<BucketId> = triplet.computed_buckets().collect();
        let reduced = self.reduced(triplet, made.len(), dealers, dealt)?;
        let Some(evicting) = &mut self.evicting else { return Err(IS_NOT_EVICTING) };
        evicting.triplets.pop_front();
        evicting.matrices.drain(..made.len());
        // The source becomes empty. The sibling gets a copy of it, unless the sibling is a leaf.
        let source = evicting.source.take();
        evicting.made.push((triplet.source, None));
        if triplet.is_last {
            // Subroutine 3, steps 24 and 25: the leaves get their new contents.
            let reduced = reduced.into_iter().map(Some);
            evicting.made.extend(made.into_iter().zip(reduced));
            self.finish_eviction();
        } else {
            // Subroutine 3, step 19: the source replaces the sibling.
            evicting.made.push((triplet.sibling, source));
            // Subroutine 3, step 24: the destination, which is the next source.
            evicting.source = reduced.into_iter().next();
        }
        Ok(triplet.is_last)
    }

    /// Computes the new shares of the buckets of a round.
    fn reduced(
        &self,
        triplet: Triplet,
        buckets: usize,
        dealers: &[u8],
        dealt: Vec<DealtShares<F::Element>>,
    ) -> Result<Vec<Bucket<F::Element>>, Refused> {
        let are_enough =
            dealers.len() == self.parties.for_product() && dealers.len() == dealt.len();
        if !(are_enough && self.parties.are_distinct_servers(dealers)) {
            return Err(Refused("the dealers must be 2t + 1 different servers"));
        }
        let round = (self.evictions, self.attempt, triplet.destination.level());
        if dealt.iter().any(|dealt| (dealt.number, dealt.attempt, dealt.level) != round) {
            return Err(Refused("these shares belong to another round"));
        }
        if dealt.iter().any(|dealt| dealt.shares.len() != buckets) {
            return Err(Refused("a dealer must send one share for each bucket of the round"));
        }
        let elements = self.bucket_elements();
        let expanded = dealt.into_iter().map(|dealt| {
            let shares = dealt.shares.into_iter().map(|share| share.into_elements::<F>(elements));
            shares.collect::<Option<Vec<_>>>()
        });
        let expanded: Vec<_> = expanded.collect::<Option<_>>().ok_or(WRONG_LENGTH)?;
        // Subroutine 3, step 24: reduce the degree (Protocol 1, steps 5 and 6).
        let reduced = (0..buckets).map(|bucket| {
            let dealt: Vec<_> = expanded.iter().map(|dealt| &dealt[bucket][..]).collect();
            reduce::<F>(dealers, &dealt).map(Arc::new)
        });
        reduced.collect::<Option<_>>().ok_or(WRONG_LENGTH)
    }

    /// Finishes the eviction on this server: puts the computed buckets in the place of the old
    /// ones, and keeps the old ones for a rollback.
    fn finish_eviction(&mut self) {
        let Some(Evicting { made, .. }) = self.evicting.take() else { return };
        let buckets = made.into_iter().map(|(id, bucket)| (id, self.put(id, bucket))).collect();
        self.rollback = Some(RollbackState { buckets, written: self.written });
        (self.evictions, self.written) = (self.evictions + 1, 0);
    }

    /// Sets the contents of a bucket. Returns its old contents.
    fn put(
        &mut self,
        id: BucketId,
        bucket: Option<Bucket<F::Element>>,
    ) -> Option<Bucket<F::Element>> {
        match bucket {
            Some(bucket) => self.buckets.insert(id, bucket),
            None => self.buckets.remove(&id),
        }
    }

    /// Runs an eviction on all servers of a tree in one process. Tests compare servers that
    /// exchange messages with this function.
    ///
    /// # Errors
    /// If a server refuses.
    pub fn evict_all(
        servers: &mut [Self],
        evictions: Vec<Evict<F::Element>>,
        coins: &mut dyn CryptoRng,
    ) -> Result<(), Refused> {
        servers.iter_mut().zip(evictions).try_for_each(|(it, evict)| it.begin_eviction(evict))?;
        let enough = servers.first().map_or(0, |server| server.parties.for_product());
        let dealers: Vec<_> = servers.iter().take(enough).map(|server| server.number).collect();
        let mut is_over = servers.is_empty();
        while !is_over {
            let dealt = servers.iter().take(enough).map(|server| server.deal(coins));
            let dealt = dealt.map(|dealt| dealt.map(Vec::into_iter));
            let mut dealt = dealt.collect::<Result<Vec<_>, _>>()?;
            for server in &mut *servers {
                let to_it = dealt.iter_mut().filter_map(Iterator::next).collect();
                is_over = server.reduce(&dealers, to_it)?;
            }
        }
        servers.iter_mut().try_for_each(|server| server.commit(server.evictions))
    }

    /// Commits the last eviction: all servers have finished it, so no server rolls it back.
    /// `evictions` counts the evictions up to and including the last one. Idempotent.
    ///
    /// # Errors
    /// If this server has not finished exactly `evictions` evictions, or has begun another one.
    pub fn commit(&mut self, evictions: u64) -> Result<(), Refused> {
        if evictions != self.evictions || self.evicting.is_some() {
            return Err(Refused("this server has not finished exactly this number of evictions"));
        }
        self.rollback = None;
        Ok(())
    }

    /// Rolls back the eviction that is in progress, or the last eviction if this server has
    /// finished but not committed it. Idempotent: a server without such an eviction does not
    /// change.
    pub fn roll_back(&mut self) {
        self.evicting = None;
        if let Some(RollbackState { buckets, written }) = self.rollback.take() {
            for (id, bucket) in buckets.into_iter().rev() {
                self.put(id, bucket);
            }
            (self.evictions, self.written) = (self.evictions - 1, written);
        }
    }
}

impl<E> Evicting<E> {
    /// The buckets of the next round; an error if no eviction is in progress.
    fn triplet(&self) -> Result<Triplet, Refused> {
        self.triplets.front().copied().ok_or(IS_NOT_EVICTING)
    }
}

impl Triplet {
    /// The children whose contents the servers compute as a product in this step.
    pub(crate) fn computed_buckets(self) -> impl Iterator<Item = BucketId> {
        [Some(self.destination), self.is_last.then_some(self.sibling)].into_iter().flatten()
    }
}
