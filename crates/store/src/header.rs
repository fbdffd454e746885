//! Reads, writes and repairs the copies of a file's header.

use std::io;

use oblivio_core::store::TreeShape;

use crate::container::{self, Container, HEADER_BYTES};
use crate::error::{OpenError, OpenErrorKind};
use crate::medium::Medium;

/// The result of an examination of the copies of a file's header.
pub(crate) struct HeaderState {
    pub(crate) shapes: Vec<TreeShape>,
    /// The number of bytes cut off the end of the file.
    pub(crate) missing_bytes: u64,
    /// The offsets of the damaged copies of the header.
    damaged: Vec<u64>,
}

impl HeaderState {
    /// The number of damaged copies of the header.
    pub(crate) fn damaged_copies(&self) -> usize {
        self.damaged.len()
    }
}

/// Writes all copies of the header.
pub(crate) fn write(medium: &Medium, container: &Container, header: &[u8]) -> io::Result<()> {
    write_at(medium, &container.header_offsets(), header)
}

/// Finds an intact copy of the header and examines the other copies. `allow_incomplete` accepts a
/// file that is too short.
pub(crate) fn find(medium: &Medium, allow_incomplete: bool) -> Result<HeaderState, OpenError> {
    examine(medium, find_shapes(medium)?, allow_incomplete).map_err(|error| match error.kind() {
        OpenErrorKind::Truncated => error.with("; without one, `oblivio rescue` saves the rest"),
        _ => error,
    })
}

/// Examines a file for trees of these shapes, without relying on the copies of its header.
pub(crate) fn examine(
    medium: &Medium,
    shapes: Vec<TreeShape>,
    allow_incomplete: bool,
) -> Result<HeaderState, OpenError> {
    let container = Container::new(&shapes)?;
    let there = medium.bytes().map_err(reading)?;
    let missing_bytes = container.bytes().saturating_sub(there);
    if missing_bytes > 0 && !allow_incomplete {
        return Err(truncated(there, container.bytes()));
    }
    let header = container::encode(&shapes)?;
    let damaged = differing_copies(medium, &container, &header).map_err(reading)?;
    Ok(HeaderState { shapes, missing_bytes, damaged })
}

/// Rewrites the damaged copies of the header, durably.
pub(crate) fn repair(medium: &Medium, found: &HeaderState) -> Result<(), OpenError> {
    if found.damaged.is_empty() {
        return Ok(());
    }
    let header = container::encode(&found.shapes)?;
    write_at(medium, &found.damaged, &header)
        .and_then(|()| medium.sync_data())
        .map_err(|cause| OpenError::io("repair the header", cause))
}

/// Reads the shapes from the first intact copy of the header.
fn find_shapes(medium: &Medium) -> Result<Vec<TreeShape>, OpenError> {
    let there = medium.bytes().map_err(reading)?;
    if there == 0 {
        let message = "the file is empty; check the path, or restore it from a backup";
        return Err(OpenError::new(OpenErrorKind::NotAStore, message));
    }
    let last = there.saturating_sub(HEADER_BYTES as u64);
    let mut worst: Option<OpenError> = None;
    for offset in [0, HEADER_BYTES as u64, last] {
        let copy = medium.read_up_to(offset, HEADER_BYTES).map_err(reading)?;
        match container::decode(&copy) {
            Ok(shapes) => return Ok(shapes),
            Err(error) => {
                let worst_rank = worst.as_ref().map(|error| error_rank(error.kind()));
                if worst_rank < Some(error_rank(error.kind())) {
                    worst = Some(error);
                }
            }
        }
    }
    let worst = worst.expect("there are three copies, and none is intact");
    let smallest = 3 * HEADER_BYTES as u64;
    let cut = worst.kind() == OpenErrorKind::Damaged && there < smallest;
    Err(if cut { truncated(there, smallest) } else { worst })
}

/// Ranks errors by how much they say about the file. The error for a copy with the magic says more
/// than the error for a copy without it. An unknown version may itself be the result of damage.
fn error_rank(kind: OpenErrorKind) -> u8 {
    match kind {
        OpenErrorKind::NotAStore => 0,
        OpenErrorKind::UnknownVersion => 1,
        _ => 2,
    }
}

/// The offsets of the copies of the header that differ from `header`.
fn differing_copies(medium: &Medium, container: &Container, header: &[u8]) -> io::Result<Vec<u64>> {
    let mut differing = Vec::new();
    for offset in container.header_offsets() {
        if medium.read_up_to(offset, HEADER_BYTES)? != header {
            differing.push(offset);
        }
    }
    Ok(differing)
}

fn write_at(medium: &Medium, offsets: &[u64], header: &[u8]) -> io::Result<()> {
    offsets.iter().try_for_each(|offset| medium.write(header, *offset))
}

fn truncated(there: u64, needed: u64) -> OpenError {
    let message = format!(
        "the file has {there} bytes and should have at least {needed}: its end was cut off. \
         Restore it from a backup"
    );
    OpenError::new(OpenErrorKind::Truncated, message)
}

fn reading(cause: io::Error) -> OpenError {
    OpenError::io("read the header", cause)
}
