//! Eras: the keys for the buckets of a tree.
//!
//! The name of a bucket contains the number of the eviction that wrote it. The client derives it
//! from the number of evictions so far (path eviction predictability: Tiny ORAM, section IV-D). So
//! neither a version nor a counter is stored.
//!
//! The keys change with every *era*. An era begins when a client opens the store, and at
//! checkpoints, with a fresh salt. Every eviction until the next era begins is sealed under the
//! keys of the current era. In one era, an eviction is sealed once. After a crash, lost evictions
//! are repeated with other contents, under the keys of a new era.

use alloc::vec;
use alloc::vec::Vec;

use hkdf::Hkdf;
use rand_core::CryptoRng;
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::Blanks;
use super::bucket::{BucketKeys, BucketName, BucketPieces, KEYS_BYTES, VerifiedBucket};
use crate::pieces::TreeId;

/// Bytes of a master key, and of a salt.
const KEY_BYTES: usize = 32;

/// Target for the number of eras begun by checkpoints that a client keeps. Because of the rounding
/// in `begin_era_if_due`, the client may keep almost twice this number. In a tree of 2^23 leaves
/// with 2^10 spare places, this is the number of checkpoints while every bucket is rewritten twice.
pub const CHECKPOINT_ERAS_MAX: u64 = 1 << 14;

/// The key from which the keys of all eras are derived. Secret; wiped from memory when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct MasterKey([u8; KEY_BYTES]);

impl MasterKey {
    /// Draws a fresh key.
    pub fn draw(coins: &mut impl CryptoRng) -> Self {
        let mut key = Self([0; KEY_BYTES]);
        coins.fill_bytes(&mut key.0);
        key
    }

    /// The key that consists of given bytes.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    fn for_era(&self, tree: TreeId, era: &Era) -> BucketKeys {
        let mut info = *b"oblivio era seal v2 ..";
        let number_at = info.len() - 2;
        info[number_at..].copy_from_slice(&tree.0.to_be_bytes());
        let mut derived = Zeroizing::new([0; KEYS_BYTES]);
        Hkdf::<Sha256>::new(Some(&era.salt), &self.0)
            .expand(&info, derived.as_mut())
            .expect("HKDF can output 255 hashes, more than 96 bytes");
        BucketKeys::new(derived)
    }
}

impl core::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("MasterKey(secret)")
    }
}

/// A range of evictions whose buckets are sealed under the same keys. Public, but kept by the
/// client: storage does not need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Era {
    /// The first eviction of the era.
    pub first_eviction: u64,
    /// A random salt, which makes the keys of the era unique.
    pub salt: [u8; KEY_BYTES],
}

impl Era {
    /// A new era with a fresh salt.
    pub fn begin(first_eviction: u64, coins: &mut impl CryptoRng) -> Self {
        let mut salt = [0; KEY_BYTES];
        coins.fill_bytes(&mut salt);
        Self { first_eviction, salt }
    }
}

/// Seals and verifies the buckets of one tree.
pub struct EraSealer {
    master: MasterKey,
    tree: TreeId,
    /// The eras and their keys, in order. The last era is the current one.
    eras: Vec<(Era, BucketKeys)>,
    /// A buffer for sealing before storage gets the bytes: plaintext is never stored in a blank.
    scratch: Zeroizing<Vec<u8>>,
}

impl EraSealer {
    /// A sealer for a tree that was written in `eras`, in order. Future evictions belong to the
    /// last era.
    ///
    /// # Panics
    /// If there are no eras or they are not in order.
    pub fn new(master: MasterKey, tree: TreeId, eras: Vec<Era>) -> Self {
        assert!(!eras.is_empty(), "at least one era is needed");
        assert!(eras.is_sorted_by_key(|era| era.first_eviction), "eras must be in order");
        let keyed = |era: Era| {
            let keys = master.for_era(tree, &era);
            (era, keys)
        };
        let eras = eras.into_iter().map(keyed).collect();
        Self { master, tree, eras, scratch: Zeroizing::default() }
    }

    /// A sealer for a tree that was never written.
    pub fn fresh(master: MasterKey, tree: TreeId, coins: &mut impl CryptoRng) -> Self {
        Self::new(master, tree, vec![Era::begin(0, coins)])
    }

    /// The eras, in order.
    pub fn eras(&self) -> impl Iterator<Item = &Era> {
        self.eras.iter().map(|(era, _)| era)
    }

    /// The current era.
    fn latest(&self) -> &Era {
        let (era, _) = self.eras.last().expect("there is always an era");
        era
    }

    /// Begins an era: from `first_eviction` on, everything is sealed under new keys, even if an
    /// earlier era has already sealed an eviction of that number. Drops eras that begin at
    /// `first_eviction` or later.
    pub(crate) fn begin_era(&mut self, first_eviction: u64, coins: &mut impl CryptoRng) {
        self.eras.retain(|(era, _)| era.first_eviction < first_eviction);
        let era = Era::begin(first_eviction, coins);
        let keys = self.master.for_era(self.tree, &era);
        self.eras.push((era, keys));
    }

