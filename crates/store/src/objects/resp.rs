//! RESP2, the protocol of Redis and Valkey: encoded commands, and an incremental decoder of
//! replies.
//!
//! A server is not trusted. The decoder bounds the length and the nesting of a reply before it
//! allocates, and never panics.
//!
//! ```
//! use oblivio_store::objects::resp::{Command, Decoder, Reply};
//!
//! let command = Command::new(&[b"GETRANGE", b"key", b"0", b"4"]);
//! let sent = command.segments().concat();
//! assert_eq!(sent, b"*4\r\n$8\r\nGETRANGE\r\n$3\r\nkey\r\n$1\r\n0\r\n$1\r\n4\r\n");
//!
//! let mut decoder = Decoder::default();
//! decoder.feed(b"$5\r\nby");
//! assert_eq!(decoder.next(100), Ok(None));
//! decoder.feed(b"tes\r\n");
//! assert_eq!(decoder.next(100), Ok(Some(Reply::Bulk("bytes".into()))));
//! ```

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

/// The maximum nesting of arrays in a reply. `CLUSTER SLOTS` needs 4.
const DEPTH_MAX: usize = 8;

/// The maximum length of a line in bytes: an error, a status, or the length of another reply.
const LINE_BYTES_MAX: usize = 16 << 10;

/// The length of the shortest reply in bytes.
const REPLY_BYTES_MIN: usize = 3;

/// The number of items of an array for which memory is reserved before they arrive.
const RESERVED_ITEMS_MAX: usize = 64;

/// The length in bytes up to which a string is copied. A longer string keeps the buffer of the
/// decoder in memory.
const COPIED_BYTES_MAX: usize = 2048;

/// The end of a line.
const LINE_END: &[u8] = b"\r\n";

/// An encoded command. Long arguments are shared, not copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    segments: Vec<Bytes>,
}

impl Command {
    /// Encodes a command. The first argument is its name.
    pub fn new(arguments: &[&[u8]]) -> Self {
        let mut encoded = header(b'*', arguments.len());
        encode_all(&mut encoded, arguments);
        Self { segments: vec![encoded.into()] }
    }

    /// Encodes a command with one long argument, the concatenation of `parts`, between `before` and
    /// `after`.
    pub fn with_parts(before: &[&[u8]], parts: &[Bytes], after: &[&[u8]]) -> Self {
        let mut start = header(b'*', before.len() + 1 + after.len());
        encode_all(&mut start, before);
        start.extend(header(b'$', parts.iter().map(Bytes::len).sum()));
        let mut end = LINE_END.to_vec();
        encode_all(&mut end, after);
        let segments = [Bytes::from(start)].into_iter();
        Self { segments: segments.chain(parts.iter().cloned()).chain([end.into()]).collect() }
    }

    /// The bytes of the command, in order.
    pub fn segments(&self) -> &[Bytes] {
        &self.segments
    }
}

fn header(kind: u8, count: usize) -> Vec<u8> {
    let mut header = vec![kind];
    header.extend(count.to_string().as_bytes());
    header.extend(LINE_END);
    header
}

fn encode_all(encoded: &mut Vec<u8>, arguments: &[&[u8]]) {
    for argument in arguments {
        encode_bulk(encoded, argument);
    }
}

fn encode_bulk(encoded: &mut Vec<u8>, bytes: &[u8]) {
    encoded.extend(header(b'$', bytes.len()));
    encoded.extend(bytes);
    encoded.extend(LINE_END);
}

/// A reply of a server.
#[derive(Clone, PartialEq, Eq)]
pub enum Reply {
    /// A status such as `OK`.
    Status(Bytes),
    /// An error. Its first word is a code, such as `MOVED`.
    Error(Bytes),
    /// A number.
    Integer(i64),
    /// A string of bytes.
    Bulk(Bytes),
    /// The absence of a string or of an array.
    Null,
    /// A list of replies.
    Array(Vec<Reply>),
}

impl Reply {
    /// Appends the bytes of this reply to `encoded`. An array without items and a null array have
    /// different encodings; [`Null`](Self::Null) is encoded as a null string.
    pub fn encode(&self, encoded: &mut Vec<u8>) {
        match self {
            Self::Status(text) => encode_line(encoded, b'+', text),
            Self::Error(text) => encode_line(encoded, b'-', text),
            Self::Integer(number) => encode_line(encoded, b':', number.to_string().as_bytes()),
            Self::Bulk(bytes) => encode_bulk(encoded, bytes),
            Self::Null => encode_line(encoded, b'$', b"-1"),
            Self::Array(items) => {
                encoded.extend(header(b'*', items.len()));
                for item in items {
                    item.encode(encoded);
                }
            }
        }
    }
}

