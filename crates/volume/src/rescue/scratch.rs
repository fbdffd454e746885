//! Where rescued blocks wait to be served: a file that nobody can read afterwards.
//!
//! ```text
//! block:  number of the sealing │ sealed( contents ) │ tag
//! ```
//!
//! Blocks are sealed with AES-256-GCM under a key that was drawn for this file and is nowhere but in memory. The
//! sealings are numbered, and their numbers are the nonces. What was never put is a hole.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

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
    /// Sealings so far. The first is number 1: zeros are a hole.
    sealings: u64,
}

impl Scratch {
    /// Makes `file`, an empty one that nobody else uses, a place for blocks of `block_bytes` bytes.
    pub fn new(file: File, block_bytes: u32, coins: &mut impl CryptoRng) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        coins.fill_bytes(&mut *key);
        let key = UnboundKey::new(&AES_256_GCM, &*key).expect("the key has the cipher's length");
        let block_bytes = block_bytes as usize;
        Self { file, key: LessSafeKey::new(key), block_bytes, sealings: 0 }
    }

    pub(super) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Appends the contents of a block to `out`: zeros if there are none.
    pub(super) fn get(&self, block: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let mut place = Zeroizing::new(vec![0; self.place_bytes()]);
        let mut read = 0;
        while read < place.len() {
            match self.file.read_at(&mut place[read..], self.place(block) + read as u64) {
                // A hole at the end of the file.
                Ok(0) => break,
                Ok(bytes) => read += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let (number, sealed) = place.split_at_mut(NUMBER_BYTES);
        let number = u64::from_le_bytes(std::array::from_fn(|i| number[i]));
        if number == 0 {
            out.resize(out.len() + self.block_bytes, 0);
            return Ok(());
        }
        let contents = self.key.open_in_place(nonce(number), bound_to(block), sealed);
        out.extend_from_slice(
            contents.map_err(|_| io::Error::other("the scratch file was changed"))?,
        );
        Ok(())
    }

    fn place_bytes(&self) -> usize {
        NUMBER_BYTES + self.block_bytes + TAG_BYTES
    }

    fn place(&self, block: u64) -> u64 {
        block * self.place_bytes() as u64
    }
}

impl RescueTarget for Scratch {
    fn put(&mut self, block: u64, data: &[u8]) -> io::Result<()> {
        self.sealings += 1;
        let mut place = Zeroizing::new(Vec::with_capacity(self.place_bytes()));
        place.extend_from_slice(&self.sealings.to_le_bytes());
        place.extend_from_slice(data);
        let tag = self
            .key
            .seal_in_place_separate_tag(
                nonce(self.sealings),
                bound_to(block),
                &mut place[NUMBER_BYTES..],
            )
            .expect("a block is not more than GCM can seal");
        place.extend_from_slice(tag.as_ref());
        self.file.write_all_at(&place, self.place(block))
    }

    fn clear(&mut self, block: u64) -> io::Result<()> {
        // What was never put is a hole, and stays one.
        let mut number = [0; NUMBER_BYTES];
        match self.file.read_exact_at(&mut number, self.place(block)) {
            Ok(()) if number != [0; NUMBER_BYTES] => {
                self.file.write_all_at(&[0; NUMBER_BYTES], self.place(block))
            }
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
            _ => Ok(()),
        }
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

    fn get(scratch: &Scratch, block: u64) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        scratch.get(block, &mut out).map(|()| out)
    }

    #[test]
    fn it_holds_what_was_put_last_and_zeros_elsewhere() {
        let (mut scratch, _) = scratch();
        for (block, fill) in [(3, 1), (900, 2), (3, 3), (5, 4)] {
            scratch.put(block, &[fill; BLOCK_BYTES]).unwrap();
        }
        [5, 6, 5000].iter().for_each(|block| scratch.clear(*block).unwrap());
        for (block, fill) in [(3, 3), (900, 2), (5, 0), (4, 0), (899, 0), (901, 0), (1 << 40, 0)] {
            assert_eq!(get(&scratch, block).unwrap(), [fill; BLOCK_BYTES], "{block}");
        }
    }

    #[test]
    fn the_file_shows_nothing_and_a_change_is_noticed() {
        let (mut scratch, file) = scratch();
        let data = [7; BLOCK_BYTES];
        (0..2).for_each(|block| scratch.put(block, &data).unwrap());
        let mut bytes = vec![0; 2 * scratch.place_bytes()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let [first, second] = [0, 1].map(|n| &bytes[n * scratch.place_bytes()..][NUMBER_BYTES..]);
        let run = |bytes: &[u8]| bytes.windows(3).any(|three| three == [7; 3]);
        assert!(!run(&bytes) && first[..BLOCK_BYTES] != second[..BLOCK_BYTES]);
        // A block in the place of another, and a changed bit.
        file.write_all_at(&bytes[..scratch.place_bytes()], scratch.place(1)).unwrap();
        get(&scratch, 1).unwrap_err();
        file.write_all_at(&[bytes[20] ^ 1], 20).unwrap();
        get(&scratch, 0).unwrap_err();
    }
}
