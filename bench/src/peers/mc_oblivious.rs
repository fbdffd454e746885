//! `mc-oblivious-ram`, MobileCoin's Path ORAM (Z = 4) for enclaves.
//!
//! The tree holds blocks of exactly the row's size. The recursive position map uses the crate's
//! default configuration `PathORAM4096Z4`: buckets of four 1024-byte values with 256 positions
//! each. (Packing sixteen 64-byte blocks into each value of that configuration would be slower.)

use aligned_cmov::{
    ArrayLength,
    typenum::{U4, U64, U256, U1024, U4096, U16384},
};
use mc_oblivious_ram::{
    PathORAM, PathORAM4096Z4Creator, PathOramDeterministicEvictor,
    PathOramDeterministicEvictorCreator, U32PositionMapCreator,
};
use mc_oblivious_traits::{HeapORAMStorage, HeapORAMStorageCreator, ORAM, rng_maker};
use rand::{SeedableRng, rngs::StdRng};

use crate::{
    ram::{Driven, Ram},
    subject::{Description, ROW_4K, ROW_64},
};

/// Capacity of the stash in blocks. The crate panics if it overflows.
const STASH: usize = 32;

/// A tree of `Value`-byte blocks in `Bucket`-byte buckets, with 16 bytes of metadata per block.
type Tree<Value, Bucket> =
    PathORAM<Value, U4, HeapORAMStorage<Bucket, U64>, StdRng, PathOramDeterministicEvictor>;
type Positions =
    U32PositionMapCreator<U1024, StdRng, PathORAM4096Z4Creator<StdRng, HeapORAMStorageCreator>>;

/// Describes the subject of one row. A macro, because the crate computes its sizes in types.
macro_rules! describe {
    ($row:expr, $value:ty, $bucket:ty) => {
        Description {
            name: "mc-oblivious-ram 3 Path ORAM, recursive map".to_owned(),
            row: $row,
            encrypts: "no",
            constant_time: "yes",
            ruler: false,
            build: Box::new(|| {
                let tree = Tree::<$value, $bucket>::new::<Positions, HeapORAMStorageCreator, _, _>(
                    $row.blocks() as u64,
                    STASH,
                    &mut rng_maker(StdRng::seed_from_u64(1)),
                    PathOramDeterministicEvictorCreator::new(0),
                );
                Box::new(Driven::new(
                    Adapter { tree, value: std::marker::PhantomData::<$value> },
                    $row,
                ))
            }),
        }
    };
}

pub fn all() -> Vec<Description> {
    vec![describe!(ROW_64, U64, U256), describe!(ROW_4K, U4096, U16384)]
}

struct Adapter<Value, Tree> {
    tree: Tree,
    value: std::marker::PhantomData<Value>,
}

impl<Value: ArrayLength, Tree: ORAM<Value>> Ram for Adapter<Value, Tree> {
    fn read(&mut self, address: u64, block: &mut [u8]) {
        self.tree.access(address, |value| block.copy_from_slice(value));
    }

    fn write(&mut self, address: u64, block: &[u8]) {
        self.tree.access(address, |value| value.copy_from_slice(block));
    }
}
