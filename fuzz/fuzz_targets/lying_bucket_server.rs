//! The client of a bucket server that lies, over links that break.
//!
//! ```text
//! input = setup, 16 steps of two bytes each, lies
//! ```
//!
//! While the server is honest, reads return the data written, even if links break and the server
//! restarts. After a lie, reads may return wrong data, but in the right number of bytes. After a
//! failed write or flush, flushes and reads fail.
#![no_main]

#[path = "support/buckets.rs"]
mod buckets;
#[path = "support/lying_server.rs"]
mod lying_server;

use std::time::Duration;

use buckets::Buckets;
use libfuzzer_sys::fuzz_target;
use lying_server::LyingServer;
use oblivio_core::store::{BucketStore, Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape};
use oblivio_core::{BucketId, StoreError};
use oblivio_store::{RemoteMode, RemoteOptions, RemoteStore};

/// Number of buckets on the lowest level.
const LEAVES: u64 = 4;

/// Timeout if the server lies, when answers may never come.
const SOON: Duration = Duration::from_millis(20);

/// Timeout if the server is honest.
const LONG: Duration = Duration::from_secs(30);

fuzz_target!(|input: &[u8]| {
    let Some((setup, input)) = input.split_first() else { return };
    let Some((steps, lies)) = input.split_first_chunk::<32>() else { return };
    let (setup, is_honest) = (*setup, lies.is_empty());
    let server = LyingServer::new(Buckets::new(shapes()), lies);
    let Some(mut store) = open(setup, &server, if is_honest { LONG } else { SOON }) else {
        assert!(!is_honest, "cannot open an honest server");
        return;
    };
    let can_write = setup % 4 < 2;
    let mut expected = Buckets::new(shapes());
    for step in steps.as_chunks::<2>().0 {
        let pieces = pieces(step);
        let outcome = match step[0] % 4 {
            0 if can_write => write(&mut store, &mut expected, &pieces, step[1]),
            1 => store.flush(),
            2 => {
                store.prefetch(&pieces);
                Ok(())
            }
            _ => {
                // A failed read does not end the store.
                let is_read = reads(&mut store, &server, &expected, &pieces);
                assert!(is_read || !is_honest, "cannot read from an honest server");
                continue;
            }
        };
        if let Err(error) = outcome {
            assert!(!is_honest, "an honest server fails: {error}");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
            let is_over = store.flush().is_err() && store.read(&pieces).is_err();
            assert!(is_over, "the store still works after {error}");
            return;
        }
    }
});

fn shapes() -> Vec<TreeShape> {
    let level = |level: u32| LevelShape {
        buckets: 1 << level,
        slots: 2,
        header_bytes: 8,
        slots_offset: 11,
        slot_bytes: 20,
        bucket_bytes: 52,
    };
    vec![
        TreeShape::new((0..=LEAVES.ilog2()).map(level).collect()),
        TreeShape::new(vec![LevelShape { slots: 0, ..level(0) }]),
    ]
}

/// Opens the store. `None` if opening fails, or the server reports other trees.
fn open(setup: u8, server: &LyingServer, within: Duration) -> Option<RemoteStore> {
    let options = RemoteOptions::new("disk")
        .with_retry_for(within)
        .with_answer_within(within)
        // A low limit, so that the store flushes by itself.
        .with_unflushed_bytes_max(300);
    let connector = Box::new(server.clone());
    let mode = match setup % 4 {
        0 => return RemoteStore::create(connector, &shapes(), options).ok(),
        1 => RemoteMode::Write,
        2 => RemoteMode::Read { allow_incomplete: setup & 4 != 0 },
        _ => RemoteMode::Look,
    };
    let (store, condition) = RemoteStore::open(connector, mode, options).ok()?;
    let sentences = condition.damage.iter().chain(&condition.mended);
    sentences.for_each(|sentence| assert!(!sentence.contains(char::is_control), "{sentence:?}"));
    (store.shapes() == shapes()).then_some(store)
}

/// Returns one to four pieces of neighbouring buckets of the first tree: whole buckets or parts.
/// For places above 200, also the bucket of the second tree.
fn pieces(step: &[u8; 2]) -> Vec<Piece> {
    let [what, place] = step.map(u64::from);
    let piece = |i: u64| {
        let level = (place + i) % 3;
        let index = (place / 3 + i) & ((1 << level) - 1);
        let part = match (what >> 4) + i {
            slot @ (1 | 2) => Part::Slot(slot as u16 - 1),
            3 => Part::Header,
            _ => Part::Whole,
        };
        Piece { tree: TreeId(0), bucket: BucketId::new(level as u8, index), part }
    };
    let other = Piece { tree: TreeId(1), bucket: BucketId::new(0, 0), part: Part::Whole };
    let mut pieces: Vec<_> = (0..=what >> 2 & 3).map(piece).collect();
    pieces.extend((place > 200).then_some(other));
    pieces
}

fn write(
    store: &mut RemoteStore,
    expected: &mut Buckets,
    pieces: &[Piece],
    first: u8,
) -> Result<(), StoreError> {
    let bytes: Vec<u8> = (0..expected.bytes(pieces)).map(|i| first.wrapping_add(i as u8)).collect();
    let mut end = 0;
    let span = |piece: &Piece| {
        let start = end;
        end += expected.bytes(&[*piece]);
        Span { start, bytes: end - start }
    };
    let spans: Vec<_> = pieces.iter().map(span).collect();
    store.write(pieces, &mut |blanks| blanks.relay(Frames::new(&bytes, &spans)))?;
    expected.write(pieces, &bytes);
    Ok(())
}

/// Reads and checks `pieces`. Returns whether the read succeeded.
fn reads(
    store: &mut RemoteStore,
    server: &LyingServer,
    expected: &Buckets,
    pieces: &[Piece],
) -> bool {
    let Ok(frames) = store.read(pieces) else { return false };
    assert_eq!(frames.len(), pieces.len());
    let read: Vec<u8> = (0..frames.len()).flat_map(|i| frames.get(i).to_vec()).collect();
    let expected = expected.read(pieces);
    assert_eq!(read.len(), expected.len());
    assert!(read == expected || server.has_lied(), "a read of {pieces:?}");
    true
}
