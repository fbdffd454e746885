//! Trace files: reading, errors, and round trips.

use std::io::{BufReader, Cursor, Read, Write};

use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::text::{self, TextFormat};
use super::*;

pub(super) fn read(file: impl AsRef<[u8]>) -> Result<Trace, String> {
    Trace::read("a.trace", file.as_ref()).map_err(|error| error.to_string())
}

pub(super) fn written(trace: &Trace, format: Format, compression: Compression) -> Vec<u8> {
    let mut bytes = Vec::new();
    trace.write(format, compression, &mut bytes).unwrap();
    bytes
}

pub(super) fn record(gap: u32, kind: AccessKind, line: u64) -> Record {
    Record { gap, kind, line }
}

/// Generates records with numbers of all lengths, not mostly the longest.
fn any_record() -> impl Strategy<Value = Record> {
    let kind = prop_oneof![Just(AccessKind::Read), Just(AccessKind::Write)];
    (any::<u32>(), 0u32..32, kind, 0..LINES_MAX, 0u32..58).prop_map(
        |(gap, gap_shift, kind, line, line_shift)| {
            record(gap >> gap_shift, kind, line >> line_shift)
        },
    )
}

pub(super) fn any_trace() -> impl Strategy<Value = Trace> {
    let records = prop::collection::vec(any_record(), 1..60);
    records.prop_map(|records| Trace::new("a.trace", records).unwrap())
}

/// Generates traces that Ramulator's format can hold.
fn any_ramulator_trace() -> impl Strategy<Value = Trace> {
    any_trace().prop_map(|mut trace| {
        let mut after_read = false;
        for record in &mut trace.records {
            if !after_read {
                record.kind = AccessKind::Read;
            }
            after_read = record.kind == AccessKind::Read;
            record.gap *= u32::from(after_read);
        }
        trace
    })
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text).unwrap();
    packer.finish().unwrap()
}

/// The lines `1 64` and `2 128 192`, and then `5 640`: two frames written by zstd 1.5.4, with
/// checksums.
const ZSTD_FRAMES: [&[u8]; 2] = [
    b"\x28\xb5\x2f\xfd\x24\x0f\x79\0\x001 64\n2 128 192\n\xbf\xfc\xe5\x18",
    b"\x28\xb5\x2f\xfd\x04\x58\x31\0\x005 640\n\x6a\xd4\x57\xe4",
];

#[test]
fn a_record_of_ramulator_is_a_read_and_then_its_write_back() {
    let trace = read("3 640\n0 18446744073709551615 64\r\n7 0").unwrap();
    let expected = [
        record(3, AccessKind::Read, 10),
        record(0, AccessKind::Read, LINES_MAX - 1),
        record(0, AccessKind::Write, 1),
        record(7, AccessKind::Read, 0),
    ];
    assert_eq!(trace.records(), expected);
    assert_eq!((trace.name(), trace.instructions()), ("a.trace", 13));
    let text = "3 640\n0 18446744073709551552 64\n7 0\n";
    assert_eq!(written(&trace, Format::Ramulator, Compression::None), text.as_bytes());
}

#[test]
fn a_record_of_usimm_reads_or_writes() {
    let trace =
        read("12 R 0x7fAb40 0x400a12\n0\tW   7f\n4294967295 R ffffffffffffffff \r\n").unwrap();
    let expected = [
        record(12, AccessKind::Read, 0x1fead),
        record(0, AccessKind::Write, 1),
        record(u32::MAX, AccessKind::Read, LINES_MAX - 1),
    ];
    assert_eq!(trace.records(), expected);
    let text = "12 R 0x7fab40\n0 W 0x40\n4294967295 R 0xffffffffffffffc0\n";
    assert_eq!(written(&trace, Format::Usimm, Compression::None), text.as_bytes());
}

