//! The model against the requests of a real volume.

use clap::ValueEnum as _;
use oblivio::creation;
use oblivio_core::{Access, Op};
use oblivio_models::objects::{IN_FLIGHT_MAX, PREFETCHED_BYTES_MAX, Requests, VolumeOnObjects};
use oblivio_store::near::NearStore;
use oblivio_store::objects::memory::{MemoryService, Request};
use oblivio_store::objects::{ObjectName, S3Options};
use oblivio_store::{BoxedStore, PackedOptions, PackedStore, StoreKind};
use oblivio_volume::keys::{Cost, Secret};
use oblivio_volume::state_dir::FsStateDir;
use oblivio_volume::superblock::VolumeParams;
use oblivio_volume::volume::shapes;
use oblivio_volume::{ArrayRequirements, SyncMoves, Volume, VolumeOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use zeroize::Zeroizing;

use crate::args::PlannedStore;

/// Number of accesses in a batch. Accesses in a larger batch share more buckets.
const BATCH: usize = 4;

/// The model has its own constants for the size of chunks and the memory for requested buckets.
#[test]
fn constants_of_the_model_are_those_of_the_stores() {
    let mut count = 0;
    for store in PlannedStore::value_variants() {
        let (Some(service), StoreKind::Objects(engine)) = (store.service(), store.kind()) else {
            continue;
        };
        assert_eq!(engine.options().chunk_bytes as u64, service.chunk_bytes(), "{store:?}");
        assert_eq!(engine.scheme(), store.name());
        count += 1;
    }
    assert_eq!(count, 5);
    assert_eq!(S3Options::default().parallel as f64, IN_FLIGHT_MAX);
    let options = PackedOptions::default().with_chunk_bytes(0);
    assert_eq!(PackedStore::client_bytes_max(&[], &options) as f64, PREFETCHED_BYTES_MAX);
}

/// The average requests per access of a volume in objects in memory, without checkpoints, and the
/// average requests per checkpoint. With `near_bytes`, upper levels with at most this number of
/// bytes are in a local file.
fn measured(
    params: &VolumeParams,
    chunk_bytes: u64,
    near_bytes: Option<u64>,
    accesses: u64,
) -> (Requests, Requests) {
    let service = MemoryService::new(1);
    let options = PackedOptions::default().with_chunk_bytes(chunk_bytes as usize);
    let client = Box::new(service.client());
    let store = PackedStore::create(client, &shapes(params).unwrap(), &options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store: BoxedStore = match near_bytes {
        Some(_) => {
            Box::new(NearStore::open(store, &folder.path().join("near"), near_bytes).unwrap())
        }
        None => Box::new(store),
    };
    let mut coins = StdRng::seed_from_u64(1);
    let secret = Secret::KeyFile(Zeroizing::new(vec![7; 32]));
    let mut for_keys = StdRng::seed_from_u64(3).into();
    let owner = creation::owner(params.clone(), &secret, Cost::FLOOR, "", &mut for_keys).unwrap();
    let dir = Box::new(FsStateDir::create(&folder.path().join("state")).unwrap());
    let volume_options = VolumeOptions::default().with_sync_moves(SyncMoves::AtFlush);
    let mut volume =
        Volume::create(store, dir, &owner, volume_options, StdRng::seed_from_u64(2)).unwrap();
    let mut block = vec![vec![0; params.block_bytes as usize]; BATCH];
    let mut make = |accesses: u64| {
        for _ in 0..accesses / BATCH as u64 {
            let blocks = block.iter_mut();
            let mut batch: Vec<_> = blocks
                .map(|block| Access {
                    address: coins.random_range(0..params.blocks),
                    op: Op::Read(block),
                })
                .collect();
            volume.access(&mut batch).unwrap();
        }
    };
    // Every place is written once.
    let cost = params.cost().unwrap();
    make(3 * params.blocks + cost.accesses_per_checkpoint);
    service.take_log();
    make(accesses);
    let (mut access, mut checkpoint, mut heads) = (Requests::default(), Requests::default(), 0);
    for request in service.take_log() {
        match request {
            Request::Get(_, range) => {
                access.gets += 1.0;
                access.down_bytes += (range.end - range.start) as f64;
            }
            Request::Create(ObjectName::Chunk { .. }, bytes) => {
                access.puts += 1.0;
                access.up_bytes += bytes as f64;
            }
            Request::Create(name, bytes) => {
                heads += usize::from(matches!(name, ObjectName::Head(_)));
                checkpoint.puts += 1.0;
                checkpoint.up_bytes += bytes as f64;
            }
            Request::List(..) => checkpoint.lists += 1.0,
            Request::Delete(_) | Request::Sync => {}
        }
    }
    (access * (1.0 / accesses as f64), checkpoint * (2.0 / heads as f64))
}

#[track_caller]
fn near(what: &str, ours: f64, theirs: f64, part: f64) {
    assert!(
        (ours - theirs).abs() <= part * theirs,
        "{what}: {ours} by the model, {theirs} measured"
    );
}

/// Compares the model with 6,000 accesses of a volume of 8,192 blocks: six levels in storage, with
/// 10 or 3 buckets per chunk, and two levels in a local file in one case.
#[test]
fn the_model_agrees_with_the_requests_of_a_volume() {
    for (scheme, chunk_bytes, near_levels) in
        [("raw", 27_000, 0), ("raw", 8_000, 2), ("range", 27_000, 0)]
    {
        let params = VolumeParams::plan(&ArrayRequirements {
            block_bytes: 512,
            tree_top_bytes_max: Some(256 << 10),
            ..ArrayRequirements::new(4 << 20, scheme)
        })
        .unwrap();
        let config = params.config().unwrap();
        let model = VolumeOnObjects::with_chunks(&*config, chunk_bytes).unwrap().unwrap();
        let model = model.with_near_levels(near_levels);
        let near_bytes = (near_levels > 0).then(|| model.near_bytes());
        assert_eq!(model.near_levels_within(model.near_bytes()), near_levels);
        let (access, checkpoint) = measured(&params, chunk_bytes, near_bytes, 6_000);
        let (by_model, checkpoint_by_model) = (model.access(), model.checkpoint());
        near("GETs", by_model.gets, access.gets, 0.01);
        near("PUTs", by_model.puts, access.puts, 0.01);
        near("bytes down", by_model.down_bytes, access.down_bytes, 0.01);
        near("bytes up", by_model.up_bytes, access.up_bytes, 0.02);
        near("PUTs of checkpoints", checkpoint_by_model.puts, checkpoint.puts, 0.1);
        near("listings", checkpoint_by_model.lists, checkpoint.lists, 0.01);
        let up = (checkpoint_by_model.up_bytes, checkpoint.up_bytes);
        near("bytes of checkpoints", up.0, up.1, 0.2);
    }
}
