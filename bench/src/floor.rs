//! Lower bounds (floors): the cost of memory and of the cipher alone, without the rest of an ORAM.
//!
//! A *memory* floor moves the bytes of a scheme's paths. An *AES* floor generates the keystream for
//! them. Neither interprets the bytes. The sum of both floors of Path ORAM in the shallower tree is
//! the baseline (ruler) for an encrypted ORAM.
//!
//! - Path ORAM, Z = 4: every access reads a path and writes it back, opening and sealing every
//!   byte.
//! - RAW ORAM, Z = 5, A = 5: every access reads a path, opens and seals its headers and opens one
//!   block; every fifth access also does what Path ORAM does, to the next path in reverse
//!   lexicographic order.

use std::hint::black_box;

use aes::{
    Aes128, Block,
    cipher::{BlockCipherEncrypt, KeyInit},
};
use memmap2::MmapMut;

use crate::subject::{Description, ROW_4K, ROW_64, Row, Subject};

/// Returns all lower bounds (floors) for each capacity and block size (`Row`). Path ORAM is
/// measured with two tree depths: the shallower tree has two slots per block, and the deeper tree
/// four.
pub fn all() -> Vec<Description> {
    [(ROW_64, 19), (ROW_4K, 15)]
        .into_iter()
        .flat_map(|(row, levels)| {
            [
                floor::<PathOram<Memory>>(row, levels, true),
                floor::<PathOram<Keystream>>(row, levels, true),
                floor::<PathOram<Memory>>(row, levels + 1, false),
                floor::<PathOram<Keystream>>(row, levels + 1, false),
                floor::<RawOram<Memory>>(row, levels + 1, false),
                floor::<RawOram<Keystream>>(row, levels + 1, false),
            ]
        })
        .collect()
}

fn floor<S: Scheme + 'static>(row: Row, levels: u32, ruler: bool) -> Description {
    let (scheme, medium, slots) = (S::NAME, S::Medium::NAME, S::SLOTS);
    let paths = Paths { levels, slots, block: row.block_bytes };
    Description {
        name: format!("floor: {scheme} Z={slots}, {levels} levels, {medium}"),
        row,
        encrypts: "-",
        constant_time: "-",
        ruler,
        build: Box::new(move || Box::new(S::over(S::Medium::new(paths)))),
    }
}

/// The paths of a complete binary tree of buckets. A bucket consists of a 64-byte header and its
/// slots.
#[derive(Clone, Copy)]
struct Paths {
    levels: u32,
    slots: usize,
    block: usize,
}

impl Paths {
    const HEADER: usize = 64;

    fn bucket_bytes(self) -> usize {
        Self::HEADER + self.slots * self.block
    }

    fn path_bytes(self) -> usize {
        self.levels as usize * self.bucket_bytes()
    }

    fn tree_bytes(self) -> usize {
        ((1 << self.levels) - 1) * self.bucket_bytes()
    }

    fn leaves(self) -> u64 {
        1 << (self.levels - 1)
    }

    /// The offsets of the buckets on the path to `leaf`, root first, in a tree stored in heap
    /// order.
    fn buckets(self, leaf: u64) -> impl Iterator<Item = usize> {
        let bucket = self.bucket_bytes();
        (0..self.levels).map(move |level| {
            let index = (1 << level) - 1 + (leaf >> (self.levels - 1 - level));
            index as usize * bucket
        })
    }
}

/// A scheme, as the sequence of paths that it visits.
trait Scheme: Subject {
    const NAME: &str;
    /// Slots per bucket (Z).
    const SLOTS: usize;
    type Medium: Medium;
    fn over(medium: Self::Medium) -> Self;
}

/// The resource that visiting a path uses: memory or cipher.
trait Medium {
    const NAME: &str;
    fn new(paths: Paths) -> Self;
    fn paths(&self) -> Paths;
    /// Does the work of searching a path for one block.
    fn scan(&mut self, leaf: u64);
    /// Does the work of reading a whole path and writing it back.
    fn rewrite(&mut self, leaf: u64);
}

struct PathOram<M>(M);

impl<M: Medium> Scheme for PathOram<M> {
    const NAME: &str = "Path ORAM";
    const SLOTS: usize = 4;
    type Medium = M;

    fn over(medium: M) -> Self {
        Self(medium)
    }
}

impl<M: Medium> Subject for PathOram<M> {
    fn access(&mut self, address: u64, _write: bool) {
        self.0.rewrite(address % self.0.paths().leaves());
    }
}

struct RawOram<M> {
    medium: M,
    accesses: u64,
}

/// Accesses per eviction of RAW ORAM (A).
const RAW_PERIOD: u64 = 5;

impl<M: Medium> Scheme for RawOram<M> {
    const NAME: &str = "RAW ORAM";
    const SLOTS: usize = 5;
    type Medium = M;

