//! How extents are read: what is in the page cache at once, and the rest together from the medium.

use std::io;

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
    /// What the trip under way has to wait for; kept for its memory.
    missed: Vec<Fetch>,
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
        // To ask a cold cache for everything first would only delay the announcement. One piece tells how it is
        // now, and the last is the one nearest the leaves.
        let unasked = if self.is_cold { fetches.len().saturating_sub(1) } else { 0 };
        self.missed.clear();
        self.missed.extend_from_slice(&fetches[..unasked]);
        let is_missed = |fetch: &&Fetch| !medium.fetch_cached(**fetch, buffer);
        self.missed.extend(fetches[unasked..].iter().filter(is_missed));
        self.is_cold = match unasked {
            0 => 2 * self.missed.len() > fetches.len(),
            _ => self.missed.len() > unasked,
        };
        if self.missed.len() > 1 {
            medium.announce(self.missed.iter().map(|fetch| fetch.extent));
        }
        self.missed.iter().try_for_each(|fetch| medium.fetch(*fetch, buffer))
    }
}
