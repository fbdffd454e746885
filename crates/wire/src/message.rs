//! Messages as values, and their encoding.
//!
//! A connection is for one volume. The client sends [`Request::Hello`] first, opens a volume once
//! the server has answered, and then sends requests without waiting for answers. The server handles
//! requests one after the other, in their order, and answers each request except [`Request::Deal`].

use bytes::Bytes;
use oblivio_core::StoreErrorKind;
use oblivio_core::geometry::BucketId;
use oblivio_core::store::{LevelShape, Part, Piece, TreeId, TreeShape};

use crate::fields::{Fields, put_text};
use crate::keys::PublicKey;

/// The first bytes of a [`Request::Hello`] and of its answer.
pub const MAGIC: [u8; 16] = *b"OBLIVIO STORE\r\n\0";

/// The version of the protocol. A [`Request::Hello`] of another version is refused.
pub const VERSION: u32 = 1;

/// The maximum number of bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// The number of bytes of an encoded piece.
pub const PIECE_BYTES: usize = 16;

/// Bytes of a [`Request::Write`] without its pieces and their contents.
pub const WRITE_BYTES: usize = 13;

/// Bytes of an [`Answer::Data`] without its contents.
pub const DATA_BYTES: usize = 9;

/// Bytes of a [`Request::Compute`] without its message.
pub const COMPUTE_BYTES: usize = 9;

/// The maximum number of pieces of a request.
pub const PIECES_MAX: usize = 1 << 16;

/// The maximum number of trees of a volume.
pub const TREES_MAX: usize = 256;
/// The maximum number of levels of all trees of a volume together.
pub const LEVELS_MAX: usize = 1280;

/// The maximum number of sentences in each list of [`Opened`].
const SENTENCES_MAX: usize = 64;

/// Bytes of the encoded shape of a level.
const LEVEL_BYTES: usize = 42;

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Begins a connection. The first request of every connection.
    Hello {
        /// The version of the client's protocol: [`VERSION`].
        version: u32,
    },
    /// Opens a volume of this client. If the mode allows writes, the server refuses all later
    /// requests of the previous session.
    Open {
        /// The name of the volume: see [`check_name`].
        name: String,
        /// The mode in which to open the volume.
        mode: OpenMode,
    },
    /// Continues a session after its connection was lost. Fails if the volume was opened for
    /// writing since.
    Resume {
        /// The name of the volume.
        name: String,
        /// The number of the session: see [`Opened::session`].
        session: u64,
    },
    /// Asks whether a volume of this name exists, without opening it.
    Look {
        /// The name of the volume.
        name: String,
    },
    /// Removes a volume that no client has open.
    Remove {
        /// The name of the volume.
        name: String,
    },
    /// Reads pieces of buckets.
    Read {
        /// The number of the request. Its answer repeats it.
        number: u64,
        /// The pieces, in the order of their bytes in the answer.
        pieces: Vec<Piece>,
    },
    /// Writes pieces of buckets.
    Write {
        /// The number of the request. Its answer repeats it.
        number: u64,
        /// The pieces, in the order of their bytes in the request.
        pieces: Vec<Piece>,
        /// The new contents of the pieces, one after the other.
        bytes: Vec<u8>,
    },
    /// Makes all earlier writes durable.
    Flush {
        /// The number of the request. Its answer repeats it.
        number: u64,
    },
    /// Passes a message to the share server that holds this volume's shares.
    Compute {
        /// The number of the request. Its answer repeats it.
        number: u64,
        /// The message. The protocol does not interpret it.
        message: Vec<u8>,
    },
    /// Sent by another share server after [`Request::Hello`], in place of [`Request::Open`]. All
    /// later messages on this connection are for the shares of this volume.
    Peer {
        /// The public key of the client that owns the volume.
        client: PublicKey,
        /// The name of the volume.
        name: String,
    },
    /// Passes a message with the shares that another share server deals. This request has no
    /// answer.
    Deal {
        /// The message. The protocol does not interpret it.
        message: Vec<u8>,
    },
}

