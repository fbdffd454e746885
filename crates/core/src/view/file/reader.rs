//! Reads view files. Their bytes are untrusted.

use alloc::format;
use alloc::string::String;
use std::io::{BufRead, BufReader, Read};

use super::ViewFileErrorKind::{NotAView, OutOfRange, TrailingBytes, Truncated, UnknownVersion};
use super::{
    END_TAG, MAGIC, RECEIVED_TAG, SENT_TAG, TIME_TAG, VERSION, VERSION_WITHOUT_CAPABILITIES,
    VERSION_WITHOUT_SERVERS, VERSION_WITHOUT_TIMES, ViewFileError, part_code,
};
use crate::geometry::{BucketId, LEAF_LEVEL_MAX};
use crate::pieces::{Part, Piece, TreeId};
use crate::store::Capabilities;
use crate::view::{
    Direction, Event, Observed, Operation, PeerMessage, TREES_OF_SERVER_MAX, ViewServers,
};

/// Opens a view file. The memory that reading uses is bounded, even if the file is malicious.
///
/// # Errors
/// If the file does not start like a view file of a known version, or cannot be read.
pub fn read_view<R: Read>(input: R) -> Result<ViewReader<R>, ViewFileError> {
    let mut input = Input { bytes: BufReader::new(input), offset: 0 };
    for expected in MAGIC {
        if input.byte()? != expected {
            return Err(ViewFileError::new(0, NotAView, "this is not a view file"));
        }
    }
    let version = input.byte()?;
    let capabilities = match version {
        VERSION | VERSION_WITHOUT_SERVERS | VERSION_WITHOUT_TIMES => Some(input.capabilities()?),
        VERSION_WITHOUT_CAPABILITIES => None,
        _ => {
            return Err(ViewFileError::new(
                MAGIC.len() as u64,
                UnknownVersion,
                format!(
                    "the version is {version}, and versions up to {VERSION} are known: use a newer \
                     reader"
                ),
            ));
        }
    };
    let servers = if version == VERSION { input.servers()? } else { None };
    let micros = (version >= VERSION_WITHOUT_SERVERS).then_some(0);
    Ok(ViewReader { input, capabilities, servers, events: 0, last_trip: 0, micros, ended: false })
}

/// The events and messages of a view file, in order. An error is the last item.
pub struct ViewReader<R> {
    input: Input<R>,
    capabilities: Option<Capabilities>,
    servers: Option<ViewServers>,
    events: u64,
    last_trip: u64,
    /// The time of the latest event or message, in microseconds since the start of the recording,
    /// if the file has times.
    micros: Option<u64>,
    ended: bool,
}

impl<R: Read> Iterator for ViewReader<R> {
    type Item = Result<Observed, ViewFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let observed = self.observed().transpose();
        self.ended = !matches!(observed, Some(Ok(_)));
        observed
    }
}

impl<R: Read> ViewReader<R> {
    /// The capabilities of the recorded store. `None` for files of version 1.
    pub fn capabilities(&self) -> Option<Capabilities> {
        self.capabilities
    }

    /// The share servers of the view. `None` if storage is a single store, or if the version of the
    /// file is below 4.
    pub fn servers(&self) -> Option<ViewServers> {
        self.servers
    }

    /// The time of the latest item, in microseconds since the start of the recording. `None` for
    /// files of versions 1 and 2.
    pub fn micros(&self) -> Option<u64> {
        self.micros
    }

