//! Heads: numbered objects that are only ever created.
//!
//! A *full* head is the state of the store after a flush. A *fence* marks an opening to write: from
//! then on, an older writer finds the number of its next head taken. An object under the name of a
//! head that is cut off or damaged is *void*: it only takes its number. The newest full head is
//! the state, and the newest head of either kind says which session may write.
//! `docs/formats/objects.md` in the repository specifies the bytes.

use oblivio_core::store::TreeShape;
use sha2::{Digest, Sha256};

use super::chunk::StoreName;
use super::index::{Index, RUNS_MAX, Run, Slot};
use super::small::SmallTrees;
use super::streams::Streams;
use crate::container::{Container, LEVELS_MAX, decode_shapes, encode_shapes};
use crate::fields::Fields;
use crate::objects::ObjectName;

const MAGIC: [u8; 16] = *b"OBLIVIO OBJECTS\n";
const VERSION: u32 = 1;
const FULL: u32 = 1;
const FENCE: u32 = 2;
const CHECKSUM_BYTES: usize = 32;

/// A longer head is neither created nor read. The index takes at most 40 MiB.
pub(super) const HEAD_BYTES_MAX: u64 = 64 << 20;

/// Maximum of the constants of a store.
pub(super) const CONSTANT_MAX: usize = 1 << 28;

/// Maximum number of names in the lists of a head.
const NAMES_MAX: usize = 1 << 20;

/// The random name of a session, which tells a client's own head from that of another client. Not
/// secret.
pub(super) type SessionName = [u8; 16];

/// What an object under the name of a head contains.
pub(super) enum Head {
    /// The state of a store.
    Full(Box<FullHead>),
    /// The beginning of a session.
    Fence { store: StoreName },
    /// Bytes that are not a whole head.
    Void,
    /// A head that a newer program wrote.
    UnknownVersion(u32),
}

/// Constants of a store, chosen at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Maximum bytes of the entries of a chunk. A chunk with one longer entry has just that entry.
    pub(super) chunk_bytes: usize,
    /// Maximum bytes of all trees that are kept in heads.
    pub(super) small_bytes_max: usize,
}

/// The chunk of a stream that is being filled at a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenChunk {
    pub(super) number: u64,
    /// The number of its entries, which lie in the tail.
    pub(super) entries: u64,
    /// The smallest number that no chunk has. Numbers from `number` on and below this one belong to
    /// complete chunks that got another number, because their first one was lost.
    pub(super) next_number: u64,
}

/// A session whose objects are listed once more, because its client may have created objects after
/// it was fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PastSession {
    pub(super) session: u64,
    /// For each stream, the smallest number of a chunk that may exist and was not listed.
    pub(super) next_chunks: Vec<u64>,
    pub(super) next_tail: u64,
}

/// The incomplete chunks of a state, which lie in one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TailRef {
    pub(super) session: u64,
    pub(super) number: u64,
    pub(super) bytes: u64,
}

/// The state of a store after a flush.
pub(super) struct FullHead {
    pub(super) store: StoreName,
    pub(super) session: u64,
    pub(super) geometry: Geometry,
    pub(super) streams: Streams,
    pub(super) index: Index,
    pub(super) small: SmallTrees,
    /// The incomplete chunk of each stream of this session.
    pub(super) open_chunks: Vec<OpenChunk>,
    pub(super) next_tail: u64,
    pub(super) tail: Option<TailRef>,
    pub(super) past_sessions: Vec<PastSession>,
    /// The numbers of older full heads that may exist.
    pub(super) older_heads: Vec<u64>,
    /// Objects that no bucket of this state needs.
    pub(super) unneeded: Vec<ObjectName>,
}

/// Borrowed parts of a [`FullHead`], to be written.
pub(super) struct HeadParts<'a> {
    pub(super) store: StoreName,
    pub(super) session: u64,
    pub(super) session_name: SessionName,
    pub(super) geometry: Geometry,
    pub(super) streams: &'a Streams,
    pub(super) index: &'a Index,
    pub(super) small: &'a SmallTrees,
    pub(super) open_chunks: &'a [OpenChunk],
    pub(super) next_tail: u64,
    pub(super) tail: Option<TailRef>,
    pub(super) past_sessions: &'a [PastSession],
    pub(super) older_heads: &'a [u64],
    pub(super) unneeded: &'a [ObjectName],
}

/// Encodes a fence.
pub(super) fn encode_fence(store: StoreName, session_name: SessionName) -> Vec<u8> {
    let mut bytes = start(FENCE, store, session_name);
    finish(&mut bytes);
    bytes
}

