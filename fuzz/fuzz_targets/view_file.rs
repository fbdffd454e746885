//! A view file of the fuzzer's making. There is exactly one file for each view, so whatever is read
//! to a sound end writes back to the same bytes, but for the start of a file of an older version.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_core::store::Capabilities;
use oblivio_core::view::file::{FileSink, read_view};
use oblivio_core::view::{EventSink, PeerMessageSink, Observed};

/// The version that is written.
const VERSION: u8 = 4;

/// The magic and the version. Behind them, versions from 2 on say in one byte what the store could do, and those from 4 on which servers there are.
const START_BYTES: usize = 8;

fuzz_target!(|input: &[u8]| {
    let Ok(mut view) = read_view(input) else { return };
    let capabilities = view.capabilities();
    let mut copy =
        FileSink::new(Vec::new(), capabilities.unwrap_or(Capabilities::NONE), view.servers());
    while let Some(observed) = view.next() {
        let Ok(observed) = observed else { return };
        // Of a version without times, none is put between events.
        copy.set_micros(view.micros().unwrap_or_default());
        match observed {
            Observed::Event(event) => copy.record(&event, &[]),
            Observed::PeerMessage(exchange) => copy.record_message(&exchange, &[]),
        }
    }
    let copy = copy.finish().unwrap();
    let can = usize::from(capabilities.is_some());
    match input[START_BYTES - 1] {
        VERSION => assert_eq!(copy, input),
        _ => assert_eq!(copy[START_BYTES + 2..], input[START_BYTES + can..]),
    }
});
