//! `rostl`, Oblivious Labs' Circuit ORAM (Z = 2): as `CircuitORAM`, for which the caller keeps a
//! flat position map, and as `DynamicArray`, which puts a recursive position map in front of it.
//!
//! The flat map is an ordinary array, indexed by the secret address. So only the tree of that
//! subject is constant-time.

use bytemuck::{Pod, Zeroable, bytes_of, bytes_of_mut};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use rostl_datastructures::array::DynamicArray;
use rostl_oram::{circuit_oram::CircuitORAM, prelude::PositionType};
use rostl_primitives::{
    cmov_body, cxchg_body,
    traits::{_Cmovbase, Cmov},
};

use crate::{
    ram::{Driven, Ram},
    subject::{Description, ROW_4K, ROW_64, Row, Subject},
};

pub fn all() -> Vec<Description> {
    fn row<const WORDS: usize>(row: Row) -> [Description; 2] {
        [
            Description {
                name: "rostl CircuitORAM, flat map".to_owned(),
                row,
                encrypts: "no",
                constant_time: "tree only",
                ruler: false,
                build: Box::new(move || drive::<WORDS>(Flat::<WORDS>::new(row), row)),
            },
            Description {
                name: "rostl DynamicArray, recursive map".to_owned(),
                row,
                encrypts: "no",
                constant_time: "yes",
                ruler: false,
                build: Box::new(move || {
                    drive::<WORDS>(DynamicArray::<Cell<WORDS>>::new(row.blocks()), row)
                }),
            },
        ]
    }
    [row::<8>(ROW_64), row::<512>(ROW_4K)].into_iter().flatten().collect()
}

fn drive<const WORDS: usize>(ram: impl Ram + 'static, row: Row) -> Box<dyn Subject> {
    assert_eq!(row.block_bytes, WORDS * size_of::<u64>(), "WORDS must match the block of the row");
    Box::new(Driven::new(ram, row))
}

/// A block in the form that `rostl` needs: plain data that it can move without branches.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
struct Cell<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Cell<WORDS> {
    fn from_bytes(bytes: &[u8]) -> Self {
        let mut cell = Self::zeroed();
        bytes_of_mut(&mut cell).copy_from_slice(bytes);
        cell
    }
}

impl<const WORDS: usize> Default for Cell<WORDS> {
    fn default() -> Self {
        Self::zeroed()
    }
}

impl<const WORDS: usize> Cmov for Cell<WORDS> {
    #[inline]
    fn cmov(&mut self, other: &Self, choice: bool) {
        cmov_body!(self, other, choice);
    }
    #[inline]
    fn cxchg(&mut self, other: &mut Self, choice: bool) {
        cxchg_body!(self, other, choice);
    }
}

/// The tree of `rostl` with a flat position map, which the caller must provide.
struct Flat<const WORDS: usize> {
    tree: CircuitORAM<Cell<WORDS>>,
    positions: Vec<PositionType>,
    rng: StdRng,
}

impl<const WORDS: usize> Flat<WORDS> {
    fn new(row: Row) -> Self {
        let mut rng = StdRng::seed_from_u64(1);
        let leaves = row.blocks() as PositionType;
        let positions = (0..leaves).map(|_| rng.random_range(0..leaves)).collect();
        Self { tree: CircuitORAM::new(row.blocks()), positions, rng }
    }

    /// Draws a new position for a block. Returns the old and the new position.
    fn remap(&mut self, address: u64) -> (PositionType, PositionType) {
        let new = self.rng.random_range(0..self.positions.len() as PositionType);
        let old = std::mem::replace(&mut self.positions[address as usize], new);
        (old, new)
    }
}

impl<const WORDS: usize> Ram for Flat<WORDS> {
    fn read(&mut self, address: u64, block: &mut [u8]) {
        let (old, new) = self.remap(address);
        let mut cell = Cell::zeroed();
        self.tree.read(old, new, address as usize, &mut cell);
        block.copy_from_slice(bytes_of(&cell));
    }

    fn write(&mut self, address: u64, block: &[u8]) {
        let (old, new) = self.remap(address);
        self.tree.write_or_insert(old, new, address as usize, Cell::from_bytes(block));
    }
}

impl<const WORDS: usize> Ram for DynamicArray<Cell<WORDS>> {
    fn read(&mut self, address: u64, block: &mut [u8]) {
        let mut cell = Cell::zeroed();
        Self::read(self, address as usize, &mut cell);
        block.copy_from_slice(bytes_of(&cell));
    }

    fn write(&mut self, address: u64, block: &[u8]) {
        Self::write(self, address as usize, Cell::from_bytes(block));
    }
}