impl HeadParts<'_> {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = start(FULL, self.store, self.session_name);
        put(&mut bytes, self.session);
        put(&mut bytes, self.geometry.chunk_bytes as u64);
        put(&mut bytes, self.geometry.small_bytes_max as u64);
        encode_shapes(&mut bytes, self.streams.shapes());
        put(&mut bytes, self.streams.list().len() as u64);
        for stream in self.streams.list() {
            put(&mut bytes, stream.columns.len() as u64);
            stream.columns.iter().for_each(|column| put(&mut bytes, *column as u64));
        }
        for column in 0..self.streams.columns().len() {
            let runs = self.index.runs(column);
            put(&mut bytes, runs.len() as u64);
            for (first, Run { places, first: Slot { session, stream, number } }) in runs {
                for number in [first, places, session, u64::from(stream), number] {
                    put(&mut bytes, number);
                }
            }
        }
        bytes.extend(self.small.bytes());
        put(&mut bytes, self.open_chunks.len() as u64);
        for OpenChunk { number, entries, next_number } in self.open_chunks {
            for number in [*number, *entries, *next_number] {
                put(&mut bytes, number);
            }
        }
        put(&mut bytes, self.next_tail);
        let tail = self.tail.map(|tail| vec![tail.session, tail.number, tail.bytes]);
        put_numbers(&mut bytes, &tail.unwrap_or_default());
        put(&mut bytes, self.past_sessions.len() as u64);
        for PastSession { session, next_chunks, next_tail } in self.past_sessions {
            put(&mut bytes, *session);
            put_numbers(&mut bytes, next_chunks);
            put(&mut bytes, *next_tail);
        }
        put_numbers(&mut bytes, self.older_heads);
        put(&mut bytes, self.unneeded.len() as u64);
        for name in self.unneeded {
            numbers_of(*name).into_iter().for_each(|number| put(&mut bytes, number));
        }
        finish(&mut bytes);
        bytes
    }
}

impl Head {
    /// Parses an object under the name of a head, which is untrusted.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        if let Some(version) = other_version(bytes) {
            return Self::UnknownVersion(version);
        }
        Self::decode_known(bytes).unwrap_or(Self::Void)
    }

    fn decode_known(bytes: &[u8]) -> Option<Self> {
        let body = bytes.len().checked_sub(CHECKSUM_BYTES)?;
        let (body, checksum) = bytes.split_at_checked(body)?;
        if Sha256::digest(body)[..] != *checksum {
            return None;
        }
        let mut fields = Fields::new(body);
        if (fields.array()?, fields.u32()?) != (MAGIC, VERSION) {
            return None;
        }
        let kind = fields.u32()?;
        let store = fields.array()?;
        let _session_name: SessionName = fields.array()?;
        let head = match kind {
            FULL => Self::Full(Box::new(FullHead::decode(&mut fields, store)?)),
            FENCE => Self::Fence { store },
            _ => return None,
        };
        fields.is_empty().then_some(head)
    }
}

impl FullHead {
    fn decode(fields: &mut Fields<'_>, store: StoreName) -> Option<Self> {
        let session = fields.u64()?;
        let geometry = Geometry {
            chunk_bytes: fields.count(CONSTANT_MAX)?,
            small_bytes_max: fields.count(CONSTANT_MAX)?,
        };
        let shapes = decode_shapes(fields)?;
        // Bounds the sizes of buckets and the number of places.
        Container::new(&shapes).ok()?;
        let mut streams = Streams::new(shapes, geometry.chunk_bytes);
        for number in 0..fields.count(usize::from(u16::MAX))? {
            let count = fields.count(LEVELS_MAX)?;
            let columns: Option<_> = (0..count).map(|_| fields.count(LEVELS_MAX)).collect();
            if streams.add(columns?)? as usize != number {
                return None;
            }
        }
        let index = decode_index(fields, &streams)?;
        let small = decode_small(fields, streams.shapes(), geometry)?;
        let open = |fields: &mut Fields<'_>| {
            let (number, entries) = (fields.u64()?, fields.u64()?);
            Some(OpenChunk { number, entries, next_number: fields.u64()? })
        };
        let count = fields.count(streams.list().len())?;
        let open_chunks: Option<_> = (0..count).map(|_| open(fields)).collect();
        let next_tail = fields.u64()?;
        let tail = match numbers(fields, 3)?[..] {
            [] => None,
            [session, number, bytes] => Some(TailRef { session, number, bytes }),
            _ => return None,
        };
        let past = |fields: &mut Fields<'_>| {
            let session = fields.u64()?;
            let next_chunks = numbers(fields, usize::from(u16::MAX))?;
            Some(PastSession { session, next_chunks, next_tail: fields.u64()? })
        };
        let count = fields.count(NAMES_MAX)?;
        let past_sessions: Option<_> = (0..count).map(|_| past(fields)).collect();
        let past_sessions = past_sessions?;
        let older_heads = numbers(fields, NAMES_MAX)?;
        let count = fields.count(NAMES_MAX)?;
        let unneeded: Option<_> = (0..count).map(|_| name(fields)).collect();
        Some(Self {
            store,
            session,
            geometry,
            streams,
            index,
            small,
            open_chunks: open_chunks?,
            next_tail,
            tail,
            past_sessions,
            older_heads,
            unneeded: unneeded?,
        })
    }
}

