//! Sound stores pass the suite, and faulty ones fail it.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod durable;
mod open;

use oblivio_conformance::check_store;
use oblivio_core::MemoryStore;
use oblivio_core::layout::LayoutKind;
use oblivio_core::store::TreeShape;
use oblivio_core::view::{Recorder, Tally};

const LAYOUTS: [LayoutKind; 4] = [
    LayoutKind::Heap,
    LayoutKind::Striped,
    LayoutKind::Subtree { unit_bytes: 512 },
    LayoutKind::Subtree { unit_bytes: 4096 },
];

fn memory(shapes: &[TreeShape], layout: LayoutKind) -> MemoryStore {
    MemoryStore::new(shapes, layout).unwrap()
}

#[test]
fn memory_conforms_in_every_layout() {
    for layout in LAYOUTS {
        check_store(|shapes| memory(shapes, layout));
    }
}

#[test]
fn a_recorder_conforms() {
    check_store(|shapes| Recorder::new(memory(shapes, LayoutKind::Heap), Tally::new()));
}
