//! A view file from the fuzzer. Each view has exactly one file, so a file that can be read to its
//! end encodes to the same bytes, except for the start of older versions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_core::store::Capabilities;
use oblivio_core::view::file::{FileSink, read_view};
use oblivio_core::view::{EventSink, Observed, PeerMessageSink};

/// The current version of the format, in which files are written.
const VERSION: u8 = 4;

/// Bytes of the magic number and the version. Next come the capabilities of the store (one byte,
/// since version 2) and the share servers (since version 4): three bytes, or one zero byte if there
/// are none.
const START_BYTES: usize = 8;

fuzz_target!(|input: &[u8]| {
    let Ok(mut view) = read_view(input) else { return };
    let capabilities = view.capabilities();
    let mut copy =
        FileSink::new(Vec::new(), capabilities.unwrap_or(Capabilities::NONE), view.servers());
    while let Some(observed) = view.next() {
        let Ok(observed) = observed else { return };
        // In a version without times, all events get the time 0.
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
