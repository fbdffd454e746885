//! An eviction (Subroutine 3) on a server with its shares in files.
//!
//! Products, dealing and reducing work on each byte position of a block separately. So blocks are
//! divided into parts, and each part goes through all rounds, from the root to the leaves, without
//! waiting for the others. While one part waits for other servers, the next parts are multiplied.
//! New buckets are written to places that the state before the eviction does not use.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use chacha20::ChaCha20Rng;
use oblivio_core::StoreErrorKind;
use oblivio_core::seal::derive_seed;
use rand_core::SeedableRng;

use super::files::{BlockPart, Files};
use super::folder::Peers;
use super::mailbox::{Attempt, Mailbox, WaitError};
use super::places::{place, place_of_sibling};
use super::unusable;
use crate::field::{Field, Gf256};
use crate::message::{DealtShares, Refusal, TreePoint};
use crate::multiplication::{reduce, reshare};
use crate::sharing::{Seed, Share};
use crate::tree::Triplet;

/// The number of parts in progress at the same time, each on its own thread. Every
/// `TILES_AT_ONCE`-th part belongs to the same *lane*, and the parts of a lane are processed in
/// order.
pub const TILES_AT_ONCE: usize = 4;

/// The lane that a part belongs to.
pub(super) fn lane(tile: u32) -> usize {
    tile as usize % TILES_AT_ONCE
}

/// The approximate size of a tile in bytes. A tile is one part of all slots of a bucket. It is sent
/// in one message, and should stay in the processor's cache.
const TILE_BYTES: usize = 512 << 10;

/// Timeout for a message of another server. If the message does not arrive in time, this server
/// gives up the eviction.
const DEALT_WITHIN: Duration = Duration::from_secs(30);

/// An eviction in progress.
pub(super) struct Eviction<'e> {
    pub(super) files: &'e Files,
    pub(super) attempt: Attempt,
    /// The dealers, in the order of their numbers.
    pub(super) dealers: &'e [u8],
    /// This server's shares of the matrices.
    pub(super) matrices: &'e [Vec<u8>],
    pub(super) mailbox: &'e Mailbox,
    pub(super) peers: &'e dyn Peers,
    /// The secret seed of this attempt, from which all dealt shares are derived.
    pub(super) seed: &'e Seed,
}

impl Eviction<'_> {
    /// Computes and writes all new buckets. The buckets are not yet durable.
    pub(super) fn run(&self) -> Result<(), Refusal> {
        self.announce_reads();
        let parts = parts(self.files.setup.block_bytes, self.files.setup.tree.slots());
        let failed = Mutex::new(None);
        let has_failed = || {
            self.peers.report_progress();
            failed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
        };
        // The parts of one lane, in order. A receiver can thus tell that nothing earlier will
        // follow.
        let work = |first: usize| {
            let mut tile = first;
            while let Some(part) = parts.get(tile).filter(|_| !has_failed()) {
                let of_all = Tile { eviction: self, tile: tile as u32, part: *part };
                if let Err(why) = of_all.run(&has_failed) {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
                }
                tile += TILES_AT_ONCE;
            }
            if !has_failed() {
                self.send_end(tile as u32);
            }
        };
        let work = &work;
        thread::scope(|scope| {
            for first in 1..TILES_AT_ONCE.min(parts.len()) {
                scope.spawn(move || work(first));
            }
            work(0);
        });
        self.mailbox.end();
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Tells the other servers that this server has no more parts in a lane, with a message for a
    /// part past the last. A server that restarted may lack this server's last messages, and would
    /// otherwise wait for them.
    fn send_end(&self, tile: u32) {
        let Attempt { attempt, number } = self.attempt;
        let end = DealtShares { number, attempt, tile, level: 0, shares: Vec::new() }.encode();
        let setup = &self.files.setup;
        for other in setup.parties.numbers().filter(|other| *other != setup.number) {
            // A server that cannot be reached does not wait for this one.
            let _ = self.peers.send(other, lane(tile), &end);
        }
    }

    /// Announces to the system that whole buckets will be read, so that it reads each of them from
    /// the disk in one piece. The eviction itself reads buckets part by part.
    fn announce_reads(&self) {
        let tree = self.files.setup.tree;
        let path = tree.path(tree.evicted(self.attempt.number));
        let beside = tree.triplets(self.attempt.number).last().map(|last| last.sibling);
        let read = path.chain(beside).filter_map(|bucket| self.files.bucket(bucket, self.before()));
        read.for_each(|bucket| bucket.will_be_read());
    }

    /// The point of this server before the eviction.
    fn before(&self) -> TreePoint {
        self.files.record.at
    }
}

