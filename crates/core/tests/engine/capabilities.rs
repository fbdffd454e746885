//! Tests that schemes check the capabilities of a store before they send it any request.

use oblivio_core::store::{BucketStore, Capabilities, Part, TreeShape};
use oblivio_core::view::{Event, Recorder};
use oblivio_core::{
    DurableRawOram, EraSealer, ErrorKind, Key, LayoutKind, MasterKey, MemoryStore, Oram, PathOram,
    RawConfig, RawOram, RotatingConfig, Sealer,
};
use oblivio_testkit::{WholeBuckets, whole_buckets};
use rand::SeedableRng;
use rand::rngs::StdRng;

const BLOCKS: u64 = 100;
const BLOCK_BYTES: usize = 64;

type Store = Recorder<WholeBuckets<MemoryStore>, Vec<Event>>;

fn store(shapes: &[TreeShape]) -> Store {
    let memory = MemoryStore::new(shapes, LayoutKind::Heap).unwrap();
    Recorder::new(whole_buckets(memory), Vec::new())
}

fn config() -> RawConfig {
    RawConfig::new(BLOCKS, BLOCK_BYTES).unwrap()
}

fn coins() -> StdRng {
    StdRng::seed_from_u64(1)
}

fn sealer(config: &RawConfig) -> Sealer {
    Sealer::aes128(Key::draw(&mut coins()), config.tree.tree)
}

/// Writes and reads every block of an ORAM on a store that refuses parts.
fn use_it(mut oram: impl Oram) {
    for address in 0..BLOCKS {
        oram.write(address, &[address as u8; BLOCK_BYTES]).unwrap();
    }
    for address in 0..BLOCKS {
        let mut block = [0; BLOCK_BYTES];
        oram.read(address, &mut block).unwrap();
        assert_eq!(block, [address as u8; BLOCK_BYTES]);
    }
}

fn assert_only_whole_buckets_were_asked_for(events: &[Event]) {
    assert!(!events.is_empty());
    for event in events {
        assert!(event.piece.is_none_or(|piece| piece.part == Part::Whole), "{event:?}");
    }
}

#[test]
fn raw_oram_refuses_a_store_of_whole_buckets_before_any_request() {
    let config = config();
    let mut store = store(&[config.tree.shape().unwrap()]);
    let made = RawOram::raw(&config, sealer(&config), &mut store, coins());
    let refused = made.err().expect("RAW ORAM writes headers");
    assert_eq!(refused.kind(), ErrorKind::StoreMismatch);
    let message = refused.to_string();
    assert!(
        message.contains("needs a store with parts of buckets: choose such a store"),
        "{message}"
    );
    assert_eq!(store.sink(), &[]);
}

#[test]
fn path_oram_needs_only_whole_buckets() {
    let config = config();
    let mut store = store(&[config.tree.shape().unwrap()]);
    use_it(PathOram::path(&config.tree, sealer(&config), &mut store, coins()).unwrap());
    assert_only_whole_buckets_were_asked_for(store.sink());
}

#[test]
fn rotating_raw_oram_needs_only_whole_buckets() {
    let config = RotatingConfig::flat(config());
    let mut store = store(&config.shapes().unwrap().into_trees());
    let key = MasterKey::from_bytes([7; 32]);
    let sealer = EraSealer::fresh(key, config.raw.tree.tree, &mut coins());
    use_it(DurableRawOram::new(&config, sealer, &mut store, coins()).unwrap());
    assert_only_whole_buckets_were_asked_for(store.sink());
}

#[test]
fn pointers_and_the_recorder_forward_capabilities() {
    let shapes = [config().tree.shape().unwrap()];
    let memory = || MemoryStore::new(&shapes, LayoutKind::Heap).unwrap();
    let known = |mut store: Box<dyn BucketStore>| {
        let borrowed = <&mut Box<_> as BucketStore>::capabilities(&&mut store);
        let boxed = <Box<_> as BucketStore>::capabilities(&store);
        assert_eq!(borrowed, boxed);
        boxed
    };
    assert_eq!(known(Box::new(memory())), Capabilities::PARTS);
    assert_eq!(known(Box::new(whole_buckets(memory()))), Capabilities::NONE);
    assert_eq!(known(Box::new(Recorder::new(memory(), Vec::new()))), Capabilities::PARTS);
    assert_eq!(known(Box::new(store(&shapes))), Capabilities::NONE);
}