    /// Reads the next item. `None` at a valid end of the file.
    fn observed(&mut self) -> Result<Option<Observed>, ViewFileError> {
        let mut at = self.input.offset;
        let mut tag = self.input.byte()?;
        let is_timed = tag == TIME_TAG && self.micros.is_some();
        if is_timed {
            self.pass_time()?;
            at = self.input.offset;
            tag = self.input.byte()?;
        }
        if tag == END_TAG && !is_timed {
            return self.end().map(|()| None);
        }
        let direction = match tag {
            SENT_TAG => Some(Direction::Sent),
            RECEIVED_TAG => Some(Direction::Received),
            _ => None,
        };
        let servers = self.servers;
        let observed = match (servers, direction) {
            (Some(servers), Some(direction)) => {
                let trip = self.trip(is_timed)?;
                Observed::PeerMessage(self.exchange(trip, direction, servers)?)
            }
            _ if tag <= 0x0F => Observed::Event(self.event(at, tag, is_timed)?),
            _ => return Err(out_of_range(at, format!("{tag:#04x} is not the tag of an event"))),
        };
        self.last_trip = observed.trip();
        self.events += 1;
        Ok(Some(observed))
    }

    /// Reads the running number of a call or message. If `is_timed`, a time came before it, so the
    /// number must be new.
    fn trip(&mut self, is_timed: bool) -> Result<u64, ViewFileError> {
        let at = self.input.offset;
        let step = self.input.number()?;
        if is_timed && step == 0 && self.events > 0 {
            return Err(out_of_range(at, "a time is inside a trip"));
        }
        Ok(self.last_trip.wrapping_add(step))
    }

    /// Reads an event, whose tag `tag` was at offset `at`.
    fn event(&mut self, at: u64, tag: u8, is_timed: bool) -> Result<Event, ViewFileError> {
        let operation = Operation::ALL[usize::from(tag & 3)];
        let part = tag >> 2;
        if (operation == Operation::Flush) != (part == part_code::NONE) {
            return Err(out_of_range(at, "a flush must have no piece, and every other event one"));
        }
        let trip = self.trip(is_timed)?;
        let piece = (part != part_code::NONE).then(|| self.piece(part)).transpose()?;
        let bytes = self.input.number()?;
        Ok(Event { trip, operation, piece, bytes })
    }

    /// Reads the rest of a message, after its trip number.
    fn exchange(
        &mut self,
        trip: u64,
        direction: Direction,
        servers: ViewServers,
    ) -> Result<PeerMessage, ViewFileError> {
        let at = self.input.offset;
        let [party, partner] = [self.input.byte()?, self.input.byte()?];
        if !servers.watches(party) || !servers.has(partner) || party == partner {
            let message =
                format!("servers {party} and {partner} cannot exchange messages in this view");
            return Err(out_of_range(at, message));
        }
        let at = self.input.offset;
        let tree = self.input.byte()?;
        if tree > TREES_OF_SERVER_MAX {
            return Err(out_of_range(at, format!("tree {tree} is not a tree of a server")));
        }
        let (eviction, attempt) = (self.input.number()?, self.input.number()?);
        let round = self.input.byte()?;
        let at = self.input.offset;
        let part = self.input.number()?;
        let part = u32::try_from(part)
            .map_err(|_| out_of_range(at, format!("part {part} exceeds {}", u32::MAX)))?;
        let at = self.input.offset;
        let [shares, seeds] = [self.input.byte()?, self.input.byte()?];
        if seeds > shares {
            return Err(out_of_range(at, format!("{seeds} of {shares} shares are seeds")));
        }
        let (tree, bytes) = (tree.checked_sub(1), self.input.number()?);
        Ok(PeerMessage {
            trip,
            party,
            direction,
            partner,
            tree,
            eviction,
            attempt,
            round,
            part,
            shares,
            seeds,
            bytes,
        })
    }

    fn pass_time(&mut self) -> Result<(), ViewFileError> {
        let at = self.input.offset;
        let passed = self.input.number()?;
        if passed == 0 {
            return Err(out_of_range(at, "a time does not advance"));
        }
        let now = self.micros.unwrap_or(0).checked_add(passed);
        self.micros = Some(now.ok_or_else(|| out_of_range(at, "the time exceeds 64 bits"))?);
        Ok(())
    }