/// The mode in which a volume is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Creates the volume, with trees of these shapes.
    Create(Vec<TreeShape>),
    /// Opens the volume to read and write. A client that had it open is fenced.
    Write,
    /// Opens the volume for reading, if no client has it open for writing.
    Read {
        /// Whether to open the volume even if its file was cut off.
        allow_incomplete: bool,
    },
    /// Opens the volume for reading, even while another client has it open. For checks before that
    /// client is fenced.
    Look,
}

/// An answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The answer to [`Request::Hello`].
    Welcome {
        /// The version of the server's protocol: [`VERSION`].
        version: u32,
    },
    /// The answer to [`Request::Open`] and [`Request::Resume`].
    Opened(Opened),
    /// The answer to [`Request::Look`].
    Looked {
        /// Whether the volume exists.
        is_there: bool,
    },
    /// The answer to [`Request::Read`] and [`Request::Compute`].
    Data {
        /// The number of the request.
        number: u64,
        /// The contents of the pieces, one after the other, or the result of the computation. The
        /// bytes share the buffer of the received message.
        bytes: Bytes,
    },
    /// The answer to [`Request::Write`], [`Request::Flush`] (all earlier writes are durable),
    /// [`Request::Remove`] and [`Request::Peer`]. For the last two, the number is 0.
    Done {
        /// The number of the request.
        number: u64,
    },
    /// Sent from time to time before the answer to [`Request::Compute`], while the server still
    /// works on the computation.
    Working,
    /// Sent instead of any other answer. The server does not execute requests that were sent after
    /// the failed one, except after [`FailureKind::Absent`].
    Failed(Failure),
}

/// An opened volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The session number: 0 for a reader. For a writer, greater than the number of each earlier
    /// session, or the number of the resumed session.
    pub session: u64,
    /// A random number that the server draws when it opens the store. While the number stays the
    /// same, no write has been lost. If it changes, all unflushed writes may be lost.
    pub incarnation: u64,
    /// The shapes of the trees of the volume, `TreeId(0)` first.
    pub shapes: Vec<TreeShape>,
    /// Bytes that the volume takes on the server.
    pub allocated_bytes: u64,
    /// Whether the volume's file was cut off.
    pub is_cut_off: bool,
    /// Damage that remains, as one sentence per problem.
    pub damage: Vec<String>,
    /// Damage that was repaired, as one sentence per problem.
    pub mended: Vec<String>,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The number of the request; 0 if the request has no number or could not be parsed.
    pub number: u64,
    /// The kind of the failure, for programs.
    pub kind: FailureKind,
    /// The human-readable message of the failure.
    pub message: String,
}

/// The kind of a failure, which decides what the client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FailureKind {
    /// The request was malformed, or not allowed at this point of the connection.
    Invalid = 1,
    /// The peer speaks another version, or the volume has another format version.
    UnknownVersion = 2,
    /// The volume does not exist.
    NoVolume = 3,
    /// The volume already exists.
    Exists = 4,
    /// Another client has the volume open.
    InUse = 5,
    /// Another client has taken over the volume.
    Fenced = 6,
    /// The disk is full, or the client's quota is reached.
    Full = 7,
    /// The volume is damaged.
    Damaged = 8,
    /// The piece does not exist. The connection stays usable.
    Absent = 9,
    /// The request is not allowed.
    Refused = 10,
    /// Any other failure.
    Failed = 11,
}

impl FailureKind {
    const ALL: [Self; 11] = [
        Self::Invalid,
        Self::UnknownVersion,
        Self::NoVolume,
        Self::Exists,
        Self::InUse,
        Self::Fenced,
        Self::Full,
        Self::Damaged,
        Self::Absent,
        Self::Refused,
        Self::Failed,
    ];

    /// The error kind of a store that corresponds to this failure.
    pub fn store_kind(self) -> StoreErrorKind {
        match self {
            Self::Fenced => StoreErrorKind::Fenced,
            Self::Full => StoreErrorKind::Full,
            Self::Damaged => StoreErrorKind::Damaged,
            Self::Absent | Self::Refused | Self::InUse => StoreErrorKind::Refused,
            Self::UnknownVersion => StoreErrorKind::UnknownVersion,
            Self::Invalid | Self::NoVolume | Self::Exists | Self::Failed => StoreErrorKind::Failed,
        }
    }
}

