//! Chunks: consecutive entries of a stream, as bytes of an object.
//!
//! A chunk has its entries first and a trailer behind them, so a cut-off object has no valid
//! trailer. The trailer also names the place of each entry, so a chunk can be adopted, or rescued,
//! without a head. `docs/formats/objects.md` in the repository specifies the bytes.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::streams::{Column, Stream, Streams};
use crate::container::LEVELS_MAX;
use crate::fields::Fields;

const CHUNK_MAGIC: [u8; 16] = *b"OBLIVIO CHUNK\n\0\0";
const TAIL_MAGIC: [u8; 16] = *b"OBLIVIO TAIL\n\0\0\0";
const VERSION: u32 = 1;

/// The bytes of the last fields of a trailer: its length and its checksum.
pub(super) const FOOTER_BYTES: usize = 8 + CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = 32;

/// A trailer with more bytes is not read.
pub(super) const TRAILER_BYTES_MAX: usize = 64 << 20;

/// The random name of a store, which all its objects bear. Public.
pub(super) type StoreName = [u8; 16];

/// Entries of a stream, in the order of their slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    pub(super) places: Vec<u64>,
    /// The buckets of all entries: one per entry and column.
    pub(super) parts: Vec<Bytes>,
}

/// A part of an object that holds the entries of a chunk or of a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) columns: Vec<(u16, u8)>,
    pub(super) stream: u16,
    /// The number of the chunk.
    pub(super) number: u64,
    pub(super) places: Vec<u64>,
}

/// The contents of a trailer: one section in a chunk, and one for each incomplete chunk in a tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) store: StoreName,
    pub(super) session: u64,
    /// The number of the tail; `None` in a chunk.
    pub(super) tail: Option<u64>,
    pub(super) sections: Vec<Section>,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The bytes of the bucket in position `position` of entry `entry`.
    pub(super) fn bucket(&self, entry: usize, position: usize, columns: usize) -> Option<&Bytes> {
        (position < columns).then(|| self.parts.get(entry * columns + position)).flatten()
    }
}

impl Section {
    pub(super) fn new(streams: &Streams, stream: u16, number: u64, entries: &Entries) -> Self {
        let columns = streams.get(stream).map_or(&[][..], |stream| &stream.columns);
        let named = |column: &usize| {
            let Column { tree, level, .. } = streams.columns()[*column];
            (tree, level)
        };
        let columns = columns.iter().map(named).collect();
        Self { columns, stream, number, places: entries.places.clone() }
    }

    /// The stream of this section in `streams`, which is added if it is new; `None` if the section
    /// contradicts the shapes of the store.
    pub(super) fn check(&self, streams: &mut Streams) -> Option<()> {
        let columns: Option<Box<[usize]>> =
            self.columns.iter().map(|(tree, level)| streams.column(*tree, *level)).collect();
        let columns = columns?;
        if usize::from(self.stream) == streams.list().len() {
            streams.add(columns.clone())?;
        }
        let Stream { columns: known, slots_per_chunk, .. } = streams.get(self.stream)?;
        let are_there = |place: &u64| {
            let buckets = known.iter().map(|column| streams.columns()[*column].buckets);
            buckets.min().is_some_and(|buckets| *place < buckets)
        };
        let is_sound = *known == columns
            && self.places.len() as u64 <= *slots_per_chunk
            && self.places.iter().all(are_there);
        is_sound.then_some(())
    }
}

