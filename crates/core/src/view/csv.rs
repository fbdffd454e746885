//! A view as comma-separated values: one event per line, after a header line.
//!
//! | column | contents |
//! |---|---|
//! | `order` | running number of the event, from 0 |
//! | `trip` | running number of the call |
//! | `operation` | `prefetch`, `read`, `write` or `flush` |
//! | `tree` | number of the tree |
//! | `level`, `index` | place of the bucket: the path to leaf `l` passes index `l mod 2^level` |
//! | `bucket` | number of the bucket, unique in the tree |
//! | `part` | `whole`, `header`, or `slot 0`, `slot 1`, … |
//! | `bytes` | bytes that moved |
//! | `micros` | time of the call, in microseconds since the start of the recording |
//! | `party` | the share server that saw the event, from 1 |
//!
//! The root is level 0. Columns from `tree` to `part` are empty for a flush. `micros` is empty if
//! times were not recorded, and `party` if storage is a single store or all servers saw the event.
//!
//! The operation of a message between share servers is `send` or `receive`. `tree` is the tree
//! whose path is evicted, if the server knew it, `level` the level being written, and `part` is
//! `part 0`, `part 1`, … of every block. These messages have additional columns:
//!
//! | column | contents |
//! |---|---|
//! | `partner` | the other server |
//! | `eviction`, `attempt` | the numbers of the eviction and of the attempt |
//! | `shares`, `seeds` | number of shares in the message, and how many of them are seeds |
//!
//! No field needs quotes.

use alloc::string::{String, ToString};
use std::io::{self, Write};

use super::{Event, Observed, PeerMessage, ViewServers, server_of_view_tree, view_tree};
use crate::pieces::{Part, Piece};

/// The header line of a CSV file of events.
pub const HEADER: &str = "order,trip,operation,tree,level,index,bucket,part,bytes,micros,party,\
    partner,eviction,attempt,shares,seeds";

/// Writes the header line, then one line per event or message, in order. `observed` yields each
/// item with its time in microseconds since the start of the recording, if known. `servers` are the
/// share servers of the view, if any.
///
/// # Errors
/// Any error of `out`, and the first error that `observed` yields.
pub fn write_csv<E: From<io::Error>>(
    observed: impl IntoIterator<Item = Result<(Observed, Option<u64>), E>>,
    servers: Option<ViewServers>,
    mut out: impl Write,
) -> Result<(), E> {
    writeln!(out, "{HEADER}")?;
    for (order, observed) in observed.into_iter().enumerate() {
        let (observed, micros) = observed?;
        write!(out, "{order},{},", observed.trip())?;
        match observed {
            Observed::Event(event) => write_event(&event, micros, servers, &mut out)?,
            Observed::PeerMessage(exchange) => write_exchange(&exchange, micros, &mut out)?,
        }
    }
    Ok(())
}

fn write_event(
    event: &Event,
    micros: Option<u64>,
    servers: Option<ViewServers>,
    out: &mut impl Write,
) -> io::Result<()> {
    let Event { operation, piece, bytes, .. } = event;
    write!(out, "{},", operation.name())?;
    match piece {
        Some(piece) => write_piece(piece, out)?,
        None => write!(out, ",,,,")?,
    }
    write!(out, ",{bytes},{},", shown(micros))?;
    let party = servers.and(piece.as_ref()).and_then(|piece| server_of_view_tree(piece.tree));
    writeln!(out, "{},,,,,", shown(party.map(|(party, _)| party)))
}

fn write_exchange(
    exchange: &PeerMessage,
    micros: Option<u64>,
    out: &mut impl Write,
) -> io::Result<()> {
    let PeerMessage { party, partner, eviction, attempt, round, part, .. } = exchange;
    let tree = exchange.tree.map(|tree| view_tree(*party, tree).0);
    write!(out, "{},{},{round},,,part {part},", exchange.direction.name(), shown(tree))?;
    write!(out, "{},{},{party},{partner},{eviction},{attempt},", exchange.bytes, shown(micros))?;
    writeln!(out, "{},{}", exchange.shares, exchange.seeds)
}

/// The text of a field; empty for `None`.
fn shown(number: Option<impl ToString>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
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
    use crate::view::{Direction, Operation};

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
            let event = Event { trip, operation, piece, bytes };
            (Observed::Event(event), (trip > 10).then_some(1000 * trip))
        });
        let mut text = Vec::new();
        write_csv(events.map(Ok::<_, io::Error>), None, &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "order,trip,operation,tree,level,index,bucket,part,bytes,micros,party,\
             partner,eviction,attempt,shares,seeds\n\
             0,10,read,3,0,0,0,whole,96,,,,,,,\n\
             1,11,write,3,2,3,6,header,24,11000,,,,,,\n\
             2,12,prefetch,3,1,1,2,slot 7,0,12000,,,,,,\n\
             3,13,flush,,,,,,0,13000,,,,,,\n"
        );
    }

    #[test]
    fn lines_of_servers_name_them() {
        let piece = Piece { tree: view_tree(2, 1), bucket: BucketId::ROOT, part: Part::Whole };
        let event = Event { trip: 0, operation: Operation::Read, piece: Some(piece), bytes: 9 };
        let sent = PeerMessage {
            trip: 1,
            party: 2,
            direction: Direction::Sent,
            partner: 3,
            tree: Some(1),
            eviction: 5,
            attempt: 6,
            round: 4,
            part: 7,
            shares: 2,
            seeds: 1,
            bytes: 100,
        };
        let received = PeerMessage { direction: Direction::Received, tree: None, ..sent };
        let all =
            [Observed::Event(event), Observed::PeerMessage(sent), Observed::PeerMessage(received)];
        let mut text = Vec::new();
        let all = all.map(|it| Ok::<_, io::Error>((it, Some(8))));
        write_csv(all, ViewServers::new(3, 1), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "0,0,read,111,0,0,0,whole,9,8,2,,,,,",
                "1,1,send,111,4,,,part 7,100,8,2,3,5,6,2,1",
                "2,1,receive,,4,,,part 7,100,8,2,3,5,6,2,1",
            ]
        );
        assert!(text.lines().all(|line| line.split(',').count() == 16));
    }
}