impl From<StoreErrorKind> for FailureKind {
    fn from(kind: StoreErrorKind) -> Self {
        match kind {
            StoreErrorKind::Fenced => Self::Fenced,
            StoreErrorKind::Full => Self::Full,
            StoreErrorKind::Damaged => Self::Damaged,
            StoreErrorKind::Refused => Self::Refused,
            StoreErrorKind::UnknownVersion => Self::UnknownVersion,
            _ => Self::Failed,
        }
    }
}

/// Why bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a message of the protocol: {0}")]
pub struct Invalid(pub(crate) &'static str);

impl Invalid {
    /// The reason alone, without a prefix, for a caller that checks a value before it sends the
    /// value.
    pub fn why(self) -> &'static str {
        self.0
    }
}

/// Checks the name of a volume: 1 to 64 letters, digits, `-`, `_` and `.`. The first character is a
/// letter or a digit. Such a name is safe as a file name on any system.
pub fn check_name(name: &str) -> Result<(), Invalid> {
    let is_sound = (1..=64).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    is_sound.then_some(()).ok_or(Invalid(
        "a volume name has 1 to 64 letters, digits, -, _ or ., and begins with a letter or digit",
    ))
}

mod kind {
    pub(super) const HELLO: u8 = 1;
    pub(super) const OPEN: u8 = 2;
    pub(super) const RESUME: u8 = 3;
    pub(super) const LOOK: u8 = 4;
    pub(super) const REMOVE: u8 = 5;
    pub(super) const READ: u8 = 6;
    pub(super) const WRITE: u8 = 7;
    pub(super) const FLUSH: u8 = 8;
    pub(super) const COMPUTE: u8 = 9;
    pub(super) const PEER: u8 = 10;
    pub(super) const DEAL: u8 = 11;
    pub(super) const WELCOME: u8 = 129;
    pub(super) const OPENED: u8 = 130;
    pub(super) const LOOKED: u8 = 132;
    pub(super) const DATA: u8 = 134;
    pub(super) const DONE: u8 = 135;
    pub(super) const FAILED: u8 = 136;
    pub(super) const WORKING: u8 = 137;
}

mod mode {
    pub(super) const CREATE: u8 = 1;
    pub(super) const WRITE: u8 = 2;
    pub(super) const READ: u8 = 3;
    pub(super) const READ_INCOMPLETE: u8 = 4;
    pub(super) const LOOK: u8 = 5;
}

impl Request {
    /// The number that the answer to this request repeats; 0 for requests without a number.
    pub fn number(&self) -> u64 {
        match self {
            Self::Read { number, .. }
            | Self::Write { number, .. }
            | Self::Flush { number }
            | Self::Compute { number, .. } => *number,
            _ => 0,
        }
    }

