//! Secret labels of blocks, which slots hold instead of addresses.
//!
//! The metadata of a slot is shared, but not sealed: evictions move it, and the client must read
//! the metadata of whole paths. So *t* + 1 colluding servers can read it. Addresses would reveal to
//! them which blocks of the disk the owner accesses, in order, and the layout of file systems is
//! well known. A label only distinguishes blocks. The servers also learn which labels share a map
//! block, and so are neighbours on the disk. If they see every block accessed in a known order,
//! they learn the address of every label.

use aes::Aes256;
use fpe::ff1::{BinaryNumeralString, FF1};
use oblivio_core::seal::BlockSealer;
use zeroize::Zeroizing;

use crate::map_trees::Levels;
use crate::map_trees::map_block::{number_of, put_number};

/// A secret permutation of addresses, different for each tree: FF1 (NIST SP 800-38G) on bit
/// strings. So no two blocks have the same label, which random labels would not ensure.
pub(super) struct Labels {
    cipher: FF1<Aes256>,
    /// For each tree, the bytes of a label, starting with the data tree.
    bytes: Vec<usize>,
}

impl Labels {
    /// Derives the key of the permutation from the array's key. An array without map trees has no
    /// labels.
    pub(super) fn new(sealer: &BlockSealer, levels: Option<&Levels>) -> Self {
        let key = sealer.seed(b"labels of blocks");
        let cipher = FF1::new(&*key, 2).expect("FF1 supports radix 2");
        let levels = levels.into_iter().flat_map(Levels::iter);
        Self { cipher, bytes: levels.map(|level| level.label_bytes()).collect() }
    }

    /// The label of a block of a tree. Takes about the same time for every address.
    pub(super) fn of(&self, tree: usize, address: u64) -> u64 {
        // Slots hold the label plus one, and zero if they are empty. So the permutation must avoid
        // zero: the number that maps to zero gets the image of zero instead.
        let [zeros, numbered] = [0, address + 1].map(|number| self.permuted(tree, number));
        (if numbered == 0 { zeros } else { numbered }) - 1
    }

    fn permuted(&self, tree: usize, number: u64) -> u64 {
        let mut bytes = Zeroizing::new(vec![0; self.bytes[tree]]);
        put_number(number, &mut bytes);
        let bits = BinaryNumeralString::from_bytes_le(&bytes);
        let permuted = self.cipher.encrypt(&[tree as u8], &bits);
        let permuted = permuted.expect("labels have at least as many bits as FF1 needs");
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
    fn each_block_has_a_different_label_that_fits_in_a_slot() {
        let labels = labels(1);
        for tree in 0..labels.bytes.len() {
            let all: HashSet<_> = (0..BLOCKS).map(|address| labels.of(tree, address)).collect();
            assert_eq!(all.len() as u64, BLOCKS);
            assert!(all.iter().all(|label| label + 1 < 1 << (8 * labels.bytes[tree])));
        }
    }

    /// Labels have enough bytes for every address plus one. Slots hold the label plus one, because
    /// zero stands for an empty slot.
    #[test]
    fn labels_are_long_enough_for_all_addresses() {
        for (blocks, bytes) in [((1 << 24) - 1, 3), (1 << 24, 4)] {
            let labels = labels_of(blocks, 1);
            assert_eq!(labels.bytes[0], bytes);
            let [first, last] = [0, blocks - 1].map(|address| labels.of(0, address));
            assert_ne!(first, last);
        }
    }

    /// Labels do not change between versions of the program, because servers store them.
    #[test]
    fn labels_do_not_change() {
        let labels = labels(1);
        assert_eq!(
            [0, 1, 4999].map(|address| labels.of(0, address)),
            [7_521_861, 8_171_700, 2_697_108]
        );
    }

    /// No label is stored as zero, which stands for an empty slot. The test inverts the permutation
    /// to find the address that maps to zero, and checks that this address has the image of zero
    /// instead.
    #[test]
    fn no_label_is_stored_as_zero() {
        let labels = labels(1);
        let zeros = BinaryNumeralString::from_bytes_le(&vec![0; labels.bytes[0]]);
        let before = labels.cipher.decrypt(&[0], &zeros).unwrap().to_bytes_le();
        let label = labels.of(0, number_of(&before) - 1);
        assert_eq!(label + 1, labels.permuted(0, 0));
    }

    #[test]
    fn labels_look_random_and_differ_between_trees_and_keys() {
        let [ours, others] = [labels(1), labels(2)];
        let equal = |one: &dyn Fn(u64) -> u64, other: &dyn Fn(u64) -> u64| {
            (0..BLOCKS).filter(|address| one(*address) == other(*address)).count()
        };
        let of = |address| ours.of(0, address);
        // Two labels are equal by chance with a probability of 2^-24.
        assert!(equal(&of, &|address| address) < 3);
        assert!(equal(&of, &|address| ours.of(1, address)) < 3);
        assert!(equal(&of, &|address| others.of(0, address)) < 3);
        let grows = (1..BLOCKS).filter(|address| of(address - 1) < of(*address)).count();
        assert!((2300..2700).contains(&grows), "{grows}");
    }
}
