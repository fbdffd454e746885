//! Measures accesses and evictions of S³ORAM with three servers in one process. Each server has a
//! thread, and there is no network.
//!
//! `docs/s3oram.md` has the results.

#![expect(clippy::unwrap_used, reason = "a benchmark stops at an error")]

use std::thread;

use divan::Bencher;
use oblivio_shares::client::Client;
use oblivio_shares::field::Gf256;
use oblivio_shares::message::DealtShares;
use oblivio_shares::server::Server;
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::{Preset, Tree};
use rand::SeedableRng;
use rand::rngs::StdRng;

fn main() {
    divan::main();
}

/// Array shapes for which the authors of the paper published times of their implementation.
#[derive(Clone, Copy, Debug)]
enum BenchShape {
    /// Blocks of 4 KiB, H = 4, Z = 333.
    Small,
    /// Blocks of 128 KiB, H = 2, Z = 74.
    Large,
}

struct World {
    client: Client<Gf256>,
    servers: Vec<Server<Gf256>>,
    coins: StdRng,
    address: usize,
}

const BLOCKS: usize = 60;

impl World {
    /// Creates a client and servers in which every bucket has been written.
    fn new(shape: BenchShape) -> Self {
        let (height, preset, bytes) = match shape {
            BenchShape::Small => (4, Preset::LARGE, 4 << 10),
            BenchShape::Large => (2, Preset::SMALL, 128 << 10),
        };
        let (parties, tree) = (Parties::new(3, 1).unwrap(), Tree::new(height, preset).unwrap());
        let client = Client::new(parties, tree, BLOCKS, bytes).unwrap();
        let servers =
            parties.numbers().map(|it| Server::new(it, parties, tree, bytes).unwrap()).collect();
        let mut world = Self { client, servers, coins: StdRng::seed_from_u64(1), address: 0 };
        for _ in 0..2 << height {
            world.access();
            world.evict();
        }
        world
    }

    fn access(&mut self) {
        self.address = (self.address + 1) % BLOCKS;
        let (selected, queries) = self.client.select(self.address, &mut self.coins).unwrap();
        let answers: Vec<_> = thread::scope(|scope| {
            let each = self.servers.iter_mut().zip(queries);
            let each: Vec<_> =
                each.map(|(server, query)| scope.spawn(|| server.select(query).unwrap())).collect();
            each.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let block = self.client.recover(&[1, 2, 3], &answers).unwrap().block;
        let writes = self.client.write(&selected, &block, &mut self.coins).unwrap();
        for (server, write) in self.servers.iter_mut().zip(writes) {
            server.write(write).unwrap();
        }
    }

    fn evict(&mut self) {
        let evictions = self.client.evict(&mut self.coins).unwrap();
        for (server, evict) in self.servers.iter_mut().zip(evictions) {
            server.begin_eviction(evict).unwrap();
        }
        let mut is_over = false;
        while !is_over {
            let dealt: Vec<Vec<DealtShares<u8>>> = thread::scope(|scope| {
                let each = self.servers.iter().map(|server| {
                    let mut coins = StdRng::from_rng(&mut self.coins);
                    scope.spawn(move || server.deal(&mut coins).unwrap())
                });
                let each: Vec<_> = each.collect();
                each.into_iter().map(|it| it.join().unwrap()).collect()
            });
            let mut to_each: Vec<Vec<DealtShares<u8>>> = (0..3).map(|_| Vec::new()).collect();
            for of_dealer in dealt {
                to_each.iter_mut().zip(of_dealer).for_each(|(to, dealt)| to.push(dealt));
            }
            is_over = thread::scope(|scope| {
                let each = self.servers.iter_mut().zip(to_each);
                let each: Vec<_> = each
                    .map(|(server, dealt)| {
                        scope.spawn(|| server.reduce(&[1, 2, 3], dealt).unwrap())
                    })
                    .collect();
                each.into_iter().map(|it| it.join().unwrap()).fold(true, |a, b| a & b)
            });
        }
        let evictions = self.client.evictions();
        self.servers.iter_mut().for_each(|server| server.commit(evictions).unwrap());
    }
}

/// Measures an access: reading a block and writing it back. If an eviction is due before the
/// access, its time is included.
#[divan::bench(args = [BenchShape::Small, BenchShape::Large], sample_count = 50, sample_size = 1)]
fn access(bencher: Bencher, shape: BenchShape) {
    let mut world = World::new(shape);
    bencher.bench_local(|| {
        if world.client.must_evict() {
            world.evict();
        }
        world.access();
    });
}

#[divan::bench(args = [BenchShape::Small, BenchShape::Large], sample_count = 10, sample_size = 1)]
fn eviction(bencher: Bencher, shape: BenchShape) {
    let mut world = World::new(shape);
    bencher.bench_local(|| world.evict());
}
