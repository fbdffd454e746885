//! One server: it has a share of every block, and does with all of them the same, whatever it is asked.
//!
//! What it is sent may come from anybody. It is checked first, and refused whole: then nothing has changed.

use std::collections::HashMap;
use std::fmt::{self, Display};

use oblivio_core::BucketId;
use rand_core::CryptoRng;

use crate::field::Field;
use crate::message::{Dealt, Evict, RootWrite, Select};
use crate::multiplication::{reduce, reshare};
use crate::sharing::Parties;
use crate::tree::{Tree, Triplet};

/// Server number *i* of a tree.
pub struct Server<F: Field> {
    number: u8,
    parties: Parties,
    tree: Tree,
    block_elements: usize,
    /// Those that hold something. The others are all zeros, which follows from the number of evictions and is no secret.
    buckets: HashMap<BucketId, Bucket<F::Element>>,
    /// A slot of such a bucket.
    zeros: Vec<F::Element>,
    /// Blocks written to the root since the last eviction.
    written: usize,
    /// Evictions that are over.
    evictions: u64,
    evicting: Option<Evicting<F::Element>>,
}

/// The slots of a bucket, one after the other.
type Bucket<E> = Vec<E>;

/// An eviction that is under way.
struct Evicting<E> {
    /// What is left to do: a round for each.
    triplets: Vec<Triplet>,
    /// The next one first, and that of the last leaf beside the path last of all.
    matrices: Vec<Vec<E>>,
}

/// Why something was not done. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub(crate) &'static str);

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Refused {}

const WRONG_LENGTH: Refused = Refused("a share has another length than what is shared");
const IS_EVICTING: Refused = Refused("a path is being evicted: this has to wait until it is");
const IS_NOT_EVICTING: Refused = Refused("no path is being evicted");

impl<F: Field> Server<F> {
    /// With blocks that are all zeros.
    ///
    /// # Errors
    /// When there is no server of this number.
    pub fn new(
        number: u8,
        parties: Parties,
        tree: Tree,
        block_elements: usize,
    ) -> Result<Self, Refused> {
        if !parties.are_some(&[number]) {
            return Err(Refused("there are fewer servers"));
        }
        Ok(Self {
            number,
            parties,
            tree,
            block_elements,
            buckets: HashMap::new(),
            zeros: vec![F::ZERO; block_elements],
            written: 0,
            evictions: 0,
            evicting: None,
        })
    }

    /// The share of the block that is selected, of degree 2*t* (Subroutine 1, steps 4 to 8).
    ///
    /// # Errors
    /// For a path that there is not, a query that is none, and in the middle of an eviction.
    pub fn select(&self, select: Select<F::Element>) -> Result<Vec<F::Element>, Refused> {
        let Select { leaf, query } = select;
        if leaf.0 >= self.tree.leaves() {
            return Err(Refused("the tree has no such path"));
        }
        if self.evicting.is_some() {
            return Err(IS_EVICTING);
        }
        let query = query.into_elements::<F>(self.tree.path_slots()).ok_or(WRONG_LENGTH)?;
        let slots: Vec<_> = self.tree.path(leaf).flat_map(|bucket| self.slots(bucket)).collect();
        let mut answer = vec![F::ZERO; self.block_elements];
        F::combine(&mut answer, &query, 1, &slots);
        Ok(answer)
    }

    /// Keeps the share of a block in the root.
    ///
    /// # Errors
    /// For another slot than the next one, a share that is none, and in the middle of an eviction.
    pub fn write(&mut self, write: RootWrite<F::Element>) -> Result<(), Refused> {
        let RootWrite { slot, block } = write;
        if self.evicting.is_some() {
            return Err(IS_EVICTING);
        }
        if slot != self.written || slot == self.tree.accesses() {
            return Err(Refused(
                "another slot of the root is next, or the root has to be evicted first",
            ));
        }
        let block = block.into_elements::<F>(self.block_elements).ok_or(WRONG_LENGTH)?;
        let elements = self.bucket_elements();
        let root = self.buckets.entry(BucketId::ROOT);
        let root = root.or_insert_with(|| vec![F::ZERO; elements]);
        let start = slot * self.block_elements;
        root[start..start + self.block_elements].copy_from_slice(&block);
        self.written += 1;
        Ok(())
    }