impl Trailer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(if self.tail.is_some() { TAIL_MAGIC } else { CHUNK_MAGIC });
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(self.store);
        let mut put = |number: u64| bytes.extend(number.to_le_bytes());
        put(self.session);
        put(self.tail.unwrap_or(0));
        put(self.sections.len() as u64);
        for Section { columns, stream, number, places } in &self.sections {
            put(u64::from(*stream));
            put(*number);
            put(columns.len() as u64);
            for (tree, level) in columns {
                put(u64::from(*tree) << 8 | u64::from(*level));
            }
            put(places.len() as u64);
            places.iter().for_each(|place| put(*place));
        }
        let trailer_bytes = bytes.len() + FOOTER_BYTES;
        bytes.extend((trailer_bytes as u64).to_le_bytes());
        let checksum: [u8; CHECKSUM_BYTES] = Sha256::digest(&bytes).into();
        bytes.extend(checksum);
        bytes
    }

    /// Parses a whole trailer, which is untrusted; `None` if it is cut off, damaged, or of another
    /// version.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let body = bytes.len().checked_sub(CHECKSUM_BYTES)?;
        let (body, checksum) = bytes.split_at_checked(body)?;
        if Sha256::digest(body)[..] != *checksum {
            return None;
        }
        let mut fields = Fields::new(body);
        let is_tail = match fields.array()? {
            CHUNK_MAGIC => false,
            TAIL_MAGIC => true,
            _ => return None,
        };
        if (fields.u32()?, fields.u32()?) != (VERSION, 0) {
            return None;
        }
        let store = fields.array()?;
        let session = fields.u64()?;
        let tail = fields.u64()?;
        let count = fields.count(if is_tail { usize::from(u16::MAX) } else { 1 })?;
        let sections: Option<_> = (0..count).map(|_| Self::section(&mut fields)).collect();
        let trailer_bytes = fields.u64()?;
        let is_whole = fields.is_empty() && trailer_bytes == bytes.len() as u64;
        let tail = is_tail.then_some(tail);
        is_whole.then_some(Self { store, session, tail, sections: sections? })
    }

    /// The length of the trailer that ends with `footer`; `None` if it is impossible.
    pub(super) fn bytes_from(footer: &[u8]) -> Option<usize> {
        let bytes = Fields::new(footer).count(TRAILER_BYTES_MAX)?;
        (footer.len() == FOOTER_BYTES && bytes >= FOOTER_BYTES).then_some(bytes)
    }

    fn section(fields: &mut Fields<'_>) -> Option<Section> {
        let stream = fields.u64()?.try_into().ok()?;
        let number = fields.u64()?;
        let count = fields.count(LEVELS_MAX)?;
        let column = |fields: &mut Fields<'_>| {
            let column = fields.u64()?;
            Some(((column >> 8).try_into().ok()?, column as u8))
        };
        let columns: Option<_> = (0..count).map(|_| column(fields)).collect();
        let count = fields.count(TRAILER_BYTES_MAX / 8)?;
        let places: Option<_> = (0..count).map(|_| fields.u64()).collect();
        Some(Section { columns: columns?, stream, number, places: places? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trailer(tail: Option<u64>) -> Trailer {
        let section = |stream| Section {
            columns: vec![(2, 7), (4, 7)],
            stream,
            number: 9,
            places: vec![3, 4, u64::MAX],
        };
        let sections = if tail.is_some() { vec![section(1), section(5)] } else { vec![section(1)] };
        Trailer { store: [7; 16], session: 3, tail, sections }
    }

    #[test]
    fn a_trailer_is_read_as_written() {
        for tail in [None, Some(0), Some(12)] {
            let written = trailer(tail).encode();
            assert_eq!(Trailer::decode(&written), Some(trailer(tail)));
            let footer = &written[written.len() - FOOTER_BYTES..];
            assert_eq!(Trailer::bytes_from(footer), Some(written.len()));
        }
    }

    #[test]
    fn damaged_trailers_are_refused() {
        let written = trailer(Some(1)).encode();
        for end in 0..written.len() {
            assert_eq!(Trailer::decode(&written[..end]), None, "{end} bytes");
        }
        for at in 0..written.len() {
            let mut changed = written.clone();
            changed[at] ^= 1;
            assert_eq!(Trailer::decode(&changed), None, "byte {at}");
        }
        assert_eq!(Trailer::bytes_from(&[0xff; FOOTER_BYTES]), None);
        assert_eq!(Trailer::bytes_from(&[0; FOOTER_BYTES]), None);
        assert_eq!(Trailer::bytes_from(&[1; 3]), None);
    }
}
