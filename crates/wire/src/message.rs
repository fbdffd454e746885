//! What is said: values, and the bytes that they are sent as.
//!
//! A connection is for one volume. The client begins with [`Request::Hello`]; once it was answered, it opens, and then asks as
//! much as it likes without waiting for answers. Requests are done one after the other, in their order, and each is answered.

use bytes::Bytes;
use oblivio_core::StoreErrorKind;
use oblivio_core::geometry::BucketId;
use oblivio_core::store::{LevelShape, Part, Piece, TreeId, TreeShape};

use crate::fields::{Fields, put_text};
use crate::keys::PublicKey;

/// The first bytes that each side sends.
pub const MAGIC: [u8; 16] = *b"OBLIVIO STORE\r\n\0";

/// What is said here. Others are refused.
pub const VERSION: u32 = 1;

/// Bytes of a message, at most: of what a read brings, a write carries, and of everything else.
pub const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// Bytes of a piece in a message.
pub const PIECE_BYTES: usize = 16;

/// Bytes of a [`Request::Write`] besides those for each piece and those that the pieces hold.
pub const WRITE_BYTES: usize = 13;

/// Bytes of an [`Answer::Data`] besides those that the pieces hold.
pub const DATA_BYTES: usize = 9;

/// Bytes of a [`Request::Compute`] besides those of what is to be computed.
pub const COMPUTE_BYTES: usize = 9;

/// Pieces of a request, at most.
pub const PIECES_MAX: usize = 1 << 16;

/// The most trees of a volume, and the most levels of all of them together.
pub const TREES_MAX: usize = 256;
/// See [`TREES_MAX`].
pub const LEVELS_MAX: usize = 1280;

/// Sentences of a kind about a volume, at most.
const SENTENCES_MAX: usize = 64;

/// Bytes of the shape of a level in a message.
const LEVEL_BYTES: usize = 42;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The first of a connection.
    Hello {
        /// [`VERSION`].
        version: u32,
    },
    /// Opens a volume of this client. What the session before it has asked is refused from now on if this one may write.
    Open {
        /// What the volume is called: see [`check_name`].
        name: String,
        /// How.
        mode: OpenMode,
    },
    /// Goes on with a session after its connection was lost. Nobody else may have opened to write meanwhile.
    Resume {
        /// What the volume is called.
        name: String,
        /// That of [`Opened`].
        session: u64,
    },
    /// Whether there is a volume of this name. It is not opened.
    Look {
        /// What it would be called.
        name: String,
    },
    /// Removes a volume that nobody has open.
    Remove {
        /// What it is called.
        name: String,
    },
    /// Reads pieces.
    Read {
        /// Of the request. Its answer bears it.
        number: u64,
        /// In the order in which their bytes are wanted.
        pieces: Vec<Piece>,
    },
    /// Writes pieces.
    Write {
        /// Of the request.
        number: u64,
        /// In the order of their bytes.
        pieces: Vec<Piece>,
        /// What they hold from now on, one after the other.
        bytes: Vec<u8>,
    },
    /// All earlier writes are to be durable.
    Flush {
        /// Of the request.
        number: u64,
    },
    /// Something for what computes on the shares of the volume.
    Compute {
        /// Of the request. Its answer bears it.
        number: u64,
        /// Understood there alone.
        message: Vec<u8>,
    },
    /// Instead of [`Request::Open`], from another server: all that follows are messages for the shares of this volume.
    Peer {
        /// Whose volume it is.
        client: PublicKey,
        /// What it is called.
        name: String,
    },
    /// What another server has dealt. It is not answered.
    Deal {
        /// Understood by what computes alone.
        message: Vec<u8>,
    },
}

