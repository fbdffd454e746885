//! The encoding of the NBD protocol in both directions. All integers are big-endian.
//!
//! Client bytes are untrusted: they are parsed from slices, without I/O. Server messages are
//! appended to buffers.

/// The magic number at the start of a server's greeting.
pub const GREETING_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// The magic number before every option of a client.
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// The magic number before every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// The magic number before every request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// The magic number before every simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// The magic number before every chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Bytes of a client's flags.
pub const CLIENT_FLAGS_BYTES: usize = 4;
/// Bytes of an option's header.
pub const OPTION_HEAD_BYTES: usize = 16;
/// Bytes of a request's header.
pub const REQUEST_HEAD_BYTES: usize = 28;
/// The maximum length of a string in the protocol, in bytes.
pub const STRING_BYTES_MAX: usize = 4096;
/// The maximum length of an option's data in bytes. This is enough for a name and a request for
/// every kind of information.
pub const OPTION_BYTES_MAX: u32 = 8192;

/// Handshake flag of both sides: options get replies.
pub const FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flag of both sides: no padding after [`option::EXPORT_NAME`].
pub const NO_ZEROES: u16 = 1 << 1;

/// The options of a client.
pub mod option {
    #![allow(missing_docs, reason = "the names of the specification")]
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
}

/// The replies to options.
pub mod option_reply {
    #![allow(missing_docs, reason = "the names of the specification")]
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    pub const ERR_POLICY: u32 = 1 << 31 | 2;
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    pub const ERR_TLS_REQD: u32 = 1 << 31 | 5;
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
}

/// The kinds of information about an export.
pub mod info {
    #![allow(missing_docs, reason = "the names of the specification")]
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// The transmission flags: capabilities of an export.
pub mod export_flag {
    #![allow(missing_docs, reason = "the names of the specification")]
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// The commands of a client.
pub mod command {
    #![allow(missing_docs, reason = "the names of the specification")]
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const WRITE_ZEROES: u16 = 6;
}

/// The flags of a command.
pub mod command_flag {
    #![allow(missing_docs, reason = "the names of the specification")]
    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// The kinds of chunks of a structured reply.
mod chunk {
    pub(super) const NONE: u16 = 0;
    pub(super) const OFFSET_DATA: u16 = 1;
    pub(super) const ERROR: u16 = 1 << 15 | 1;
    pub(super) const ERROR_OFFSET: u16 = 1 << 15 | 2;
    /// Flag: this chunk is the last of its reply.
    pub(super) const DONE: u16 = 1 << 0;
}

/// The reason why a request failed, with the protocol's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Errno {
    /// The request is not permitted, because the export is read-only.
    Perm = 1,
    /// The disk failed.
    Io = 5,
    /// The request is invalid.
    Inval = 22,
    /// The disk has no space left, or the request writes past the end of the disk.
    NoSpace = 28,
    /// The request is not supported in this form.
    NotSup = 95,
    /// The disk is closed or closing.
    Shutdown = 108,
}

/// Bytes that violate the protocol, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// The client's flags, sent after the greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFlags {
    /// The client expects replies to its options.
    pub fixed_newstyle: bool,
    /// The client expects no padding after [`option::EXPORT_NAME`].
    pub no_zeroes: bool,
}

impl ClientFlags {
    /// Parses the flags.
    ///
    /// # Errors
    /// If they contain a flag that the server did not offer.
    pub fn parse(bytes: [u8; CLIENT_FLAGS_BYTES]) -> Result<Self, Malformed> {
        let flags = u32::from_be_bytes(bytes);
        let (fixed_newstyle, no_zeroes) = (u32::from(FIXED_NEWSTYLE), u32::from(NO_ZEROES));
        if flags & !(fixed_newstyle | no_zeroes) != 0 {
            return Err(Malformed("unknown client flags"));
        }
        Ok(Self { fixed_newstyle: flags & fixed_newstyle != 0, no_zeroes: flags & no_zeroes != 0 })
    }
}

/// The header of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHead {
    /// The code of the option.
    pub code: u32,
    /// Bytes of data that follow, at most [`OPTION_BYTES_MAX`].
    pub bytes: u32,
}