    /// Begins an era like [`Self::begin_era`], unless the current era is too young: it must span at
    /// least `recognised` / [`CHECKPOINT_ERAS_MAX`] evictions. The client keeps the keys of the
    /// last `recognised` evictions, so this limits the number of eras that it keeps. The decision
    /// depends only on public numbers.
    pub(crate) fn begin_era_if_due(
        &mut self,
        next: u64,
        recognised: u64,
        coins: &mut impl CryptoRng,
    ) {
        if next - self.latest().first_eviction >= recognised / CHECKPOINT_ERAS_MAX {
            self.begin_era(next, coins);
        }
    }

    /// Drops the eras that end before eviction `oldest`.
    pub(crate) fn drop_before(&mut self, oldest: u64) {
        let first_needed = self.era_of(oldest);
        self.eras.drain(..first_needed);
    }

    /// The index of the era to which `eviction` belongs.
    #[inline]
    fn era_of(&self, eviction: u64) -> usize {
        let begun = self.eras.partition_point(|(era, _)| era.first_eviction <= eviction);
        begun.saturating_sub(1)
    }

    /// Seals a bucket with this table and these blocks into pieces of `blanks`.
    #[inline]
    pub(crate) fn seal<'p>(
        &mut self,
        name: BucketName,
        table: &[u8],
        blocks: impl Iterator<Item = &'p [u8]> + Clone,
        blanks: &mut Blanks<'_>,
        pieces: BucketPieces,
    ) {
        let era = self.era_of(name.eviction);
        let Self { eras, scratch, .. } = self;
        eras[era].1.seal(name, table, blocks, (blanks, pieces), scratch);
    }

    /// Verifies that the bucket was sealed by the eviction in its name. `None` if it was not.
    #[inline]
    pub(crate) fn verify<'f>(
        &self,
        name: BucketName,
        head: &'f [u8],
        slots: &'f [u8],
    ) -> Option<VerifiedBucket<'_, 'f>> {
        self.eras[self.era_of(name.eviction)].1.verify(name, head, slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::Span;
    use crate::seal::{BucketKind, SEAL_BYTES};
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    const TABLE: &[u8] = b"a page";

    fn page(eviction: u64) -> BucketName {
        BucketName { eviction, level: 1, kind: BucketKind::Page(0) }
    }

    fn seal(sealer: &mut EraSealer, name: BucketName) -> Vec<u8> {
        let mut bytes = vec![0; TABLE.len() + SEAL_BYTES];
        let spans = [Span { start: 0, bytes: bytes.len() }];
        let mut blanks = Blanks::new(&mut bytes, &spans);
        let pieces = BucketPieces { head: 0, slots: None };
        sealer.seal(name, TABLE, std::iter::empty(), &mut blanks, pieces);
        let _ = blanks.sealed();
        bytes
    }

    fn opens(sealer: &EraSealer, name: BucketName, sealed: &[u8]) -> bool {
        let mut table = Vec::new();
        let opened = sealer.verify(name, sealed, &[]).map(|bucket| bucket.open_table(&mut table));
        assert!(opened.is_none() || table == TABLE);
        opened.is_some()
    }

    #[test]
    fn evictions_lost_in_one_era_do_not_open_in_the_next() {
        let mut coins = StdRng::seed_from_u64(2);
        let master = MasterKey::draw(&mut coins);
        let mut sealer = EraSealer::fresh(master.clone(), TreeId(0), &mut coins);
        let [kept, lost] = [9, 10].map(page);
        let (kept_bytes, lost_bytes) = (seal(&mut sealer, kept), seal(&mut sealer, lost));
        // Recovery starts again before eviction 10.
        sealer.begin_era(10, &mut coins);
        assert!(opens(&sealer, kept, &kept_bytes) && !opens(&sealer, lost, &lost_bytes));
        let again = seal(&mut sealer, lost);
        assert!(again != lost_bytes && opens(&sealer, lost, &again));

        let eras: Vec<_> = sealer.eras().cloned().collect();
        let mut reopened = EraSealer::new(master.clone(), TreeId(0), eras.clone());
        assert!(opens(&reopened, kept, &kept_bytes) && opens(&reopened, lost, &again));
        let other_tree = EraSealer::new(master, TreeId(1), eras.clone());
        assert!(!opens(&other_tree, kept, &kept_bytes));

        reopened.drop_before(10);
        assert!(reopened.eras().eq(&eras[1..]) && opens(&reopened, lost, &again));
        // A second recovery at the same eviction replaces the era that wrote nothing.
        reopened.begin_era(10, &mut coins);
        assert!(reopened.eras().count() == 1 && !opens(&reopened, lost, &again));
    }
}
