//! An encrypted file that holds rescued blocks until they are served.
//!
//! ```text
//! block:  number of the sealing │ sealed( contents ) │ tag
//! ```
//!
//! Blocks are sealed with AES-256-GCM under a key that was drawn for this file and exists only in
//! memory. The sealings are numbered, and their numbers are the nonces. A block that was never put
//! is a hole.
//!
//! An attacker who watches the file sees which blocks have contents, in which order they were
//! found, and so which bucket each lies in, and which are read. So the file must not lie where the
//! volume's storage sees it. A changed or missing block is detected; an earlier sealing of the same
//! block is not.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bit_set::BitSet;
use oblivio_core::wiped::WipedBytes;
use rand::CryptoRng;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::RescueTarget;

const NUMBER_BYTES: usize = 8;
const TAG_BYTES: usize = 16;

/// Rescued blocks, sealed.
pub struct Scratch {
    file: File,
    key: LessSafeKey,
    block_bytes: usize,
    sealings: u64,
    /// Blocks that were put and not cleared.
    stored: BitSet,
}

impl Scratch {
    /// Takes `file`, which must be empty and unshared, for blocks of `block_bytes` bytes.
    pub fn new(file: File, block_bytes: u32, coins: &mut impl CryptoRng) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        coins.fill_bytes(&mut *key);
        let key = UnboundKey::new(&AES_256_GCM, &*key).expect("the key has the cipher's length");
        let block_bytes = block_bytes as usize;
        Self { file, key: LessSafeKey::new(key), block_bytes, sealings: 0, stored: BitSet::new() }
    }

    pub(super) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// The contents of a block: zeros if it has none.
    pub(super) fn get(&self, block: u64) -> io::Result<WipedBytes> {
        if !self.stored.contains(block as usize) {
            return Ok(WipedBytes::zeros(self.block_bytes));
        }
        let mut slot = WipedBytes::zeros(self.slot_bytes());
        self.file.read_exact_at(&mut slot, self.offset(block))?;
        let (number, sealed) = slot.split_at_mut(NUMBER_BYTES);
        let number = u64::from_le_bytes(std::array::from_fn(|i| number[i]));
        let contents = self.key.open_in_place(nonce(number), bound_to(block), sealed);
        let contents = contents.map_err(|_| io::Error::other("the scratch file was changed"))?;
        Ok((&*contents).into())
    }

    fn slot_bytes(&self) -> usize {
        NUMBER_BYTES + self.block_bytes + TAG_BYTES
    }

    fn offset(&self, block: u64) -> u64 {
        block * self.slot_bytes() as u64
    }
}

impl RescueTarget for Scratch {
    fn put(&mut self, block: u64, data: &[u8]) -> io::Result<()> {
        self.sealings += 1;
        let mut slot = WipedBytes::with_capacity(self.slot_bytes());
        slot.extend_from_slice(&self.sealings.to_le_bytes());
        slot.extend_from_slice(data);
        let tag = self
            .key
            .seal_in_place_separate_tag(
                nonce(self.sealings),
                bound_to(block),
                &mut slot[NUMBER_BYTES..],
            )
            .expect("a block is shorter than the longest input of GCM");
        slot.extend_from_slice(tag.as_ref());
        self.file.write_all_at(&slot, self.offset(block))?;
        self.stored.insert(block as usize);
        Ok(())
    }

    fn clear(&mut self, block: u64) -> io::Result<()> {
        self.stored.remove(block as usize);
        Ok(())
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

fn bound_to(block: u64) -> Aad<[u8; 8]> {
    Aad::from(block.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    const BLOCK_BYTES: usize = 40;

    fn scratch() -> (Scratch, File) {
        let file = tempfile::tempfile().unwrap();
        let same = file.try_clone().unwrap();
        (Scratch::new(file, BLOCK_BYTES as u32, &mut StdRng::seed_from_u64(1)), same)
    }

    #[test]
    fn it_holds_what_was_put_last_and_zeros_elsewhere() {
        let (mut scratch, _) = scratch();
        for (block, fill) in [(3, 1), (900, 2), (3, 3), (5, 4)] {
            scratch.put(block, &[fill; BLOCK_BYTES]).unwrap();
        }
        [5, 6, 5000].iter().for_each(|block| scratch.clear(*block).unwrap());
        for (block, fill) in [(3, 3), (900, 2), (5, 0), (4, 0), (899, 0), (901, 0), (1 << 40, 0)] {
            assert_eq!(scratch.get(block).unwrap()[..], [fill; BLOCK_BYTES], "{block}");
        }
    }

    /// The bytes of the first slots.
    fn slots(scratch: &Scratch, file: &File, count: usize) -> Vec<Vec<u8>> {
        let mut bytes = vec![0; count * scratch.slot_bytes()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes.chunks(scratch.slot_bytes()).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn the_file_shows_no_contents_and_not_which_are_the_same() {
        let (mut scratch, file) = scratch();
        let data = [7; BLOCK_BYTES];
        (0..2).for_each(|block| scratch.put(block, &data).unwrap());
        let mut seen = slots(&scratch, &file, 2);
        scratch.put(0, &data).unwrap();
        seen.push(slots(&scratch, &file, 1).remove(0));
        let file = tempfile::tempfile().unwrap();
        let same = file.try_clone().unwrap();
        let mut coins = StdRng::seed_from_u64(2);
        let mut with_another_key = Scratch::new(file, BLOCK_BYTES as u32, &mut coins);
        with_another_key.put(0, &data).unwrap();
        seen.push(slots(&with_another_key, &same, 1).remove(0));
        for (n, slot) in seen.iter().enumerate() {
            assert!(!slot.windows(3).any(|three| three == [7; 3]), "{slot:?}");
            let sealed = |slot: &Vec<u8>| slot[NUMBER_BYTES..].to_vec();
            assert!(seen[..n].iter().all(|other| sealed(other) != sealed(slot)), "{n}");
        }
    }

    #[test]
    fn changed_or_missing_blocks_are_detected() {
        let (mut scratch, file) = scratch();
        (0..2).for_each(|block| scratch.put(block, &[7; BLOCK_BYTES]).unwrap());
        let [first, second] = <[_; 2]>::try_from(slots(&scratch, &file, 2)).unwrap();
        file.write_all_at(&first, scratch.offset(1)).unwrap();
        scratch.get(1).unwrap_err();
        file.write_all_at(&second, scratch.offset(1)).unwrap();
        scratch.get(1).unwrap();
        for at in 0..first.len() {
            file.write_all_at(&[first[at] ^ 1], at as u64).unwrap();
            scratch.get(0).unwrap_err();
            file.write_all_at(&[0; NUMBER_BYTES], 0).unwrap();
            scratch.get(0).unwrap_err();
            file.write_all_at(&first, 0).unwrap();
        }
        file.set_len(scratch.offset(1) + 3).unwrap();
        scratch.get(1).unwrap_err();
        scratch.get(0).unwrap();
    }
}
