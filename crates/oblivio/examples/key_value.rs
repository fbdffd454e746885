//! A key-value store whose memory accesses reveal nothing: each request takes exactly one access,
//! whether it reads, writes or removes an entry.
//!
//! The hash of a key selects a block, which holds a few entries. `get`, `put` and `remove` take one
//! access each, whether or not the key exists. An observer of the array's memory learns only the
//! number and the times of the requests.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints what it does, and may panic"
)]

use std::collections::hash_map::RandomState;
use std::error::Error;
use std::hash::BuildHasher;

use oblivio::Array;

const KEY_BYTES: usize = 24;
const VALUE_BYTES: usize = 40;
const ENTRY_BYTES: usize = KEY_BYTES + VALUE_BYTES;
/// Entries of a block. With a quarter of them in use on average, blocks almost never fill up.
const ENTRIES: usize = 16;

struct Store {
    blocks: Array,
    /// A hash function with a secret key. Without the secret, an attacker who chooses the keys of
    /// entries could fill one block.
    hashes: RandomState,
}

impl Store {
    fn new(entries: u64) -> Result<Self, oblivio::Error> {
        let blocks = Array::in_memory(entries.div_ceil(ENTRIES as u64 / 4), ENTRIES * ENTRY_BYTES)?;
        Ok(Self { blocks, hashes: RandomState::new() })
    }

    fn get(&mut self, key: &[u8; KEY_BYTES]) -> Result<Option<[u8; VALUE_BYTES]>, Box<dyn Error>> {
        let mut found = None;
        self.visit(key, |entries| found = position(entries, key).map(|at| value(entries, at)))?;
        Ok(found)
    }

    fn put(
        &mut self,
        key: &[u8; KEY_BYTES],
        value: &[u8; VALUE_BYTES],
    ) -> Result<(), Box<dyn Error>> {
        let mut has_room = false;
        self.visit(key, |entries| {
            let place = position(entries, key).or_else(|| position(entries, &[0; KEY_BYTES]));
            has_room = place.is_some();
            if let Some(at) = place {
                entries[at..at + KEY_BYTES].copy_from_slice(key);
                entries[at + KEY_BYTES..at + ENTRY_BYTES].copy_from_slice(value);
            }
        })?;
        if has_room { Ok(()) } else { Err("the block of this key is full".into()) }
    }

    fn remove(&mut self, key: &[u8; KEY_BYTES]) -> Result<(), Box<dyn Error>> {
        self.visit(key, |entries| {
            if let Some(at) = position(entries, key) {
                entries[at..at + ENTRY_BYTES].fill(0);
            }
        })
    }

    /// Makes the single access of a request, which passes the block of `key` to `change`. Refuses a
    /// key of zeros, because zeros mark a free entry.
    fn visit(
        &mut self,
        key: &[u8; KEY_BYTES],
        change: impl FnMut(&mut [u8]),
    ) -> Result<(), Box<dyn Error>> {
        if *key == [0; KEY_BYTES] {
            return Err("a key must not be all zeros".into());
        }
        let block = self.hashes.hash_one(key) % self.blocks.capacity();
        Ok(self.blocks.update(block, change)?)
    }
}

/// The offset of the entry with this key.
fn position(entries: &[u8], key: &[u8; KEY_BYTES]) -> Option<usize> {
    (0..entries.len()).step_by(ENTRY_BYTES).find(|at| entries[*at..*at + KEY_BYTES] == *key)
}

fn value(entries: &[u8], at: usize) -> [u8; VALUE_BYTES] {
    std::array::from_fn(|byte| entries[at + KEY_BYTES + byte])
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut store = Store::new(10_000)?;
    let key =
        |number: u32| std::array::from_fn(|byte| format!("key {number:>20}").as_bytes()[byte]);
    for number in 0..10_000u32 {
        store.put(&key(number), &[number as u8; VALUE_BYTES])?;
    }
    store.remove(&key(7))?;
    for number in [0, 7, 9_999, 10_000] {
        println!("{number:>6}: {:?}", store.get(&key(number))?.map(|value| value[0]));
    }
    assert_eq!(store.get(&key(9_999))?, Some([9_999u32 as u8; VALUE_BYTES]));
    assert_eq!(store.get(&key(7))?, None);
    let refused = store.put(&[0; KEY_BYTES], &[1; VALUE_BYTES]).unwrap_err();
    println!("refused: {refused}");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}
