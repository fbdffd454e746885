use oblivio_core::BucketId;
use oblivio_core::store::{Capabilities, Part, Piece, TreeId};
use oblivio_core::view::{Event, EventSink, FileSink};

use super::*;
use crate::drawing::text_boxes::texts_apart;

/// A view of accesses to a tree, with an eviction after every third access.
fn view(accesses: u64, level: u8) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut sink = FileSink::new(file, Capabilities::NONE, None);
    let mut trip = 0;
    let mut call = |operation, leaf: u64, sink: &mut FileSink<_>| {
        sink.set_micros(trip * 1000);
        for level in 1..=level {
            let bucket = BucketId::new(level, leaf & ((1 << level) - 1));
            let piece = Some(Piece { tree: TreeId(2), bucket, part: Part::Whole });
            sink.record(&Event { trip, operation, piece, bytes: 1 }, &[]);
        }
        trip += 1;
    };
    for access in 0..accesses {
        call(Operation::Read, access.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40, &mut sink);
        if access % 3 == 2 {
            call(Operation::Write, access / 3, &mut sink);
        }
    }
    sink.finish().unwrap()
}

#[test]
fn no_text_overlaps_another_however_long_the_view_is() {
    for (accesses, level) in [(1, 2), (50, 3), (3000, 12), (100_000, 20)] {
        let file = view(accesses, level);
        let evaluation = ViewEvaluation::read(&[file.path().to_owned()], &[], None).unwrap();
        let (summary, mut svg) = (evaluation.summary.as_ref().unwrap(), String::new());
        draw_panels(&mut svg, &evaluation, summary, &evaluation.counts.trees[&2]).unwrap();
        let texts = texts_apart(&svg, SIZE);
        for part in ["What storage saw of tree 2", "Each level", "When"] {
            assert!(texts.iter().any(|text| text == part), "{part} is not in {texts:?}");
        }
        let says_p = texts.iter().any(|text| text.starts_with("Leaves: p ="));
        assert_eq!(says_p, accesses > 50, "{texts:?}");
    }
}