    /// Encodes the request.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { version } => hello(kind::HELLO, *version),
            Self::Open { name, mode } => {
                let mut out = vec![kind::OPEN];
                put_text(&mut out, name);
                match mode {
                    OpenMode::Create(shapes) => {
                        out.push(mode::CREATE);
                        put_shapes(&mut out, shapes);
                    }
                    OpenMode::Write => out.push(mode::WRITE),
                    OpenMode::Read { allow_incomplete: false } => out.push(mode::READ),
                    OpenMode::Read { allow_incomplete: true } => out.push(mode::READ_INCOMPLETE),
                    OpenMode::Look => out.push(mode::LOOK),
                }
                out
            }
            Self::Resume { name, session } => {
                let mut out = vec![kind::RESUME];
                put_text(&mut out, name);
                out.extend(session.to_le_bytes());
                out
            }
            Self::Look { name } => named(kind::LOOK, name),
            Self::Remove { name } => named(kind::REMOVE, name),
            Self::Read { number, pieces } => {
                let mut out = numbered(kind::READ, *number);
                put_pieces(&mut out, pieces);
                out
            }
            Self::Write { number, pieces, bytes } => {
                let mut out =
                    Vec::with_capacity(WRITE_BYTES + pieces.len() * PIECE_BYTES + bytes.len());
                put_write_head(&mut out, *number, pieces);
                out.extend(bytes);
                out
            }
            Self::Flush { number } => numbered(kind::FLUSH, *number),
            Self::Compute { number, message } => {
                let mut out = Vec::with_capacity(COMPUTE_BYTES + message.len());
                out.push(kind::COMPUTE);
                out.extend(number.to_le_bytes());
                out.extend(message);
                out
            }
            Self::Peer { client, name } => {
                let mut out = vec![kind::PEER];
                out.extend(client.bytes());
                put_text(&mut out, name);
                out
            }
            Self::Deal { message } => [&DEAL_HEAD, &message[..]].concat(),
        }
    }

    /// Parses a request from untrusted bytes.
    ///
    /// # Errors
    /// If the bytes are not exactly one request.
    pub fn decode(message: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::new(message);
        let request = match fields.u8()? {
            kind::HELLO => Self::Hello { version: version(&mut fields)? },
            kind::OPEN => {
                let name = name(&mut fields)?;
                let mode = match fields.u8()? {
                    mode::CREATE => OpenMode::Create(shapes(&mut fields)?),
                    mode::WRITE => OpenMode::Write,
                    mode::READ => OpenMode::Read { allow_incomplete: false },
                    mode::READ_INCOMPLETE => OpenMode::Read { allow_incomplete: true },
                    mode::LOOK => OpenMode::Look,
                    _ => return Err(Invalid("unknown mode of opening")),
                };
                Self::Open { name, mode }
            }
            kind::RESUME => Self::Resume { name: name(&mut fields)?, session: fields.u64()? },
            kind::LOOK => Self::Look { name: name(&mut fields)? },
            kind::REMOVE => Self::Remove { name: name(&mut fields)? },
            kind::READ => Self::Read { number: fields.u64()?, pieces: pieces(&mut fields)? },
            kind::WRITE => {
                let (number, pieces) = (fields.u64()?, pieces(&mut fields)?);
                Self::Write { number, pieces, bytes: fields.rest().to_vec() }
            }
            kind::FLUSH => Self::Flush { number: fields.u64()? },
            kind::COMPUTE => {
                Self::Compute { number: fields.u64()?, message: fields.rest().to_vec() }
            }
            kind::PEER => {
                let client = PublicKey::from_bytes(fields.array()?);
                Self::Peer { client, name: name(&mut fields)? }
            }
            kind::DEAL => Self::Deal { message: fields.rest().to_vec() },
            _ => return Err(Invalid("unknown request")),
        };
        fields.end()?;
        Ok(request)
    }
}

/// The first bytes of a [`Request::Deal`], for callers that send the message separately.
pub const DEAL_HEAD: [u8; 1] = [kind::DEAL];

/// Appends a [`Request::Write`] without the contents of its pieces. The caller appends or seals
/// them in place.
pub fn put_write_head(out: &mut Vec<u8>, number: u64, pieces: &[Piece]) {
    out.push(kind::WRITE);
    out.extend(number.to_le_bytes());
    put_pieces(out, pieces);
}

/// Appends an [`Answer::Data`] without its contents, and reserves memory for `bytes` bytes, which
/// the caller appends.
pub fn put_data_head(out: &mut Vec<u8>, number: u64, bytes: usize) {
    out.reserve_exact(DATA_BYTES + bytes);
    out.push(kind::DATA);
    out.extend(number.to_le_bytes());
}

