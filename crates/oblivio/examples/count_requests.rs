//! Counts the requests of a volume in objects: gets, creations and bytes for each access.
//!
//! ```sh
//! cargo run --release -p oblivio --example count_requests -- 1073741824
//! ```
//!
//! The objects are in memory, which holds six times the size of the disk. The volume is used until
//! every place of its tree was written, and then for 20,000 reads and writes of random blocks.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;

use oblivio::oblivio_store::near::NearStore;
use oblivio::oblivio_store::objects::memory::{MemoryService, Request};
use oblivio::oblivio_store::{BoxedStore, PackedMode, PackedOptions, PackedStore};
use oblivio::oblivio_volume::device::{DiskOp, WipedBytes, call};
use oblivio::oblivio_volume::keys::Cost;
use oblivio::oblivio_volume::superblock::VolumeParams;
use oblivio::oblivio_volume::volume::shapes;
use oblivio::oblivio_volume::{Coins, Disk, SyncMoves, Volume};
use oblivio::{DiskOptions, Secret, StoreKind, VolumeOptions, creation, home};
use rand::{RngExt, SeedableRng, rngs::StdRng};

const MEASURED: u64 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let bytes: u64 = arguments.next().ok_or("usage: count_requests BYTES [near]")?.parse()?;
    let is_near = arguments.next().is_some_and(|argument| argument == "near");
    let folder = tempfile::tempdir()?;
    let secret = Secret::key_file(&[7; 32]);
    let requirements = oblivio::requirements(bytes, StoreKind::File);
    let params = VolumeParams::plan(&requirements)?;
    let mut coins = Coins::from_system()?;
    let owner = creation::owner(params, &secret, Cost::FLOOR, "", &mut coins)?;
    let shapes = shapes(owner.superblock.params())?;
    let service = MemoryService::new(1);
    let far = PackedStore::create(Box::new(service.client()), &shapes, &PackedOptions::default())?;
    let near = folder.path().join("near");
    let store: BoxedStore = match is_near {
        true => Box::new(NearStore::open(far, &near, Some(bytes))?),
        false => Box::new(far),
    };
    // Syncs of the log would take most of the time, and are not counted.
    let options = VolumeOptions::default().with_sync_moves(SyncMoves::AtFlush);
    let dir = Box::new(home::create(&folder.path().join("state"))?);
    let volume = Volume::create(store, dir, &owner, options, coins)?;
    let disk = Disk::start(volume, &DiskOptions::default().with_cache_bytes_max(0))?;

    let block = u64::from(owner.superblock.params().block_bytes);
    let mut random = StdRng::seed_from_u64(1);
    let mut access = |disk: &Disk| -> Result<(), Box<dyn Error>> {
        let offset = random.random_range(0..bytes / block) * block;
        match random.random() {
            true => drop(call(disk, DiskOp::Read { offset, bytes: block as u32 })?),
            false => {
                let data = WipedBytes::from(&vec![1; block as usize][..]);
                call(disk, DiskOp::Write { offset, data, durable: false })?;
            }
        }
        Ok(())
    };
    // Every eviction writes one place of each level.
    let places = shapes.iter().flat_map(|shape| shape.levels()).map(|level| level.buckets).max();
    let warm_up = places.unwrap_or(0) * 11 / 2;
    let mut out = std::io::stderr();
    for done in 0..warm_up {
        if done % 100_000 == 0 {
            writeln!(out, "{done} of {warm_up} accesses before measuring")?;
        }
        access(&disk)?;
        if done % 1000 == 0 {
            service.take_log();
        }
    }
    service.take_log();
    for _ in 0..MEASURED {
        access(&disk)?;
    }
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for request in service.take_log() {
        let (name, bytes) = match request {
            Request::Get(_, range) => ("get", range.end - range.start),
            Request::Create(_, bytes) => ("create", bytes),
            Request::List(..) => ("list", 0),
            Request::Delete(_) => ("delete", 0),
            Request::Sync => ("sync", 0),
        };
        let count = counts.entry(name).or_default();
        *count = (count.0 + 1, count.1 + bytes);
    }
    let mut out = std::io::stdout();
    writeln!(out, "disk of {bytes} bytes, after {warm_up} accesses")?;
    for (name, (requests, bytes)) in counts {
        let per = |number: u64| number as f64 / MEASURED as f64;
        let (requests, bytes) = (per(requests), per(bytes) / 1024.0);
        writeln!(out, "{name:8} {requests:8.4} requests  {bytes:8.1} KiB  an access")?;
    }
    disk.close()?;
    // What was flushed can be opened again.
    PackedStore::open(Box::new(service.client()), PackedMode::Read, &PackedOptions::default())?;
    Ok(())
}
