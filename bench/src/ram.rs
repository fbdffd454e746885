//! Makes an oblivious memory a [`Subject`]: [`Driven`] generates the blocks that it writes, and
//! checks that reads return them.

use std::{hint::black_box, ops::Range};

use crate::subject::{Row, Subject};

/// An oblivious memory to measure. Unwritten blocks may have any contents.
pub trait Ram {
    fn read(&mut self, address: u64, block: &mut [u8]);
    fn write(&mut self, address: u64, block: &[u8]);
}

/// A [`Ram`] in the form of a subject.
pub struct Driven<R> {
    ram: R,
    blocks: u64,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

/// The version of measured writes. A version is the byte that fills a block between its stamps.
/// [`Driven::check`] also uses other versions.
const MEASURED: u8 = 0;

impl<R: Ram> Driven<R> {
    pub fn new(ram: R, row: Row) -> Self {
        let block = vec![MEASURED; row.block_bytes];
        Self { ram, blocks: row.blocks() as u64, incoming: block.clone(), outgoing: block }
    }

    fn read(&mut self, address: u64) {
        self.ram.read(address, &mut self.incoming);
        black_box(&mut self.incoming);
    }

    /// Stamps `outgoing` with the address, and writes it to the block at the address.
    fn write(&mut self, address: u64) {
        stamp(&mut self.outgoing, address);
        self.ram.write(address, &self.outgoing);
    }

    /// Checks that the block at `address` holds the stamp of `address`, and `version` in all other
    /// bytes.
    fn expect(&mut self, address: u64, version: u8) -> Result<(), String> {
        let mut expected = vec![version; self.incoming.len()];
        stamp(&mut expected, address);
        self.read(address);
        if self.incoming == expected {
            Ok(())
        } else {
            Err(format!("block {address} lost its last write"))
        }
    }
}

impl<R: Ram> Subject for Driven<R> {
    fn access(&mut self, address: u64, write: bool) {
        if write {
            self.write(address);
        } else {
            self.read(address);
        }
    }

    fn check(&mut self, filled: u64) -> Result<(), String> {
        for version in [1, 2, MEASURED] {
            self.outgoing.fill(version);
            sample(0..64, self.blocks).for_each(|address| self.write(address));
            sample(0..64, self.blocks).try_for_each(|address| self.expect(address, version))?;
        }
        match filled {
            0 => Ok(()),
            _ => sample(64..512, filled).try_for_each(|address| self.expect(address, MEASURED)),
        }
    }
}

/// Writes a number derived from the address to both ends of a block, to detect lost, truncated and
/// misplaced writes.
fn stamp(block: &mut [u8], address: u64) {
    let mark = scatter(address).to_le_bytes();
    block[..mark.len()].copy_from_slice(&mark);
    let tail = block.len() - mark.len();
    block[tail..].copy_from_slice(&mark);
}

/// Returns pseudo-random addresses below `limit`, one per index.
fn sample(indices: Range<u64>, limit: u64) -> impl Iterator<Item = u64> {
    indices.map(move |index| (scatter(index) >> 32) % limit)
}

/// Maps an index to a pseudo-random number by Fibonacci hashing. Different indices give different
/// numbers. The number of an address is never zero.
fn scatter(index: u64) -> u64 {
    (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An array that drops the writes for which the function in field 1 returns false.
    struct Array<F>(Vec<[u8; 32]>, F);

    impl<F: Fn(u64, &[u8]) -> bool> Ram for Array<F> {
        fn read(&mut self, address: u64, block: &mut [u8]) {
            block.copy_from_slice(&self.0[address as usize]);
        }

        fn write(&mut self, address: u64, block: &[u8]) {
            if (self.1)(address, block) {
                self.0[address as usize].copy_from_slice(block);
            }
        }
    }

    fn check(keeps: impl Fn(u64, &[u8]) -> bool) -> Result<(), String> {
        let row = Row { block_bytes: 32, log2_blocks: 12 };
        let mut driven = Driven::new(Array(vec![[0; 32]; row.blocks()], keeps), row);
        driven.check(0)?;
        (0..row.blocks() as u64).for_each(|address| driven.access(address, true));
        driven.check(row.blocks() as u64)
    }

    #[test]
    fn a_memory_passes() {
        assert_eq!(check(|_, _| true), Ok(()));
    }

    #[test]
    fn a_memory_that_loses_or_keeps_stale_blocks_is_caught() {
        assert!(check(|_, _| false).is_err());
        assert!(check(|address, _| address % 16 != 5).is_err());
        assert!(check(|_, block| block[16] != 2).is_err());
    }
}
