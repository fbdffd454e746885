//! The initial contents of an array.

use crate::error::Error;

/// Data for the blocks of a new array. Each block is requested once, in any order.
pub trait Contents {
    /// Writes the data of a block to `data`, which is all zeros at first. Returns whether the block
    /// has data. A block without data costs no access and no space.
    ///
    /// # Errors
    /// If the data cannot be read, or its source stops the creation. The array is unusable then.
    fn block(&mut self, address: u64, data: &mut [u8]) -> Result<bool, Error>;
}
