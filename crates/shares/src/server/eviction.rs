//! Evictions: rounds of dealing and reducing, from the root to the leaves, and what becomes of them.

use std::collections::VecDeque;
use std::sync::Arc;

use oblivio_core::BucketId;
use rand_core::CryptoRng;

use super::{Bucket, Refused, Server, WRONG_LENGTH};
use crate::field::Field;
use crate::message::{Dealt, Evict};
use crate::multiplication::{reduce, reshare};
use crate::tree::Triplet;

/// An eviction that is under way.
pub(super) struct Evicting<E> {
    /// What is left to do: a round for each.
    triplets: VecDeque<Triplet>,
    /// The next one first, and that of the last leaf beside the path last of all.
    matrices: VecDeque<Vec<E>>,
    /// What the source of the next round holds.
    source: Option<Bucket<E>>,
    /// What buckets hold once it is over.
    made: Vec<(BucketId, Option<Bucket<E>>)>,
}

/// What an eviction has replaced.
pub(super) struct Replaced<E> {
    /// In the order in which it was.
    buckets: Vec<(BucketId, Option<Bucket<E>>)>,
    written: usize,
}

const IS_NOT_EVICTING: Refused = Refused("no path is being evicted");

impl<F: Field> Server<F> {
    /// Begins to evict a path (Subroutine 3, step 18). A round follows for each level: all servers [deal](Self::deal) and
    /// [reduce](Self::reduce). If it does not come to an end, it is begun once more as a later attempt, with the same matrices.
    ///
    /// # Errors
    /// For another number than the next one, for an attempt that is no later one, for matrices that are none, and in the middle of an eviction.
    pub fn begin_eviction(&mut self, evict: Evict<F::Element>) -> Result<(), Refused> {
        let Evict { number, attempt, matrices } = evict;
        self.check_settled()?;
        if number != self.evictions {
            return Err(Refused("another eviction is next"));
        }
        if attempt <= self.attempt {
            return Err(Refused("there was a later attempt to evict a path"));
        }
        if matrices.len() != usize::from(self.tree.height()) + 1 {
            return Err(Refused(
                "an eviction has a matrix for each level, and one for the last sibling",
            ));
        }
        let elements = 2 * self.tree.slots() * self.tree.slots();
        // Before any is drawn.
        if !matrices.iter().all(|share| share.is_of::<F>(elements)) {
            return Err(WRONG_LENGTH);
        }
        let matrices = matrices.into_iter().map(|share| share.into_elements::<F>(elements));
        let matrices = matrices.collect::<Option<_>>().ok_or(WRONG_LENGTH)?;
        let triplets = self.tree.triplets(number).collect();
        let source = self.buckets.get(&BucketId::ROOT).cloned();
        self.evicting = Some(Evicting { triplets, matrices, source, made: Vec::new() });
        (self.attempt, self.asked) = (attempt, None);
        Ok(())
    }

    /// What this server, as a dealer, sends to each server in the next round of the eviction, itself included (Subroutine 3, step 23,
    /// and steps 2 to 4 of Protocol 1).
    ///
    /// # Errors
    /// When there is none.
    pub fn deal(&self, coins: &mut dyn CryptoRng) -> Result<Vec<Dealt<F::Element>>, Refused> {
        let evicting = self.evicting.as_ref().ok_or(IS_NOT_EVICTING)?;
        let triplet = evicting.triplet()?;
        let (number, attempt) = (self.evictions, self.attempt);
        let level = triplet.destination.level();
        let nothing = |_| Dealt { number, attempt, tile: 0, level, shares: Vec::new() };
        let mut dealt: Vec<_> = self.parties.numbers().map(nothing).collect();
        for (child, matrix) in triplet.made().zip(&evicting.matrices) {
            let source = self.slots_of(evicting.source.as_ref());
            let slots: Vec<_> = source.chain(self.slots(child)).collect();
            let mut product = vec![F::ZERO; self.bucket_elements()];
            F::combine(&mut product, matrix, self.tree.slots(), &slots);
            let shares = reshare::<F>(self.parties, self.number, &product, coins);
            dealt.iter_mut().zip(shares).for_each(|(dealt, share)| dealt.shares.push(share));
        }
        Ok(dealt)
    }