fn encode_line(encoded: &mut Vec<u8>, kind: u8, text: &[u8]) {
    encoded.push(kind);
    encoded.extend(text);
    encoded.extend(LINE_END);
}

/// Shows the kind and the length, because the bytes of objects do not belong into logs.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(text) => write!(f, "Status({} bytes)", text.len()),
            Self::Error(text) => write!(f, "Error({})", text.escape_ascii()),
            Self::Integer(number) => write!(f, "Integer({number})"),
            Self::Bulk(bytes) => write!(f, "Bulk({} bytes)", bytes.len()),
            Self::Null => f.write_str("Null"),
            Self::Array(items) => f.debug_list().entries(items).finish(),
        }
    }
}

/// Bytes that are no reply of RESP2, or a reply beyond its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(&'static str);

/// Decodes replies from bytes that arrive in any portions.
///
/// The memory in use is at most the bytes that were fed, the limit of [`next`](Self::next), and a
/// few dozen bytes for each item of an array that has arrived.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Bytes that are not decoded yet.
    buffer: BytesMut,
    /// The number of bytes at the start of `buffer` that contain no line end.
    searched: usize,
    /// The length of the string whose header was decoded last.
    bulk: Option<usize>,
    /// The arrays around the next item, the outermost first.
    arrays: Vec<PartialArray>,
    /// The number of bytes of the current reply that were decoded.
    decoded: usize,
}

#[derive(Debug)]
struct PartialArray {
    items: Vec<Reply>,
    missing: usize,
}

/// An encoded reply without the items of an array.
enum Token {
    Value(Reply),
    BulkOf(usize),
    ArrayOf(usize),
}

