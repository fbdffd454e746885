//! Tests that all randomness comes from the coins, and that each draw is used only once: paths and
//! seeds equal the draws, bit for bit.

use std::collections::HashMap;
use std::convert::Infallible;
use std::mem;

use oblivio_shares::client::Client;
use oblivio_shares::field::Gf256;
use oblivio_shares::multiplication::reshare;
use oblivio_shares::server::Server;
use oblivio_shares::sharing::{Parties, Share, recover};
use oblivio_shares::tree::{Preset, Tree};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use rand_core::{TryCryptoRng, TryRng};

use crate::world::{Kind, World};

/// Coins that record the bytes that they return.
struct Noted {
    coins: StdRng,
    numbers: Vec<u64>,
    seeds: Vec<Vec<u8>>,
}

impl TryRng for Noted {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.coins.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.numbers.push(self.coins.next_u64());
        Ok(self.numbers[self.numbers.len() - 1])
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        self.coins.fill_bytes(out);
        self.seeds.push(out.to_vec());
        Ok(())
    }
}

impl TryCryptoRng for Noted {}

fn noted(seed: u64) -> Noted {
    Noted { coins: StdRng::seed_from_u64(seed), numbers: Vec::new(), seeds: Vec::new() }
}

/// Checks that the seeds in these messages are exactly the drawn seeds, and that their number is a
/// positive multiple of t.
fn are_drawn<'s>(
    parties: Parties,
    noted: &mut Noted,
    messages: impl Iterator<Item = &'s Share<u8>>,
) {
    let found = messages.filter_map(|it| match it {
        Share::Drawn(seed) => Some(seed.to_vec()),
        Share::Computed(_) => None,
    });
    let (mut found, mut expected) = (found.collect::<Vec<_>>(), mem::take(&mut noted.seeds));
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(found.len() % parties.colluding(), 0);
    assert!(!found.is_empty());
}

#[test]
fn paths_and_seeds_are_what_was_drawn() {
    for (servers, colluding) in [(3, 1), (5, 1), (5, 2), (7, 2), (7, 3)] {
        let parties = Parties::new(servers, colluding).unwrap();
        let tree = Tree::new(3, Preset { slots: 16, accesses: 5 }).unwrap();
        let mut client = Client::<Gf256>::new(parties, tree, 20, 8).unwrap();
        let (mut coins, mut choices) = (noted(1), StdRng::seed_from_u64(2));
        let mut paths = HashMap::new();
        // Check an eviction that moves nothing, too.
        let evict = client.evict(&mut coins).unwrap();
        are_drawn(parties, &mut coins, evict.iter().flat_map(|it| &it.matrices));
        let mut servers: Vec<_> =
            parties.numbers().map(|n| Server::<Gf256>::new(n, parties, tree, 8).unwrap()).collect();
        for (server, evict) in servers.iter_mut().zip(evict) {
            server.begin_eviction(evict).unwrap();
        }
        let mut is_over = false;
        while !is_over {
            let dealers: Vec<u8> = parties.numbers().take(parties.for_product()).collect();
            let mut dealt = Vec::new();
            for dealer in &dealers {
                let of_all = servers[usize::from(*dealer) - 1].deal(&mut coins).unwrap();
                are_drawn(parties, &mut coins, of_all.iter().flat_map(|it| &it.shares));
                dealt.push(of_all);
            }
            for (i, server) in servers.iter_mut().enumerate() {
                let got = dealt.iter().map(|of_all| of_all[i].clone()).collect();
                is_over = server.reduce(&dealers, got).unwrap();
            }
        }
        for n in 0..400 {
            let address = choices.random_range(0..20usize);
            coins.numbers.clear();
            let (selected, select) = client.select(address, &mut coins).unwrap();
            are_drawn(parties, &mut coins, select.iter().map(|it| &it.query));
            let [drawn] = coins.numbers[..] else {
                panic!("expected one drawn number for the path")
            };
            let expected = paths.get(&address).copied().unwrap_or(drawn & 7);
            assert!(select.iter().all(|it| it.leaf.0 == expected), "access {n}");
            coins.numbers.clear();
            let block: [u8; 8] = if n % 2 == 0 { [0; 8] } else { choices.random() };
            let write = client.write(&selected, &block, &mut coins).unwrap();
            are_drawn(parties, &mut coins, write.iter().map(|it| &it.block));
            let [drawn] = coins.numbers[..] else {
                panic!("expected one drawn number for the path")
            };
            paths.insert(address, drawn & 7);
            let evictions = usize::from(client.must_evict()) + usize::from(n % 50 == 0);
            for _ in 0..evictions {
                let evict = client.evict(&mut coins).unwrap();
                assert!(evict.iter().all(|it| it.matrices.len() == 4));
                are_drawn(parties, &mut coins, evict.iter().flat_map(|it| &it.matrices));
            }
        }
        assert!(client.evictions() > 80, "{} evictions", client.evictions());
        for dealer in parties.numbers() {
            let dealt = reshare::<Gf256>(parties, dealer, &[7; 9], &mut coins);
            are_drawn(parties, &mut coins, dealt.iter());
        }
    }
}

/// Each element of each kind of share lies on a polynomial of degree t. Its degree is lower with a
/// probability of only 1/256, so the test counts how often that happens.
#[test]
fn every_place_is_on_a_polynomial_of_degree_t() {
    for (servers, colluding) in [(3, 1), (5, 1), (5, 2), (7, 3)] {
        let parties = Parties::new(servers, colluding).unwrap();
        let preset = Preset { slots: 8, accesses: 3 };
        let tree = Tree::new(3, preset).unwrap();
        let mut world = World::<Gf256>::new(parties, tree, 12, 16, 3).watched();
        for n in 0..300 {
            world.access(n * 5 % 12, (n % 2 == 0).then_some(&[0x55; 16]));
        }
        let seen = world.seen.unwrap();
        let mut lower: HashMap<(Kind, usize), u32> = HashMap::new();
        for n in 0..seen[0].len() {
            let kind = seen[0][n].shares().0;
            let of_servers: Vec<_> = seen[..=colluding as usize]
                .iter()
                .map(|of_server| of_server[n].expanded::<Gf256>(tree, 16))
                .collect();
            for message in 0..of_servers[0].len() {
                let shares: Vec<_> =
                    of_servers.iter().map(|of_server| &of_server[message][..]).collect();
                let t = usize::from(colluding);
                let numbers: Vec<u8> = (1..=colluding + 1).collect();
                let one = recover::<Gf256>(&numbers[..t], &shares[..t]).unwrap();
                let other = recover::<Gf256>(&numbers[1..], &shares[1..]).unwrap();
                for place in 0..one.len() {
                    if one[place] == other[place] {
                        *lower.entry((kind, place)).or_default() += 1;
                    }
                }
            }
        }
        let most = lower.iter().max_by_key(|(_, count)| **count).unwrap();
        // There are at most 7·100·4 messages of a kind: 11 of 2800 are expected.
        assert!(*most.1 < 45, "{parties:?}: kind and place {most:?}");
    }
}

#[test]
fn every_bit_of_a_seed_counts() {
    let of = |seed: [u8; 32]| Share::Drawn(seed).into_elements::<Gf256>(64).unwrap();
    for bit in 0..256 {
        let mut seed = [0; 32];
        seed[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(of(seed), of([0; 32]), "bit {bit}");
    }
}