impl OptionHead {
    /// Parses the header.
    ///
    /// # Errors
    /// If the magic is wrong or the option is too long.
    pub fn parse(bytes: [u8; OPTION_HEAD_BYTES]) -> Result<Self, Malformed> {
        let mut fields = Fields(&bytes);
        if fields.u64() != Some(OPTION_MAGIC) {
            return Err(Malformed("wrong magic of an option"));
        }
        match (fields.u32(), fields.u32()) {
            (Some(code), Some(bytes)) if bytes <= OPTION_BYTES_MAX => Ok(Self { code, bytes }),
            _ => Err(Malformed("an option that is too long")),
        }
    }
}

/// An option of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientOption<'a> {
    /// Choose an export and start transmission. The protocol has no error reply to it.
    ExportName(&'a [u8]),
    /// Abort the negotiation and end the connection.
    Abort,
    /// List the exports.
    List,
    /// Start TLS.
    StartTls,
    /// Get information about an export.
    Info(ExportQuery<'a>),
    /// Choose an export and start transmission.
    Go(ExportQuery<'a>),
    /// Use structured replies to reads.
    StructuredReply,
    /// An unknown option.
    Unknown,
}

/// The data of [`ClientOption::Info`] and [`ClientOption::Go`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportQuery<'a> {
    /// The name of the export; empty for the default one.
    pub name: &'a [u8],
    /// Whether the client requests [`info::NAME`].
    pub wants_name: bool,
    /// Whether the client requests [`info::DESCRIPTION`].
    pub wants_description: bool,
}

impl<'a> ClientOption<'a> {
    /// Parses an option of a client. If parsing fails, the server sends an error reply, and the
    /// connection continues.
    ///
    /// # Errors
    /// If `data` does not fit `code`.
    pub fn parse(code: u32, data: &'a [u8]) -> Result<Self, Malformed> {
        let bare = |option| {
            if data.is_empty() { Ok(option) } else { Err(Malformed("an option with extra data")) }
        };
        match code {
            option::EXPORT_NAME => Ok(Self::ExportName(data)),
            option::ABORT => Ok(Self::Abort),
            option::LIST => bare(Self::List),
            option::STARTTLS => bare(Self::StartTls),
            option::INFO => ExportQuery::parse(data).map(Self::Info),
            option::GO => ExportQuery::parse(data).map(Self::Go),
            option::STRUCTURED_REPLY => bare(Self::StructuredReply),
            _ => Ok(Self::Unknown),
        }
    }
}

impl<'a> ExportQuery<'a> {
    fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(data);
        let cut_short = Malformed("a truncated option");
        let name_bytes = fields.u32().ok_or(cut_short)?;
        let name_bytes = usize::try_from(name_bytes).map_err(|_| cut_short)?;
        if name_bytes > STRING_BYTES_MAX {
            return Err(Malformed("an export name that is too long"));
        }
        let name = fields.bytes(name_bytes).ok_or(cut_short)?;
        let infos = fields.u16().ok_or(cut_short)?;
        let mut query = Self { name, wants_name: false, wants_description: false };
        for _ in 0..infos {
            match fields.u16().ok_or(cut_short)? {
                info::NAME => query.wants_name = true,
                info::DESCRIPTION => query.wants_description = true,
                _ => {}
            }
        }
        if fields.0.is_empty() { Ok(query) } else { Err(Malformed("an option with extra data")) }
    }
}

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Flags from [`command_flag`].
    pub flags: u16,
    /// A command from [`command`].
    pub command: u16,
    /// The client's identifier of the request; the reply repeats it.
    pub cookie: u64,
    /// Offset of the range on the disk.
    pub offset: u64,
    /// Length of the range in bytes.
    pub bytes: u32,
}

