//! The records of a state file, as bytes.
//!
//! The records have passed authentication, so this client wrote them. They are checked anyway: a
//! defect of this program must not become a panic or an unbounded allocation.

use oblivio_core::durable::EncodedPlan;
use oblivio_core::wiped::WipedBytes;

/// Bytes of the name of a checkpoint.
pub(crate) const NAME_BYTES: usize = 16;

/// The name of a checkpoint, which both the client and storage know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointName {
    /// Number of checkpoints before this one.
    pub(crate) number: u64,
    /// Random bytes, so that different histories of a volume have different names.
    pub(crate) name: [u8; NAME_BYTES],
}

/// The start of a saved state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) checkpoint: CheckpointName,
    pub(crate) previous: CheckpointName,
    /// Whether the volume was closed after this state, so that recovery is not needed.
    pub(crate) is_clean: bool,
    /// Whether storage may have seen moves before they were durable, or may still hold traces of
    /// lost moves. Storage may then know of accesses that the client's directory lacks.
    pub(crate) may_lose_moves: bool,
}

/// The data of a block or a section.
pub(crate) type Data = WipedBytes;

/// Accesses that were logged before they were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedPlan {
    pub(crate) plan: EncodedPlan,
    /// The data of each access, if it was a write.
    pub(crate) writes: Vec<Option<Data>>,
}

/// A record of a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// The start of a state.
    Head(Head),
    /// A section of a state, which the scheme decodes.
    Section(Data),
    /// The end of a state.
    End,
    /// Accesses that were logged before they were made.
    Accesses(LoggedPlan),
    /// A range of blocks that was forgotten.
    Forget { start: u64, end: u64 },
    /// An eviction ahead of schedule.
    Evict,
    /// A write to a block that was on the client, without an access.
    InPlace { address: u64, data: Data },
    /// Padding: makes up for the data of accesses that did not write.
    Padding {
        /// Number of zero bytes.
        bytes: u32,
    },
}

mod tag {
    pub(super) const HEAD: u8 = 1;
    pub(super) const SECTION: u8 = 2;
    pub(super) const END: u8 = 4;
    pub(super) const ACCESSES: u8 = 5;
    pub(super) const FORGET: u8 = 6;
    pub(super) const EVICT: u8 = 7;
    pub(super) const IN_PLACE: u8 = 9;
    pub(super) const PADDING: u8 = 10;
}

/// Appends the record of accesses to `out`, without a copy of their data.
pub(crate) fn put_accesses<'a>(
    out: &mut WipedBytes,
    plan: &EncodedPlan,
    writes: impl Iterator<Item = Option<&'a [u8]>>,
) {
    out.push(tag::ACCESSES);
    out.extend_from_slice(&(plan.accesses() as u32).to_le_bytes());
    put_bytes(out, Some(plan.section()));
    writes.for_each(|data| put_bytes(out, data));
}

/// Appends the record of a section to `out`.
pub(crate) fn put_section(out: &mut WipedBytes, section: &[u8]) {
    out.push(tag::SECTION);
    put_bytes(out, Some(section));
}

/// Appends the record of a write on the client to `out`, without a copy of its data.
pub(crate) fn put_in_place(out: &mut WipedBytes, address: u64, data: &[u8]) {
    out.push(tag::IN_PLACE);
    out.extend_from_slice(&address.to_le_bytes());
    put_bytes(out, Some(data));
}

/// Appends a padding record with `bytes` zeros to `out`.
pub(crate) fn put_padding(out: &mut WipedBytes, bytes: u32) {
    out.push(tag::PADDING);
    out.extend_from_slice(&(bytes + 1).to_le_bytes());
    out.extend_with_zeros(bytes as usize);
}

/// Appends the length plus one and then the bytes; 0 for `None`.
fn put_bytes(out: &mut WipedBytes, bytes: Option<&[u8]>) {
    let length = bytes.map_or(0, |bytes| bytes.len() as u32 + 1);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes.unwrap_or_default());
}

fn put_name(out: &mut WipedBytes, checkpoint: &CheckpointName) {
    out.extend_from_slice(&checkpoint.number.to_le_bytes());
    out.extend_from_slice(&checkpoint.name);
}

impl Record {
    /// Appends the record to `out`.
    pub(crate) fn put(&self, out: &mut WipedBytes) {
        match self {
            Self::Head(head) => {
                out.push(tag::HEAD);
                put_name(out, &head.checkpoint);
                put_name(out, &head.previous);
                out.push(u8::from(head.is_clean));
                out.push(u8::from(head.may_lose_moves));
            }
            Self::Section(section) => put_section(out, section),
            Self::End => out.push(tag::END),
            Self::Accesses(LoggedPlan { plan, writes }) => {
                let writes = writes.iter().map(|data| data.as_deref());
                put_accesses(out, plan, writes);
            }
            Self::Forget { start, end } => {
                out.push(tag::FORGET);
                out.extend_from_slice(&start.to_le_bytes());
                out.extend_from_slice(&end.to_le_bytes());
            }
            Self::Evict => out.push(tag::EVICT),
            Self::InPlace { address, data } => put_in_place(out, *address, data),
            Self::Padding { bytes } => put_padding(out, *bytes),
        }
    }

