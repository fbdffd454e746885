//! Random commands.

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use crate::Params;
use crate::position::Blocks;

/// The operation of a command, with its number at the command port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads the block.
    Read = 0,
    /// Writes the block.
    Write = 1,
    /// Reads the block and removes it from the ORAM.
    ReadRemove = 2,
    /// Puts an absent block into the stash.
    Append = 3,
}

impl Operation {
    /// Returns the operation with this number; `None` if there is no such operation.
    pub fn from_number(number: i32) -> Option<Self> {
        match number {
            0 => Some(Self::Read),
            1 => Some(Self::Write),
            2 => Some(Self::ReadRemove),
            3 => Some(Self::Append),
            _ => None,
        }
    }
}

/// A command at the controller's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The operation of the command.
    pub operation: Operation,
    /// Address of the block.
    pub address: u64,
    /// The leaf that the block is mapped to. Append ignores it.
    pub old_leaf: u64,
    /// The leaf that the block will be mapped to. Read-remove ignores it.
    pub new_leaf: u64,
    /// The data beats, which the controller receives for every operation.
    pub data: Box<[u8]>,
}

/// The mix of random commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Weights of the operations, in the order of their numbers.
    pub weights: [u32; 4],
    /// Percentage of commands whose new leaf is shared with a crowd of other blocks. Such commands
    /// fill the stash.
    pub crowding: u32,
}

impl Default for Mix {
    fn default() -> Self {
        Self { weights: [35, 40, 15, 10], crowding: 0 }
    }
}

/// Number of frequently used addresses.
const HOT_ADDRESSES: usize = 16;

/// Draws random commands.
#[derive(Debug)]
pub(crate) struct Generator {
    coins: StdRng,
    mix: Mix,
    params: Params,
    hot: Vec<u64>,
    /// Every address drawn uniformly for a command so far, once for each draw.
    known: Vec<u64>,
    crowd_leaf: u64,
    /// Number of further blocks to map to `crowd_leaf`.
    crowd_left: u32,
}

impl Generator {
    pub(crate) fn new(params: &Params, coins: &mut StdRng) -> Self {
        let mut coins = StdRng::from_rng(coins);
        let hot = (0..HOT_ADDRESSES).map(|_| coins.random_range(0..params.capacity)).collect();
        let params = params.clone();
        Self {
            coins,
            mix: Mix::default(),
            params,
            hot,
            known: Vec::new(),
            crowd_leaf: 0,
            crowd_left: 0,
        }
    }

    pub(crate) fn set_mix(&mut self, mix: Mix) {
        self.mix = mix;
    }

    /// Draws the next command. `blocks` says which blocks are present. The caller must set the old
    /// leaf.
    pub(crate) fn draw(&mut self, blocks: &mut Blocks) -> Command {
        let mut operation = self.draw_operation();
        let mut address = self.draw_address();
        if operation == Operation::Append {
            match self.draw_absent(blocks) {
                Some(absent) => address = absent,
                None => operation = Operation::ReadRemove,
            }
        }
        let mut new_leaf = self.draw_leaf();
        let adds = matches!(operation, Operation::Write | Operation::Append);
        if operation != Operation::ReadRemove && (adds || blocks.is_present(address)) {
            // Blocks that no eviction can place may fill at most half of the stash; otherwise
            // background eviction would not end.
            let excess_max = (self.params.stash_blocks_max / 2) as u32;
            let mut tries = 0;
            while blocks.excess_with(address, new_leaf) > excess_max {
                tries += 1;
                if tries == 8 {
                    operation = Operation::ReadRemove;
                    break;
                }
                new_leaf = self.draw_uniform_leaf();
            }
        }
        let data = self.draw_data();
        Command { operation, address, old_leaf: 0, new_leaf, data }
    }

    fn draw_operation(&mut self) -> Operation {
        let weights = &self.mix.weights;
        let sum: u32 = weights.iter().sum();
        let mut left = self.coins.random_range(0..sum.max(1));
        for (number, weight) in (0..).zip(weights) {
            if left < *weight {
                return Operation::from_number(number).expect("there are four operations");
            }
            left -= weight;
        }
        Operation::Read
    }

    fn draw_address(&mut self) -> u64 {
        if self.coins.random_ratio(1, 64) {
            let i = self.coins.random_range(0..self.hot.len());
            self.hot[i] = self.coins.random_range(0..self.params.capacity);
        }
        match self.coins.random_range(0..100) {
            0..45 => self.hot[self.coins.random_range(0..self.hot.len())],
            45..80 if !self.known.is_empty() => self.draw_known(),
            _ => {
                let address = self.coins.random_range(0..self.params.capacity);
                self.known.push(address);
                address
            }
        }
    }

    fn draw_known(&mut self) -> u64 {
        self.known[self.coins.random_range(0..self.known.len())]
    }

    /// Draws the address of an absent block. Prefers an address that was drawn before, such as that
    /// of a removed block, if eight draws find one. `None` if eight further draws from all
    /// addresses find no absent block.
    fn draw_absent(&mut self, blocks: &Blocks) -> Option<u64> {
        for _ in 0..if self.known.is_empty() { 0 } else { 8 } {
            let address = self.draw_known();
            if !blocks.is_present(address) {
                return Some(address);
            }
        }
        let capacity = self.params.capacity;
        let mut drawn = (0..8).map(|_| self.coins.random_range(0..capacity));
        drawn.find(|address| !blocks.is_present(*address))
    }

    fn draw_leaf(&mut self) -> u64 {
        if self.coins.random_range(0..100) >= self.mix.crowding {
            return self.draw_uniform_leaf();
        }
        if self.crowd_left == 0 {
            self.crowd_leaf = self.draw_uniform_leaf();
            self.crowd_left = u32::from(self.params.slots) + 1;
        }
        self.crowd_left -= 1;
        self.crowd_leaf
    }

    pub(crate) fn draw_uniform_leaf(&mut self) -> u64 {
        self.coins.random_range(0..1 << self.params.leaf_level)
    }

    /// Draws the contents of a block: mostly random bytes, sometimes all zeros or all ones.
    pub(crate) fn draw_data(&mut self) -> Box<[u8]> {
        let mut data = vec![0; self.params.block_bytes].into_boxed_slice();
        match self.coins.random_range(0..32) {
            0 => (),
            1 => data.fill(0xFF),
            _ => self.coins.fill_bytes(&mut data),
        }
        data
    }
}
