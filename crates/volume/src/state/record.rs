//! The records of a state file, as bytes.
//!
//! What is read here has been opened by the seal, so this client wrote it. It is checked all the same:
//! a defect of ours must not become a panic or a wild allocation.

use oblivio_core::geometry::{BucketId, Leaf};
use oblivio_core::posmap::Mapping;
use oblivio_core::scheme::{Home, Move, TakenSlot};
use oblivio_core::seal::Era;
use zeroize::{Zeroize, Zeroizing};

use crate::wiped::WipedBytes;

/// Bytes of the name of a checkpoint.
pub(crate) const NAME_BYTES: usize = 16;

/// A checkpoint, as both sides know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointName {
    /// How many there were before it.
    pub(crate) number: u64,
    /// Random: two histories of one volume have different names.
    pub(crate) name: [u8; NAME_BYTES],
}

/// The small part of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) checkpoint: CheckpointName,
    pub(crate) previous: CheckpointName,
    pub(crate) evictions: u64,
    pub(crate) accesses_since_eviction: u32,
    pub(crate) eras: Vec<Era>,
    /// The volume was closed after it: there is nothing to recover.
    pub(crate) is_clean: bool,
    /// Storage may see moves before they are durable: after a power loss it may know more.
    pub(crate) may_lose_moves: bool,
}

/// A block on the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientBlock {
    pub(crate) home: Home,
    pub(crate) address: u64,
    pub(crate) leaf: Leaf,
    pub(crate) bytes: Zeroizing<Vec<u8>>,
}

/// An access that was about to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedAccess {
    pub(crate) step: Move,
    /// What it wrote, if it was a write.
    pub(crate) data: Option<Zeroizing<Vec<u8>>>,
}

