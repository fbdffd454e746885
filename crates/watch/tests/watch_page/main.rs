//! Tests of the watch page: access, contents, and that the disk never waits for the page.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]

mod limits;
mod privacy;
mod reader;
mod strangers;
mod unchanged;

use std::sync::Arc;

use oblivio_core::BucketId;
use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_core::view::{Event, EventSink, Operation};
use oblivio_volume::device::BlockDevice;
use oblivio_volume::insight::Insight;
use oblivio_watch::{DrawnTree, OwnerSide, Shown, StorageSide, WatchLimits, WatchServer, bind};

use serde_json::Value;

use self::reader::{Address, Reader};
use oblivio_testkit::memory_disk::{BLOCK_BYTES, MIB, MemoryDisk};

/// Limits with a short frame time, so that tests do not wait.
const LIMITS: WatchLimits = WatchLimits { frame_millis: 5, ..WatchLimits::DEFAULT };

const TREE: TreeId = TreeId(2);

/// A page that shows a disk in memory. The test plays the storage.
struct Watched {
    server: WatchServer,
    /// The address of the page.
    page: Address,
    storage: StorageSide,
    disk: Arc<dyn BlockDevice>,
}

impl Watched {
    fn start(limits: WatchLimits, shows_secrets: bool) -> Self {
        let tree = DrawnTree { tree: TREE, buckets: vec![0, 3, 5, 9] };
        let storage = StorageSide::new(vec![tree], &limits);
        let owner = shows_secrets.then(|| OwnerSide::new(Insight::default(), &limits));
        let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDisk::new(4 * MIB));
        let disk = owner.as_ref().map_or_else(|| memory.clone(), |it| it.watched(memory.clone()));
        let bound = bind("127.0.0.1:0".parse().unwrap(), limits).unwrap();
        let shown = Shown {
            storage: storage.clone(),
            owner,
            levels_on_client: 1,
            disk_bytes: 4 * MIB,
            block_bytes: BLOCK_BYTES,
        };
        let server = bound.serve(shown).unwrap();
        Self { page: Address::enter(server.url()), server, storage, disk }
    }

    fn address(&self) -> Address {
        self.page.clone()
    }

    fn reader(&self) -> Reader {
        Reader::connect(&self.address())
    }

    /// Records a read of a bucket in trip `trip`.
    fn storage_sees(&mut self, trip: u64) {
        let bucket = BucketId::new(3, trip % 9);
        let piece = Some(Piece { tree: TREE, bucket, part: Part::Whole });
        self.storage.record(&Event { trip, operation: Operation::Read, piece, bytes: 4096 }, &[]);
    }
}

/// Waits for a frame that counts at least `trips` reads of storage.
fn until_trips(reader: &mut Reader, trips: u64) -> Value {
    reader.until(|name, data| name == "frame" && trips_read(data) >= trips).1
}

/// The number of reads of storage that a frame counts.
fn trips_read(frame: &Value) -> u64 {
    frame["storage"]["operations"][1]["trips"].as_u64().unwrap()
}
