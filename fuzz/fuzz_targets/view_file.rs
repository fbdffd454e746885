//! A view file of the fuzzer's making. There is exactly one file for each view, so whatever is read
//! to a sound end writes back to the same bytes, but for the start of a file of an older version.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_core::store::Capabilities;
use oblivio_core::view::EventSink;
use oblivio_core::view::file::{FileSink, read_view};

/// Of version 1. Those after it say in one byte more what the store could do.
const START_BYTES: usize = 8;

fuzz_target!(|input: &[u8]| {
    let Ok(mut view) = read_view(input) else { return };
    let capabilities = view.capabilities();
    let mut copy = FileSink::new(Vec::new(), capabilities.unwrap_or(Capabilities::NONE));
    let says_times = view.micros().is_some();
    while let Some(event) = view.next() {
        let Ok(event) = event else { return };
        copy.set_micros(view.micros().unwrap_or_default());
        copy.record(&event, &[]);
    }
    let copy = copy.finish().unwrap();
    match capabilities {
        Some(_) if says_times => assert_eq!(copy, input),
        Some(_) => assert_eq!(copy[START_BYTES..], input[START_BYTES..]),
        None => assert_eq!(copy[START_BYTES + 1..], input[START_BYTES..]),
    }
});