/// Where blocks are is as secret as what they hold.
impl Drop for LoggedAccess {
    fn drop(&mut self) {
        let Move { address, from, to } = &mut self.step;
        [address, &mut from.0, &mut to.0].into_iter().for_each(Zeroize::zeroize);
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// A state begins.
    Head(Head),
    /// A range of the position map. Ranges that are not named hold nothing.
    Map { start: u64, mappings: Vec<Option<Mapping>> },
    /// A block on the client.
    Block(ClientBlock),
    /// Slots whose blocks were taken.
    Taken(Vec<TakenSlot>),
    /// The state is complete.
    End,
    /// Accesses.
    Batch(Vec<LoggedAccess>),
    /// A range of blocks without contents.
    Forget { start: u64, end: u64 },
    /// An eviction ahead of its time.
    Evict,
    /// A block was written where it was, on the client.
    InPlace { address: u64, data: Zeroizing<Vec<u8>> },
}

mod tag {
    pub(super) const HEAD: u8 = 1;
    pub(super) const MAP: u8 = 2;
    pub(super) const BLOCK: u8 = 3;
    pub(super) const END: u8 = 4;
    pub(super) const BATCH: u8 = 5;
    pub(super) const FORGET: u8 = 6;
    pub(super) const EVICT: u8 = 7;
    pub(super) const TAKEN: u8 = 8;
    pub(super) const IN_PLACE: u8 = 9;
}

/// Home of a block in the stash; that of one in the tree top is its bucket plus one.
const IN_STASH: u64 = 0;

/// Home of a block of the position map that the frontend keeps.
const IN_FRONTEND: u64 = u64::MAX;

/// Appends the record of a batch to `out`, without a copy of its data.
pub(crate) fn put_batch<'a>(
    out: &mut WipedBytes,
    accesses: impl ExactSizeIterator<Item = (&'a Move, Option<&'a [u8]>)>,
) {
    out.push(tag::BATCH);
    out.extend_from_slice(&(accesses.len() as u32).to_le_bytes());
    for (step, data) in accesses {
        for number in [step.address, step.from.0, step.to.0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        put_bytes(out, data);
    }
}

/// Appends the record of a block to `out`.
pub(crate) fn put_block(out: &mut WipedBytes, home: Home, address: u64, leaf: Leaf, bytes: &[u8]) {
    let home = match home {
        Home::Stash => IN_STASH,
        Home::TreeTop(bucket) => bucket.0 + 1,
        Home::Frontend => IN_FRONTEND,
    };
    out.push(tag::BLOCK);
    for number in [home, address, leaf.0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    put_bytes(out, Some(bytes));
}

/// Appends the record of a block that is written where it is to `out`, without a copy of its data.
pub(crate) fn put_in_place(out: &mut WipedBytes, address: u64, data: &[u8]) {
    out.push(tag::IN_PLACE);
    out.extend_from_slice(&address.to_le_bytes());
    put_bytes(out, Some(data));
}

/// Length plus one, and the bytes; 0 for none.
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
                out.extend_from_slice(&head.evictions.to_le_bytes());
                out.extend_from_slice(&head.accesses_since_eviction.to_le_bytes());
                out.push(u8::from(head.is_clean));
                out.push(u8::from(head.may_lose_moves));
                out.extend_from_slice(&(head.eras.len() as u32).to_le_bytes());
                for era in &head.eras {
                    out.extend_from_slice(&era.first_eviction.to_le_bytes());
                    out.extend_from_slice(&era.salt);
                }
            }
            Self::Map { start, mappings } => {
                out.push(tag::MAP);
                out.extend_from_slice(&start.to_le_bytes());
                out.extend_from_slice(&(mappings.len() as u32).to_le_bytes());
                for mapping in mappings {
                    // 0 is no mapping; six bytes hold every leaf of the deepest tree and a bit.
                    let value = mapping.map_or(0, |m| (m.leaf.0 << 1 | u64::from(m.live)) + 1);
                    out.extend_from_slice(&value.to_le_bytes()[..MAPPING_BYTES]);
                }
            }
            Self::Block(block) => {
                put_block(out, block.home, block.address, block.leaf, &block.bytes);
            }
            Self::Taken(slots) => {
                out.push(tag::TAKEN);
                out.extend_from_slice(&(slots.len() as u32).to_le_bytes());
                for TakenSlot { bucket, slot } in slots {
                    out.extend_from_slice(&bucket.0.to_le_bytes());
                    out.extend_from_slice(&slot.to_le_bytes());
                }
            }
            Self::End => out.push(tag::END),
            Self::Batch(accesses) => put_batch(
                out,
                accesses
                    .iter()
                    .map(|access| (&access.step, access.data.as_deref().map(Vec::as_slice))),
            ),
            Self::Forget { start, end } => {
                out.push(tag::FORGET);
                out.extend_from_slice(&start.to_le_bytes());
                out.extend_from_slice(&end.to_le_bytes());
            }
            Self::Evict => out.push(tag::EVICT),
            Self::InPlace { address, data } => put_in_place(out, *address, data),
        }
    }

    /// Reads a record that is exactly `bytes`; `None` if they are no record.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let record = match reader.u8()? {
            tag::HEAD => Self::Head(Head {
                checkpoint: reader.name()?,
                previous: reader.name()?,
                evictions: reader.u64()?,
                accesses_since_eviction: reader.u32()?,
                is_clean: reader.bool()?,
                may_lose_moves: reader.bool()?,
                eras: reader.list(ERA_BYTES, |reader| {
                    Some(Era { first_eviction: reader.u64()?, salt: *reader.array()? })
                })?,
            }),
            tag::MAP => {
                let start = reader.u64()?;
                let mapping = |reader: &mut Reader<'_>| {
                    let mut value = [0; 8];
                    value[..MAPPING_BYTES].copy_from_slice(reader.bytes(MAPPING_BYTES)?);
                    Some(
                        u64::from_le_bytes(value)
                            .checked_sub(1)
                            .map(|value| Mapping { leaf: Leaf(value >> 1), live: value & 1 == 1 }),
                    )
                };
                Self::Map { start, mappings: reader.list(MAPPING_BYTES, mapping)? }
            }
            tag::BLOCK => {
                let home = match reader.u64()? {
                    IN_STASH => Home::Stash,
                    IN_FRONTEND => Home::Frontend,
                    bucket => Home::TreeTop(BucketId(bucket - 1)),
                };
                let (address, leaf) = (reader.u64()?, Leaf(reader.u64()?));
                Self::Block(ClientBlock { home, address, leaf, bytes: reader.data()?? })
            }
            tag::TAKEN => Self::Taken(reader.list(TAKEN_BYTES, |reader| {
                let bucket = BucketId(reader.u64()?);
                Some(TakenSlot { bucket, slot: u16::from_le_bytes(*reader.array()?) })
            })?),
            tag::END => Self::End,
            tag::BATCH => Self::Batch(reader.list(ACCESS_BYTES_MIN, |reader| {
                let [address, from, to] = [reader.u64()?, reader.u64()?, reader.u64()?];
                let step = Move { address, from: Leaf(from), to: Leaf(to) };
                Some(LoggedAccess { step, data: reader.data()? })
            })?),
            tag::FORGET => Self::Forget { start: reader.u64()?, end: reader.u64()? },
            tag::EVICT => Self::Evict,
            tag::IN_PLACE => Self::InPlace { address: reader.u64()?, data: reader.data()?? },
            _ => return None,
        };
        reader.0.is_empty().then_some(record)
    }
}

