//! Verifies that buckets hold their latest writes, and diagnoses buckets that do not.

use alloc::format;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::places::{PlaceRings, Version};
use crate::error::{Error, ErrorKind};
use crate::pieces::Frames;
use crate::seal::{BucketKind, BucketName, EraSealer, VerifiedBucket};

/// Verifies the buckets of a trip.
pub(super) struct Verifier<'a> {
    pub(super) sealer: &'a EraSealer,
    pub(super) places: &'a PlaceRings,
    /// Number of evictions so far.
    pub(super) g: u64,
}

/// The number of bytes that diagnoses of damaged buckets may still verify. The budget is necessary
/// because all buckets of a store may be damaged, and each may be tried under thousands of names.
/// Even without budget, a diagnosis makes a few tries.
pub(super) struct DiagnosisBudget {
    bytes_left: u64,
}

impl Default for DiagnosisBudget {
    fn default() -> Self {
        Self { bytes_left: 1 << 30 }
    }
}

impl<'a> Verifier<'a> {
    /// Verifies and returns all buckets of a trip that were ever written, in order. `frames` holds
    /// the slots of all buckets, then their heads. Fails with the diagnosis of the first bucket
    /// that does not hold its version.
    pub(super) fn verify_all<'v, 'f>(
        &self,
        versions: &'v [Version],
        frames: &Frames<'f>,
    ) -> Result<Vec<(&'v Version, VerifiedBucket<'a, 'f>)>, Error> {
        self.verify_all_with(&mut DiagnosisBudget::default(), versions, frames)
    }

    /// Verifies the buckets of a trip like [`Self::verify_all`], with a diagnosis budget that
    /// several trips share.
    pub(super) fn verify_all_with<'v, 'f>(
        &self,
        budget: &mut DiagnosisBudget,
        versions: &'v [Version],
        frames: &Frames<'f>,
    ) -> Result<Vec<(&'v Version, VerifiedBucket<'a, 'f>)>, Error> {
        let written = versions.iter().enumerate().filter(|(_, version)| version.is_written);
        written
            .map(|(i, version)| {
                let (slots, head) = (frames.get(i), frames.get(versions.len() + i));
                let bucket = self.verify(version.eviction, version, head, slots);
                bucket
                    .map(|bucket| (version, bucket))
                    .ok_or_else(|| self.diagnose(budget, version, head, slots))
            })
            .collect()
    }

    /// Verifies that `eviction` wrote the bucket in `head` and `slots`, and returns the bucket;
    /// `None` if it did not.
    pub(super) fn verify<'f>(
        &self,
        eviction: u64,
        version: &Version,
        head: &'f [u8],
        slots: &'f [u8],
    ) -> Option<VerifiedBucket<'a, 'f>> {
        let name = BucketName { eviction, level: version.level, kind: BucketKind::Blocks };
        self.sealer.verify(name, head, slots)
    }

    /// The error for a bucket that does not hold its latest write. Its message says what the bucket
    /// holds instead, if a try finds out.
    #[cold]
    fn diagnose(
        &self,
        budget: &mut DiagnosisBudget,
        version: &Version,
        head: &[u8],
        slots: &[u8],
    ) -> Error {
        /// The minimum and maximum number of names of each kind to try for one bucket. The minimum
        /// suffices to recognise the bucket's previous write.
        const TRIES: RangeInclusive<u64> = 2..=1 << 14;
        const TRIED_BYTES_MAX: u64 = 1 << 28;
        let Version { level, eviction, .. } = *version;
        if head.iter().all(|byte| *byte == 0) {
            return corrupt_bucket(version, "nothing, although it was written: a write was lost");
        }
        let bucket_bytes = (head.len() + slots.len()) as u64;
        let tries = TRIED_BYTES_MAX.min(budget.bytes_left) / bucket_bytes;
        let tries_max = tries.clamp(*TRIES.start(), *TRIES.end());
        let mut is_of = |other: u64| {
            budget.bytes_left = budget.bytes_left.saturating_sub(bucket_bytes);
            self.verify(other, version, head, slots).is_some()
        };
        let ring = self.places.on_level(level);
        let older =
            |step: u64| (1..=tries_max).map_while(move |times| eviction.checked_sub(step * times));
        let first = self.places.first_eviction();
        if older(ring).chain(older(1 << level)).filter(|e| *e >= first).any(&mut is_of) {
            return corrupt_bucket(
                version,
                "an older version: storage was rolled back, or lost a write",
            );
        }
        let oldest = self.g.saturating_sub(ring.min(tries_max)).max(first);
        if (oldest..self.g).any(is_of) {
            return corrupt_bucket(version, "the contents of another bucket");
        }
        corrupt_bucket(version, "changed bytes")
    }
}

/// The error for bytes that the client did not write. The message names the defect and the public
/// place, never a value.
#[cold]
pub(super) fn corrupt_bucket(version: &Version, defect: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "bucket {} of storage holds {defect}. The storage is damaged or was tampered with. \
             The bucket was not used",
            version.place
        ),
    )
}
