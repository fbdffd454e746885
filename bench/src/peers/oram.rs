//! `oram`, Meta's doubly oblivious, recursive Path ORAM for enclaves: its `DefaultOram`.
//!
//! The constructor writes the whole position map through the recursion, one access per eight
//! positions. The set-up time includes these accesses.

use oram::{BlockSize, BlockValue, DefaultOram, Oram};
use rand08::{SeedableRng, rngs::StdRng};

use crate::{
    ram::{Driven, Ram},
    subject::{Description, ROW_4K, ROW_64, Row},
};

pub fn all() -> Vec<Description> {
    fn row<const BYTES: BlockSize>(row: Row) -> Description {
        Description {
            name: "oram 0.2 Path ORAM, recursive map".to_owned(),
            row,
            encrypts: "no",
            constant_time: "yes",
            ruler: false,
            build: Box::new(move || Box::new(Driven::new(Default::<BYTES>::new(row), row))),
        }
    }
    vec![row::<64>(ROW_64), row::<4096>(ROW_4K)]
}

struct Default<const BYTES: BlockSize> {
    oram: DefaultOram<BlockValue<BYTES>>,
    rng: StdRng,
}

impl<const BYTES: BlockSize> Default<BYTES> {
    fn new(row: Row) -> Self {
        let mut rng = StdRng::seed_from_u64(1);
        let oram = DefaultOram::new(row.blocks() as u64, &mut rng)
            .expect("the capacity of a row is a power of two");
        Self { oram, rng }
    }
}

impl<const BYTES: BlockSize> Ram for Default<BYTES> {
    fn read(&mut self, address: u64, block: &mut [u8]) {
        let value =
            self.oram.read(address, &mut self.rng).expect("the address is below the capacity");
        block.copy_from_slice(&value.data);
    }

    fn write(&mut self, address: u64, block: &[u8]) {
        let value = BlockValue::new(block.try_into().expect("the block has the row's size"));
        self.oram.write(address, value, &mut self.rng).expect("the address is below the capacity");
    }
}