    fn over(medium: M) -> Self {
        Self { medium, accesses: 0 }
    }
}

impl<M: Medium> Subject for RawOram<M> {
    fn access(&mut self, address: u64, _write: bool) {
        let paths = self.medium.paths();
        self.medium.scan(address % paths.leaves());
        self.accesses += 1;
        if self.accesses.is_multiple_of(RAW_PERIOD) {
            let eviction = self.accesses / RAW_PERIOD;
            self.medium.rewrite(eviction.reverse_bits() >> (u64::BITS - (paths.levels - 1)));
        }
    }
}

/// A tree in memory, in huge pages where the system grants them.
struct Memory {
    paths: Paths,
    tree: MmapMut,
    path: Vec<u8>,
}

impl Memory {
    fn prefetch_path(&self, leaf: u64) {
        let bytes = self.paths.bucket_bytes().min(PREFETCH);
        for start in self.paths.buckets(leaf) {
            prefetch(&self.tree[start..start + bytes]);
        }
    }
}

/// Bytes of a bucket to prefetch. Beyond these, the processor's own prefetcher takes over.
const PREFETCH: usize = 512;

impl Medium for Memory {
    const NAME: &str = "memory";

    fn new(paths: Paths) -> Self {
        let mut tree = MmapMut::map_anon(paths.tree_bytes()).expect("enough memory for the tree");
        #[cfg(target_os = "linux")]
        if let Err(refusal) = tree.advise(memmap2::Advice::HugePage) {
            eprintln!("warning: no huge pages for a memory floor, so it is too high: {refusal}");
        }
        tree.fill(0xa5);
        Self { paths, tree, path: vec![0; paths.path_bytes()] }
    }

    fn paths(&self) -> Paths {
        self.paths
    }

    fn scan(&mut self, leaf: u64) {
        self.prefetch_path(leaf);
        let mut fold = [0; 64];
        for start in self.paths.buckets(leaf) {
            let (lines, _) = self.tree[start..start + self.paths.bucket_bytes()].as_chunks::<64>();
            for line in lines {
                fold.iter_mut().zip(line).for_each(|(fold, byte)| *fold ^= byte);
            }
        }
        black_box(fold);
    }

    fn rewrite(&mut self, leaf: u64) {
        self.prefetch_path(leaf);
        let bytes = self.paths.bucket_bytes();
        for (start, copy) in self.paths.buckets(leaf).zip(self.path.chunks_exact_mut(bytes)) {
            copy.copy_from_slice(&self.tree[start..start + bytes]);
        }
        black_box(&mut self.path);
        for (start, copy) in self.paths.buckets(leaf).zip(self.path.chunks_exact(bytes)) {
            self.tree[start..start + bytes].copy_from_slice(copy);
        }
    }
}

/// Prefetches `bytes` into the cache, on processors with a prefetch instruction.
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "prefetching takes a raw pointer"))]
fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that neither faults nor changes memory. It belongs to SSE,
        // which every x86-64 has.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// AES-128 in counter mode, without the XOR into the data.
struct Keystream {
    paths: Paths,
    cipher: Aes128,
    counters: Vec<Block>,
    keystream: Vec<Block>,
    next: u64,
}

impl Keystream {
    const AES: usize = size_of::<Block>();
    /// Number of AES blocks for the sealed part of the header of a RAW ORAM bucket: two numbers of
    /// about 20 bits per slot.
    const HEADER: usize = 2;

    /// Generates the keystream for `blocks` AES blocks in one call.
    fn make(&mut self, blocks: usize) {
        let (counters, keystream) = (&mut self.counters[..blocks], &mut self.keystream[..blocks]);
        for (counter, value) in counters.iter_mut().zip(self.next..) {
            counter[..8].copy_from_slice(&value.to_le_bytes());
        }
        self.next += blocks as u64;
        self.cipher.encrypt_blocks_b2b(counters, keystream).expect("the slices have equal lengths");
        black_box(keystream);
    }
}

impl Medium for Keystream {
    const NAME: &str = "AES";

    fn new(paths: Paths) -> Self {
        let cipher = Aes128::new(&[7; Self::AES].into());
        let blocks = vec![Block::default(); paths.path_bytes() / Self::AES];
        Self { paths, cipher, counters: blocks.clone(), keystream: blocks, next: 0 }
    }

    fn paths(&self) -> Paths {
        self.paths
    }

    fn scan(&mut self, _leaf: u64) {
        let headers = self.paths.levels as usize * Self::HEADER;
        self.make(2 * headers + self.paths.block / Self::AES);
    }

    fn rewrite(&mut self, _leaf: u64) {
        self.make(self.keystream.len());
        self.make(self.keystream.len());
    }
}
