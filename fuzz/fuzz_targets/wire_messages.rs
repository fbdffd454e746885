//! What a client says to a bucket server, and what a server answers: messages and frames that may be any bytes.
//!
//! There is one way to say a thing, so whatever is understood is said again in the same bytes. The one exception is
//! a hello or a welcome of another version, which may say more than is read. Whatever the bytes claim, the memory that
//! is taken for them is a small multiple of what came.
#![no_main]

#[path = "support/counted.rs"]
mod counted;

use counted::check_allocations;
use libfuzzer_sys::fuzz_target;
use oblivio_wire::message::{MESSAGE_BYTES_MAX, VERSION};
use oblivio_wire::{Answer, Request, frame};

/// Memory for a byte of a message.
const COPIES: usize = 4;

/// Memory for a message however short: lists of what takes next to nothing in a message are bounded by their number.
const MESSAGE_BYTES: usize = 16 << 10;

/// Memory for a frame however little of it comes.
const FRAME_BYTES: usize = 64 << 10;

fuzz_target!(|input: &[u8]| {
    is_said_in_one_way(input);
    // As frames, with the lengths that the fuzzer likes.
    let mut rest = input;
    loop {
        let bytes_max = FRAME_BYTES + COPIES * rest.len();
        let before = rest.len();
        let received =
            check_allocations(bytes_max, || frame::receive(&mut rest, MESSAGE_BYTES_MAX));
        let Ok(Some(message)) = received else { break };
        assert_eq!(before - rest.len(), frame::LENGTH_BYTES + message.len());
        is_said_in_one_way(&message);
    }
});

fn is_said_in_one_way(message: &[u8]) {
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
