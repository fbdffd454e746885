//! Trees whose blocks have no bytes: what simulations are made of. They are where the same blocks with
//! bytes would be.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::cell::RefCell;
use std::rc::Rc;

use oblivio_core::scheme::{Backend, PathBackend, RawBackend};
use oblivio_core::seal::NoSecrecy;
use oblivio_core::store::Piece;
use oblivio_core::view::{Event, Recorder};
use oblivio_core::{
    FlatOram, Geometry, MemoryStore, Op, Oram, RawConfig, Sealer, TreeConfig, TreeTopKind,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const CAPACITY: u64 = 300;

type Seen = Rc<RefCell<Vec<Option<Piece>>>>;

fn tree(block_bytes: usize) -> TreeConfig {
    let geometry = Geometry::profile(&[4, 4, 3, 3, 3, 4, 5, 5]).unwrap();
    TreeConfig {
        tree_top_levels: 2,
        tree_top: TreeTopKind::SetAssociative { ways: 2 },
        ..TreeConfig::new(CAPACITY, block_bytes, geometry, 100)
    }
}

/// Which pieces storage was asked for, and where the blocks ended up.
fn run<B: Backend>(
    tree: &TreeConfig,
    backend: impl FnOnce(Sealer, Recorder<MemoryStore, Box<dyn FnMut(&Event, &[u8])>>) -> B,
) -> (Vec<Option<Piece>>, Vec<u64>) {
    let seen = Seen::default();
    let log = Rc::clone(&seen);
    let sink = move |event: &Event, _: &[u8]| log.borrow_mut().push(event.piece);
    let memory = MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap();
    let store = Recorder::new(memory, Box::new(sink) as Box<dyn FnMut(&Event, &[u8])>);
    let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    let backend = backend(sealer, store);
    let mut oram = FlatOram::new(backend, StdRng::seed_from_u64(5)).unwrap();
    let mut coins = StdRng::seed_from_u64(6);
    let mut block = vec![0; tree.block_bytes];
    for _ in 0..1000 {
        let address = coins.random_range(0..CAPACITY);
        if coins.random() {
            oram.read(address, &mut block).unwrap();
        } else {
            oram.write(address, &block).unwrap();
        }
    }
    let requested = seen.take();
    oram.check_invariants().unwrap();
    (requested, oram.blocks_on_levels().unwrap())
}

#[test]
fn path_oram_moves_tags_as_it_moves_blocks() {
    let of = |bytes| {
        let tree = tree(bytes);
        run(&tree, |sealer, store| PathBackend::new(&tree, sealer, store).unwrap())
    };
    let (pieces, levels) = of(0);
    assert_eq!((&pieces, &levels), (&of(64).0, &of(64).1));
    assert!(levels.iter().sum::<u64>() > 200, "{levels:?}");
}

#[test]
fn raw_oram_moves_tags_as_it_moves_blocks() {
    let of = |bytes| {
        let config = RawConfig { tree: tree(bytes), evict_period: 3 };
        run(&config.tree, |sealer, store| RawBackend::new(&config, sealer, store).unwrap())
    };
    let (tags, blocks) = (of(0), of(64));
    assert_eq!(tags, blocks);
    assert!(tags.1.iter().sum::<u64>() > 200);
}

#[test]
fn a_tag_is_served_like_a_block() {
    let tree = tree(0);
    let memory = MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap();
    let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    let backend = PathBackend::new(&tree, sealer, memory).unwrap();
    let mut oram = FlatOram::new(backend, StdRng::seed_from_u64(5)).unwrap();
    oram.write(7, &[]).unwrap();
    let mut served = 0;
    let mut count = |block: &mut [u8]| served += 1 + block.len();
    oram.access(&mut [oblivio_core::Access { address: 7, op: Op::Update(&mut count) }]).unwrap();
    assert_eq!(served, 1);
    assert!(oram.read(7, &mut [0]).is_err(), "it has no byte");
}