impl Answer {
    /// Encodes the answer.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Welcome { version } => hello(kind::WELCOME, *version),
            Self::Opened(opened) => {
                let mut out = vec![kind::OPENED];
                let Opened { session, incarnation, shapes, allocated_bytes, is_cut_off, .. } =
                    opened;
                for number in [session, incarnation, allocated_bytes] {
                    out.extend(number.to_le_bytes());
                }
                out.push(u8::from(*is_cut_off));
                for sentences in [&opened.damage, &opened.mended] {
                    let sentences = &sentences[..sentences.len().min(SENTENCES_MAX)];
                    out.extend((sentences.len() as u32).to_le_bytes());
                    sentences.iter().for_each(|sentence| put_text(&mut out, sentence));
                }
                put_shapes(&mut out, shapes);
                out
            }
            Self::Looked { is_there } => vec![kind::LOOKED, u8::from(*is_there)],
            Self::Data { number, bytes } => {
                let mut out = Vec::new();
                put_data_head(&mut out, *number, bytes.len());
                out.extend(bytes);
                out
            }
            Self::Done { number } => numbered(kind::DONE, *number),
            Self::Working => vec![kind::WORKING],
            Self::Failed(Failure { number, kind, message }) => {
                let mut out = numbered(kind::FAILED, *number);
                out.push(*kind as u8);
                put_text(&mut out, message);
                out
            }
        }
    }

    /// Parses an answer from untrusted bytes.
    ///
    /// # Errors
    /// If the bytes are not exactly one answer.
    pub fn decode(message: &Bytes) -> Result<Self, Invalid> {
        let mut fields = Fields::new(message);
        let answer = match fields.u8()? {
            kind::WELCOME => Self::Welcome { version: version(&mut fields)? },
            kind::OPENED => {
                let (session, incarnation) = (fields.u64()?, fields.u64()?);
                let (allocated_bytes, is_cut_off) = (fields.u64()?, fields.flag()?);
                let mut sentences = || {
                    let count = fields.count(2)?;
                    if count > SENTENCES_MAX {
                        return Err(Invalid("too many sentences"));
                    }
                    (0..count).map(|_| fields.text()).collect::<Result<_, _>>()
                };
                let (damage, mended) = (sentences()?, sentences()?);
                let shapes = shapes(&mut fields)?;
                Self::Opened(Opened {
                    session,
                    incarnation,
                    shapes,
                    allocated_bytes,
                    is_cut_off,
                    damage,
                    mended,
                })
            }
            kind::LOOKED => Self::Looked { is_there: fields.flag()? },
            kind::DATA => {
                let number = fields.u64()?;
                Self::Data { number, bytes: message.slice_ref(fields.rest()) }
            }
            kind::DONE => Self::Done { number: fields.u64()? },
            kind::WORKING => Self::Working,
            kind::FAILED => {
                let (number, kind) = (fields.u64()?, fields.u8()?);
                let kind = FailureKind::ALL.into_iter().find(|known| *known as u8 == kind);
                let kind = kind.ok_or(Invalid("unknown kind of failure"))?;
                Self::Failed(Failure { number, kind, message: fields.text()? })
            }
            _ => return Err(Invalid("unknown answer")),
        };
        fields.end()?;
        Ok(answer)
    }
}

fn hello(kind: u8, version: u32) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend(MAGIC);
    out.extend(version.to_le_bytes());
    out
}

fn named(kind: u8, name: &str) -> Vec<u8> {
    let mut out = vec![kind];
    put_text(&mut out, name);
    out
}

fn numbered(kind: u8, number: u64) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend(number.to_le_bytes());
    out
}

/// Checks the magic and reads the version. A message of another version may be longer, so the rest
/// is ignored.
fn version(fields: &mut Fields<'_>) -> Result<u32, Invalid> {
    if fields.array()? != MAGIC {
        return Err(Invalid("the magic is wrong"));
    }
    let version = fields.u32()?;
    if version != VERSION {
        fields.rest();
    }
    Ok(version)
}

fn name(fields: &mut Fields<'_>) -> Result<String, Invalid> {
    let name = fields.text()?;
    check_name(&name)?;
    Ok(name)
}

fn put_pieces(out: &mut Vec<u8>, pieces: &[Piece]) {
    out.extend((pieces.len() as u32).to_le_bytes());
    for Piece { tree, bucket, part } in pieces {
        let (part, slot) = match part {
            Part::Whole => (0, 0),
            Part::Header => (1, 0),
            Part::Slot(slot) => (2, *slot),
        };
        out.extend(tree.0.to_le_bytes());
        out.extend([bucket.level(), part]);
        out.extend(slot.to_le_bytes());
        out.extend([0; 2]);
        out.extend(bucket.index().to_le_bytes());
    }
}

fn pieces(fields: &mut Fields<'_>) -> Result<Vec<Piece>, Invalid> {
    let count = fields.count(PIECE_BYTES)?;
    if count > PIECES_MAX {
        return Err(Invalid("too many pieces"));
    }
    let mut pieces = Vec::with_capacity(count);
    for _ in 0..count {
        pieces.push(piece(fields)?);
    }
    Ok(pieces)
}