    /// Begins to evict a path (Subroutine 3, step 18). A round follows for each level: all servers [deal](Self::deal) and
    /// [reduce](Self::reduce).
    ///
    /// # Errors
    /// For another number than the next one, for matrices that are none, and in the middle of an eviction.
    pub fn begin_eviction(&mut self, evict: Evict<F::Element>) -> Result<(), Refused> {
        let Evict { number, matrices } = evict;
        if self.evicting.is_some() {
            return Err(IS_EVICTING);
        }
        if number != self.evictions {
            return Err(Refused("another eviction is next"));
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
        self.evicting = Some(Evicting { triplets, matrices });
        Ok(())
    }

    /// What this server, as a dealer, sends to each server in the next round of the eviction, itself included (Subroutine 3, step 23,
    /// and steps 2 to 4 of Protocol 1).
    ///
    /// # Errors
    /// When there is none.
    pub fn deal(&self, coins: &mut dyn CryptoRng) -> Result<Vec<Dealt<F::Element>>, Refused> {
        let evicting = self.evicting.as_ref().ok_or(IS_NOT_EVICTING)?;
        let triplet = evicting.triplets[0];
        let (number, level) = (self.evictions, triplet.destination.level());
        let nothing = |_| Dealt { number, level, shares: Vec::new() };
        let mut dealt: Vec<_> = self.parties.numbers().map(nothing).collect();
        for (child, matrix) in triplet.made().zip(&evicting.matrices) {
            let slots: Vec<_> = self.slots(triplet.source).chain(self.slots(child)).collect();
            let mut product = vec![F::ZERO; self.bucket_elements()];
            F::combine(&mut product, matrix, self.tree.slots(), &slots);
            let shares = reshare::<F>(self.parties, self.number, &product, coins);
            dealt.iter_mut().zip(shares).for_each(|(dealt, share)| dealt.shares.push(share));
        }
        Ok(dealt)
    }

    /// Takes what 2*t* + 1 dealers have sent to this server in this round, and has the buckets that come of it (Subroutine 3, steps 19
    /// and 24, and step 6 of Protocol 1). The dealers are the same for all servers. Answers whether the eviction is over.
    ///
    /// # Errors
    /// When there is no eviction, for other dealers than 2*t* + 1 different servers, for what was dealt in another round, and for shares that are none.
    pub fn reduce(
        &mut self,
        dealers: &[u8],
        dealt: Vec<Dealt<F::Element>>,
    ) -> Result<bool, Refused> {
        let evicting = self.evicting.as_ref().ok_or(IS_NOT_EVICTING)?;
        let triplet = evicting.triplets[0];
        let are_enough =
            dealers.len() == self.parties.for_product() && dealers.len() == dealt.len();
        if !(are_enough && self.parties.are_some(dealers)) {
            return Err(Refused("so many servers have to deal as give back a product, each once"));
        }
        let round = (self.evictions, triplet.destination.level());
        if dealt.iter().any(|dealt| (dealt.number, dealt.level) != round) {
            return Err(Refused("this was dealt in another round"));
        }
        let made: Vec<BucketId> = triplet.made().collect();
        if dealt.iter().any(|dealt| dealt.shares.len() != made.len()) {
            return Err(Refused("a dealer sends a share for each bucket that is made in a round"));
        }
        let elements = self.bucket_elements();
        let expanded = dealt.into_iter().map(|dealt| {
            let shares = dealt.shares.into_iter().map(|share| share.into_elements::<F>(elements));
            shares.collect::<Option<Vec<_>>>()
        });
        let expanded: Vec<_> = expanded.collect::<Option<_>>().ok_or(WRONG_LENGTH)?;
        let reduced = (0..made.len()).map(|bucket| {
            let dealt: Vec<_> = expanded.iter().map(|dealt| &dealt[bucket][..]).collect();
            reduce::<F>(dealers, &dealt)
        });
        let reduced: Vec<_> = reduced.collect::<Option<_>>().ok_or(WRONG_LENGTH)?;
        // The source is empty afterwards. Its sibling gets all of it, unless that is made.
        if let Some(source) = self.buckets.remove(&triplet.source)
            && !triplet.is_last
        {
            self.buckets.insert(triplet.sibling, source);
        }
        self.buckets.extend(made.iter().copied().zip(reduced));
        let Some(Evicting { triplets, matrices }) = &mut self.evicting else {
            return Err(IS_NOT_EVICTING);
        };
        triplets.remove(0);
        matrices.drain(..made.len());
        let is_over = triplets.is_empty();
        if is_over {
            self.evicting = None;
            (self.evictions, self.written) = (self.evictions + 1, 0);
        }
        Ok(is_over)
    }

    fn bucket_elements(&self) -> usize {
        self.tree.slots() * self.block_elements
    }

    /// The slots of a bucket.
    fn slots(&self, bucket: BucketId) -> impl Iterator<Item = &[F::Element]> {
        let held = self.buckets.get(&bucket);
        let slot = move |slot: usize| match held {
            Some(elements) => &elements[slot * self.block_elements..][..self.block_elements],
            None => &self.zeros[..],
        };
        (0..self.tree.slots()).map(slot)
    }
}

impl Triplet {
    /// The buckets that are made by a product.
    fn made(self) -> impl Iterator<Item = BucketId> {
        [Some(self.destination), self.is_last.then_some(self.sibling)].into_iter().flatten()
    }
}
