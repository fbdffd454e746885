//! Tests that an eviction counts on all servers or on none, at whatever message it stops.

use oblivio_shares::field::Gf256;
use oblivio_shares::message::{DealtShares, Evict};
use oblivio_shares::server::Stage;
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::{Preset, Tree};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::world::World;

const HEIGHT: u8 = 3;
const BLOCKS: usize = 32;

/// Runs an eviction that stops after `messages` messages, counting the messages to all servers
/// together. Returns whether the eviction has finished.
fn evict_until(world: &mut World<Gf256>, evictions: &[Evict<u8>], messages: usize) -> bool {
    let mut left = messages;
    let mut may_go_on = || {
        let continues = left > 0;
        left = left.saturating_sub(1);
        continues
    };
    for (server, evict) in world.servers.iter_mut().zip(evictions) {
        if !may_go_on() {
            return false;
        }
        server.begin_eviction(evict.clone()).unwrap();
    }
    let dealing = world.dealing.clone();
    for _ in 0..HEIGHT {
        let mut dealt: Vec<Vec<DealtShares<u8>>> = Vec::new();
        for dealer in &dealing {
            if !may_go_on() {
                return false;
            }
            dealt.push(world.servers[usize::from(*dealer) - 1].deal(&mut world.coins).unwrap());
        }
        for (i, server) in world.servers.iter_mut().enumerate() {
            if !may_go_on() {
                return false;
            }
            let got = dealt.iter().map(|of_dealer| of_dealer[i].clone()).collect();
            server.reduce(&dealing, got).unwrap();
        }
    }
    true
}

/// Repeats an eviction until it succeeds, and recovers from each stop as the client does. If all
/// servers have finished, they commit; otherwise all roll back, and the client repeats the
/// eviction.
fn evict_in_spite_of(world: &mut World<Gf256>, mut stops: Vec<usize>) {
    let before = world.servers[0].epoch();
    let mut evictions = world.client.evict(&mut world.coins).unwrap();
    loop {
        let messages = stops.pop().unwrap_or(usize::MAX);
        evict_until(world, &evictions, messages);
        let epochs: Vec<_> = world.servers.iter().map(|server| server.epoch()).collect();
        let number = world.client.evictions();
        if epochs.iter().all(|epoch| epoch.evictions == number) {
            // Commit once on some servers, and twice on others.
            for (i, server) in world.servers.iter_mut().enumerate() {
                (0..1 + i % 2).for_each(|_| server.commit(number).unwrap());
                assert_eq!(server.epoch().stage, Stage::Settled);
            }
            return;
        }
        for server in &mut world.servers {
            server.roll_back();
            server.roll_back();
            assert_eq!(server.epoch(), before);
        }
        let attempt = world.client.next_attempt();
        evictions.iter_mut().for_each(|evict| evict.attempt = attempt);
    }
}

#[test]
fn nothing_is_lost_wherever_an_eviction_stops() {
    for (servers, colluding) in [(3, 1), (5, 2)] {
        let parties = Parties::new(servers, colluding).unwrap();
        let tree = Tree::new(HEIGHT, Preset { slots: 24, accesses: 8 }).unwrap();
        let mut world = World::<Gf256>::new(parties, tree, BLOCKS, 3, 1);
        let mut choices = StdRng::seed_from_u64(2);
        let mut expected = [[0; 3]; BLOCKS];
        let messages = usize::from(servers)
            + usize::from(HEIGHT) * (usize::from(servers) + parties.for_product());
        // Stop at each place; in later rounds, first stop at another random place.
        for round in 0..3 * messages {
            for _ in 0..4 {
                let address = choices.random_range(0..BLOCKS);
                let data: [u8; 3] = choices.random();
                let before = world.access(address, Some(&data));
                assert_eq!(before, expected[address], "after {round} evictions");
                expected[address] = data;
            }
            let again = choices.random_range(0..messages);
            let stops = if round < messages { vec![round] } else { vec![round % messages, again] };
            evict_in_spite_of(&mut world, stops);
        }
        for (address, expected) in expected.iter().enumerate() {
            assert_eq!(world.access(address, None), expected);
        }
    }
}

/// Shares that were dealt in an earlier attempt are refused in the next attempt, because they lie
/// on another polynomial.
#[test]
fn shares_of_an_earlier_attempt_are_refused() {
    let parties = Parties::new(3, 1).unwrap();
    let tree = Tree::new(HEIGHT, Preset { slots: 24, accesses: 8 }).unwrap();
    let mut world = World::<Gf256>::new(parties, tree, BLOCKS, 3, 3);
    let mut evictions = world.client.evict(&mut world.coins).unwrap();
    let begin = |world: &mut World<Gf256>, evictions: &[Evict<u8>]| {
        for (server, evict) in world.servers.iter_mut().zip(evictions) {
            server.begin_eviction(evict.clone()).unwrap();
        }
        let deal = |i: usize| world.servers[i].deal(&mut StdRng::seed_from_u64(i as u64)).unwrap();
        (0..3).map(deal).collect::<Vec<_>>()
    };
    let before = begin(&mut world, &evictions);
    world.servers.iter_mut().for_each(|server| server.roll_back());
    let again = world.servers[0].begin_eviction(evictions[0].clone());
    assert!(again.is_err(), "an attempt cannot be repeated");
    let attempt = world.client.next_attempt();
    evictions.iter_mut().for_each(|evict| evict.attempt = attempt);
    let after = begin(&mut world, &evictions);
    let mixed = vec![before[0][0].clone(), after[1][0].clone(), after[2][0].clone()];
    assert!(world.servers[0].reduce(&[1, 2, 3], mixed).is_err());
    let right = after.iter().map(|dealt| dealt[0].clone()).collect();
    assert_eq!(world.servers[0].reduce(&[1, 2, 3], right), Ok(false));
}
