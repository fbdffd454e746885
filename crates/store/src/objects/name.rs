//! Names of objects.
//!
//! Numbers are hexadecimal and of fixed width, so the order of names as text is the order of their
//! numbers.

use std::cmp::Ordering;
use std::fmt;

/// The name of an object, relative to the prefix of its store.
///
/// [`Display`](fmt::Display) writes the form in the service, [`parse`](Self::parse) reads it:
///
/// | object | name |
/// |---|---|
/// | chunk | `SESSION/STREAM/NUMBER` |
/// | tail | `SESSION/tail/NUMBER` |
/// | head | `head/NUMBER` |
/// | probe | `probe/NONCE/NUMBER` |
///
/// The order of names is the order of their written forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectName {
    /// Consecutive buckets of a stream.
    Chunk {
        /// The session that wrote the chunk.
        session: u64,
        /// The stream of the chunk.
        stream: u16,
        /// The number of the chunk in its session and stream.
        number: u64,
    },
    /// The contents of all incomplete chunks at a flush.
    Tail {
        /// The session that wrote the tail.
        session: u64,
        /// The number of the tail in its session.
        number: u64,
    },
    /// A head: the state of the store after a flush, or a fence.
    Head(u64),
    /// An object that tests whether the service keeps the contract of
    /// [`Objects`](super::Objects).
    Probe {
        /// A random number, which no other probe has.
        nonce: u64,
        /// The number of the object in its probe.
        number: u16,
    },
}

/// The beginning of names to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Every object of the store.
    All,
    /// All heads.
    Heads,
    /// All chunks and tails of a session.
    Session(u64),
    /// All chunks of a stream of a session.
    Stream {
        /// The session.
        session: u64,
        /// The stream.
        stream: u16,
    },
}

impl ObjectName {
    /// Reads a name as `Display` writes it; `None` for any other text.
    pub fn parse(written: &str) -> Option<Self> {
        let mut parts = written.split('/');
        let name = match (parts.next()?, parts.next()?, parts.next()) {
            ("head", number, None) => Self::Head(hex(number, 16)?),
            ("probe", nonce, Some(number)) => {
                Self::Probe { nonce: hex(nonce, 16)?, number: u16_of(number)? }
            }
            (session, "tail", Some(number)) => {
                Self::Tail { session: hex(session, 16)?, number: hex(number, 16)? }
            }
            (session, stream, Some(number)) => Self::Chunk {
                session: hex(session, 16)?,
                stream: u16_of(stream)?,
                number: hex(number, 16)?,
            },
            _ => return None,
        };
        parts.next().is_none().then_some(name)
    }
}

impl ObjectName {
    /// Numbers that sort as the written name does.
    fn sort_key(self) -> (u8, u64, u32, u64) {
        match self {
            Self::Chunk { session, stream, number } => (0, session, stream.into(), number),
            Self::Tail { session, number } => (0, session, u32::MAX, number),
            Self::Head(number) => (1, number, 0, 0),
            Self::Probe { nonce, number } => (2, nonce, number.into(), 0),
        }
    }
}

impl Ord for ObjectName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

impl PartialOrd for ObjectName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Prefix {
    /// Whether `name` starts with this prefix.
    pub fn contains(self, name: ObjectName) -> bool {
        match (self, name) {
            (Self::All, _) | (Self::Heads, ObjectName::Head(_)) => true,
            (
                Self::Session(of),
                ObjectName::Chunk { session, .. } | ObjectName::Tail { session, .. },
            ) => session == of,
            (
                Self::Stream { session: of, stream: within },
                ObjectName::Chunk { session, stream, .. },
            ) => (session, stream) == (of, within),
            _ => false,
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Chunk { session, stream, number } => {
                write!(f, "{session:016x}/{stream:04x}/{number:016x}")
            }
            Self::Tail { session, number } => write!(f, "{session:016x}/tail/{number:016x}"),
            Self::Head(number) => write!(f, "head/{number:016x}"),
            Self::Probe { nonce, number } => write!(f, "probe/{nonce:016x}/{number:04x}"),
        }
    }
}

/// The text that all names with this prefix start with.
impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => Ok(()),
            Self::Heads => f.write_str("head/"),
            Self::Session(session) => write!(f, "{session:016x}/"),
            Self::Stream { session, stream } => write!(f, "{session:016x}/{stream:04x}/"),
        }
    }
}

fn hex(written: &str, digits: usize) -> Option<u64> {
    let is_canonical = written.len() == digits
        && written.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_canonical.then(|| u64::from_str_radix(written, 16).ok()).flatten()
}

fn u16_of(written: &str) -> Option<u16> {
    hex(written, 4)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<ObjectName> {
        let mut names = vec![ObjectName::Head(0), ObjectName::Head(u64::MAX)];
        for session in [0, 9, 10, 1 << 40] {
            for number in [0, 15, 16, u64::MAX] {
                for stream in [0, 9, 10, u16::MAX] {
                    names.push(ObjectName::Chunk { session, stream, number });
                }
                names.push(ObjectName::Tail { session, number });
            }
            names.push(ObjectName::Probe { nonce: session, number: 3 });
        }
        names
    }

    #[test]
    fn names_are_read_as_written_and_sort_as_text() {
        let mut names = names();
        for name in &names {
            assert_eq!(ObjectName::parse(&name.to_string()), Some(*name));
        }
        names.sort_unstable();
        let written: Vec<_> = names.iter().map(ObjectName::to_string).collect();
        assert!(written.is_sorted(), "{written:?}");
    }

    #[test]
    fn other_texts_are_no_names() {
        let head = ObjectName::Head(171).to_string();
        assert_eq!(head, "head/00000000000000ab");
        for text in
            ["", "head", "head/", "head/ab", &head.to_uppercase(), &format!("{head}/"), "a/b/c"]
        {
            assert_eq!(ObjectName::parse(text), None, "{text}");
        }
        assert_eq!(ObjectName::parse(&head.replace("ab", "AB")), None);
        assert_eq!(ObjectName::parse(&head.replace("ab", "+b")), None);
    }

    #[test]
    fn a_prefix_contains_the_names_that_start_with_its_text() {
        let prefixes = [
            Prefix::All,
            Prefix::Heads,
            Prefix::Session(10),
            Prefix::Stream { session: 10, stream: 9 },
        ];
        for prefix in prefixes {
            for name in names() {
                let starts = name.to_string().starts_with(&prefix.to_string());
                assert_eq!(prefix.contains(name), starts, "{prefix} {name}");
            }
        }
    }
}