/// Divides a block into parts of [`part_bytes`] bytes. The last part may be shorter.
fn parts(block_bytes: usize, slots: usize) -> Vec<BlockPart> {
    let bytes = part_bytes(block_bytes, slots);
    (0..block_bytes)
        .step_by(bytes)
        .map(|first| BlockPart { first, bytes: bytes.min(block_bytes - first) })
        .collect()
}

/// Bytes of a part of a block, for blocks of `block_bytes` bytes and buckets of `slots` slots. An
/// eviction reads and writes one part of every slot of a bucket at a time. The last part of a block
/// may be shorter.
pub fn part_bytes(block_bytes: usize, slots: usize) -> usize {
    (TILE_BYTES / slots.max(1)).next_multiple_of(256).min(block_bytes)
}

/// The maximum length in bytes of a portion, which holds the shares of at most two buckets, for one
/// part and one round.
pub(super) fn portion_bytes_max(block_bytes: usize, slots: usize) -> usize {
    let part = parts(block_bytes, slots).first().map_or(0, |part| part.bytes);
    2 * part * slots
}

/// One part of every block, which goes through all rounds of the eviction.
struct Tile<'e> {
    eviction: &'e Eviction<'e>,
    tile: u32,
    part: BlockPart,
}

impl Tile<'_> {
    fn run(&self, is_given_up: &dyn Fn() -> bool) -> Result<(), Refusal> {
        let Eviction { files, attempt, dealers, matrices, .. } = self.eviction;
        let (tree, own) = (files.setup.tree, files.setup.number);
        // A server that does not deal computes no products.
        let deals = dealers.contains(&own);
        let mut matrices = matrices.iter();
        let root = files.bucket(oblivio_core::BucketId::ROOT, self.eviction.before());
        let mut source = match &root {
            Some(root) if deals => root.read_checked(self.part),
            Some(root) => root.read_part(self.part),
            None => Ok(Vec::new()),
        }
        .map_err(unusable)?;
        // Copy the stored checksums, so that damaged data still does not match its checksum, and is
        // not dealt later.
        let sums_of_root = root.map(|root| root.kept_sums(self.part)).transpose();
        let mut sums_of_root = sums_of_root.map_err(unusable)?;
        // Subroutine 3, steps 18 and 20: each level of the path, from the root down.
        for triplet in tree.triplets(attempt.number) {
            // Subroutine 3, steps 21 to 23 (and 25 for the sibling leaf): slots × matrix.
            let factors = triplet.computed_buckets().zip(matrices.by_ref()).filter(|_| deals);
            let products = factors.map(|(child, matrix)| self.product(&source, child, matrix));
            let products = products.collect::<Result<Vec<_>, _>>()?;
            // Subroutine 3, step 24: reduce the degree (Protocol 1).
            let mut made = self.multiplied(&triplet, &products, is_given_up)?;
            if triplet.is_last {
                for (child, slots) in triplet.computed_buckets().zip(&made) {
                    // This always holds: leaves have a place.
                    let Some(place) = place(tree, child, attempt.number + 1) else { continue };
                    let leaf = files.bucket_at(place, tree.slots());
                    leaf.write_part(self.part, slots, None).map_err(unusable)?;
                }
            } else {
                // Subroutine 3, step 19: the source replaces the sibling.
                let sibling =
                    files.bucket_at(place_of_sibling(tree, triplet.sibling), tree.slots());
                let sums = sums_of_root.take();
                sibling.write_part(self.part, &source, sums).map_err(unusable)?;
                source = made.swap_remove(0);
            }
        }
        Ok(())
    }

    /// The new contents of a child, as shares of degree 2*t*: the product of the matrix with the
    /// slots of the child's parent and of the child.
    fn product(
        &self,
        source: &[u8],
        child: oblivio_core::BucketId,
        matrix: &[u8],
    ) -> Result<Vec<u8>, Refusal> {
        let (files, before) = (self.eviction.files, self.eviction.before());
        let (slots, bytes) = (files.setup.tree.slots(), self.part.bytes);
        let of_child = match files.bucket(child, before) {
            Some(child) => child.read_checked(self.part).map_err(unusable)?,
            None => Vec::new(),
        };
        let mut product = vec![0; slots * bytes];
        // Leave out empty slots, which add nothing.
        let (of_source, of_itself) = matrix.split_at(slots * slots);
        let factors = |matrix: &[u8], rows: &[u8]| matrix[..rows.len() / bytes * slots].to_vec();
        let matrix = [factors(of_source, source), factors(of_itself, &of_child)].concat();
        let rows: Vec<_> = source.chunks_exact(bytes).chain(of_child.chunks_exact(bytes)).collect();
        if !rows.is_empty() {
            Gf256::combine(&mut product, &matrix, slots, &rows);
        }
        Ok(product)
    }

    /// Deals the products, waits for the shares of the other servers, and reduces the products to
    /// degree *t* (Protocol 1).
    fn multiplied(
        &self,
        triplet: &Triplet,
        products: &[Vec<u8>],
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        let Eviction { files, dealers, mailbox, .. } = self.eviction;
        let level = triplet.destination.level();
        let own = files.setup.number;
        let children = triplet.computed_buckets().count();
        // A server that does not deal sends an empty message. All servers wait for each other, so
        // that messages do not pile up at a slower one.
        let mut own_portion = Some(self.deal(level, products)?);
        let mut portions = Vec::new();
        for number in files.setup.parties.numbers() {
            let portion = match own_portion.take_if(|_| number == own) {
                Some(own_portion) => own_portion,
                None => mailbox
                    .wait(number, (self.tile, level), DEALT_WITHIN, is_given_up)
                    .map_err(|missing| late(number, missing))?,
            };
            if dealers.contains(&number) {
                portions.push(self.expanded(number, portion, children)?);
            }
        }
        // Protocol 1, steps 5 and 6: the weighted sum of the shares.
        let reduced = (0..children).map(|child| {
            let dealt: Vec<_> = portions.iter().map(|portion| &portion[child][..]).collect();
            reduce::<Gf256>(dealers, &dealt).ok_or_else(|| "there are no dealers".into())
        });
        reduced.collect()
    }

    /// Sends each server its share of this server's products, and returns this server's own share.
    fn deal(&self, level: u8, products: &[Vec<u8>]) -> Result<Vec<Share<u8>>, Refusal> {
        let Eviction { files, attempt, peers, .. } = self.eviction;
        let (own, parties) = (files.setup.number, files.setup.parties);
        let mut of_each: Vec<Vec<Share<u8>>> = parties.numbers().map(|_| Vec::new()).collect();
        for (child, product) in (0..).zip(products) {
            let coins = &mut self.coins_of(level, child, product);
            // Protocol 1, step 3: share the product.
            let shares = reshare::<Gf256>(parties, own, product, coins);
            of_each.iter_mut().zip(shares).for_each(|(of, share)| of.push(share));
        }
        let mut own_shares = Vec::new();
        for (number, shares) in parties.numbers().zip(of_each) {
            if number == own {
                own_shares = shares;
                continue;
            }
            let Attempt { attempt, number: eviction } = *attempt;
            let dealt = DealtShares { number: eviction, attempt, tile: self.tile, level, shares };
            // Protocol 1, step 4: send each server its share.
            peers.send(number, lane(self.tile), &dealt.encode()).map_err(|error| {
                of_another(format!("this server cannot reach server {number}: {error}"))
            })?;
        }
        Ok(own_shares)
    }

    /// The coins for sharing one product, derived from the seed, the product and its location. A
    /// server that is rolled back within an attempt may share another product at the same location.
    /// The server then uses other coins.
    fn coins_of(&self, level: u8, child: u8, product: &[u8]) -> ChaCha20Rng {
        let Attempt { attempt, number } = self.eviction.attempt;
        let place = [number, attempt, self.tile.into(), level.into(), child.into()];
        let place = place.map(u64::to_le_bytes).concat();
        ChaCha20Rng::from_seed(*derive_seed(self.eviction.seed, &[&place, product]))
    }

    fn expanded(
        &self,
        dealer: u8,
        portion: Vec<Share<u8>>,
        children: usize,
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        let elements = self.eviction.files.setup.tree.slots() * self.part.bytes;
        let wrong = || {
            let what = "has dealt invalid shares";
            Refusal::from(format!("server {dealer} {what}"))
        };
        if portion.len() != children {
            return Err(wrong());
        }
        let expanded = portion.into_iter().map(|share| share.into_elements::<Gf256>(elements));
        expanded.collect::<Option<_>>().ok_or_else(wrong)
    }
}

fn late(dealer: u8, missing: WaitError) -> Refusal {
    of_another(match missing {
        WaitError::Lost => format!("the link from server {dealer} was lost"),
        WaitError::Late => {
            format!("server {dealer} has not dealt its shares within {} s", DEALT_WITHIN.as_secs())
        }
    })
}

/// The refusal if a link was lost, or another server has a problem.
pub(super) fn of_another(why: String) -> Refusal {
    Refusal { kind: StoreErrorKind::Unreachable, why }
}

#[cfg(test)]
mod tests;
