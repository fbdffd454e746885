//! The owner's activity is on the page only if the owner wants it there.

use oblivio_volume::device::{DiskOp, WipedBytes, call};
use serde_json::Value;

use super::{LIMITS, Watched, until_trips};

/// An offset that differs from every other number in a frame.
const OFFSET: u64 = 3_141_592;
const BYTES: usize = 271;

/// Uses the disk, and then records seven reads of storage, so that a test can wait for a frame that
/// counts them.
fn use_disk(watched: &mut Watched) {
    let write = DiskOp::Write { offset: OFFSET, data: WipedBytes::zeros(BYTES), durable: false };
    call(&*watched.disk, write).unwrap();
    call(&*watched.disk, DiskOp::Read { offset: OFFSET, bytes: BYTES as u32 }).unwrap();
    call(&*watched.disk, DiskOp::Trim { offset: OFFSET, bytes: 1, durable: false }).unwrap();
    call(&*watched.disk, DiskOp::Flush).unwrap();
    (0..7).for_each(|trip| watched.storage_sees(trip));
}

#[test]
fn by_default_nothing_that_the_owner_does_is_sent() {
    let mut watched = Watched::start(LIMITS, false);
    let mut reader = watched.reader();
    let (name, hello) = reader.next().unwrap();
    assert_eq!((name.as_str(), &hello["shows_secrets"]), ("hello", &Value::Bool(false)));
    use_disk(&mut watched);
    let frame = until_trips(&mut reader, 7);
    // A few more frames, without events.
    (0..3).for_each(|_| drop(reader.next()));
    for secret in [&OFFSET.to_string(), &BYTES.to_string(), "owner", "stash", "offset"] {
        assert!(!reader.heard.contains(secret), "{secret}: {}", reader.heard);
    }
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&frame), ["millis", "storage"]);
    assert_eq!(keys(&frame["storage"]), ["levels", "operations", "visits", "visits_left_out"]);
}

#[test]
fn with_secrets_enabled_requests_are_sent() {
    let mut watched = Watched::start(LIMITS, true);
    let mut reader = watched.reader();
    use_disk(&mut watched);
    let frame = until_trips(&mut reader, 7);
    let owner = &frame["owner"];
    assert_eq!(owner["requests"], serde_json::json!([1, 1, 0, 1, 1]));
    assert_eq!(owner["bytes"], serde_json::json!([BYTES, BYTES, 0, 1, 0]));
    for request in [format!("[1,{OFFSET},{BYTES}]"), format!("[0,{OFFSET},{BYTES}]")] {
        assert!(reader.heard.contains(&request), "{request}: {}", reader.heard);
    }
}

/// The page gets the complete view of storage, whether it shows the owner's activity or not.
#[test]
fn what_storage_sees_is_sent_with_and_without_the_owner() {
    for shows_secrets in [false, true] {
        let mut watched = Watched::start(LIMITS, shows_secrets);
        let mut reader = watched.reader();
        let (_, hello) = reader.next().unwrap();
        assert_eq!(hello["trees"], serde_json::json!([{"number": 2, "buckets": [0, 3, 5, 9]}]));
        (0..7).for_each(|trip| watched.storage_sees(trip));
        let frame = until_trips(&mut reader, 7);
        assert_eq!(
            frame["storage"]["levels"],
            serde_json::json!([[[0, 0], [0, 0], [0, 0], [7, 0]]])
        );
        assert_eq!(frame["storage"]["operations"][1]["bytes"], 7 * 4096);
        assert!(reader.heard.contains("[5,0,0,3,5]"), "{}", reader.heard);
        assert!(reader.head.contains("content-type: text/event-stream"), "{}", reader.head);
        assert!(reader.head.contains("cache-control: no-store"), "{}", reader.head);
    }
}
