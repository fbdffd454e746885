//! The stored progress of a server in one tree. Records are stored at the beginning of the root's
//! file, alternately in two places.
//!
//! A record is written after the data that it covers, and made durable together with it. The last
//! block may still be torn although the record is intact, so the record has a checksum of the
//! block.

use oblivio_core::durable::section::Fields;

use crate::message::TreePoint;

/// Bytes of the root's file before the first slot.
pub(super) const HEAD_BYTES: u64 = 2 * PLACE_BYTES;

/// Bytes reserved in the file for a record: each record has its own page.
const PLACE_BYTES: u64 = 4096;

/// Bytes of a record.
pub(super) const RECORD_BYTES: usize = 52;

/// Stands for `written_before` in an encoded record if the server cannot roll back.
const NOT_BEFORE: u32 = u32::MAX;

const MAGIC: [u8; 8] = *b"OBLSHREP";

/// The progress of a server in one tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// The number of the record, greater than that of each earlier record. The intact record with
    /// the greater number is the current one.
    pub(super) number: u64,
    pub(super) at: TreePoint,
    /// The number of blocks in the root before the last eviction, to which a rollback returns.
    /// `None` if the server cannot roll back, because a repair stored its shares.
    pub(super) written_before: Option<usize>,
    /// The greatest attempt number that the server has seen in this tree.
    pub(super) attempt: u64,
    /// The checksum of the last block in the root, if there is one.
    pub(super) block_sum: u32,
    /// The checksum of the query whose marks were written with the last block, if slots have
    /// metadata.
    pub(super) query_sum: u32,
}

impl Record {
    /// The offset of this record's place in the file.
    pub(super) fn offset(&self) -> u64 {
        self.number % 2 * PLACE_BYTES
    }

    /// Encodes the record.
    pub(super) fn encode(&self) -> [u8; RECORD_BYTES] {
        let Self { number, at, written_before, attempt, block_sum, query_sum } = self;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(number.to_le_bytes());
        bytes.extend(at.evictions.to_le_bytes());
        bytes.extend((at.written as u32).to_le_bytes());
        let written_before = written_before.map_or(NOT_BEFORE, |written| written as u32);
        bytes.extend(written_before.to_le_bytes());
        bytes.extend(attempt.to_le_bytes());
        bytes.extend(block_sum.to_le_bytes());
        bytes.extend(query_sum.to_le_bytes());
        bytes.extend(sum(&bytes).to_le_bytes());
        let mut record = [0; RECORD_BYTES];
        record.copy_from_slice(&bytes);
        record
    }

    /// Decodes a record; `None` if it is torn or was never written.
    fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let (fields, summed) = bytes.split_last_chunk::<4>()?;
        if sum(fields) != u32::from_le_bytes(*summed) {
            return None;
        }
        let mut fields = Fields::new(fields);
        if fields.array().ok()? != MAGIC {
            return None;
        }
        Some(Self {
            number: fields.count().ok()?,
            at: TreePoint { evictions: fields.count().ok()?, written: fields.u32().ok()? as usize },
            written_before: Some(fields.u32().ok()?)
                .filter(|written| *written != NOT_BEFORE)
                .map(|written| written as usize),
            attempt: fields.u64().ok()?,
            block_sum: fields.u32().ok()?,
            query_sum: fields.u32().ok()?,
        })
    }

    /// The latest intact record in the two places. The default record if neither place was ever
    /// written; `None` if no record is intact.
    pub(super) fn latest(places: [&[u8; RECORD_BYTES]; 2]) -> Option<Self> {
        let records = places.map(Self::decode);
        let found = records.into_iter().flatten().max_by_key(|record| record.number);
        let was_never_written = places.iter().all(|place| place.iter().all(|byte| *byte == 0));
        found.or(was_never_written.then(Self::default))
    }
}

/// The checksum of `bytes`.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64) -> Record {
        let at = TreePoint { evictions: 7, written: 3 };
        let (block_sum, query_sum) = (0xdead_beef, 0xfeed_bacc);
        Record { number, at, written_before: Some(9), attempt: 8, block_sum, query_sum }
    }

    #[test]
    fn the_latest_record_counts_and_a_torn_one_does_not() {
        let (older, newer) = (record(4).encode(), record(5).encode());
        let nothing = [0; RECORD_BYTES];
        assert_eq!(Record::latest([&older, &newer]), Some(record(5)));
        assert_eq!(Record::latest([&nothing, &newer]), Some(record(5)));
        assert_eq!(Record::latest([&nothing, &nothing]), Some(Record::default()));
        for at in 0..RECORD_BYTES {
            let mut torn = newer;
            torn[at] ^= 0x40;
            assert_eq!(Record::latest([&older, &torn]), Some(record(4)), "{at}");
            assert_eq!(Record::latest([&torn, &torn]), None, "{at}");
        }
        let put = Record { written_before: None, ..record(6) };
        assert_eq!(Record::latest([&put.encode(), &newer]), Some(put));
        assert_ne!(record(4).offset(), record(5).offset());
        assert!(record(5).offset() + RECORD_BYTES as u64 <= HEAD_BYTES);
    }
}