impl Decoder {
    /// Adds received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether all received bytes belong to replies that were returned.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.bulk.is_none() && self.arrays.is_empty()
    }

    /// Returns the next reply; `None` if more bytes must arrive first. `bytes_max` is the maximum
    /// length of the encoded reply, and must not change before the reply is complete.
    ///
    /// # Errors
    /// If the bytes are not a reply of at most this length. The decoder is of no use after that.
    pub fn next(&mut self, bytes_max: usize) -> Result<Option<Reply>, Invalid> {
        loop {
            let value = match self.bulk {
                Some(bytes) => self.take_bulk(bytes),
                None => match self.take_token(bytes_max)? {
                    None => return Ok(None),
                    Some(Token::Value(value)) => Ok(Some(value)),
                    Some(Token::BulkOf(bytes)) => {
                        self.bulk = Some(bytes);
                        continue;
                    }
                    Some(Token::ArrayOf(missing)) => {
                        let items = Vec::with_capacity(missing.min(RESERVED_ITEMS_MAX));
                        self.arrays.push(PartialArray { items, missing });
                        continue;
                    }
                },
            };
            let Some(value) = value? else { return Ok(None) };
            if let Some(reply) = self.complete(value) {
                self.decoded = 0;
                return Ok(Some(reply));
            }
        }
    }

    /// Adds an item to the innermost array. Returns the reply if that completes it.
    fn complete(&mut self, mut value: Reply) -> Option<Reply> {
        while let Some(array) = self.arrays.last_mut() {
            array.items.push(value);
            array.missing -= 1;
            if array.missing > 0 {
                return None;
            }
            value = Reply::Array(self.arrays.pop()?.items);
        }
        Some(value)
    }

    /// Takes the contents of a string of `bytes` bytes, if they have arrived.
    fn take_bulk(&mut self, bytes: usize) -> Result<Option<Reply>, Invalid> {
        let needed = bytes + LINE_END.len();
        if self.buffer.len() < needed {
            // `take_token` has checked the length.
            self.buffer.reserve(needed - self.buffer.len());
            return Ok(None);
        }
        let contents = if bytes <= COPIED_BYTES_MAX {
            let copy = Bytes::copy_from_slice(&self.buffer[..bytes]);
            self.buffer.advance(bytes);
            copy
        } else {
            self.buffer.split_to(bytes).freeze()
        };
        if self.buffer[..LINE_END.len()] != *LINE_END {
            return Err(Invalid("a string does not end where its length says"));
        }
        self.buffer.advance(LINE_END.len());
        self.decoded += needed;
        self.bulk = None;
        Ok(Some(Reply::Bulk(contents)))
    }

    /// Takes the next line, if it has arrived.
    fn take_token(&mut self, bytes_max: usize) -> Result<Option<Token>, Invalid> {
        let left = bytes_max.saturating_sub(self.decoded);
        let line_bytes_max = left.min(LINE_BYTES_MAX);
        let Some(end) = self.line_end() else {
            let is_too_long = self.buffer.len() > line_bytes_max;
            return if is_too_long { Err(Invalid("a line is too long")) } else { Ok(None) };
        };
        let line_bytes = end + LINE_END.len();
        if line_bytes > line_bytes_max {
            return Err(Invalid("a line is too long"));
        }
        let left = left - line_bytes;
        let line = &self.buffer[..end];
        let (kind, text) = line.split_first().ok_or(Invalid("a line is empty"))?;
        let token = match kind {
            b'+' => Token::Value(Reply::Status(Bytes::copy_from_slice(text))),
            b'-' => Token::Value(Reply::Error(Bytes::copy_from_slice(text))),
            b':' => Token::Value(Reply::Integer(number(text)?)),
            b'$' => match length(text)? {
                None => Token::Value(Reply::Null),
                Some(bytes) if bytes.saturating_add(LINE_END.len()) <= left => Token::BulkOf(bytes),
                Some(_) => return Err(Invalid("a string is longer than requested")),
            },
            b'*' => match length(text)? {
                None => Token::Value(Reply::Null),
                Some(0) => Token::Value(Reply::Array(Vec::new())),
                Some(_) if self.arrays.len() == DEPTH_MAX => {
                    return Err(Invalid("arrays are nested too deeply"));
                }
                Some(items) if items <= left / REPLY_BYTES_MIN => Token::ArrayOf(items),
                Some(_) => return Err(Invalid("an array has more items than requested")),
            },
            _ => return Err(Invalid("a reply has an unknown type")),
        };
        self.buffer.advance(line_bytes);
        self.searched = 0;
        self.decoded += line_bytes;
        Ok(Some(token))
    }

    /// The position of the first line end in the buffer.
    fn line_end(&mut self) -> Option<usize> {
        let unsearched = &self.buffer[self.searched..];
        let found = unsearched.windows(LINE_END.len()).position(|pair| pair == LINE_END);
        match found {
            Some(found) => Some(self.searched + found),
            None => {
                // The last byte may be the first half of a line end.
                self.searched = self.buffer.len().saturating_sub(1);
                None
            }
        }
    }
}

/// Parses the length of a string or an array; `None` for the absent one.
fn length(text: &[u8]) -> Result<Option<usize>, Invalid> {
    match number(text)? {
        -1 => Ok(None),
        length => usize::try_from(length).map(Some).map_err(|_| Invalid("a length is negative")),
    }
}