fn piece(fields: &mut Fields<'_>) -> Result<Piece, Invalid> {
    let (tree, level, part) = (TreeId(fields.u16()?), fields.u8()?, fields.u8()?);
    let slot = fields.u16()?;
    if fields.u16()? != 0 {
        return Err(Invalid("reserved bytes of a piece are not 0"));
    }
    let part = match (part, slot) {
        (0, 0) => Part::Whole,
        (1, 0) => Part::Header,
        (2, slot) => Part::Slot(slot),
        _ => return Err(Invalid("unknown part of a bucket")),
    };
    let index = fields.u64()?;
    if level >= 64 || index >> level != 0 {
        return Err(Invalid("impossible bucket"));
    }
    Ok(Piece { tree, bucket: BucketId::new(level, index), part })
}

fn put_shapes(out: &mut Vec<u8>, shapes: &[TreeShape]) {
    out.extend((shapes.len() as u32).to_le_bytes());
    for shape in shapes {
        out.extend((shape.level_count() as u32).to_le_bytes());
        for level in shape.levels() {
            let LevelShape {
                // Every field: a new one must be sent too.
                buckets,
                slots,
                header_bytes,
                slots_offset,
                slot_bytes,
                bucket_bytes,
            } = *level;
            out.extend(slots.to_le_bytes());
            for number in [buckets, header_bytes, slots_offset, slot_bytes, bucket_bytes] {
                out.extend(number.to_le_bytes());
            }
        }
    }
}

fn shapes(fields: &mut Fields<'_>) -> Result<Vec<TreeShape>, Invalid> {
    let trees = fields.count(4)?;
    let mut levels_left = LEVELS_MAX;
    if trees > TREES_MAX {
        return Err(Invalid("too many trees"));
    }
    let mut shapes = Vec::with_capacity(trees);
    for _ in 0..trees {
        let levels = fields.count(LEVEL_BYTES)?;
        levels_left = levels_left.checked_sub(levels).ok_or(Invalid("too many levels"))?;
        let levels: Result<_, _> = (0..levels).map(|_| level(fields)).collect();
        shapes.push(TreeShape::new(levels?));
    }
    Ok(shapes)
}

