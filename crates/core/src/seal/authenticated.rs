//! The authenticated seal: AES-256-GCM under names that never come twice.
//!
//! Every part of a bucket is sealed on its own: the header, and each slot. Its name is
//!
//! ```text
//! eviction ‖ level ‖ part ‖ kind              64 + 8 + 16 + 8 bits, big-endian: the nonce
//! ```
//!
//! where `eviction` is the number of the eviction that wrote the bucket, which a client derives from
//! how many there have been (path eviction predictability: Tiny ORAM, section IV-D). So neither
//! nonce nor version is stored anywhere, and a part opens only if it is what that very eviction put
//! there: flipped bits, another bucket's bytes and the bucket's own older bytes all fail.
//!
//! The key changes with every *era*. An era begins when a client opens the store, with a salt drawn
//! then, and what evictions from its first on have written is sealed under its key. In one era an
//! eviction is sealed once. After a crash, evictions that were lost are made again, with other
//! contents, under the key of another era: so no nonce is used twice under one key, whatever is
//! restored from wherever.

use hkdf::Hkdf;
use rand_core::CryptoRng;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::Blanks;
use crate::store::TreeId;

/// Bytes that authentication adds to each part.
pub const TAG_BYTES: usize = 16;

/// Bytes of a key of AES-256, and of a salt.
const KEY_BYTES: usize = 32;

/// The key that the keys of all eras are derived from. Secret; wiped from memory when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct MasterKey([u8; KEY_BYTES]);

impl MasterKey {
    /// A fresh key.
    pub fn draw(coins: &mut impl CryptoRng) -> Self {
        let mut key = Self([0; KEY_BYTES]);
        coins.fill_bytes(&mut key.0);
        key
    }

    /// A key that comes from elsewhere.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    fn for_era(&self, tree: TreeId, era: &Era) -> LessSafeKey {
        let mut info = *b"oblivio era seal v1 ..";
        let number_at = info.len() - 2;
        info[number_at..].copy_from_slice(&tree.0.to_be_bytes());
        let mut derived = Zeroizing::new([0; KEY_BYTES]);
        Hkdf::<Sha256>::new(Some(&era.salt), &self.0)
            .expand(&info, derived.as_mut())
            .expect("32 bytes are less than the 255 hashes HKDF can give");
        LessSafeKey::new(
            UnboundKey::new(&AES_256_GCM, derived.as_ref()).expect("a key of 32 bytes"),
        )
    }
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey(secret)")
    }
}

/// The evictions that one opening of a store has made. Public, but for the client to keep: storage
/// does not need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Era {
    /// The first of them.
    pub first_eviction: u64,
    /// What tells its key from those of all other eras.
    pub salt: [u8; KEY_BYTES],
}

impl Era {
    /// An era that begins now.
    pub fn begin(first_eviction: u64, coins: &mut impl CryptoRng) -> Self {
        let mut salt = [0; KEY_BYTES];
        coins.fill_bytes(&mut salt);
        Self { first_eviction, salt }
    }
}

/// A part of a bucket that is sealed on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealedPart {
    /// Addresses and leaves.
    Header,
    /// The block in a slot.
    Slot(u16),
    /// The how manieth page that the eviction swept, on a level of pages.
    Page(u16),
}

/// What the seal of a part is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealing {
    /// The eviction that wrote the bucket.
    pub(crate) eviction: u64,
    pub(crate) level: u8,
    pub(crate) part: SealedPart,
}

