use proptest::prelude::*;

use super::{MAGIC, VERSION};
use crate::trace::tests::{any_trace, read, record, written};
use crate::trace::{AccessKind, Compression, Format, NAME_BYTES_MAX, RECORDS_MAX, Trace};

fn to_bytes(trace: &Trace) -> Vec<u8> {
    written(trace, Format::Binary, Compression::None)
}

fn small() -> Trace {
    let records = vec![
        record(3, AccessKind::Read, 10),
        record(0, AccessKind::Write, 9),
        record(300, AccessKind::Read, 73),
    ];
    Trace::new("a", records).unwrap()
}

/// Makes a file with these bytes after the version, and a matching checksum.
fn file(after_version: &[u8]) -> Vec<u8> {
    let body = [&MAGIC[..], &[VERSION], after_version].concat();
    let sum = crc32fast::hash(&body).to_le_bytes();
    [body, sum.to_vec()].concat()
}

/// Checks the encoding of a trace against bytes made by hand. Another program (zlib) computed the
/// checksum.
#[test]
fn the_bytes_of_a_trace_are_these() {
    let bytes = b"OBLTRACE\x01\x01a\x03\x06\x14\x01\x01\xd8\x04\x80\x01\x53\xd4\xca\x17";
    assert_eq!(to_bytes(&small()), bytes);
    assert_eq!(read(bytes), Ok(small()), "its own name is used");
}

#[test]
fn invalid_contents_are_refused_despite_a_right_checksum() {
    assert!(read(file(b"\0\x01\x02\x02")).is_ok());
    let long_name = [&[0x81, 0x08][..], &[b'a'; NAME_BYTES_MAX + 1], b"\x01\0\0"].concat();
    let too_many = [&b"\0"[..], &[0x81, 0x80, 0x80, 0x20], b"\0\0"].concat();
    let large_gap = [&b"\0\x01"[..], &[0x80, 0x80, 0x80, 0x80, 0x20], b"\0"].concat();
    let large_line =
        [&b"\0\x01\0"[..], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 8]].concat();
    for (after_version, why) in [
        (&b"\0\0"[..], "from 1 to 67108864 records"),
        (&too_many, "claims 67108865"),
        (&long_name, "a name has at most 1024 bytes"),
        (b"\x02a\n\x01\0\0", "control characters"),
        (b"\x01\xff\x01\0\0", "not UTF-8"),
        (b"\0\x81\0\0\0", "longer than it must be"),
        (
            b"\0\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\0",
            "record 1, byte 21: a number exceeds 64",
        ),
        (&large_gap, "record 1, byte 16: a gap is at most 4294967295"),
        (b"\0\x01\0\x01", "record 1, byte 13: a line is below"),
        (&large_line, "a line is below 288230376151711744"),
        (b"\0\x02\0\0", "ends too early"),
        (b"\0\x01\0\0\0", "wrong checksum"),
    ] {
        let error = read(file(after_version)).unwrap_err();
        assert!(error.contains(why), "{after_version:x?}: {error}");
    }
    let mut newer = to_bytes(&small());
    newer[MAGIC.len()] = VERSION + 1;
    assert!(read(newer).unwrap_err().contains("use a newer program"));
    assert_eq!(RECORDS_MAX, 67_108_864);
}

#[test]
fn no_bit_can_be_flipped() {
    let bytes = to_bytes(&small());
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(read(flipped).is_err(), "bit {bit}");
    }
}

proptest! {
    #[test]
    fn truncated_or_extended_files_are_refused(trace in any_trace(), more: u8) {
        let bytes = to_bytes(&trace);
        for length in 0..bytes.len() {
            prop_assert!(read(&bytes[..length]).is_err());
        }
        let error = read([bytes, vec![more]].concat()).unwrap_err();
        prop_assert!(error.contains("bytes after the end"), "{}", error);
    }

    /// Checks that each trace has exactly one encoding: a file that can be read is written back
    /// with the same bytes.
    #[test]
    fn a_valid_file_is_written_back_with_the_same_bytes(
        after_version in prop::collection::vec(any::<u8>(), 0..12)
    ) {
        let bytes = file(&[&b"\0\x02"[..], &after_version].concat());
        if let Ok(trace) = read(&bytes) {
            prop_assert_eq!(to_bytes(&trace), bytes);
        }
    }
}
