//! The copies of the header in a file: written, found again, and mended.

use std::io;

use oblivio_core::store::TreeShape;

use crate::container::{self, Container, HEADER_BYTES};
use crate::error::{OpenError, OpenErrorKind};
use crate::medium::Medium;

/// What the copies of a file's header say.
pub(crate) struct Found {
    pub(crate) shapes: Vec<TreeShape>,
    /// Bytes that were cut off the end of the file.
    pub(crate) missing_bytes: u64,
    /// Where the copies are that are not as they should be.
    damaged: Vec<u64>,
}

impl Found {
    /// How many copies are damaged.
    pub(crate) fn damaged_copies(&self) -> usize {
        self.damaged.len()
    }
}

/// Writes all copies.
pub(crate) fn write(medium: &Medium, container: &Container, header: &[u8]) -> io::Result<()> {
    write_at(medium, &container.header_offsets(), header)
}

/// Finds a sound copy, and what is wrong with the others. `may_be_cut_off` takes a file that is too short.
pub(crate) fn find(medium: &Medium, may_be_cut_off: bool) -> Result<Found, OpenError> {
    examine(medium, find_shapes(medium)?, may_be_cut_off).map_err(|error| match error.kind() {
        OpenErrorKind::Truncated => {
            error.with("; without one, `oblivio rescue` saves what is left")
        }
        _ => error,
    })
}

/// What is wrong with a file for trees of these shapes, whatever the copies of its header say.
pub(crate) fn examine(
    medium: &Medium,
    shapes: Vec<TreeShape>,
    may_be_cut_off: bool,
) -> Result<Found, OpenError> {
    let container = Container::new(&shapes)?;
    let there = medium.bytes().map_err(reading)?;
    let missing_bytes = container.bytes().saturating_sub(there);
    if missing_bytes > 0 && !may_be_cut_off {
        return Err(truncated(there, container.bytes()));
    }
    let header = container::encode(&shapes)?;
    let damaged = differing_copies(medium, &container, &header).map_err(reading)?;
    Ok(Found { shapes, missing_bytes, damaged })
}

/// Makes the damaged copies what they should be, durably.
pub(crate) fn mend(medium: &Medium, found: &Found) -> Result<(), OpenError> {
    if found.damaged.is_empty() {
        return Ok(());
    }
    let header = container::encode(&found.shapes)?;
    write_at(medium, &found.damaged, &header)
        .and_then(|()| medium.sync_data())
        .map_err(|cause| OpenError::io("mend the header", cause))
}

/// The shapes that the first sound copy of the header says.
fn find_shapes(medium: &Medium) -> Result<Vec<TreeShape>, OpenError> {
    let there = medium.bytes().map_err(reading)?;
    if there == 0 {
        let message = "the file is empty: check the path, or restore it from a backup";
        return Err(OpenError::new(OpenErrorKind::NotAStore, message));
    }
    let last = there.saturating_sub(HEADER_BYTES as u64);
    let mut worst: Option<OpenError> = None;
    for offset in [0, HEADER_BYTES as u64, last] {
        let copy = medium.read_up_to(offset, HEADER_BYTES).map_err(reading)?;
        match container::decode(&copy) {
            Ok(shapes) => return Ok(shapes),
            Err(error) => {
                let said = worst.as_ref().map(|error| how_telling(error.kind()));
                if said < Some(how_telling(error.kind())) {
                    worst = Some(error);
                }
            }
        }
    }
    let worst = worst.expect("three copies, none of them sound");
    let smallest = 3 * HEADER_BYTES as u64;
    let cut = worst.kind() == OpenErrorKind::Damaged && there < smallest;
    Err(if cut { truncated(there, smallest) } else { worst })
}

/// A copy that is partly ours says more of the file than one that is not, and one in which only the
/// version is unknown may as well be damaged there.
fn how_telling(kind: OpenErrorKind) -> u8 {
    match kind {
        OpenErrorKind::NotAStore => 0,
        OpenErrorKind::UnknownVersion => 1,
        _ => 2,
    }
}

/// Where the copies are that are not `header`.
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
        "the file has {there} bytes and should have {needed} or more: the rest was cut off, restore \
         it from a backup"
    );
    OpenError::new(OpenErrorKind::Truncated, message)
}

fn reading(cause: io::Error) -> OpenError {
    OpenError::io("read the header", cause)
}
