//! A bitmap of the block addresses seen so far.

use alloc::format;

use crate::error::{Error, ErrorKind};
use crate::hint;
use crate::memory::Region;

/// A set of addresses, one bit each. With the feature `mmap`, pages without members take no memory.
pub(crate) struct AddressSet {
    bits: Region,
    capacity: u64,
}

impl AddressSet {
    /// An empty set for the addresses below `capacity`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the system has no memory for it.
    pub(crate) fn new(capacity: u64) -> Result<Self, Error> {
        match Region::new(capacity.div_ceil(8)) {
            Ok(bits) => Ok(Self { bits, capacity }),
            Err(cause) => Err(Error::new(
                ErrorKind::InvalidConfig,
                format!("no memory for a bit for each of {capacity} blocks: {cause}"),
            )),
        }
    }

    /// Prefetches the bit of an address that will be inserted soon.
    pub(crate) fn announce(&self, address: u64) {
        if address < self.capacity {
            hint::prefetch(&self.bits.bytes()[(address / 8) as usize..][..1]);
        }
    }

    /// Inserts an address. Returns whether the address is new: `false` if the set already has it or
    /// if it is not below the capacity.
    pub(crate) fn insert(&mut self, address: u64) -> bool {
        if address >= self.capacity {
            return false;
        }
        let (byte, bit) = (&mut self.bits.bytes_mut()[(address / 8) as usize], 1 << (address % 8));
        let is_new = *byte & bit == 0;
        *byte |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_new_once_and_never_past_the_end() {
        let mut seen = AddressSet::new(19).unwrap();
        for address in [0, 7, 8, 18, 3] {
            seen.announce(address);
            assert!(seen.insert(address));
            assert!(!seen.insert(address));
        }
        seen.announce(u64::MAX);
        assert!(![19, 23, 24, u64::MAX].map(|address| seen.insert(address)).contains(&true));
        assert!(seen.insert(17));
    }
}
