//! The keys of objects, and the commands on them.
//!
//! | object | in the cluster |
//! |---|---|
//! | head | the field with the object's name, in the hash `NAME:heads` |
//! | other objects | the string `NAME:` and the object's name |
//!
//! `NAME` is the volume's. It has no hash tag, so that objects spread over all slots. All heads are
//! in one hash, so that a listing of them shows one point in time.

use std::ops::Range;

use bytes::Bytes;

use super::failure::Failure;
use super::slots::slot_of;
use crate::objects::resp::{Command, Reply};
use crate::objects::{Answer, ObjectName, Prefix};

/// The maximum length of an object in bytes: that of a string in Redis.
pub(super) const OBJECT_BYTES_MAX: u64 = 512 << 20;

/// The maximum length of a head in bytes, for the memory of the client.
const HEAD_BYTES_MAX: u64 = 64 << 20;

/// The maximum length of a short reply in bytes: a status, a number, or an error.
pub(super) const SHORT_BYTES_MAX: usize = 32 << 10;

/// The time after which a server deletes a mark, in seconds.
const MARK_SECONDS: &[u8] = b"3600";

/// Encodes the commands on the objects of one volume.
pub(super) struct Keys {
    prefix: String,
    heads: String,
}

/// Commands for one object, which go to the master of its slot.
#[derive(Clone, Debug)]
pub(super) struct ObjectCommands {
    pub(super) slot: u16,
    pub(super) commands: Vec<Command>,
    /// The maximum length of each reply in bytes.
    pub(super) reply_bytes_max: usize,
}

impl Keys {
    /// The keys of the volume `name`.
    pub(super) fn new(name: &str) -> Self {
        Self { prefix: format!("{name}:"), heads: format!("{name}:heads") }
    }

    /// The key of the hash with all heads.
    pub(super) fn heads(&self) -> &[u8] {
        self.heads.as_bytes()
    }

    /// The key of an object that is not a head.
    fn key(&self, name: ObjectName) -> Vec<u8> {
        format!("{}{name}", self.prefix).into_bytes()
    }

    /// The name of the object with a key; `None` if the key is not that of an object.
    pub(super) fn object(&self, key: &[u8]) -> Option<ObjectName> {
        let name = str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?;
        ObjectName::parse(name).filter(|name| !matches!(name, ObjectName::Head(_)))
    }

    /// The pattern of the keys of objects with a prefix. The name of a volume contains no character
    /// that has a meaning in a pattern.
    pub(super) fn pattern(&self, prefix: Prefix) -> Vec<u8> {
        format!("{}{prefix}*", self.prefix).into_bytes()
    }