/// Bytes of an entry of the position map.
const MAPPING_BYTES: usize = 6;

/// Bytes of an era.
const ERA_BYTES: usize = 8 + 32;

/// Bytes of a taken slot.
const TAKEN_BYTES: usize = 8 + 2;

/// Bytes of an access, without data.
const ACCESS_BYTES_MIN: usize = 3 * 8 + 4;

/// Takes numbers off the front of a record.
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

    fn name(&mut self) -> Option<CheckpointName> {
        Some(CheckpointName { number: self.u64()?, name: *self.array()? })
    }

    /// `None`: malformed. `Some(None)`: there are none.
    #[expect(clippy::option_option, reason = "the outer one is an error, the inner one a value")]
    fn data(&mut self) -> Option<Option<Zeroizing<Vec<u8>>>> {
        Some(match self.u32()?.checked_sub(1) {
            None => None,
            Some(length) => Some(Zeroizing::new(self.bytes(length as usize)?.to_vec())),
        })
    }

    /// As many items as a number says, each of so many bytes at least. There is room for all that can
    /// be there from the beginning: a list that grew would leave copies of them.
    fn list<T>(
        &mut self,
        bytes_min: usize,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.u32()? as usize;
        let mut items = Vec::with_capacity(count.min(self.0.len() / bytes_min));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn examples() -> Vec<Record> {
        let name = |number| CheckpointName { number, name: [number as u8; NAME_BYTES] };
        let bytes = |fill, length| Zeroizing::new(vec![fill; length]);
        let step = Move { address: 1 << 39, from: Leaf(5), to: Leaf((1 << 40) - 1) };
        vec![
            Record::Head(Head {
                checkpoint: name(9),
                previous: name(8),
                evictions: 1 << 50,
                accesses_since_eviction: 3,
                is_clean: true,
                may_lose_moves: false,
                eras: vec![
                    Era { first_eviction: 0, salt: [1; 32] },
                    Era { first_eviction: 77, salt: [2; 32] },
                ],
            }),
            Record::Map {
                start: 4096,
                mappings: vec![
                    None,
                    Some(Mapping { leaf: Leaf((1 << 40) - 1), live: true }),
                    Some(Mapping { leaf: Leaf(0), live: false }),
                ],
            },
            Record::Block(ClientBlock {
                home: Home::Stash,
                address: 3,
                leaf: Leaf(4),
                bytes: bytes(7, 16),
            }),
            Record::Block(ClientBlock {
                home: Home::TreeTop(BucketId(0)),
                address: 3,
                leaf: Leaf(4),
                bytes: bytes(8, 17),
            }),
            Record::Block(ClientBlock {
                home: Home::Frontend,
                address: 3,
                leaf: Leaf(4),
                bytes: bytes(9, 18),
            }),
            Record::Taken(vec![
                TakenSlot { bucket: BucketId(0), slot: 3 },
                TakenSlot { bucket: BucketId(1 << 40), slot: 255 },
            ]),
            Record::End,
            Record::Batch(vec![
                LoggedAccess { step, data: None },
                LoggedAccess { step, data: Some(bytes(9, 20)) },
                LoggedAccess { step, data: Some(bytes(9, 0)) },
            ]),
            Record::Batch(Vec::new()),
            Record::Forget { start: 0, end: u64::MAX },
            Record::Evict,
            Record::InPlace { address: 1 << 30, data: bytes(5, 12) },
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

    proptest! {
        #[test]
        fn anything_may_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200), tag in 0u8..11) {
            let bytes = [&[tag], &bytes[..]].concat();
            if let Some(record) = Record::read(&bytes) {
                prop_assert_eq!(bytes_of(&record), bytes);
            }
        }
    }
}