    /// Takes what 2*t* + 1 dealers have sent to this server in this round, and has the buckets that come of it (Subroutine 3, steps 19
    /// and 24, and step 6 of Protocol 1). The dealers are the same for all servers. Answers whether the eviction is over here. It counts once all
    /// servers [agree](Self::agree).
    ///
    /// # Errors
    /// When there is no eviction, for other dealers than 2*t* + 1 different servers, for what was dealt in another round, and for shares that are none.
    pub fn reduce(
        &mut self,
        dealers: &[u8],
        dealt: Vec<Dealt<F::Element>>,
    ) -> Result<bool, Refused> {
        let triplet = self.evicting.as_ref().ok_or(IS_NOT_EVICTING)?.triplet()?;
        let made: Vec<BucketId> = triplet.made().collect();
        let reduced = self.reduced(triplet, made.len(), dealers, dealt)?;
        let Some(evicting) = &mut self.evicting else { return Err(IS_NOT_EVICTING) };
        evicting.triplets.pop_front();
        evicting.matrices.drain(..made.len());
        // The source is empty afterwards. Its sibling gets all of it, unless that is made.
        let source = evicting.source.take();
        evicting.made.push((triplet.source, None));
        if triplet.is_last {
            let reduced = reduced.into_iter().map(Some);
            evicting.made.extend(made.into_iter().zip(reduced));
            self.put_what_was_made();
        } else {
            evicting.made.push((triplet.sibling, source));
            evicting.source = reduced.into_iter().next();
        }
        Ok(triplet.is_last)
    }

    /// The new shares of the buckets of a round.
    fn reduced(
        &self,
        triplet: Triplet,
        buckets: usize,
        dealers: &[u8],
        dealt: Vec<Dealt<F::Element>>,
    ) -> Result<Vec<Bucket<F::Element>>, Refused> {
        let are_enough =
            dealers.len() == self.parties.for_product() && dealers.len() == dealt.len();
        if !(are_enough && self.parties.are_some(dealers)) {
            return Err(Refused("so many servers have to deal as give back a product, each once"));
        }
        let round = (self.evictions, self.attempt, triplet.destination.level());
        if dealt.iter().any(|dealt| (dealt.number, dealt.attempt, dealt.level) != round) {
            return Err(Refused("this was dealt in another round"));
        }
        if dealt.iter().any(|dealt| dealt.shares.len() != buckets) {
            return Err(Refused("a dealer sends a share for each bucket that is made in a round"));
        }
        let elements = self.bucket_elements();
        let expanded = dealt.into_iter().map(|dealt| {
            let shares = dealt.shares.into_iter().map(|share| share.into_elements::<F>(elements));
            shares.collect::<Option<Vec<_>>>()
        });
        let expanded: Vec<_> = expanded.collect::<Option<_>>().ok_or(WRONG_LENGTH)?;
        let reduced = (0..buckets).map(|bucket| {
            let dealt: Vec<_> = expanded.iter().map(|dealt| &dealt[bucket][..]).collect();
            reduce::<F>(dealers, &dealt).map(Arc::new)
        });
        reduced.collect::<Option<_>>().ok_or(WRONG_LENGTH)
    }

    /// The eviction is over here.
    fn put_what_was_made(&mut self) {
        let Some(Evicting { made, .. }) = self.evicting.take() else { return };
        let buckets = made.into_iter().map(|(id, bucket)| (id, self.put(id, bucket))).collect();
        self.replaced = Some(Replaced { buckets, written: self.written });
        (self.evictions, self.written) = (self.evictions + 1, 0);
    }

    /// A bucket holds this from now on. Answers what it held before.
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

    /// Makes an eviction on all servers of a tree, which are in one process: the reference of what
    /// servers do that send messages to each other.
    ///
    /// # Errors
    /// When a server refuses.
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
        servers.iter_mut().try_for_each(|server| server.agree(server.evictions))
    }

    /// All servers are through with the last of so many evictions: nobody goes back before it any more. It may be told more than once.
    ///
    /// # Errors
    /// When this server is not.
    pub fn agree(&mut self, evictions: u64) -> Result<(), Refused> {
        if evictions != self.evictions || self.evicting.is_some() {
            return Err(Refused(
                "this server is not through with this eviction, or with others since",
            ));
        }
        self.replaced = None;
        Ok(())
    }

    /// Goes back to what was before the eviction that is under way, or that is over here and not everywhere. It may be told more than once: where all is
    /// settled, nothing happens.
    pub fn go_back(&mut self) {
        self.evicting = None;
        if let Some(Replaced { buckets, written }) = self.replaced.take() {
            for (id, bucket) in buckets.into_iter().rev() {
                self.put(id, bucket);
            }
            (self.evictions, self.written) = (self.evictions - 1, written);
        }
    }
}

impl<E> Evicting<E> {
    /// That of the next round.
    fn triplet(&self) -> Result<Triplet, Refused> {
        self.triplets.front().copied().ok_or(IS_NOT_EVICTING)
    }
}

impl Triplet {
    /// The buckets that are made by a product.
    pub(crate) fn made(self) -> impl Iterator<Item = BucketId> {
        [Some(self.destination), self.is_last.then_some(self.sibling)].into_iter().flatten()
    }
}