/// The version of a head that this program does not know.
fn other_version(bytes: &[u8]) -> Option<u32> {
    let mut fields = Fields::new(bytes);
    (fields.array()? == MAGIC).then_some(())?;
    fields.u32().filter(|version| *version > VERSION)
}

fn decode_index(fields: &mut Fields<'_>, streams: &Streams) -> Option<Index> {
    let mut index = Index::new(streams.columns().len());
    for (column, shape) in streams.columns().iter().enumerate() {
        let mut end = 0;
        for _ in 0..fields.count(RUNS_MAX)? {
            let (first, places) = (fields.u64()?, fields.u64()?);
            let session = fields.u64()?;
            let stream = u16::try_from(fields.u64()?).ok()?;
            let number = fields.u64()?;
            let is_in_stream = streams.get(stream)?.find(column).is_some();
            let is_sound = is_in_stream
                && first >= end
                && places > 0
                && first.checked_add(places)? <= shape.buckets
                && number.checked_add(places).is_some()
                && index.run_count() < RUNS_MAX;
            if !is_sound {
                return None;
            }
            end = first + places;
            index.insert(column, first, Run { places, first: Slot { session, stream, number } });
        }
    }
    Some(index)
}

fn decode_small(
    fields: &mut Fields<'_>,
    shapes: &[TreeShape],
    geometry: Geometry,
) -> Option<SmallTrees> {
    let mut small = SmallTrees::new(shapes, geometry.small_bytes_max);
    let bytes = fields.bytes(small.bytes().len())?;
    small.bytes_mut().copy_from_slice(bytes);
    Some(small)
}

fn start(kind: u32, store: StoreName, session_name: SessionName) -> Vec<u8> {
    let mut bytes = Vec::from(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend(store);
    bytes.extend(session_name);
    bytes
}

fn finish(bytes: &mut Vec<u8>) {
    let checksum: [u8; CHECKSUM_BYTES] = Sha256::digest(&*bytes).into();
    bytes.extend(checksum);
}

fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend(number.to_le_bytes());
}

fn put_numbers(bytes: &mut Vec<u8>, numbers: &[u64]) {
    put(bytes, numbers.len() as u64);
    numbers.iter().for_each(|number| put(bytes, *number));
}

fn numbers(fields: &mut Fields<'_>, max: usize) -> Option<Vec<u64>> {
    let count = fields.count(max)?;
    (0..count).map(|_| fields.u64()).collect()
}

const CHUNK: u64 = 1;
const TAIL: u64 = 2;
const HEAD: u64 = 3;

fn numbers_of(name: ObjectName) -> [u64; 4] {
    match name {
        ObjectName::Chunk { session, stream, number } => [CHUNK, session, stream.into(), number],
        ObjectName::Tail { session, number } => [TAIL, session, 0, number],
        ObjectName::Head(number) => [HEAD, 0, 0, number],
        // Probes are deleted before the first head.
        ObjectName::Probe { .. } => [0; 4],
    }
}

fn name(fields: &mut Fields<'_>) -> Option<ObjectName> {
    let (kind, session, stream, number) =
        (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
    match kind {
        CHUNK => Some(ObjectName::Chunk { session, stream: stream.try_into().ok()?, number }),
        TAIL => Some(ObjectName::Tail { session, number }),
        HEAD => Some(ObjectName::Head(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_read_as_written_and_anything_else_is_void() {
        let written = encode_fence([1; 16], [2; 16]);
        assert!(matches!(
            Head::decode(&written),
            Head::Fence { store } if store == [1; 16]
        ));
        for end in 0..written.len() {
            assert!(matches!(Head::decode(&written[..end]), Head::Void), "{end} bytes");
        }
        for at in 0..written.len() {
            let mut changed = written.clone();
            changed[at] ^= 0x80;
            let head = Head::decode(&changed);
            // A greater version is not void, although its checksum is wrong: a newer program may
            // compute another checksum.
            let is_newer = matches!(head, Head::UnknownVersion(_));
            assert!(is_newer == (16..20).contains(&at), "byte {at}");
            assert!(is_newer || matches!(head, Head::Void), "byte {at}");
        }
    }
}