impl RequestHead {
    /// Parses the header.
    ///
    /// # Errors
    /// If the magic is wrong.
    pub fn parse(bytes: [u8; REQUEST_HEAD_BYTES]) -> Result<Self, Malformed> {
        let mut fields = Fields(&bytes);
        if fields.u32() != Some(REQUEST_MAGIC) {
            return Err(Malformed("wrong magic of a request"));
        }
        let mut read = || {
            Some(Self {
                flags: fields.u16()?,
                command: fields.u16()?,
                cookie: fields.u64()?,
                offset: fields.u64()?,
                bytes: fields.u32()?,
            })
        };
        read().ok_or(Malformed("a truncated request"))
    }
}

/// Parses consecutive fields. Each method returns `None` if too few bytes are left.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(field)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}

/// Appends the server's greeting.
pub fn push_greeting(out: &mut Vec<u8>) {
    out.extend(GREETING_MAGIC.to_be_bytes());
    out.extend(OPTION_MAGIC.to_be_bytes());
    out.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
}

/// Appends a reply to the option `code`, with `parts` as its data.
pub fn push_option_reply(out: &mut Vec<u8>, code: u32, reply: u32, parts: &[&[u8]]) {
    out.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend(code.to_be_bytes());
    out.extend(reply.to_be_bytes());
    out.extend(length(parts.iter().map(|part| part.len()).sum()).to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Appends the reply to [`option::EXPORT_NAME`].
pub fn push_export_name_reply(out: &mut Vec<u8>, export_bytes: u64, flags: u16, no_zeroes: bool) {
    const PADDING: [u8; 124] = [0; 124];
    out.extend(export_bytes.to_be_bytes());
    out.extend(flags.to_be_bytes());
    out.extend_from_slice(if no_zeroes { &[] } else { &PADDING });
}

/// Appends a simple reply. After a successful read, the data follow it.
pub fn push_simple_reply(out: &mut Vec<u8>, cookie: u64, error: Option<Errno>) {
    out.extend(SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend(error.map_or(0, |error| error as u32).to_be_bytes());
    out.extend(cookie.to_be_bytes());
}

/// Whether a chunk is the last of its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsLast(pub bool);

/// Appends the header of a data chunk for `offset`; `bytes` bytes of data follow it. If `bytes` is
/// 0, the chunk has neither an offset nor data.
pub fn push_data_chunk(out: &mut Vec<u8>, cookie: u64, is_last: IsLast, offset: u64, bytes: usize) {
    if bytes == 0 {
        return push_chunk_head(out, chunk::NONE, cookie, is_last, 0);
    }
    push_chunk_head(out, chunk::OFFSET_DATA, cookie, is_last, 8 + bytes);
    out.extend(offset.to_be_bytes());
}

/// Appends an error chunk, for the whole read or for offset `at`. Truncates a long message.
pub fn push_error_chunk(
    out: &mut Vec<u8>,
    cookie: u64,
    is_last: IsLast,
    error: Errno,
    message: &str,
    at: Option<u64>,
) {
    let message = &message[..message.floor_char_boundary(STRING_BYTES_MAX)];
    let (kind, place) = match at {
        None => (chunk::ERROR, Vec::new()),
        Some(offset) => (chunk::ERROR_OFFSET, offset.to_be_bytes().to_vec()),
    };
    push_chunk_head(out, kind, cookie, is_last, 6 + message.len() + place.len());
    out.extend((error as u32).to_be_bytes());
    let message_bytes = u16::try_from(message.len()).expect("STRING_BYTES_MAX fits");
    out.extend(message_bytes.to_be_bytes());
    out.extend_from_slice(message.as_bytes());
    out.extend(place);
}

fn push_chunk_head(out: &mut Vec<u8>, kind: u16, cookie: u64, is_last: IsLast, bytes: usize) {
    let flags = if is_last.0 { chunk::DONE } else { 0 };
    out.extend(CHUNK_MAGIC.to_be_bytes());
    out.extend(flags.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(length(bytes).to_be_bytes());
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("the length of a reply is bounded by its request")
}