fn number(text: &[u8]) -> Result<i64, Invalid> {
    let text = str::from_utf8(text).ok().filter(|text| !text.starts_with('+'));
    text.and_then(|text| text.parse().ok()).ok_or(Invalid("a number is malformed"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ENOUGH: usize = 1 << 20;

    fn decode(bytes: &[u8]) -> Result<Option<Reply>, Invalid> {
        let mut decoder = Decoder::default();
        decoder.feed(bytes);
        decoder.next(ENOUGH)
    }

    #[test]
    fn every_type_is_decoded() {
        for (bytes, expected) in [
            (&b"+OK\r\n"[..], Reply::Status("OK".into())),
            (b"+\r\n", Reply::Status("".into())),
            (b"-MOVED 1 h:2\r\n", Reply::Error("MOVED 1 h:2".into())),
            (b":-42\r\n", Reply::Integer(-42)),
            (b"$0\r\n\r\n", Reply::Bulk("".into())),
            (b"$4\r\na\r\nb\r\n", Reply::Bulk("a\r\nb".into())),
            (b"$-1\r\n", Reply::Null),
            (b"*-1\r\n", Reply::Null),
            (b"*0\r\n", Reply::Array(vec![])),
            (
                b"*2\r\n*1\r\n:1\r\n+x\r\n",
                Reply::Array(vec![
                    Reply::Array(vec![Reply::Integer(1)]),
                    Reply::Status("x".into()),
                ]),
            ),
        ] {
            assert_eq!(decode(bytes), Ok(Some(expected)), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn malformed_replies_are_refused() {
        for bytes in [
            &b"\r\n"[..],
            b"x\r\n",
            b"_\r\n",
            b"$x\r\n",
            b"$\r\n",
            b"$-2\r\n",
            b"$+1\r\n",
            b"$99999999999999999999\r\n",
            b"$9223372036854775807\r\n",
            b"*9223372036854775807\r\n",
            b"*-9223372036854775808\r\n",
            b"$1\r\nab\r\n",
            b":1.5\r\n",
            b": 1\r\n",
            b":\xff\r\n",
        ] {
            assert!(decode(bytes).is_err(), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn limits_are_checked_before_the_bytes_arrive() {
        let limited = |bytes: &[u8], bytes_max| {
            let mut decoder = Decoder::default();
            decoder.feed(bytes);
            decoder.next(bytes_max)
        };
        assert_eq!(limited(b"$5\r\n", 11), Ok(None));
        assert!(limited(b"$5\r\n", 10).is_err());
        assert_eq!(limited(b"*2\r\n", 10), Ok(None));
        assert!(limited(b"*2\r\n", 9).is_err());
        assert!(limited(b"*2\r\n$3\r\nabc\r\n$9\r\n", 20).is_err(), "the sum is bounded");
        assert!(limited(&[b'+'; LINE_BYTES_MAX + 1], ENOUGH).is_err());
        assert_eq!(limited(&b"*1\r\n".repeat(DEPTH_MAX), ENOUGH), Ok(None));
        assert!(limited(&b"*1\r\n".repeat(DEPTH_MAX + 1), ENOUGH).is_err());
    }

    #[test]
    fn each_reply_has_the_whole_limit() {
        let mut decoder = Decoder::default();
        for _ in 0..3 {
            decoder.feed(b"*1\r\n$3\r\nabc\r\n");
            let reply = Reply::Array(vec![Reply::Bulk("abc".into())]);
            assert_eq!(decoder.next(13), Ok(Some(reply)));
            assert!(decoder.is_empty());
        }
    }

    #[test]
    fn long_arguments_are_shared() {
        let part = Bytes::from(vec![7; 1000]);
        let parts = [part.clone(), Bytes::new(), part.clone()];
        let command = Command::with_parts(&[b"SET", b"k"], &parts, &[b"NX"]);
        assert!(command.segments().iter().any(|segment| segment.as_ptr() == part.as_ptr()));
        let value = parts.concat();
        let whole = Command::new(&[b"SET", b"k", &value, b"NX"]);
        assert_eq!(command.segments().concat(), whole.segments().concat());
    }

    fn replies() -> impl Strategy<Value = Reply> {
        let text = "[ -~]{0,20}";
        let leaf = prop_oneof![
            text.prop_map(|text| Reply::Status(text.into())),
            text.prop_map(|text| Reply::Error(text.into())),
            any::<i64>().prop_map(Reply::Integer),
            prop::collection::vec(any::<u8>(), 0..5000).prop_map(|it| Reply::Bulk(it.into())),
            Just(Reply::Null),
        ];
        leaf.prop_recursive(4, 32, 6, |item| {
            prop::collection::vec(item, 0..6).prop_map(Reply::Array)
        })
    }

    proptest! {
        #[test]
        fn replies_arrive_in_any_portions(
            replies in prop::collection::vec(replies(), 1..5),
            portions in prop::collection::vec(1..700usize, 1..20),
        ) {
            let mut encoded = Vec::new();
            replies.iter().for_each(|reply| reply.encode(&mut encoded));
            let mut decoder = Decoder::default();
            let mut decoded = Vec::new();
            let mut rest = &encoded[..];
            for portion in portions.iter().cycle() {
                while let Some(reply) = decoder.next(ENOUGH)? {
                    decoded.push(reply);
                }
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at(rest.len().min(*portion));
                decoder.feed(now);
                rest = later;
            }
            prop_assert!(decoded == replies);
            prop_assert!(decoder.is_empty());
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(
            bytes in prop::collection::vec(
                prop_oneof![prop::sample::select(&b"\r\n*$1"[..]), any::<u8>()],
                0..200,
            ),
            bytes_max in 0..300usize,
        ) {
            let mut decoder = Decoder::default();
            for byte in bytes {
                decoder.feed(&[byte]);
                if decoder.next(bytes_max).is_err() {
                    break;
                }
            }
        }
    }
}