/// How a volume is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It is made, with trees of these shapes.
    Create(Vec<TreeShape>),
    /// To read and write. Whoever had it open is fenced off.
    Write,
    /// To read, while nobody has it open to write.
    Read {
        /// Also if a part of it is gone.
        may_be_cut_off: bool,
    },
    /// To read, whoever has it open: to see whether it could be opened, before somebody is fenced off for that.
    Look,
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Request::Hello`].
    Welcome {
        /// [`VERSION`].
        version: u32,
    },
    /// To [`Request::Open`] and [`Request::Resume`].
    Opened(Opened),
    /// To [`Request::Look`].
    Looked {
        /// Whether there is such a volume.
        is_there: bool,
    },
    /// To [`Request::Read`] and [`Request::Compute`].
    Data {
        /// Of the request.
        number: u64,
        /// What the pieces hold, one after the other, or what was computed. They lie where the message came.
        bytes: Bytes,
    },
    /// To [`Request::Write`], [`Request::Flush`] (by then all is durable), [`Request::Remove`] and [`Request::Peer`] (number 0).
    Done {
        /// Of the request.
        number: u64,
    },
    /// Before the answer to [`Request::Compute`], now and then: it is still worked on.
    Working,
    /// Instead of any of these. Whatever was asked behind it is not done, except after [`FailureKind::Absent`].
    Failed(Failure),
}

/// A volume that was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Greater than those of all openings to write before.
    pub session: u64,
    /// Drawn when the server opened the store. What was written since then is kept as long as it stays the same; if it is another, all
    /// that was not flushed may be lost.
    pub incarnation: u64,
    /// What the volume has, `TreeId(0)` first.
    pub shapes: Vec<TreeShape>,
    /// Bytes that it takes there.
    pub allocated_bytes: u64,
    /// A part of it is gone.
    pub is_cut_off: bool,
    /// What is wrong with it, a sentence for each.
    pub damage: Vec<String>,
    /// What was wrong with it and has been mended.
    pub mended: Vec<String>,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Of the request; 0 before anything is opened.
    pub number: u64,
    /// What a client should know of it.
    pub kind: FailureKind,
    /// For people.
    pub message: String,
}

/// What a client should know of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FailureKind {
    /// The message was not understood, or came when it should not.
    Invalid = 1,
    /// Another version is spoken, or what is there was made by another one.
    UnknownVersion = 2,
    /// There is no such volume.
    NoVolume = 3,
    /// There is one already.
    Exists = 4,
    /// Somebody else has it open.
    InUse = 5,
    /// Another client has taken it over.
    Fenced = 6,
    /// There is no room, or the client may have no more.
    Full = 7,
    /// What is there is not whole.
    Damaged = 8,
    /// There is no such piece. Others can still be asked for.
    Absent = 9,
    /// It may not be done.
    Refused = 10,
    /// Anything else.
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

    /// What it is to whoever uses a store.
    pub fn of_store(self) -> StoreErrorKind {
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

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no message of the protocol: {0}")]
pub struct Invalid(pub(crate) &'static str);

impl Invalid {
    /// The sentence for whoever has not sent it, but is about to.
    pub fn why(self) -> &'static str {
        self.0
    }
}

/// Whether a volume may be called so: 1 to 64 letters, digits, `-`, `_` and `.`, the first of them a letter or a digit. So a
/// name is one of a file, whatever the system.
pub fn check_name(name: &str) -> Result<(), Invalid> {
    let is_sound = (1..=64).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    is_sound.then_some(()).ok_or(Invalid(
        "a volume has a name of 1 to 64 letters, digits, -, _ and ., and begins with a letter or a digit",
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
    pub(super) const READ_WHAT_IS_LEFT: u8 = 4;
    pub(super) const LOOK: u8 = 5;
}

impl Request {
    /// That by which its answer names it; 0 for those that have none.
    pub fn number(&self) -> u64 {
        match self {
            Self::Read { number, .. }
            | Self::Write { number, .. }
            | Self::Flush { number }
            | Self::Compute { number, .. } => *number,
            _ => 0,
        }
    }

    /// As it is sent.
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
                    OpenMode::Read { may_be_cut_off: false } => out.push(mode::READ),
                    OpenMode::Read { may_be_cut_off: true } => out.push(mode::READ_WHAT_IS_LEFT),
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

    /// What bytes say. They may be anything.
    ///
    /// # Errors
    /// When they are no request.
    pub fn decode(message: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of(message);
        let request = match fields.u8()? {
            kind::HELLO => Self::Hello { version: version(&mut fields)? },
            kind::OPEN => {
                let name = name(&mut fields)?;
                let mode = match fields.u8()? {
                    mode::CREATE => OpenMode::Create(shapes(&mut fields)?),
                    mode::WRITE => OpenMode::Write,
                    mode::READ => OpenMode::Read { may_be_cut_off: false },
                    mode::READ_WHAT_IS_LEFT => OpenMode::Read { may_be_cut_off: true },
                    mode::LOOK => OpenMode::Look,
                    _ => return Err(Invalid("there is no such way to open")),
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
                let client = PublicKey::of_bytes(fields.array()?);
                Self::Peer { client, name: name(&mut fields)? }
            }
            kind::DEAL => Self::Deal { message: fields.rest().to_vec() },
            _ => return Err(Invalid("there is no such request")),
        };
        fields.end()?;
        Ok(request)
    }
}

/// What a [`Request::Deal`] begins with: whoever has the bytes that are dealt sends them behind it.
pub const DEAL_HEAD: [u8; 1] = [kind::DEAL];

/// Appends what a [`Request::Write`] begins with: whoever has the bytes of the pieces, or seals them in place, appends them.
pub fn put_write_head(out: &mut Vec<u8>, number: u64, pieces: &[Piece]) {
    out.push(kind::WRITE);
    out.extend(number.to_le_bytes());
    put_pieces(out, pieces);
}

/// Appends what an [`Answer::Data`] begins with, and makes room for the bytes of the pieces, which are appended by whoever has them.
pub fn put_data_head(out: &mut Vec<u8>, number: u64, bytes: usize) {
    out.reserve_exact(DATA_BYTES + bytes);
    out.push(kind::DATA);
    out.extend(number.to_le_bytes());
}

impl Answer {
    /// As it is sent.
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

    /// What bytes say. They may be anything.
    ///
    /// # Errors
    /// When they are no answer.
    pub fn decode(message: &Bytes) -> Result<Self, Invalid> {
        let mut fields = Fields::of(message);
        let answer = match fields.u8()? {
            kind::WELCOME => Self::Welcome { version: version(&mut fields)? },
            kind::OPENED => {
                let (session, incarnation) = (fields.u64()?, fields.u64()?);
                let (allocated_bytes, is_cut_off) = (fields.u64()?, fields.flag()?);
                let mut sentences = || {
                    let count = fields.count(2)?;
                    if count > SENTENCES_MAX {
                        return Err(Invalid("there are too many sentences"));
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
                let kind = kind.ok_or(Invalid("there is no such failure"))?;
                Self::Failed(Failure { number, kind, message: fields.text()? })
            }
            _ => return Err(Invalid("there is no such answer")),
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

/// Behind what says that this is the protocol. A newer version may say more, which is left unread.
fn version(fields: &mut Fields<'_>) -> Result<u32, Invalid> {
    if fields.array()? != MAGIC {
        return Err(Invalid("it begins otherwise"));
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
        return Err(Invalid("there are too many pieces"));
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
        return Err(Invalid("a piece ends otherwise"));
    }
    let part = match (part, slot) {
        (0, 0) => Part::Whole,
        (1, 0) => Part::Header,
        (2, slot) => Part::Slot(slot),
        _ => return Err(Invalid("there is no such part of a bucket")),
    };
    let index = fields.u64()?;
    if level >= 64 || index >> level != 0 {
        return Err(Invalid("there is no such bucket in any tree"));
    }
    Ok(Piece { tree, bucket: BucketId::new(level, index), part })
}

fn put_shapes(out: &mut Vec<u8>, shapes: &[TreeShape]) {
    out.extend((shapes.len() as u32).to_le_bytes());
    for shape in shapes {
        out.extend((shape.level_count() as u32).to_le_bytes());
        for level in shape.levels() {
            let LevelShape { buckets, slots, header_bytes, slots_offset, slot_bytes, bucket_bytes } =
                *level;
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
        return Err(Invalid("there are too many trees"));
    }
    let mut shapes = Vec::with_capacity(trees);
    for _ in 0..trees {
        let levels = fields.count(LEVEL_BYTES)?;
        levels_left =
            levels_left.checked_sub(levels).ok_or(Invalid("there are too many levels"))?;
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
            any::<bool>().prop_map(|may_be_cut_off| OpenMode::Read { may_be_cut_off }),
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
                client: PublicKey::of_bytes(client),
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
        fn what_is_said_is_understood(request in any_request(), answer in any_answer()) {
            prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
            prop_assert_eq!(Answer::decode(&answer.encode().into()), Ok(answer));
        }

        /// There is one way to say a thing, and anything else is refused.
        #[test]
        fn what_is_understood_was_said_so(
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
                        let other = matches!(request, Request::Hello { version } if version != VERSION);
                        prop_assert!(other || request.encode() == bytes);
                    }
                    if let Ok(answer) = Answer::decode(&bytes) {
                        let other = matches!(answer, Answer::Welcome { version } if version != VERSION);
                        prop_assert!(other || answer.encode() == bytes);
                    }
                }
            }
        }
    }

    #[test]
    fn names_are_those_of_files_and_lead_nowhere_else() {
        for name in ["a", "disk-1.obl", "0_0", &"x".repeat(64)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", ".", "..", ".a", "-a", "a/b", "a\\b", "ä", "a b", "a\0", &"x".repeat(65)]
        {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_long_message_for_people_is_cut_and_one_of_another_version_is_known_as_such() {
        let message = "ä".repeat(5000);
        let failed = Failure { number: 1, kind: FailureKind::Full, message };
        let Ok(Answer::Failed(said)) = Answer::decode(&Answer::Failed(failed).encode().into())
        else {
            panic!("it is still a failure")
        };
        assert_eq!(said.message.len(), 4096);
        let mut newer = Request::Hello { version: 2 }.encode();
        newer.extend(b"and more");
        assert_eq!(Request::decode(&newer), Ok(Request::Hello { version: 2 }));
    }
}
