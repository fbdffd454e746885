//! Checks that `docs/protocol.md` shows the frames that are actually sent.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use bytes::Bytes;
use oblivio_core::BucketId;
use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_wire::frame;
use oblivio_wire::message::{Answer, Request, VERSION};

const PAGE: &str = include_str!("../../../docs/protocol.md");

/// Formats the frame of `message` as a hex dump in the style of `xxd`, with sixteen bytes per line.
fn dump(message: &[u8]) -> String {
    let mut sent = Vec::new();
    frame::send(&mut sent, message).unwrap();
    let lines = sent.chunks(16).enumerate().map(|(line, bytes)| {
        let pairs = bytes.chunks(2).map(|pair| pair.iter().map(hex).collect());
        let pairs = pairs.collect::<Vec<String>>().join(" ");
        let text: String = bytes.iter().map(|byte| shown(*byte)).collect();
        format!("{:08x}: {pairs:39}  {text}\n", line * 16)
    });
    lines.collect()
}

fn hex(byte: &u8) -> String {
    format!("{byte:02x}")
}

fn shown(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { byte.into() } else { '.' }
}

#[test]
fn the_frames_of_the_page_are_those_that_are_sent() {
    let piece = |tree, level, index, part| Piece {
        tree: TreeId(tree),
        bucket: BucketId::new(level, index),
        part,
    };
    let pieces = vec![piece(2, 6, 3, Part::Slot(4)), piece(4, 6, 3, Part::Header)];
    let frames = [
        Request::Hello { version: VERSION }.encode(),
        Request::Read { number: 7, pieces }.encode(),
        Answer::Data { number: 7, bytes: Bytes::from_static(&[0xa5; 6]) }.encode(),
    ];
    for frame in frames {
        let dump = dump(&frame);
        assert!(
            PAGE.contains(&format!("```text\n{dump}```")),
            "docs/protocol.md does not contain this frame:\n{dump}"
        );
    }
}