    /// The commands that get a range of an object.
    pub(super) fn get(&self, name: ObjectName, range: &Range<u64>) -> ObjectCommands {
        let bytes_max = |object_bytes: u64| {
            usize::try_from(object_bytes).unwrap_or(usize::MAX).saturating_add(SHORT_BYTES_MAX)
        };
        if let ObjectName::Head(_) = name {
            let command = Command::new(&[b"HGET", self.heads(), name.to_string().as_bytes()]);
            return self.commands(self.heads(), vec![command], bytes_max(HEAD_BYTES_MAX));
        }
        let key = self.key(name);
        // `GETRANGE` counts from the end if a number is negative, and includes the last byte.
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX).to_string();
        let (first, last) = match range.is_empty() {
            true => (number(1), number(0)),
            false => (number(range.start), number(range.end - 1)),
        };
        let commands = vec![
            Command::new(&[b"EXISTS", &key]),
            Command::new(&[b"GETRANGE", &key, first.as_bytes(), last.as_bytes()]),
        ];
        let requested = range.end.saturating_sub(range.start).min(OBJECT_BYTES_MAX);
        self.commands(&key, commands, bytes_max(requested))
    }

    /// Reads the replies to [`get`](Self::get).
    ///
    /// # Errors
    /// If the replies are errors or malformed.
    pub(super) fn got(
        name: ObjectName,
        range: &Range<u64>,
        replies: &[Reply],
    ) -> Result<Answer, Failure> {
        let is_head = matches!(name, ObjectName::Head(_));
        match replies {
            [Reply::Null] if is_head => Ok(Answer::Absent),
            [Reply::Bulk(head)] if is_head => {
                let within = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
                let end = within(range.end).min(head.len());
                let start = within(range.start).min(end);
                Ok(Answer::Bytes(head.slice(start..end)))
            }
            [Reply::Integer(0), Reply::Bulk(_)] if !is_head => Ok(Answer::Absent),
            [Reply::Integer(1), Reply::Bulk(bytes)] if !is_head => {
                let requested = range.end.saturating_sub(range.start);
                if bytes.len() as u64 > requested {
                    return Err(Failure::violation("it sent more bytes than were requested"));
                }
                Ok(Answer::Bytes(bytes.clone()))
            }
            _ => Err(Failure::of_replies(replies, "a get")),
        }
    }

    /// The command that creates an object.
    pub(super) fn create(&self, name: ObjectName, parts: &[Bytes]) -> ObjectCommands {
        if let ObjectName::Head(_) = name {
            let field = name.to_string();
            let before: [&[u8]; 3] = [b"HSETNX", self.heads(), field.as_bytes()];
            let command = Command::with_parts(&before, parts, &[]);
            return self.commands(self.heads(), vec![command], SHORT_BYTES_MAX);
        }
        let key = self.key(name);
        let command = Command::with_parts(&[b"SET", &key], parts, &[b"NX"]);
        self.commands(&key, vec![command], SHORT_BYTES_MAX)
    }

    /// Reads the reply to [`create`](Self::create).
    ///
    /// # Errors
    /// If the reply is an error or malformed.
    pub(super) fn created(name: ObjectName, replies: &[Reply]) -> Result<Answer, Failure> {
        let is_head = matches!(name, ObjectName::Head(_));
        match replies {
            [Reply::Integer(1)] if is_head => Ok(Answer::Created),
            [Reply::Integer(0)] if is_head => Ok(Answer::Exists),
            [Reply::Status(_)] if !is_head => Ok(Answer::Created),
            [Reply::Null] if !is_head => Ok(Answer::Exists),
            _ => Err(Failure::of_replies(replies, "a creation")),
        }
    }

    /// The command that deletes an object. Its reply is a number.
    pub(super) fn delete(&self, name: ObjectName) -> ObjectCommands {
        if let ObjectName::Head(_) = name {
            let command = Command::new(&[b"HDEL", self.heads(), name.to_string().as_bytes()]);
            return self.commands(self.heads(), vec![command], SHORT_BYTES_MAX);
        }
        let key = self.key(name);
        self.commands(&key, vec![Command::new(&[b"UNLINK", &key])], SHORT_BYTES_MAX)
    }

    /// The command that returns the length of an object that is not a head.
    pub(super) fn length(&self, name: ObjectName) -> Command {
        Command::new(&[b"STRLEN", &self.key(name)])
    }

    /// The command that writes a mark to a slot for which `is_wanted` holds; `None` if there is no
    /// such slot.
    pub(super) fn mark(&self, is_wanted: impl Fn(u16) -> bool) -> Option<Command> {
        // A slot is hit by one of 16,384 numbers on average.
        let keys = (0..1 << 20).map(|number: u32| format!("{}mark/{number}", self.prefix));
        let key = keys.map(String::into_bytes).find(|key| is_wanted(slot_of(key)))?;
        Some(Command::new(&[b"SET", &key, b"", b"EX", MARK_SECONDS]))
    }

    fn commands(
        &self,
        key: &[u8],
        commands: Vec<Command>,
        reply_bytes_max: usize,
    ) -> ObjectCommands {
        ObjectCommands { slot: slot_of(key), commands, reply_bytes_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: ObjectName = ObjectName::Chunk { session: 1, stream: 2, number: 3 };

    fn text(commands: &ObjectCommands) -> String {
        let bytes: Vec<_> =
            commands.commands.iter().flat_map(|it| it.segments().concat()).collect();
        let text = String::from_utf8(bytes).unwrap();
        let words = text.split("\r\n").filter(|word| !word.starts_with(['$', '*']));
        words.collect::<Vec<_>>().join(" ").trim().to_owned()
    }

    #[test]
    fn ranges_become_the_first_and_the_last_byte() {
        let keys = Keys::new("v");
        let name = "v:0000000000000001/0002/0000000000000003";
        for (range, numbers) in [
            (0..10, "0 9"),
            (3..4, "3 3"),
            (0..0, "1 0"),
            (7..7, "1 0"),
            (u64::MAX - 1..u64::MAX, "9223372036854775807 9223372036854775807"),
        ] {
            let commands = keys.get(CHUNK, &range);
            let expected = format!("EXISTS {name} GETRANGE {name} {numbers}");
            assert_eq!(text(&commands), expected, "{range:?}");
        }
        let head = keys.get(ObjectName::Head(1), &(0..1));
        assert_eq!(text(&head), "HGET v:heads head/0000000000000001");
        assert_eq!(head.slot, slot_of(b"v:heads"));
        assert_eq!(keys.get(CHUNK, &(0..1)).slot, slot_of(name.as_bytes()));
        assert!(keys.get(CHUNK, &(0..u64::MAX)).reply_bytes_max < 600 << 20);
    }

    #[test]
    fn keys_are_those_of_objects_of_this_volume() {
        let keys = Keys::new("v");
        assert_eq!(keys.object(&keys.key(CHUNK)), Some(CHUNK));
        for key in ["v:heads", "v:mark/1", "v:head/0000000000000001", "w:x", "v", ""] {
            assert_eq!(keys.object(key.as_bytes()), None, "{key}");
        }
        assert_eq!(keys.pattern(Prefix::Session(1)), b"v:0000000000000001/*");
        for wanted in [0, 1, 16383] {
            assert!(keys.mark(|slot| slot == wanted).is_some());
        }
        assert_eq!(keys.mark(|_| false), None);
    }

    #[test]
    fn replies_of_the_wrong_type_are_errors() {
        let head = ObjectName::Head(1);
        let bytes = || Reply::Bulk("abc".into());
        let got = |name, replies: &[Reply]| Keys::got(name, &(0..2), replies);
        assert_eq!(got(head, &[bytes()]), Ok(Answer::Bytes("ab".into())));
        assert_eq!(Keys::got(head, &(5..9), &[bytes()]), Ok(Answer::Bytes("".into())));
        assert_eq!(got(CHUNK, &[Reply::Integer(0), bytes()]), Ok(Answer::Absent));
        for replies in [
            vec![],
            vec![bytes()],
            vec![Reply::Integer(1), bytes()],
            vec![Reply::Integer(2), Reply::Bulk("a".into())],
            vec![Reply::Integer(1), Reply::Null],
            vec![Reply::Error("ERR".into()), bytes()],
        ] {
            assert!(got(CHUNK, &replies).is_err(), "{replies:?}");
        }
        for reply in [Reply::Integer(1), bytes(), Reply::Array(vec![]), Reply::Error("E".into())] {
            assert!(Keys::created(CHUNK, std::slice::from_ref(&reply)).is_err(), "{reply:?}");
        }
        for reply in [Reply::Integer(2), Reply::Status("OK".into()), Reply::Null] {
            assert!(Keys::created(head, &[reply]).is_err());
        }
    }
}
