//! Reads extents: first those in the page cache, and then the others together from the disk.

use std::io;

use crate::container::SECTOR_BYTES;
use crate::file_layout::Extent;
use crate::medium::Medium;

/// An extent of the file, and the position in a buffer at which to put its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Fetch {
    pub(crate) extent: Extent,
    pub(crate) at: usize,
}

/// Reads trips. If most requests of a trip missed the page cache, the next trip tries the cache for
/// only one request. Which requests miss depends only on earlier reads, which are public.
#[derive(Default)]
pub(crate) struct Fetching {
    /// Whether most requests of the latest trip missed the page cache. If the trip tried the cache
    /// for only one request: whether that request missed.
    is_cold: bool,
    /// The requests of the current trip, with adjacent requests joined. The list is a field so that
    /// its memory is reused.
    requests: Vec<Fetch>,
    /// The requests that missed the page cache. The list is a field so that its memory is reused.
    missed: Vec<Fetch>,
}

/// Maximum number of bytes of one request, when adjacent extents are joined into it.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Joins fetches that follow each other in the file, at the same distance as in the buffer. Between
/// two of them there may be padding of less than a sector.
fn join_neighbours(fetches: &[Fetch], requests: &mut Vec<Fetch>) {
    requests.clear();
    for fetch in fetches {
        match requests.last_mut().and_then(|last| Some((joined(last, fetch)?, last))) {
            Some((joined, last)) => *last = joined,
            None => requests.push(*fetch),
        }
    }
}

/// Joins two fetches if the second follows the first as in `join_neighbours`, and the joined
/// request is at most `REQUEST_BYTES_MAX` long; `None` otherwise.
fn joined(first: &Fetch, second: &Fetch) -> Option<Fetch> {
    let padding = second.extent.start.checked_sub(first.extent.end())?;
    let bytes = usize::try_from(second.extent.end() - first.extent.start).ok()?;
    let lie_alike =
        second.at.checked_sub(first.at)? as u64 == second.extent.start - first.extent.start;
    let fits = padding < SECTOR_BYTES && lie_alike && bytes <= REQUEST_BYTES_MAX;
    fits.then_some(Fetch { extent: Extent { start: first.extent.start, bytes }, at: first.at })
}

impl Fetching {
    /// Whether the latest trip showed a cold page cache, so that announcing reads is worthwhile:
    /// most of the requests that it tried in the cache were missed.
    pub(crate) fn is_cold(&self) -> bool {
        self.is_cold
    }

    /// Reads the extents of a trip into a buffer.
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
        // With a cold cache, trying every request first would only delay the announcement. One
        // request shows the present state; the last one is nearest the leaves.
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
    fn only_adjacent_fetches_become_one_request() {
        let fetch = |start, bytes, at| Fetch { extent: Extent { start, bytes }, at };
        let of = |fetches: &[Fetch]| {
            let mut requests = Vec::new();
            join_neighbours(fetches, &mut requests);
            requests.iter().map(|it| (it.extent.start, it.extent.bytes, it.at)).collect::<Vec<_>>()
        };
        // Buckets with padding up to the next sector, as in the buffer.
        let three = [fetch(512, 500, 0), fetch(1024, 500, 512), fetch(1536, 9, 1024)];
        assert_eq!(of(&three), [(512, 1033, 0)]);
        // Not adjacent in the file, in the wrong order, or at other distances in the buffer.
        assert_eq!(of(&[fetch(512, 500, 0), fetch(2048, 500, 1536)]).len(), 2);
        assert_eq!(of(&[fetch(1024, 500, 0), fetch(512, 500, 512)]).len(), 2);
        assert_eq!(of(&[fetch(512, 500, 0), fetch(1024, 500, 1024)]).len(), 2);
        let long =
            [fetch(0, REQUEST_BYTES_MAX, 0), fetch(REQUEST_BYTES_MAX as u64, 1, REQUEST_BYTES_MAX)];
        assert_eq!(of(&long).len(), 2);
        assert!(of(&[]).is_empty());
    }
}