#[test]
fn a_compressed_trace_is_the_same_trace() {
    let text = "1 64\n2 128 192\n".repeat(5000).into_bytes();
    let in_two_parts = [packed(&text[..7]), packed(&text[7..])].concat();
    assert_eq!(read(in_two_parts), read(&text));
    assert_eq!(read(packed(&text)), read(&text));
    let zstd = ruzstd::encoding::compress_to_vec(
        Cursor::new(&text),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    assert!(zstd.len() < text.len() / 10);
    assert_eq!(read(zstd), read(&text));
    assert_eq!(read(ZSTD_FRAMES.concat()), read("1 64\n2 128 192\n5 640\n"));
}

#[test]
fn damaged_or_truncated_files_are_refused() {
    let text = "1 64\n".repeat(9);
    let mut damaged = ZSTD_FRAMES.concat();
    // The checksum of the first frame, and one of its bytes.
    for place in [26, 12] {
        damaged[place] ^= 1;
        assert!(read(&damaged).unwrap_err().contains("wrong zstd checksum"));
        damaged[place] ^= 1;
    }
    let whole = [packed(text.as_bytes()), damaged.clone()];
    for whole in whole {
        for length in (5..whole.len()).filter(|length| *length != ZSTD_FRAMES[0].len()) {
            let error = read(&whole[..length]).unwrap_err();
            assert!(error.contains("cannot be read"), "{length}: {error}");
        }
    }
}

#[test]
fn an_invalid_record_is_refused_with_its_line() {
    let long = format!("1 64\n{}5 64\n", "0".repeat(200));
    let cut = format!("1 64\n5 64{}\n", " ".repeat(200));
    let ramulator = [
        "1 64\n5\n",
        "1 64\n1 2 3 4",
        "1 64\n\n1 64",
        "1 64\n1 -5",
        "1 64\n1 +5",
        "1 64\n1 0x40",
        "1 64\n1  5",
        "1 64\n1 R 40",
        "1 64\n4294967296 5",
        "1 64\n1 18446744073709551616",
        &long,
        &cut,
    ];
    let usimm = [
        "1 R 40\n1 64",
        "1 R 40\n1 R",
        "1 R 40\n1 R 0x",
        "1 R 40\n1 r 40",
        "1 R 40\n1 W 40 400a12",
        "1 R 40\n1 R 40 pc",
        "1 R 40\n1 R 40 50 60",
        "1 R 40\n1 R -40",
        "1 R 40\n1 R 0x+40",
        "1 R 40\n1 R 10000000000000000",
        "1 R 40\n-1 R 40",
        "1 R 40\n4294967296 R 40",
        "1 R 40\n\n",
    ];
    for (files, form) in [(&ramulator[..], "(Ramulator)"), (&usimm[..], "(USIMM)")] {
        for text in files {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("a.trace, line 2: not a trace record"), "{text:?}: {error}");
            assert!(
                error.contains("; a record is `") && error.ends_with(form),
                "{text:?}: {error}"
            );
        }
    }
    let of_gap = read("1 R 40\n4294967296 R 40").unwrap_err();
    assert!(of_gap.contains("(its gap is 2^32 or more)"), "{of_gap}");
    let of_mark = read("\u{feff}1 R 40\n").unwrap_err();
    assert!(of_mark.contains("byte order mark: save the file as UTF-8 without one"), "{of_mark}");
    assert!(!read("1 R 40\n1 r 40").unwrap_err().contains("not a trace record ("));
    let error = read([b'1', 0xff]).unwrap_err();
    assert!(error.starts_with("a.trace, line 1: ") && error.contains("(USIMM), or"), "{error}");
    assert!(read("").unwrap_err().contains("line 1: the trace is empty"));
    assert!(Trace::read("a\x1bb", &b"1 64"[..]).is_err());
}

#[test]
fn a_given_format_is_the_only_one_accepted() {
    let trace = read("1 64\n2 128 192\n").unwrap();
    for (format, line) in [(Format::Usimm, "line 1"), (Format::Binary, "byte 8")] {
        let error = Trace::read_as(format, "a", &b"1 64\n2 64\n"[..]).unwrap_err().to_string();
        assert!(error.contains(line), "{error}");
    }
    for format in Format::ALL {
        let file = written(&trace, format, Compression::Gzip);
        assert_eq!(Trace::read_as(format, "a.trace", &file[..]).unwrap(), trace, "{format}");
        let is_found = Trace::read_as(Format::Ramulator, "a.trace", &file[..]).is_ok();
        assert_eq!(is_found, format == Format::Ramulator);
    }
}

#[test]
fn a_file_of_too_many_records_is_not_read_to_its_end() {
    let endless = BufReader::new(std::io::repeat(b'1').take(1 << 20).chain(std::io::repeat(b'\n')));
    assert!(text::read("a", None, endless, 9).is_err(), "its first line is too long");
    let lines = "1 64 128\n".repeat(6);
    for (records_max, fits) in [(12, true), (11, false), (10, false)] {
        let read = text::read("a", Some(TextFormat::Ramulator), lines.as_bytes(), records_max);
        let error = read.map_err(|error| error.to_string());
        assert_eq!(error.is_ok(), fits);
        assert!(fits || error.unwrap_err().contains("line 6: more than"));
    }
}

#[test]
fn invalid_traces_cannot_be_made() {
    let one = vec![record(0, AccessKind::Read, 0)];
    assert!(Trace::new("a", Vec::new()).is_err());
    assert!(Trace::new("a", vec![record(0, AccessKind::Read, LINES_MAX)]).is_err());
    assert!(Trace::new("a\n", one.clone()).is_err());
    assert!(Trace::new("a".repeat(NAME_BYTES_MAX + 1), one.clone()).is_err());
    assert!(Trace::new("a".repeat(NAME_BYTES_MAX), one).is_ok());
}

#[test]
fn ramulator_cannot_hold_writes_without_a_read() {
    let (read, write) = (record(1, AccessKind::Read, 1), record(0, AccessKind::Write, 2));
    for (records, number) in [
        (vec![write], 1),
        (vec![read, write, write], 3),
        (vec![read, read, Record { gap: 1, ..write }], 3),
    ] {
        let trace = Trace::new("a.trace", records).unwrap();
        let mut out = Vec::new();
        let error = trace.write(Format::Ramulator, Compression::None, &mut out).unwrap_err();
        assert!(error.to_string().starts_with(&format!("a.trace, record {number}: ")), "{error}");
        assert!(out.is_empty());
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(trace in any_trace(), ramulator in any_ramulator_trace()) {
        for compression in [Compression::None, Compression::Gzip] {
            for (format, trace) in
                [(Format::Usimm, &trace), (Format::Ramulator, &ramulator), (Format::Binary, &trace)]
            {
                let file = written(trace, format, compression);
                let back = read(file);
                prop_assert_eq!(back.as_ref(), Ok(trace), "{}", format);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        start in prop::sample::select(vec![
            &b""[..], b"1 64\n", b"1 R 40\n", b"OBLTRACE\x01\0", b"\x1f\x8b\x08\0", ZSTD_FRAMES[0],
            &ZSTD_FRAMES[0][..4], &ZSTD_FRAMES[0][..9],
        ]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Err(error) = read([start, &bytes].concat()) {
            prop_assert!(error.starts_with("a.trace, "), "{}", error);
        }
    }
}
