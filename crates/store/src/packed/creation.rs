//! Creates an object, and finds out what exists after a lost answer.
//!
//! No answer except [`Answer::Created`] decides anything. An object that exists may be this
//! client's own, from an attempt whose answer was lost. It may also be cut off: some servers leave
//! an empty object if the connection breaks before the body. So the store reads what exists, and
//! then decides.

use std::ops::Range;

use bytes::Bytes;
use oblivio_core::{StoreError, StoreErrorKind};

use crate::objects::{Answer, ObjectName, Objects, Ticket};

/// Maximum number of attempts to create one object. Each attempt after the first follows a lost
/// answer, after which the engine was reachable again.
const ATTEMPTS_MAX: usize = 32;

/// What exists under a name after a creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Created {
    /// The object, whole.
    Whole,
    /// Another object, whole or not. The name is lost.
    Other,
}

/// An object that is being created.
pub(super) struct Creation {
    pub(super) name: ObjectName,
    parts: Vec<Bytes>,
    ticket: Ticket,
}

impl Creation {
    pub(super) fn begin(objects: &mut dyn Objects, name: ObjectName, parts: Vec<Bytes>) -> Self {
        let ticket = objects.begin_create(name, parts.clone());
        Self { name, parts, ticket }
    }

    pub(super) fn into_parts(self) -> Vec<Bytes> {
        self.parts
    }

    /// Waits until the object exists, or until the name is known to be lost.
    ///
    /// # Errors
    /// The errors of the engine, and `Failed` if the object stays absent.
    pub(super) fn finish(&mut self, objects: &mut dyn Objects) -> Result<Created, StoreError> {
        for _ in 0..ATTEMPTS_MAX {
            match objects.wait(self.ticket)? {
                Answer::Created => return Ok(Created::Whole),
                Answer::Exists | Answer::Unknown => {}
                Answer::Bytes(_) | Answer::Absent => return Err(wrong_answer(self.name)),
            }
            match get(objects, self.name, self.proof())? {
                Some(bytes) => {
                    let is_ours = self.ends_with(&bytes);
                    return Ok(if is_ours { Created::Whole } else { Created::Other });
                }
                None => self.ticket = objects.begin_create(self.name, self.parts.clone()),
            }
        }
        let name = self.name;
        let message = format!("storage does not keep object {name}, which was created repeatedly");
        Err(StoreError::new(StoreErrorKind::Failed, message))
    }

    /// The range to read in order to compare the object: its last part, which is a trailer with a
    /// checksum, or a whole head. One byte more shows that the object is longer.
    fn proof(&self) -> Range<u64> {
        let bytes: u64 = self.parts.iter().map(|part| part.len() as u64).sum();
        let last = self.parts.last().map_or(0, |part| part.len() as u64);
        bytes - last..bytes + 1
    }

    fn ends_with(&self, bytes: &[u8]) -> bool {
        self.parts.last().is_some_and(|last| last == bytes)
    }
}

/// Creates an object, and waits until it exists.
///
/// # Errors
/// See [`Creation::finish`].
pub(super) fn create(
    objects: &mut dyn Objects,
    name: ObjectName,
    parts: Vec<Bytes>,
) -> Result<Created, StoreError> {
    Creation::begin(objects, name, parts).finish(objects)
}

/// Reads a part of an object; `None` if the object is absent.
///
/// # Errors
/// The errors of the engine.
pub(super) fn get(
    objects: &mut dyn Objects,
    name: ObjectName,
    range: Range<u64>,
) -> Result<Option<Bytes>, StoreError> {
    let ticket = objects.begin_get(name, range);
    match objects.wait(ticket)? {
        Answer::Bytes(bytes) => Ok(Some(bytes)),
        Answer::Absent => Ok(None),
        Answer::Created | Answer::Exists | Answer::Unknown => Err(wrong_answer(name)),
    }
}

/// The error for an answer to another kind of request, which only a faulty engine gives.
pub(super) fn wrong_answer(name: ObjectName) -> StoreError {
    let message = format!("the storage engine gave the wrong kind of answer for object {name}");
    StoreError::new(StoreErrorKind::Failed, message)
}
