//! A view file of the fuzzer's making. There is exactly one file for each view, so whatever is read
//! to a sound end writes back to the same bytes, but for the start of a file of version 1.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_core::store::Capabilities;
use oblivio_core::view::EventSink;
use oblivio_core::view::file::{FileSink, read_view};

/// Of version 1: those after it do not depend on what the store could do, which version 2 says in a byte.
const START_BYTES: usize = 8;

fuzz_target!(|input: &[u8]| {
    let Ok(view) = read_view(input) else { return };
    let capabilities = view.capabilities();
    let Ok(events) = view.collect::<Result<Vec<_>, _>>() else { return };
    let mut copy = FileSink::new(Vec::new(), capabilities.unwrap_or(Capabilities::NONE));
    events.iter().for_each(|event| copy.record(event, &[]));
    let copy = copy.finish().unwrap();
    match capabilities {
        Some(_) => assert_eq!(copy, input),
        None => assert_eq!(copy[START_BYTES + 1..], input[START_BYTES..]),
    }
});
