//! Accesses with the position map in smaller trees: three servers in one process and one thread, and no network between them.

#![expect(clippy::unwrap_used, reason = "what cannot run cannot be measured")]

use divan::Bencher;
use oblivio_shares::field::Gf256;
use oblivio_shares::recursive::{InProcess, Levels, MapShape, RecursiveClient};
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::Preset;
use rand::SeedableRng;
use rand::rngs::StdRng;

fn main() {
    divan::main();
}

/// As many blocks of 4 KiB as a tree of H = 4 holds.
const BLOCKS: u64 = 176 << 4;

struct World {
    client: RecursiveClient<Gf256>,
    servers: InProcess<Gf256>,
    coins: StdRng,
    address: usize,
}

impl World {
    /// All buckets of that many trees have been written.
    fn new(trees: usize) -> Self {
        let parties = Parties::new(3, 1).unwrap();
        let client_entries_max = [BLOCKS, 64, 1][trees - 1];
        let shape = MapShape { block_bytes: 128, client_entries_max };
        let levels = Levels::new::<Gf256>(BLOCKS, 4 << 10, Preset::LARGE, shape).unwrap();
        assert_eq!(levels.count(), trees);
        let mut coins = StdRng::seed_from_u64(1);
        let servers = InProcess::new(parties, &levels, &mut coins).unwrap();
        let client = RecursiveClient::new(parties, levels).unwrap();
        let mut world = Self { client, servers, coins, address: 0 };
        while world.client.evictions() < 32 {
            world.access();
        }
        world
    }

    fn access(&mut self) {
        self.address = (self.address + 1) % BLOCKS as usize;
        self.client.access(self.address, None, &mut self.servers, &mut self.coins).unwrap();
    }
}

/// A block is read and written back, without an eviction.
#[divan::bench(args = [1, 2, 3], sample_count = 50, sample_size = 1)]
fn access(bencher: Bencher, trees: usize) {
    let mut world = World::new(trees);
    bencher.bench_local(|| world.access());
}