    /// Reads a record that is exactly `bytes`; `None` if they are no record.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let record = match reader.u8()? {
            tag::HEAD => Self::Head(Head {
                checkpoint: reader.name()?,
                previous: reader.name()?,
                is_clean: reader.bool()?,
                may_lose_moves: reader.bool()?,
            }),
            tag::SECTION => Self::Section(reader.data()??),
            tag::END => Self::End,
            tag::ACCESSES => {
                let accesses = reader.u32()? as usize;
                let section = reader.data()??;
                // Allocated once for all of them: a growing list would leave copies in memory.
                let mut writes = Vec::with_capacity(accesses.min(reader.0.len() / DATA_BYTES_MIN));
                for _ in 0..accesses {
                    writes.push(reader.data()?);
                }
                Self::Accesses(LoggedPlan { plan: EncodedPlan::new(accesses, section), writes })
            }
            tag::FORGET => Self::Forget { start: reader.u64()?, end: reader.u64()? },
            tag::EVICT => Self::Evict,
            tag::IN_PLACE => Self::InPlace { address: reader.u64()?, data: reader.data()?? },
            tag::PADDING => Self::Padding { bytes: reader.zeros()? },
            _ => return None,
        };
        reader.0.is_empty().then_some(record)
    }
}

/// Bytes that an access takes in the record if it wrote nothing.
const DATA_BYTES_MIN: usize = 4;

/// Reads fields from the front of a record.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        self.bytes(N)?.first_chunk()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| *byte)
    }

    fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Reads a field that must be all zeros, and returns its number of bytes. `None` if it is
    /// malformed.
    fn zeros(&mut self) -> Option<u32> {
        let bytes = self.u32()?.checked_sub(1)?;
        let data = self.bytes(bytes as usize)?;
        data.iter().all(|byte| *byte == 0).then_some(bytes)
    }

    fn name(&mut self) -> Option<CheckpointName> {
        Some(CheckpointName { number: self.u64()?, name: *self.array()? })
    }

    /// Reads an optional data field. `None` if it is malformed, `Some(None)` if the data is absent.
    #[expect(clippy::option_option, reason = "`None` is an error, `Some(None)` a value")]
    fn data(&mut self) -> Option<Option<Data>> {
        Some(match self.u32()?.checked_sub(1) {
            None => None,
            Some(length) => Some(self.bytes(length as usize)?.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn examples() -> Vec<Record> {
        let name = |number| CheckpointName { number, name: [number as u8; NAME_BYTES] };
        let bytes = |fill, length| Data::from(&vec![fill; length][..]);
        let plan = |accesses, bytes| EncodedPlan::new(accesses, bytes);
        vec![
            Record::Head(Head {
                checkpoint: name(9),
                previous: name(8),
                is_clean: true,
                may_lose_moves: false,
            }),
            Record::Section(bytes(7, 16)),
            Record::Section(bytes(7, 0)),
            Record::End,
            Record::Accesses(LoggedPlan {
                plan: plan(3, bytes(1, 72)),
                writes: vec![None, Some(bytes(9, 20)), Some(bytes(9, 0))],
            }),
            Record::Accesses(LoggedPlan { plan: plan(0, bytes(1, 0)), writes: Vec::new() }),
            Record::Forget { start: 0, end: u64::MAX },
            Record::Evict,
            Record::InPlace { address: 1 << 30, data: bytes(5, 12) },
            Record::Padding { bytes: 0 },
        ]
    }

    fn bytes_of(record: &Record) -> Vec<u8> {
        let mut bytes = WipedBytes::default();
        record.put(&mut bytes);
        bytes.to_vec()
    }

    #[test]
    fn records_come_back_and_parts_of_them_do_not() {
        for record in examples() {
            let bytes = bytes_of(&record);
            assert_eq!(Record::read(&bytes).as_ref(), Some(&record));
            for length in 0..bytes.len() {
                assert_eq!(Record::read(&bytes[..length]), None, "{length} bytes of {record:?}");
            }
            assert_eq!(Record::read(&[&bytes[..], &[0]].concat()), None);
        }
    }

    #[test]
    fn padding_is_of_zeros_and_as_long_as_it_says() {
        let record = Record::Padding { bytes: 9000 };
        let mut bytes = bytes_of(&record);
        assert_eq!(bytes.len(), 1 + 4 + 9000);
        assert_eq!(Record::read(&bytes), Some(record));
        bytes[9000] = 1;
        assert_eq!(Record::read(&bytes), None);
    }

    proptest! {
        #[test]
        fn anything_may_be_read(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            tag in 0u8..12,
        ) {
            let bytes = [&[tag], &bytes[..]].concat();
            if let Some(record) = Record::read(&bytes) {
                prop_assert_eq!(bytes_of(&record), bytes);
            }
        }
    }
}
