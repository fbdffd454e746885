//! Messages and frames between a client and a bucket server, from any bytes.
//!
//! Each message has exactly one encoding, so a message that can be decoded encodes to the same
//! bytes. The exception is a hello or a welcome of another version, which may contain more than is
//! read. The memory allocated is at most a small multiple of the received bytes, plus a constant.
#![no_main]

#[path = "support/counted.rs"]
mod counted;

use counted::check_allocations;
use libfuzzer_sys::fuzz_target;
use oblivio_wire::message::{MESSAGE_BYTES_MAX, VERSION};
use oblivio_wire::{Answer, Request, frame};

/// Bytes of memory allowed per byte of a message.
const COPIES: usize = 4;

/// Bytes of memory allowed for any message, in addition to [`COPIES`] per byte. They cover lists of
/// tiny items, whose number is limited.
const MESSAGE_BYTES: usize = 16 << 10;

/// Bytes of memory allowed for any frame, in addition to [`COPIES`] per byte, even if little of the
/// frame arrives.
const FRAME_BYTES: usize = 64 << 10;

fuzz_target!(|input: &[u8]| {
    check_one_encoding(input);
    // As frames, with lengths from the fuzzer.
    let mut rest = input;
    loop {
        let bytes_max = FRAME_BYTES + COPIES * rest.len();
        let before = rest.len();
        let received =
            check_allocations(bytes_max, || frame::receive(&mut rest, MESSAGE_BYTES_MAX));
        let Ok(Some(message)) = received else { break };
        assert_eq!(before - rest.len(), frame::LENGTH_BYTES + message.len());
        check_one_encoding(&message);
    }
});

fn check_one_encoding(message: &[u8]) {
    let bytes_max = MESSAGE_BYTES + COPIES * message.len();
    match check_allocations(bytes_max, || Request::decode(message)) {
        Ok(Request::Hello { version }) if version != VERSION => (),
        Ok(request) => assert_eq!(request.encode(), message),
        Err(_) => (),
    }
    match check_allocations(bytes_max, || Answer::decode(&message.to_vec().into())) {
        Ok(Answer::Welcome { version }) if version != VERSION => (),
        Ok(answer) => assert_eq!(answer.encode(), message),
        Err(_) => (),
    }
}
