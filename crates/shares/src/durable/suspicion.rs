//! Who may have spoilt what shares give back: one of the servers that have dealt in the evictions
//! that wrote it.
//!
//! A server that deals a wrong product adds a value that it knows to the secret, on a polynomial
//! that all servers have. It can take that value back in its next answer. So a block that was not
//! what it should be may be right when the access is made again, and the server has learnt that the
//! access was for a block. Nothing tells which server it was: the owner is told which evictions
//! wrote the buckets, and who deals.

use oblivio_core::geometry::{evictions_of_bucket, last_eviction_of_bucket};
use oblivio_core::{BucketId, Error, ErrorKind, Leaf};

use super::trust::Trust;
use crate::message::Point;
use crate::sharing::Parties;

/// What the owner does if the shares of one server alone may be wrong.
const MAY_BE_REPAIRED: &str = "Make the shares of one server after the other anew all the same \
    (`oblivio shares repair`): a repair is refused, and changes nothing, unless the shares of the \
    others are right. When one is done, open the volume as one that was tampered with. If all are \
    refused, a server has dealt wrong shares in an eviction";

/// The same, if the shares of all servers fit each other.
const IS_DEALT: &str = "The shares of the servers fit each other, so no repair mends that: a \
    server has dealt wrong shares in an eviction";

/// What the owner does if a server has dealt wrong shares.
const NEW_VOLUME: &str = "Such a server learns from each access that fails whether it was for a \
    block. Do not go on with these servers then: save what is left with `oblivio rescue`, and make \
    a new volume on others";

/// Where something was found that was never written.
pub(super) struct Suspicion {
    pub(super) parties: Parties,
    /// The point at which it was found.
    pub(super) at: Point,
    /// In one of these. Public.
    pub(super) buckets: Vec<BucketId>,
    /// The shares that gave it fit each other, though as many servers as may collude lie.
    pub(super) do_shares_fit: bool,
}

impl Suspicion {
    /// The error `corrupt` with the suspects and what the owner does.
    pub(super) fn error(&self, corrupt: &Error, trust: &Trust) -> Error {
        let message = format!("{corrupt} {}", self.advice(trust));
        Error::new(ErrorKind::Corrupt, message).advised()
    }

    /// Which evictions wrote it, which servers deal, and what the owner does.
    fn advice(&self, trust: &Trust) -> String {
        let what = if self.do_shares_fit { IS_DEALT } else { MAY_BE_REPAIRED };
        let last = |bucket: &BucketId| last_eviction(self.at.evictions, *bucket);
        let mut evictions: Vec<_> = self.buckets.iter().filter_map(last).collect();
        evictions.sort_unstable();
        evictions.dedup();
        let evictions: Vec<_> = evictions.iter().map(u64::to_string).collect();
        let suspects = match evictions.as_slice() {
            [] => String::new(),
            evictions => format!(
                ". What was read was last written by eviction {} (from 0), \
                 and the servers that deal are {}",
                evictions.join(", "),
                trust.dealing(self.parties)
            ),
        };
        format!("{what}{suspects}. {NEW_VOLUME}")
    }
}

/// The last eviction before `evictions` that wrote `bucket`; `None` for the root,
/// which accesses write.
fn last_eviction(evictions: u64, bucket: BucketId) -> Option<u64> {
    let (above, leaf) = (bucket.level().checked_sub(1)?, Leaf(bucket.index()));
    let is_any = evictions_of_bucket(evictions, leaf, above) > 0;
    is_any.then(|| last_eviction_of_bucket(evictions, leaf, above))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::tree::{Preset, Tree};

    #[test]
    fn the_last_eviction_of_a_bucket_is_the_one_that_made_it() {
        for height in 1..=4 {
            let tree = Tree::new(height, Preset::SMALL).unwrap();
            let mut made = HashMap::new();
            for number in 0..40 {
                for bucket in tree.buckets() {
                    let expected = made.get(&bucket).copied();
                    assert_eq!(last_eviction(number, bucket), expected, "{bucket}, {number}");
                }
                for triplet in tree.triplets(number) {
                    made.insert(triplet.destination, number);
                    made.insert(triplet.sibling, number);
                }
            }
        }
    }
}
