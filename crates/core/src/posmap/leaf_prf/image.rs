//! The key is in no image, and what stands for it is.

use super::LeafPrf;

impl LeafPrf {
    /// What tells this key from others, and says nothing of any leaf: no block is ever moved as often as
    /// the name of it says.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.value(u128::MAX)
    }
}
