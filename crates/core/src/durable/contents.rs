//! What an array holds from its beginning.

use crate::error::Error;

/// Data for the blocks of an array that is being made: each is asked for once, in any order.
pub trait Contents {
    /// Puts the data of a block where it is told to, which is zeros before. Answers whether it has any: a block without data takes no access and no room.
    ///
    /// # Errors
    /// When it cannot be read, or whoever brings it does not want to go on. The array is worth nothing then.
    fn block(&mut self, address: u64, data: &mut [u8]) -> Result<bool, Error>;
}
