//! How extents are read: what is in the page cache at once, and the rest together from the medium.

use std::io;

use crate::container::SECTOR_BYTES;
use crate::medium::Medium;
use crate::places::Extent;

/// Bytes of the file, and where they belong in a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Fetch {
    pub(crate) extent: Extent,
    pub(crate) at: usize,
}

/// Reads trips, and learns from each whether the next is in the page cache. That follows from what was read
/// before, which is public.
#[derive(Default)]
pub(crate) struct Fetching {
    /// Of the latest trip, more had to be waited for than was there.
    is_cold: bool,
    /// Of the trip under way, neighbours together; kept for its memory.
    requests: Vec<Fetch>,
    /// What it has to wait for; kept for its memory.
    missed: Vec<Fetch>,
}

/// Neighbours are read together up to so many bytes.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Fetches that lie in the buffer as they do in the file become one, with the padding between them, up to the next sector.
fn join_neighbours(fetches: &[Fetch], requests: &mut Vec<Fetch>) {
    requests.clear();
    for fetch in fetches {
        match requests.last_mut().and_then(|last| Some((joined(last, fetch)?, last))) {
            Some((joined, last)) => *last = joined,
            None => requests.push(*fetch),
        }
    }
}

/// Both as one, if the second is the neighbour of the first.
fn joined(first: &Fetch, second: &Fetch) -> Option<Fetch> {
    let padding = second.extent.start.checked_sub(first.extent.end())?;
    let bytes = usize::try_from(second.extent.end() - first.extent.start).ok()?;
    let lie_alike =
        second.at.checked_sub(first.at)? as u64 == second.extent.start - first.extent.start;
    let fits = padding < SECTOR_BYTES && lie_alike && bytes <= REQUEST_BYTES_MAX;
    fits.then_some(Fetch { extent: Extent { start: first.extent.start, bytes }, at: first.at })
}

impl Fetching {
    /// Whether it is worth announcing what will be read.
    pub(crate) fn is_cold(&self) -> bool {
        self.is_cold
    }

    /// Reads a trip.
    pub(crate) fn fetch_all(
        &mut self,
        medium: &Medium,
        fetches: &[Fetch],
        buffer: &mut [u8],
    ) -> io::Result<()> {
        if fetches.is_empty() {
            return Ok(());
        }
        let Self { is_cold, requests, missed } = self;
        join_neighbours(fetches, requests);
        // To ask a cold cache for everything first would only delay the announcement. One piece tells how it is
        // now, and the last is the one nearest the leaves.
        let unasked = if *is_cold { requests.len().saturating_sub(1) } else { 0 };
        missed.clear();
        missed.extend_from_slice(&requests[..unasked]);
        let is_missed = |fetch: &&Fetch| !medium.fetch_cached(**fetch, buffer);
        missed.extend(requests[unasked..].iter().filter(is_missed));
        *is_cold = match unasked {
            0 => 2 * missed.len() > requests.len(),
            _ => missed.len() > unasked,
        };
        if missed.len() > 1 {
            medium.announce(missed.iter().map(|fetch| fetch.extent));
        }
        missed.iter().try_for_each(|fetch| medium.fetch(*fetch, buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_one_request_and_others_do_not() {
        let fetch = |start, bytes, at| Fetch { extent: Extent { start, bytes }, at };
        let of = |fetches: &[Fetch]| {
            let mut requests = Vec::new();
            join_neighbours(fetches, &mut requests);
            requests.iter().map(|it| (it.extent.start, it.extent.bytes, it.at)).collect::<Vec<_>>()
        };
        // Buckets with padding up to the next sector, as the buffer has them.
        let three = [fetch(512, 500, 0), fetch(1024, 500, 512), fetch(1536, 9, 1024)];
        assert_eq!(of(&three), [(512, 1033, 0)]);
        // Not side by side in the file, in the wrong order, or otherwise in the buffer.
        assert_eq!(of(&[fetch(512, 500, 0), fetch(2048, 500, 1536)]).len(), 2);
        assert_eq!(of(&[fetch(1024, 500, 0), fetch(512, 500, 512)]).len(), 2);
        assert_eq!(of(&[fetch(512, 500, 0), fetch(1024, 500, 1024)]).len(), 2);
        let long =
            [fetch(0, REQUEST_BYTES_MAX, 0), fetch(REQUEST_BYTES_MAX as u64, 1, REQUEST_BYTES_MAX)];
        assert_eq!(of(&long).len(), 2);
        assert!(of(&[]).is_empty());
    }
}