impl Sealing {
    fn nonce(self) -> Nonce {
        let (part, kind) = match self.part {
            SealedPart::Header => (0, 0),
            SealedPart::Slot(slot) => (slot + 1, 0),
            SealedPart::Page(page) => (page, 1),
        };
        let mut nonce = [0; NONCE_LEN];
        nonce[..8].copy_from_slice(&self.eviction.to_be_bytes());
        nonce[8] = self.level;
        nonce[9..11].copy_from_slice(&part.to_be_bytes());
        nonce[11] = kind;
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Seals and opens the parts of the buckets of one tree.
pub struct EraSealer {
    master: MasterKey,
    tree: TreeId,
    /// In order; the last one goes on.
    eras: Vec<(Era, LessSafeKey)>,
    /// The key of the era that went on until the latest began.
    ended: Option<LessSafeKey>,
    /// Where a part is sealed before storage gets it: plaintext never touches a blank.
    scratch: Zeroizing<Vec<u8>>,
}

impl EraSealer {
    /// For a tree that `eras` have written, in order. The evictions to come belong to the last.
    ///
    /// # Panics
    /// When there is no era, or they are not in order.
    pub fn new(master: MasterKey, tree: TreeId, eras: Vec<Era>) -> Self {
        assert!(!eras.is_empty(), "there is an era for the evictions to come");
        assert!(eras.is_sorted_by_key(|era| era.first_eviction), "eras follow each other");
        let keyed = |era: Era| {
            let key = master.for_era(tree, &era);
            (era, key)
        };
        let eras = eras.into_iter().map(keyed).collect();
        Self { master, tree, eras, ended: None, scratch: Zeroizing::default() }
    }

    /// For a tree that nobody has written.
    pub fn fresh(master: MasterKey, tree: TreeId, coins: &mut impl CryptoRng) -> Self {
        Self::new(master, tree, vec![Era::begin(0, coins)])
    }

    /// The eras, in order.
    pub fn eras(&self) -> impl Iterator<Item = &Era> {
        self.eras.iter().map(|(era, _)| era)
    }

    /// Begins an era: from `first_eviction` on, everything is sealed under a new key, whatever an
    /// earlier era has sealed there.
    pub fn begin_era(&mut self, first_eviction: u64, coins: &mut impl CryptoRng) {
        self.ended = self.eras.last().map(|(_, key)| key.clone());
        self.eras.retain(|(era, _)| era.first_eviction < first_eviction);
        let era = Era::begin(first_eviction, coins);
        let key = self.master.for_era(self.tree, &era);
        self.eras.push((era, key));
    }

    /// Forgets the eras of which no eviction from `oldest` on is part.
    pub fn forget_before(&mut self, oldest: u64) {
        let first_needed = self.era_of(oldest);
        self.eras.drain(..first_needed);
    }

    /// Which era made `eviction`.
    #[inline]
    fn era_of(&self, eviction: u64) -> usize {
        let begun = self.eras.partition_point(|(era, _)| era.first_eviction <= eviction);
        begun.saturating_sub(1)
    }

    /// Seals `plain` into piece `i` of `blanks` from `offset` on: [`TAG_BYTES`] more than it has.
    #[inline]
    pub(crate) fn seal(
        &mut self,
        sealing: Sealing,
        plain: &[u8],
        blanks: &mut Blanks<'_>,
        i: usize,
        offset: usize,
    ) {
        let era = self.era_of(sealing.eviction);
        let Self { eras, scratch, .. } = self;
        scratch.clear();
        scratch.extend_from_slice(plain);
        let tag = eras[era]
            .1
            .seal_in_place_separate_tag(sealing.nonce(), Aad::empty(), scratch)
            .expect("a part is shorter than the 64 GiB that GCM can seal");
        scratch.extend_from_slice(tag.as_ref());
        blanks.sealed_elsewhere(i, offset, scratch);
    }

    /// Opens `sealed` into `plain`, which has [`TAG_BYTES`] less, and answers whether it is what was
    /// sealed. If it is not, `plain` holds zeros.
    #[inline]
    #[must_use]
    pub(crate) fn open(&self, sealing: Sealing, sealed: &[u8], plain: &mut [u8]) -> bool {
        let (_, key) = &self.eras[self.era_of(sealing.eviction)];
        open(key, sealing, sealed, plain)
    }

    /// The same, for what the era before the latest may have sealed, also of evictions that the
    /// latest makes again.
    #[must_use]
    pub(crate) fn open_in_ended_era(
        &self,
        sealing: Sealing,
        sealed: &[u8],
        plain: &mut [u8],
    ) -> bool {
        self.ended.as_ref().is_some_and(|key| open(key, sealing, sealed, plain))
    }
}

fn open(key: &LessSafeKey, sealing: Sealing, sealed: &[u8], plain: &mut [u8]) -> bool {
    let opened = sealed
        .split_last_chunk::<TAG_BYTES>()
        .filter(|(ciphertext, _)| ciphertext.len() == plain.len())
        .and_then(|(ciphertext, tag)| {
            plain.copy_from_slice(ciphertext);
            let tag = Tag::from(*tag);
            key.open_in_place_separate_tag(sealing.nonce(), Aad::empty(), tag, plain, 0..).ok()
        })
        .is_some();
    if !opened {
        plain.fill(0);
    }
    opened
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Span;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use std::collections::HashSet;

    const PLAIN: &[u8] = b"a part of a bucket";

    fn sealing(eviction: u64, level: u8, part: SealedPart) -> Sealing {
        Sealing { eviction, level, part }
    }

    fn seal(sealer: &mut EraSealer, sealing: Sealing) -> Vec<u8> {
        let mut bytes = vec![0; PLAIN.len() + TAG_BYTES];
        let spans = [Span { start: 0, bytes: bytes.len() }];
        let mut blanks = Blanks::new(&mut bytes, &spans);
        sealer.seal(sealing, PLAIN, &mut blanks, 0, 0);
        let _ = blanks.sealed();
        bytes
    }

    fn opens(sealer: &EraSealer, sealing: Sealing, sealed: &[u8]) -> bool {
        let mut plain = vec![7; PLAIN.len()];
        let opened = sealer.open(sealing, sealed, &mut plain);
        assert_eq!(plain, if opened { PLAIN } else { &[0; PLAIN.len()] });
        opened
    }

    #[test]
    fn only_the_very_part_of_the_very_eviction_opens() {
        let mut coins = StdRng::seed_from_u64(1);
        let mut sealer = EraSealer::fresh(MasterKey::draw(&mut coins), TreeId(0), &mut coins);
        let name = sealing(70_000, 9, SealedPart::Slot(3));
        let sealed = seal(&mut sealer, name);
        assert!(opens(&sealer, name, &sealed));
        for other in [
            Sealing { eviction: 70_001, ..name },
            Sealing { eviction: 70_000 + (1 << 32), ..name },
            Sealing { level: 8, ..name },
            Sealing { part: SealedPart::Slot(2), ..name },
            Sealing { part: SealedPart::Header, ..name },
        ] {
            assert!(!opens(&sealer, other, &sealed), "{other:?}");
        }
        for byte in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[byte] ^= 0x10;
            assert!(!opens(&sealer, name, &flipped), "byte {byte}");
        }
        for bytes in 0..sealed.len() {
            assert!(!opens(&sealer, name, &sealed[..bytes]), "cut to {bytes} bytes");
        }
    }

    #[test]
    fn what_an_era_lost_does_not_open_in_the_next() {
        let mut coins = StdRng::seed_from_u64(2);
        let master = MasterKey::draw(&mut coins);
        let mut sealer = EraSealer::fresh(master.clone(), TreeId(0), &mut coins);
        let [kept, lost] = [9, 10].map(|eviction| sealing(eviction, 1, SealedPart::Header));
        let (kept_bytes, lost_bytes) = (seal(&mut sealer, kept), seal(&mut sealer, lost));
        // Recovery goes back to before eviction 10.
        sealer.begin_era(10, &mut coins);
        assert!(opens(&sealer, kept, &kept_bytes) && !opens(&sealer, lost, &lost_bytes));
        let mut plain = vec![7; PLAIN.len()];
        assert!(sealer.open_in_ended_era(lost, &lost_bytes, &mut plain) && plain == PLAIN);
        assert!(!sealer.open_in_ended_era(kept, &lost_bytes, &mut plain));
        let again = seal(&mut sealer, lost);
        assert!(again != lost_bytes && opens(&sealer, lost, &again));

        let eras: Vec<_> = sealer.eras().cloned().collect();
        let mut reopened = EraSealer::new(master.clone(), TreeId(0), eras.clone());
        assert!(opens(&reopened, kept, &kept_bytes) && opens(&reopened, lost, &again));
        let other_tree = EraSealer::new(master, TreeId(1), eras.clone());
        assert!(!opens(&other_tree, kept, &kept_bytes));

        reopened.forget_before(10);
        assert!(reopened.eras().eq(&eras[1..]) && opens(&reopened, lost, &again));
        // A second recovery at the same place replaces the era that made nothing.
        reopened.begin_era(10, &mut coins);
        assert!(reopened.eras().count() == 1 && !opens(&reopened, lost, &again));
    }

    #[test]
    fn names_are_distinct() {
        let mut nonces = HashSet::new();
        for eviction in [0, 1, 255, 256, u64::MAX] {
            for level in [0, 1, 40] {
                let slots = [0, 1, 254].map(SealedPart::Slot);
                for part in slots.into_iter().chain([SealedPart::Header]) {
                    let nonce = sealing(eviction, level, part).nonce();
                    assert!(nonces.insert(*nonce.as_ref()));
                }
            }
        }
    }
}
