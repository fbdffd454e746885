//! The model: the level of each block on its path.

use rand::RngExt;
use rand::rngs::StdRng;

/// A tree, and the blocks that have been accessed.
pub(super) struct Model {
    height: u32,
    blocks: Vec<Block>,
    evictions: u32,
    coins: StdRng,
}

#[derive(Clone, Copy, Default)]
struct Block {
    /// The leaf of the block. Bit *j* gives the direction of the path below level *j*.
    leaf: u32,
    level: u32,
    is_there: bool,
}

/// The maximum loads of the buckets that an eviction fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Loads {
    /// The maximum load of destinations between root and leaves, when they have received the blocks
    /// of their source and not yet moved them on.
    pub(super) destination: usize,
    /// The maximum load of siblings between root and leaves. A sibling stays unchanged until the
    /// next eviction whose path contains its parent.
    pub(super) sibling: usize,
    /// The maximum load of the two leaves that the eviction fills.
    pub(super) leaf: usize,
}

impl Model {
    /// Creates an empty tree.
    pub(super) fn new(height: u32, blocks: usize, coins: StdRng) -> Self {
        Self { height, blocks: vec![Block::default(); blocks], evictions: 0, coins }
    }

    pub(super) fn access(&mut self, address: usize) {
        let leaf = self.coins.random_range(0..1 << self.height);
        self.blocks[address] = Block { leaf, level: 0, is_there: true };
    }

    /// Evicts a path by Subroutine 3: from the root on, each bucket of the path moves its blocks to
    /// its children. Returns the maximum loads of the filled buckets.
    pub(super) fn evict(&mut self) -> Loads {
        let height = self.height;
        let evicted = self.evictions & ((1 << height) - 1);
        self.evictions += 1;
        let (mut destinations, mut siblings) = ([0; 32], [0; 32]);
        let mut leaf_beside = 0;
        for block in self.blocks.iter_mut().filter(|block| block.is_there) {
            // The number of levels below the root that both paths share.
            let common = (block.leaf ^ evicted).trailing_zeros().min(height);
            if common + 1 == height && (block.level == height || common >= block.level) {
                // The block is in the sibling leaf, or moves there.
                leaf_beside += 1;
            }
            if common < block.level {
                continue;
            }
            for level in block.level.max(1)..=common {
                destinations[level as usize] += 1;
            }
            block.level = height.min(common + 1);
            siblings[common as usize + 1] += usize::from(common + 1 < height);
        }
        let most = |loads: &[usize]| loads.iter().copied().max().unwrap_or(0);
        Loads {
            destination: most(&destinations[..height as usize]),
            sibling: most(&siblings),
            leaf: leaf_beside.max(destinations[height as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use oblivio_shares::client::{Client, ClientError};
    use oblivio_shares::field::Gf256;
    use oblivio_shares::sharing::Parties;
    use oblivio_shares::tree::{Preset, Tree};
    use rand::SeedableRng;

    use super::*;

    const PRESET: Preset = Preset { slots: 6, accesses: 4 };
    const HEIGHT: u8 = 3;
    const BLOCKS: usize = 16;

    /// Number of evictions that the actual client makes before an overflow. The tree is empty at
    /// first, and the blocks are accessed in a fixed order.
    fn until_overflow_of_client(seed: u64) -> f64 {
        let mut coins = StdRng::seed_from_u64(seed);
        let tree = Tree::new(HEIGHT, PRESET).unwrap();
        let parties = Parties::new(3, 1).unwrap();
        let mut client = Client::<Gf256>::new(parties, tree, BLOCKS, 1).unwrap();
        for address in (0..BLOCKS).cycle() {
            let (selected, _) = client.select(address, &mut coins).unwrap();
            client.write(&selected, &[0], &mut coins).unwrap();
            if client.must_evict() {
                match client.evict(&mut coins) {
                    Ok(_) => (),
                    Err(ClientError::Overflow(_)) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        client.evictions() as f64
    }

    fn until_overflow_of_model(seed: u64) -> f64 {
        let mut model = Model::new(HEIGHT.into(), BLOCKS, StdRng::seed_from_u64(seed));
        let mut addresses = (0..BLOCKS).cycle();
        let mut evictions = 0.0;
        loop {
            addresses.by_ref().take(4).for_each(|address| model.access(address));
            let loads = model.evict();
            if loads.destination.max(loads.leaf) > usize::from(PRESET.slots) {
                return evictions;
            }
            evictions += 1.0;
        }
    }

    #[test]
    fn buckets_overflow_as_often_as_the_clients() {
        const RUNS: u64 = 400;
        let of = |until: fn(u64) -> f64| {
            let all: Vec<_> = (0..RUNS).map(until).collect();
            let mean = all.iter().sum::<f64>() / RUNS as f64;
            let variance =
                all.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (RUNS - 1) as f64;
            (mean, variance / RUNS as f64)
        };
        let ((client, a), (model, b)) = (of(until_overflow_of_client), of(until_overflow_of_model));
        let far = (client - model).abs() / (a + b).sqrt();
        assert!(client > 5.0 && far < 4.5, "{client:.1} and {model:.1}, {far:.1} deviations");
    }

    /// Every block is on the path to its leaf, and none is in a bucket that the last eviction
    /// emptied.
    #[test]
    fn an_evicted_path_is_empty_down_to_its_leaf() {
        let mut coins = StdRng::seed_from_u64(1);
        let mut model = Model::new(4, 64, StdRng::seed_from_u64(2));
        for n in 0..1000 {
            for _ in 0..8 {
                model.access(coins.random_range(0..64));
            }
            let evicted = n & 15;
            let loads = model.evict();
            // Leaves keep their blocks.
            let of_leaf = |leaf| {
                let holds = |block: &&Block| (block.leaf, block.level) == (leaf, 4);
                model.blocks.iter().filter(|it| it.is_there).filter(holds).count()
            };
            assert_eq!(loads.leaf, of_leaf(evicted).max(of_leaf(evicted ^ 8)));
            for block in model.blocks.iter().filter(|block| block.is_there) {
                let common = (block.leaf ^ evicted).trailing_zeros();
                assert!(block.level == 4 || block.level > common);
            }
        }
    }
}
