//! Tests of arrays with initial contents.

use std::collections::HashSet;

use oblivio_core::Error;
use oblivio_core::durable::{Contents, Durable, DurableConfig, Want};
use oblivio_shares::message::Request;
use oblivio_shares::servers::into_store;
use oblivio_shares::sharing::Share;
use oblivio_testkit::ServersWithRecords;
use oblivio_testkit::statistics::{Verdicts, histogram, uniformity};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::owner::{BLOCK_BYTES, BLOCKS, Owner, PRESET, key};
use crate::servers::Servers;
use crate::{parties, repair, step};

/// The initial byte of each block; `None` for an empty block.
struct Data(fn(u64) -> Option<u8>);

impl Contents for Data {
    fn block(&mut self, address: u64, data: &mut [u8]) -> Result<bool, Error> {
        let fill = (self.0)(address);
        fill.into_iter().for_each(|fill| data.fill(fill));
        Ok(fill.is_some())
    }
}

fn some() -> Data {
    Data(|address| (!address.is_multiple_of(3)).then_some(address as u8))
}

#[test]
fn what_an_array_holds_from_its_beginning_is_there_and_is_used_as_if_it_had_been_written() {
    for (servers, colluding) in [(3, 1), (5, 1)] {
        let mut owner = Owner::loaded(parties(servers, colluding), 1, some());
        for address in (0..BLOCKS).filter(|address| !address.is_multiple_of(3)) {
            owner.expected.insert(address, vec![address as u8; BLOCK_BYTES]);
        }
        assert_eq!(owner.array.check(&mut |_| ()).unwrap(), owner.expected.len() as u64);
        repair::lose(&owner, 1);
        assert!(repair::repaired(&owner, 1).unwrap().wrong.is_empty());
        owner.read_all();
        let mut choices = StdRng::seed_from_u64(3);
        for round in 0..150 {
            step(&mut owner, &mut choices).unwrap();
            if round % 50 == 0 {
                owner.reopen().unwrap();
            }
        }
        owner.read_all();
        assert_eq!(owner.array.check(&mut |_| ()).unwrap(), owner.expected.len() as u64);
    }
}

/// The state of a loaded array counts as the client's first durable state: the client may make
/// accesses before the state is saved.
#[test]
fn there_is_room_for_accesses_as_soon_as_an_array_is_loaded() {
    let room = |array: &dyn Durable| array.headroom().unwrap().accesses;
    let owner = Owner::new(parties(3, 1), 1);
    let expected = room(&*owner.array);
    let (params, servers) = (owner.params.clone(), Servers::new(3));
    let mut coins = StdRng::seed_from_u64(1);
    let mut array = params
        .create(key(), &[], into_store(ServersWithRecords::without(servers)), &mut coins)
        .unwrap();
    assert!(array.load(&mut some(), &mut coins).unwrap());
    assert!(expected > 0);
    assert_eq!(room(&*array), expected);
}

/// The requests that load the initial contents, for each server.
fn seen(data: Data) -> Vec<Vec<Request>> {
    let owner = Owner::loaded(parties(3, 1), 2, data);
    let world = owner.servers.world();
    let is_part =
        |request: &&Request| matches!(request, Request::Put { .. } | Request::SetPoint { .. });
    world.seen.iter().map(|seen| seen.iter().filter(is_part).cloned().collect()).collect()
}

/// The requests that load an array do not show its initial contents: they cover all slots of all
/// leaves, used or not.
#[test]
fn what_an_array_holds_from_its_beginning_does_not_show() {
    let shapes = |data| {
        let shape = |request: &Request| match request {
            Request::Put { at, slots, share } => {
                format!("{at:?} {slots:?} {}", matches!(share, Share::Drawn(_)))
            }
            other => format!("{other:?}"),
        };
        let seen = seen(data);
        seen.iter().map(|seen| seen.iter().map(shape).collect()).collect::<Vec<Vec<_>>>()
    };
    let nothing = shapes(Data(|_| None));
    let leaves = BLOCKS.div_ceil(PRESET.accesses.into()).next_power_of_two() as usize;
    assert!(nothing.iter().all(|seen| seen.len() == leaves + 1), "{leaves}");
    assert!(nothing == shapes(some()) && nothing == shapes(Data(|_| Some(0))));
    let mut verdicts = Verdicts::new(1e-6);
    for (i, seen) in seen(Data(|_| Some(0x55))).into_iter().enumerate() {
        let computed = seen.into_iter().filter_map(|request| match request {
            Request::Put { share: Share::Computed(share), .. } => Some(share),
            _ => None,
        });
        let counts = histogram(computed.flatten().map(u64::from), 256, 256);
        verdicts.add(format!("server {}", i + 1), uniformity(&counts));
    }
    verdicts.conclude();
}

/// No seed for the initial contents is drawn twice. Otherwise a server might know seeds of other
/// servers, with which it could recover all initial contents.
#[test]
fn no_seed_is_drawn_twice_for_what_is_loaded() {
    let mut seeds = HashSet::new();
    for seed in 0..20 {
        let owner = Owner::loaded(parties(3, 1), seed, some());
        for request in owner.servers.world().seen.iter().flatten() {
            if let Request::Put { share: Share::Drawn(seed), .. } = request {
                assert!(seeds.insert(*seed));
            }
        }
    }
    assert!(seeds.len() >= 20 * 16);
}

/// Blocks are loaded to random leaves. Their choice matters, because the first access to a block
/// shows its leaf.
#[test]
fn blocks_go_to_leaves_that_are_drawn() {
    let (mut single, mut pairs) = (vec![0; 16], vec![0; 16]);
    for seed in 0..40 {
        let mut owner = Owner::loaded(parties(3, 1), seed, Data(|_| Some(0)));
        let mut before = 0;
        for address in 0..BLOCKS {
            owner.access(&[(Want::Block(address), Some(vec![1; BLOCK_BYTES]))]).unwrap();
            let world = owner.servers.world();
            let selected = world.seen[0].iter().rev().find_map(|request| match request {
                Request::Select { select, .. } => Some(select.leaf.0 as usize),
                _ => None,
            });
            let leaf = selected.unwrap();
            single[leaf] += 1;
            pairs[before * 4 + leaf % 4] += 1;
            before = leaf % 4;
        }
    }
    let mut verdicts = Verdicts::new(1e-6);
    verdicts.add("leaves", uniformity(&single));
    verdicts.add("consecutive pairs", uniformity(&pairs));
    verdicts.conclude();
}
