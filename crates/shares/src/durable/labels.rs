//! What slots say in the place of addresses.
//!
//! What a slot says of its block is shared, and not sealed: evictions move it, and the client has
//! to read that of whole paths. So *t* + 1 servers that collude read it. An address there would
//! tell them which blocks of the disk the owner accesses, one after the other: what a file system
//! keeps where is well known. A label only distinguishes blocks. The servers also learn
//! which labels share a block of the map, and so lie beside each other on the disk. If they see
//! every block accessed in a known order, they learn the address of every label.

use aes::Aes256;
use fpe::ff1::{BinaryNumeralString, FF1};
use oblivio_core::seal::BlockSealer;
use zeroize::Zeroizing;

use crate::map_trees::Levels;
use crate::map_trees::map_block::{number_of, put_number};

/// A secret permutation of addresses, for each tree another: FF1 (NIST SP 800-38G), whose numbers
/// are strings of bits. No two blocks have one label, which they might if it were drawn.
pub(super) struct Labels {
    cipher: FF1<Aes256>,
    /// Of each tree, the data first, bytes of a label.
    bytes: Vec<usize>,
}

impl Labels {
    /// Derives the key from the array's key. Without map trees there are no labels.
    pub(super) fn new(sealer: &BlockSealer, levels: Option<&Levels>) -> Self {
        let key = sealer.seed(b"labels of blocks");
        let cipher = FF1::new(&*key, 2).expect("there are strings of bits");
        let levels = levels.into_iter().flat_map(Levels::iter);
        Self { cipher, bytes: levels.map(|level| level.label_bytes()).collect() }
    }

    /// That of a block. It takes about as long whatever the address is.
    pub(super) fn of(&self, tree: usize, address: u64) -> u64 {
        // Slots say one more than the label, and zero if they are empty: of all numbers but zero,
        // each is of one address. Whichever comes to zero has what zero comes to.
        let [zeros, numbered] = [0, address + 1].map(|number| self.permuted(tree, number));
        (if numbered == 0 { zeros } else { numbered }) - 1
    }

    fn permuted(&self, tree: usize, number: u64) -> u64 {
        let mut bytes = Zeroizing::new(vec![0; self.bytes[tree]]);
        put_number(number, &mut bytes);
        let bits = BinaryNumeralString::from_bytes_le(&bytes);
        let permuted = self.cipher.encrypt(&[tree as u8], &bits);
        let permuted = permuted.expect("there are no fewer bits than FF1 takes");
        number_of(&Zeroizing::new(permuted.to_bytes_le()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use oblivio_core::MasterKey;

    use super::*;
    use crate::durable::S3OramParams;
    use crate::map_trees::MapShape;
    use crate::sharing::Parties;
    use crate::tree::Preset;

    const BLOCKS: u64 = 5000;

    fn labels(key: u8) -> Labels {
        labels_of(BLOCKS, key)
    }

    fn labels_of(blocks: u64, key: u8) -> Labels {
        let parties = Parties::new(3, 1).unwrap();
        let params = S3OramParams::new(blocks, 512, parties, Preset::SMALL).unwrap();
        let shape = MapShape { block_bytes: 64, client_entries_max: 100 };
        let params = params.with_map_in_trees(shape).unwrap();
        let sealer = BlockSealer::new(&MasterKey::from_bytes([key; 32]));
        Labels::new(&sealer, params.levels())
    }

    #[test]
    fn each_block_has_a_label_of_its_own_that_a_slot_can_say() {
        let labels = labels(1);
        for tree in 0..labels.bytes.len() {
            let all: HashSet<_> = (0..BLOCKS).map(|address| labels.of(tree, address)).collect();
            assert_eq!(all.len() as u64, BLOCKS);
            assert!(all.iter().all(|label| label + 1 < 1 << (8 * labels.bytes[tree])));
        }
    }

    /// A number that is one more than an address has to fit.
    #[test]
    fn as_many_bytes_make_a_label_as_there_are_addresses() {
        for (blocks, bytes) in [((1 << 24) - 1, 3), (1 << 24, 4)] {
            let labels = labels_of(blocks, 1);
            assert_eq!(labels.bytes[0], bytes);
            let [first, last] = [0, blocks - 1].map(|address| labels.of(0, address));
            assert_ne!(first, last);
        }
    }

    /// They are kept on servers.
    #[test]
    fn labels_are_as_they_were() {
        let labels = labels(1);
        assert_eq!(
            [0, 1, 4999].map(|address| labels.of(0, address)),
            [7_521_861, 8_171_700, 2_697_108]
        );
    }

    /// A stand-in whose address comes to zero is found by going back from zero.
    #[test]
    fn no_label_is_that_of_an_empty_slot() {
        let labels = labels(1);
        let zeros = BinaryNumeralString::from_bytes_le(&vec![0; labels.bytes[0]]);
        let before = labels.cipher.decrypt(&[0], &zeros).unwrap().to_bytes_le();
        let label = labels.of(0, number_of(&before) - 1);
        assert_eq!(label + 1, labels.permuted(0, 0));
    }

    #[test]
    fn labels_say_nothing_of_addresses_and_are_others_in_every_tree_and_under_every_key() {
        let [ours, others] = [labels(1), labels(2)];
        let equal = |one: &dyn Fn(u64) -> u64, other: &dyn Fn(u64) -> u64| {
            (0..BLOCKS).filter(|address| one(*address) == other(*address)).count()
        };
        let of = |address| ours.of(0, address);
        // One of 2^24 is the same by chance.
        assert!(equal(&of, &|address| address) < 3);
        assert!(equal(&of, &|address| ours.of(1, address)) < 3);
        assert!(equal(&of, &|address| others.of(0, address)) < 3);
        let grows = (1..BLOCKS).filter(|address| of(address - 1) < of(*address)).count();
        assert!((2300..2700).contains(&grows), "{grows}");
    }
}
