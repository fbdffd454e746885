//! A view file of the fuzzer's making. There is exactly one file for each view, so whatever is read
//! to a sound end writes back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_core::view::EventSink;
use oblivio_core::view::file::{FileSink, read_view};

fuzz_target!(|input: &[u8]| {
    let Ok(view) = read_view(input) else { return };
    let Ok(events) = view.collect::<Result<Vec<_>, _>>() else { return };
    let mut copy = FileSink::new(Vec::new());
    events.iter().for_each(|event| copy.record(event, &[]));
    assert_eq!(copy.finish().unwrap(), input);
});
