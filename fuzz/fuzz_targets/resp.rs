//! Replies of a Redis server, from any bytes in any portions.
//!
//! The replies do not depend on the portions, and a reply that is decoded encodes to bytes that
//! decode to the same reply. The memory allocated is a small multiple of the received bytes and of
//! the limit.
#![no_main]

#[path = "support/counted.rs"]
mod counted;

use counted::check_allocations;
use libfuzzer_sys::fuzz_target;
use oblivio_store::objects::resp::{Decoder, Invalid, Reply};

/// Bytes of memory allowed per byte: an item of an array takes three bytes on the wire and 40 in
/// memory, and a growing array is copied.
const COPIES: usize = 64;

/// Bytes of memory allowed for any input.
const SMALL_BYTES: usize = 32 << 10;

fuzz_target!(|input: &[u8]| {
    let Some(([limit, portion], bytes)) = input.split_first_chunk() else { return };
    let bytes_max = usize::from(*limit) * 64;
    let portion = usize::from(*portion) + 1;
    let allowed = SMALL_BYTES + bytes_max + COPIES * bytes.len();
    let replies = check_allocations(allowed, || decode(bytes.chunks(portion), bytes_max));
    assert_eq!(replies, decode(bytes.chunks(usize::MAX), bytes_max));
    for reply in replies.0 {
        let mut encoded = Vec::new();
        reply.encode(&mut encoded);
        // A line or a number may have had a shorter form than the encoder's.
        let again = decode(encoded.chunks(usize::MAX), 2 * encoded.len());
        assert_eq!(again, (vec![reply], None));
    }
});

/// The replies in `portions`, and the reason why the rest was refused.
fn decode<'a>(
    portions: impl Iterator<Item = &'a [u8]>,
    bytes_max: usize,
) -> (Vec<Reply>, Option<Invalid>) {
    let mut decoder = Decoder::default();
    let mut replies = Vec::new();
    for portion in portions {
        decoder.feed(portion);
        loop {
            match decoder.next(bytes_max) {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(invalid) => return (replies, Some(invalid)),
            }
        }
    }
    (replies, None)
}