    fn piece(&mut self, part: u8) -> Result<Piece, ViewFileError> {
        let at = self.input.offset;
        let tree = TreeId(self.input.short("tree")?);
        if self.servers.is_some_and(|servers| !servers.have_tree(tree)) {
            let message = format!("tree {} belongs to no server of this view", tree.0);
            return Err(out_of_range(at, message));
        }
        let at = self.input.offset;
        let level = self.input.byte()?;
        if level > LEAF_LEVEL_MAX {
            let message = format!("level {level} exceeds {LEAF_LEVEL_MAX}");
            return Err(out_of_range(at, message));
        }
        let at = self.input.offset;
        let index = self.input.number()?;
        if index >> level != 0 {
            let message = format!("index {index} is not on level {level}");
            return Err(out_of_range(at, message));
        }
        let part = match part {
            part_code::WHOLE => Part::Whole,
            part_code::HEADER => Part::Header,
            _ => Part::Slot(self.input.short("slot")?),
        };
        Ok(Piece { tree, bucket: BucketId::new(level, index), part })
    }

    fn end(&mut self) -> Result<(), ViewFileError> {
        let at = self.input.offset;
        let count = self.input.number()?;
        if count != self.events {
            let message = format!("the file has {} events but its end states {count}", self.events);
            return Err(out_of_range(at, message));
        }
        let at = self.input.offset;
        match self.input.byte() {
            Err(error) if error.kind() == Truncated => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(ViewFileError::new(at, TrailingBytes, "bytes follow the end")),
        }
    }
}

/// A byte source that counts the bytes read.
struct Input<R> {
    bytes: BufReader<R>,
    offset: u64,
}

impl<R: Read> Input<R> {
    fn byte(&mut self) -> Result<u8, ViewFileError> {
        let byte = loop {
            match self.bytes.fill_buf() {
                Ok(buffer) => break buffer.first().copied(),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ViewFileError::io(self.offset, error)),
            }
        };
        let byte = byte
            .ok_or_else(|| ViewFileError::new(self.offset, Truncated, "the file ends too early"))?;
        self.bytes.consume(1);
        self.offset += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, ViewFileError> {
        let at = self.offset;
        let mut number = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return Err(out_of_range(at, "a number exceeds 64 bits"));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                let is_shortest = byte != 0 || shift == 0;
                return is_shortest
                    .then_some(number)
                    .ok_or_else(|| out_of_range(at, "a number is not in its shortest encoding"));
            }
        }
        Err(out_of_range(at, "a number exceeds 64 bits"))
    }

    fn capabilities(&mut self) -> Result<Capabilities, ViewFileError> {
        let at = self.offset;
        let bits = self.number()?;
        Capabilities::from_bits(bits).ok_or_else(|| {
            let message = format!("unknown store capabilities {bits:#x}: use a newer reader");
            out_of_range(at, message)
        })
    }

    fn servers(&mut self) -> Result<Option<ViewServers>, ViewFileError> {
        let at = self.offset;
        let count = self.byte()?;
        if count == 0 {
            return Ok(None);
        }
        let [colluding, watched] = [self.byte()?, self.byte()?];
        let servers =
            ViewServers::new(count, colluding).and_then(|servers| servers.watching(watched));
        let none = || {
            let message = format!(
                "invalid servers: {count}, of which {colluding} may collude and {watched:#b} are \
                 watched"
            );
            out_of_range(at, message)
        };
        servers.map(Some).ok_or_else(none)
    }

    fn short(&mut self, field: &str) -> Result<u16, ViewFileError> {
        let at = self.offset;
        let number = self.number()?;
        u16::try_from(number)
            .map_err(|_| out_of_range(at, format!("{field} {number} exceeds {}", u16::MAX)))
    }
}

fn out_of_range(offset: u64, message: impl Into<String>) -> ViewFileError {
    ViewFileError::new(offset, OutOfRange, message)
}
