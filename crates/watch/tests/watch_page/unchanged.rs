//! The view of storage is the same whether a disk is watched or not.

use std::sync::{Arc, Mutex};
use std::thread;

use oblivio_core::store::BucketStore;
use oblivio_core::view::{Contents, Event, EventSink, Recorder};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, Device, SmallVolume};
use oblivio_volume::device::{BlockDevice, DiskOp, WipedBytes, call};
use oblivio_volume::volume::trees_of_scheme;
use oblivio_volume::{Disk, DiskOptions};
use oblivio_watch::{OwnerSide, Shown, StorageSide, bind, drawn_trees};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::LIMITS;
use super::reader::{Address, Reader};

/// All events that storage saw, including contents.
#[derive(Clone, Default)]
struct RecordedView(Arc<Mutex<Contents>>);

impl EventSink for RecordedView {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self.0.lock().unwrap().record(event, contents);
    }
}

/// Returns reads, writes and trims at random offsets, and flushes.
fn requests() -> impl Iterator<Item = DiskOp> {
    let mut coins = StdRng::seed_from_u64(9);
    let bytes = u64::from(BLOCK_BYTES) * BLOCKS;
    (0..400).map(move |i| {
        let offset = coins.random_range(0..bytes - 3000);
        match i % 5 {
            0 | 1 => DiskOp::Read { offset, bytes: 1 + i % 3000 },
            2 => DiskOp::Write { offset, data: WipedBytes::zeros(700), durable: i % 2 == 0 },
            3 => DiskOp::Trim { offset, bytes: 2000, durable: false },
            _ => DiskOp::Flush,
        }
    })
}

/// Records the view of storage for a volume in use. All runs use the same random numbers.
fn view(setup: &SmallVolume, is_watched: bool) -> Contents {
    let world = setup.world();
    let view = RecordedView::default();
    let store = Recorder::new(world.store(), view.clone());
    let side = StorageSide::new(drawn_trees(&store, trees_of_scheme()), &LIMITS);
    let store: Box<dyn BucketStore + Send> = match is_watched {
        true => Box::new(Recorder::new(store, side.clone())),
        false => Box::new(store),
    };
    let volume = setup.create(store, world.dir(), StdRng::seed_from_u64(5)).unwrap();
    let insight = volume.insight();
    // Without a cache, no write-back depends on time.
    let options = DiskOptions::DEFAULT.with_cache_bytes_max(0);
    let disk = Arc::new(Disk::start(volume, &options).unwrap());
    if !is_watched {
        requests().for_each(|op| drop(call(&*disk, op).unwrap()));
        disk.close().unwrap();
        return take(&view);
    }
    let owner = OwnerSide::new(insight, &LIMITS);
    let watched = owner.watched(disk.clone());
    assert_eq!(watched.division(), disk.division());
    assert_eq!(watched.requests_in_flight_max(), disk.requests_in_flight_max());
    assert_eq!(watched.request_bytes_max(), disk.request_bytes_max());
    let (disk_bytes, block_bytes) = (disk.bytes(), BLOCK_BYTES);
    let owner = Some(owner);
    let levels_on_client = u64::from(setup.tree_top_levels);
    let shown = Shown { storage: side, owner, levels_on_client, disk_bytes, block_bytes };
    let page = bind("127.0.0.1:0".parse().unwrap(), LIMITS).unwrap().serve(shown).unwrap();
    let address = Address::enter(page.url());
    let deaf = Reader::connect(&address);
    thread::scope(|scope| {
        let mut reader = Reader::connect(&address);
        let reading = scope.spawn(move || {
            let mut frames = Vec::new();
            while let Some((name, data)) = reader.next() {
                frames.extend((name == "frame").then_some(data));
            }
            frames
        });
        requests().for_each(|op| drop(call(&*watched, op).unwrap()));
        // Waits for a frame that counts all requests.
        Reader::connect(&address).until(|_, data| data["owner"]["requests"][4] == 80);
        disk.close().unwrap();
        drop((page, deaf));
        let frames = reading.join().unwrap();
        let last = frames.last().unwrap();
        assert_eq!(last["owner"]["requests"], serde_json::json!([160, 80, 0, 80, 80]));
        let inner = &last["owner"]["inner"];
        assert!(inner["to_blocks"].as_u64().unwrap() > 160, "{inner}");
        assert_eq!(inner["to_nothing"], 0);
        let has_map_in_tree = setup.recursion.is_some();
        assert_eq!(inner["to_positions"].as_u64().unwrap() > 0, has_map_in_tree, "{inner}");
        assert_eq!(inner["stash"]["blocks_max"], setup.stash_blocks_max);
    });
    take(&view)
}

fn take(view: &RecordedView) -> Contents {
    std::mem::take(&mut view.0.lock().unwrap())
}

#[test]
fn storage_sees_the_same_whether_a_disk_is_watched_or_not() {
    let flat = SmallVolume { device: Device::Raw, ..SmallVolume::default() };
    for setup in [flat, flat.with_map_in_tree()] {
        let [unwatched, watched] = [false, true].map(|is_watched| view(&setup, is_watched));
        assert!(unwatched.events().len() > 1000);
        assert_eq!(unwatched.events(), watched.events());
        assert!(unwatched.written().eq(watched.written()));
    }
}