fn level(fields: &mut Fields<'_>) -> Result<LevelShape, Invalid> {
    let slots = fields.u16()?;
    Ok(LevelShape {
        slots,
        buckets: fields.u64()?,
        header_bytes: fields.u64()?,
        slots_offset: fields.u64()?,
        slot_bytes: fields.u64()?,
        bucket_bytes: fields.u64()?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_piece() -> impl Strategy<Value = Piece> {
        let part =
            prop_oneof![Just(Part::Whole), Just(Part::Header), any::<u16>().prop_map(Part::Slot)];
        (any::<u16>(), 0u8..64, any::<u64>(), part).prop_map(|(tree, level, index, part)| Piece {
            tree: TreeId(tree),
            bucket: BucketId::new(level, index & ((1 << level) - 1)),
            part,
        })
    }

    fn any_shapes() -> impl Strategy<Value = Vec<TreeShape>> {
        let level = (any::<[u64; 5]>(), any::<u16>()).prop_map(|(numbers, slots)| {
            let [buckets, header_bytes, slots_offset, slot_bytes, bucket_bytes] = numbers;
            LevelShape { buckets, slots, header_bytes, slots_offset, slot_bytes, bucket_bytes }
        });
        let tree = prop::collection::vec(level, 0..5).prop_map(TreeShape::new);
        prop::collection::vec(tree, 0..4)
    }

    fn any_request() -> impl Strategy<Value = Request> {
        let name = || "[a-zA-Z0-9][a-zA-Z0-9._-]{0,20}";
        let pieces = || prop::collection::vec(any_piece(), 0..9);
        let mode = prop_oneof![
            any_shapes().prop_map(OpenMode::Create),
            Just(OpenMode::Write),
            any::<bool>().prop_map(|allow_incomplete| OpenMode::Read { allow_incomplete }),
            Just(OpenMode::Look),
        ];
        prop_oneof![
            Just(Request::Hello { version: VERSION }),
            (name(), mode).prop_map(|(name, mode)| Request::Open { name, mode }),
            (name(), any::<u64>()).prop_map(|(name, session)| Request::Resume { name, session }),
            name().prop_map(|name| Request::Look { name }),
            name().prop_map(|name| Request::Remove { name }),
            (any::<u64>(), pieces()).prop_map(|(number, pieces)| Request::Read { number, pieces }),
            (any::<u64>(), pieces(), any::<Vec<u8>>())
                .prop_map(|(number, pieces, bytes)| Request::Write { number, pieces, bytes }),
            any::<u64>().prop_map(|number| Request::Flush { number }),
            (any::<u64>(), any::<Vec<u8>>())
                .prop_map(|(number, message)| Request::Compute { number, message }),
            (any::<[u8; 32]>(), name()).prop_map(|(client, name)| Request::Peer {
                client: PublicKey::from_bytes(client),
                name
            }),
            any::<Vec<u8>>().prop_map(|message| Request::Deal { message }),
        ]
    }

    fn any_answer() -> impl Strategy<Value = Answer> {
        let sentences = || prop::collection::vec(".{0,30}", 0..3);
        let opened = (any::<[u64; 3]>(), any_shapes(), any::<bool>(), sentences(), sentences());
        let opened = opened.prop_map(|(numbers, shapes, is_cut_off, damage, mended)| {
            let [session, incarnation, allocated_bytes] = numbers;
            Answer::Opened(Opened {
                session,
                incarnation,
                shapes,
                allocated_bytes,
                is_cut_off,
                damage,
                mended,
            })
        });
        let kind = (0..FailureKind::ALL.len()).prop_map(|kind| FailureKind::ALL[kind]);
        prop_oneof![
            Just(Answer::Welcome { version: VERSION }),
            opened,
            any::<bool>().prop_map(|is_there| Answer::Looked { is_there }),
            (any::<u64>(), any::<Vec<u8>>())
                .prop_map(|(number, bytes)| Answer::Data { number, bytes: bytes.into() }),
            any::<u64>().prop_map(|number| Answer::Done { number }),
            Just(Answer::Working),
            (any::<u64>(), kind, ".{0,60}").prop_map(|(number, kind, message)| {
                Answer::Failed(Failure { number, kind, message })
            }),
        ]
    }

    proptest! {
        #[test]
        fn messages_round_trip(request in any_request(), answer in any_answer()) {
            prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
            prop_assert_eq!(Answer::decode(&answer.encode().into()), Ok(answer));
        }

        /// Every message has exactly one encoding: other bytes are refused.
        #[test]
        fn every_message_has_one_encoding(
            request in any_request(),
            answer in any_answer(),
            at: prop::sample::Index,
            byte: u8,
            cut: prop::sample::Index,
        ) {
            for mut bytes in [request.encode(), answer.encode()] {
                let place = at.index(bytes.len());
                bytes[place] = byte;
                let bytes = Bytes::from(bytes);
                for bytes in [bytes.clone(), bytes.slice(..cut.index(bytes.len()))] {
                    if let Ok(request) = Request::decode(&bytes) {
                        let other =
                            matches!(request, Request::Hello { version } if version != VERSION);
                        prop_assert!(other || request.encode() == bytes);
                    }
                    if let Ok(answer) = Answer::decode(&bytes) {
                        let other =
                            matches!(answer, Answer::Welcome { version } if version != VERSION);
                        prop_assert!(other || answer.encode() == bytes);
                    }
                }
            }
        }
    }

    #[test]
    fn volume_names_are_safe_file_names() {
        for name in ["a", "disk-1.obl", "0_0", &"x".repeat(64)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", ".", "..", ".a", "-a", "a/b", "a\\b", "ä", "a b", "a\0", &"x".repeat(65)]
        {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn long_failure_texts_are_cut_and_newer_versions_are_recognized() {
        let message = "ä".repeat(5000);
        let failed = Failure { number: 1, kind: FailureKind::Full, message };
        let Ok(Answer::Failed(failure)) = Answer::decode(&Answer::Failed(failed).encode().into())
        else {
            panic!("the answer is not a failure")
        };
        assert_eq!(failure.message.len(), 4096);
        let mut newer = Request::Hello { version: 2 }.encode();
        newer.extend(b"and more");
        assert_eq!(Request::decode(&newer), Ok(Request::Hello { version: 2 }));
    }
}
