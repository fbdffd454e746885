//! A view as comma-separated values: one event a line, after a line of names.
//!
//! | column | holds |
//! |---|---|
//! | `order` | running number of the event, from 0 |
//! | `trip` | running number of the call |
//! | `operation` | `prefetch`, `read`, `write` or `flush` |
//! | `tree` | number of the tree |
//! | `level`, `index` | place of the bucket: the root is level 0; the path to leaf `l` passes index `l mod 2^level` |
//! | `bucket` | its unique number in the tree |
//! | `part` | `whole`, `header`, or `slot 0`, `slot 1`, … |
//! | `bytes` | bytes that moved |
//! | `micros` | when the call came, in microseconds after the beginning of the recording |
//!
//! Columns from `tree` to `part` are empty for a flush, and `micros` where nobody recorded it. Nothing needs quotes.

use std::io::{self, Write};

use super::Event;
use crate::pieces::{Part, Piece};

/// The first line.
pub const HEADER: &str = "order,trip,operation,tree,level,index,bucket,part,bytes,micros";

/// Writes the header line and a line for each event, as they come, each with the microseconds after the beginning if they are known.
///
/// # Errors
/// Any of `out`, and the first of `events`.
pub fn write_csv<E: From<io::Error>>(
    events: impl IntoIterator<Item = Result<(Event, Option<u64>), E>>,
    mut out: impl Write,
) -> Result<(), E> {
    writeln!(out, "{HEADER}")?;
    for (order, event) in events.into_iter().enumerate() {
        let (Event { trip, operation, piece, bytes }, micros) = event?;
        write!(out, "{order},{trip},{},", operation.name())?;
        match piece {
            Some(piece) => write_piece(&piece, &mut out)?,
            None => write!(out, ",,,,")?,
        }
        match micros {
            Some(micros) => writeln!(out, ",{bytes},{micros}")?,
            None => writeln!(out, ",{bytes},")?,
        }
    }
    Ok(())
}

fn write_piece(piece: &Piece, out: &mut impl Write) -> io::Result<()> {
    let Piece { tree, bucket, part } = piece;
    write!(out, "{},{},{},{},", tree.0, bucket.level(), bucket.index(), bucket.0)?;
    match part {
        Part::Whole => write!(out, "whole"),
        Part::Header => write!(out, "header"),
        Part::Slot(slot) => write!(out, "slot {slot}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::BucketId;
    use crate::pieces::TreeId;
    use crate::view::Operation;

    #[test]
    fn one_line_for_each_event() {
        let piece = |level, index, part| {
            Some(Piece { tree: TreeId(3), bucket: BucketId::new(level, index), part })
        };
        let events = [
            (Operation::Read, piece(0, 0, Part::Whole), 96),
            (Operation::Write, piece(2, 3, Part::Header), 24),
            (Operation::Prefetch, piece(1, 1, Part::Slot(7)), 0),
            (Operation::Flush, None, 0),
        ];
        let events = (10..).zip(events).map(|(trip, (operation, piece, bytes))| {
            (Event { trip, operation, piece, bytes }, (trip > 10).then_some(1000 * trip))
        });
        let mut text = Vec::new();
        write_csv(events.map(Ok::<_, io::Error>), &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "order,trip,operation,tree,level,index,bucket,part,bytes,micros\n\
             0,10,read,3,0,0,0,whole,96,\n\
             1,11,write,3,2,3,6,header,24,11000\n\
             2,12,prefetch,3,1,1,2,slot 7,0,12000\n\
             3,13,flush,,,,,,0,13000\n"
        );
    }
}
