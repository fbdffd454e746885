//! A fingerprint of the key, for images. The key itself is never in an image.

use super::LeafPrf;

impl LeafPrf {
    /// A number that identifies the key without revealing a leaf: no block ever reaches the count
    /// in its input.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.value(u128::MAX)
    }
}
