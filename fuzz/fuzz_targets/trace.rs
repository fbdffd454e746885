//! A trace file from the fuzzer.
//!
//! ```text
//! input = setup, a file
//! setup = the declared format, if any (2 bits); whether to wrap the file in the start and a valid
//!         checksum of a binary trace (1 bit)
//! ```
//!
//! A trace that can be read survives a round trip through every format that can hold it. Each trace
//! has exactly one binary file, so a binary file that can be read encodes to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_sim::SimError;
use oblivio_sim::trace::{Compression, Format, Trace};

const START: &[u8] = b"OBLTRACE\x01";

fuzz_target!(|input: &[u8]| {
    let Some((setup, file)) = input.split_first() else { return };
    let file = if setup & 4 == 0 { file.to_vec() } else { framed(file) };
    let read = match Format::ALL.get(usize::from(setup & 3)) {
        None => Trace::read("fuzz", &file[..]),
        Some(format) => Trace::read_as(*format, "fuzz", &file[..]),
    };
    let trace = match read {
        Ok(trace) => trace,
        Err(SimError::Trace(_)) => return,
        Err(error) => panic!("unexpected error of a trace file: {error}"),
    };
    for format in Format::ALL {
        let mut copy = Vec::new();
        match trace.write(format, Compression::None, &mut copy) {
            Ok(()) => {}
            Err(SimError::Trace(_)) if format == Format::Ramulator => continue,
            Err(error) => panic!("{format}: {error}"),
        }
        let back = Trace::read_as(format, "fuzz", &copy[..]).unwrap();
        assert_eq!(back.records(), trace.records());
        if format == Format::Binary && file.starts_with(START) {
            assert_eq!(copy, file);
        }
    }
});

fn framed(records: &[u8]) -> Vec<u8> {
    let body = [START, records].concat();
    let sum = crc32fast::hash(&body).to_le_bytes();
    [body, sum.to_vec()].concat()
}
