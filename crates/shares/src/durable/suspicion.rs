//! Determines which servers may have damaged a block: those that dealt in the evictions that wrote
//! it.
//!
//! A server that deals a wrong product adds a value that it knows to the secret, on a polynomial
//! that all servers share. In its next answer it can subtract the value again, so a block that was
//! wrong may be right when the access is repeated. From the failure, the server learns that the
//! access was for a block and not a dummy. The client cannot tell which server it was. The error
//! tells the owner which evictions wrote the buckets, and which servers deal.

use oblivio_core::geometry::{evictions_of_bucket, last_eviction_of_bucket};
use oblivio_core::{BucketId, Error, ErrorKind, Leaf};

use super::trust::Trust;
use crate::message::TreePoint;
use crate::sharing::Parties;

/// The advice if the shares of a single server may be wrong.
const MAY_BE_REPAIRED: &str = "Rebuild the shares of one server after the other anyway \
    (`oblivio shares repair`): a repair is refused, and changes nothing, unless the shares of the \
    others are right. After a successful repair, open the volume with `after_tampering`. If \
    all repairs are refused, a server has dealt wrong shares in an eviction";

/// The advice if the shares of all servers fit each other, so that a dealer is suspected.
const IS_DEALT: &str = "The shares of the servers fit each other, so no repair can help: a \
    server has dealt wrong shares in an eviction";

/// The advice to copy the data to a new volume, if a server has dealt wrong shares.
const NEW_VOLUME: &str = "Such a server learns from each failed access whether it was for a \
    block. In that case, stop using these servers: save the remaining data with `oblivio rescue`, \
    and create a new volume on other servers";

/// Data that no client wrote, and the buckets in which a client may have found it.
pub(super) struct Suspicion {
    pub(super) parties: Parties,
    /// The point at which the data was found.
    pub(super) at: TreePoint,
    /// The buckets of an access's path, or the one bucket that a check has read. One of them held
    /// the data. Public.
    pub(super) buckets: Vec<BucketId>,
    /// Whether the shares fit each other, even if *t* servers lie.
    pub(super) do_shares_fit: bool,
}

impl Suspicion {
    /// Adds the suspects and advice for the owner to the error `corrupt`.
    pub(super) fn error(&self, corrupt: &Error, trust: &Trust) -> Error {
        let message = format!("{corrupt} {}", self.advice(trust));
        Error::new(ErrorKind::Corrupt, message).advised()
    }

    /// Describes the evictions that wrote the buckets and the servers that deal, with advice for
    /// the owner.
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
                ". The data was last written by eviction {} (from 0), and the servers that deal \
                 are {}",
                evictions.join(", "),
                trust.name_dealers(self.parties)
            ),
        };
        format!("{what}{suspects}. {NEW_VOLUME}")
    }
}

/// The last of the first `evictions` evictions that wrote `bucket`; `None` if no eviction wrote it,
/// as for the root, which accesses write.
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
