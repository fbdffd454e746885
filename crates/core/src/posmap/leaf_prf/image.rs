//! A fingerprint of the key, for images. The key itself is never in an image.

use super::LeafPrf;

impl LeafPrf {
    /// A number that identifies the key. It reveals no leaf, because it is computed from a count
    /// that no block ever reaches.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.value(u128::MAX)
    }
}
