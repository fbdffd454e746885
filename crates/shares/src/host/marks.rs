//! The marks of blocks that were taken, where slots say whose they are (ADR 17): of each bucket a page with a share for each slot, behind the root.
//!
//! ```text
//! page = evictions 8 ‖ blocks in the root 4 ‖ leaf 8 ‖ sum of the query 4 ‖ Z marks ‖ CRC-32 4
//! ```
//! A page says after which write or eviction it holds, and which write that was: to which path, and with which query. Each bucket has two places: a page is put where the
//! one does not lie that held before. So the state before is always there, for a client that asks the same again, and for a server that goes back;
//! and of two pages that are whole, the later one counts that is not later than the server is.
//!
//! Pages are made durable with the record of the write, in one sync. So some may be torn that the record takes for granted: then the write has not been acknowledged, and is
//! forgotten, as one whose block is torn. Which pages those are is in that of the root, which every write makes; and the record says with which query.
//!
//! # Another write in its place
//! A client whose directory was set back may make another write at a point to which this server has come already. No page of the first may count then:
//! - **Where the page of the root tells of the first**, its other pages are removed, and that is durable, before any is written of the second. That of the root is the last to go.
//! - **Where a crash has torn that page**, nobody knows which others there are. So a server that opens its files removes all pages that are later than it is.
//! - **Where some pages of the second are durable and others are not**, those of the first are not taken for them: they have another query, though it may be to the same path.

use std::io;

use oblivio_core::durable::section::Fields;
use oblivio_core::{BucketId, Leaf};

use super::folder::ShareFile;
use super::record::sum;
use crate::field::{Field, Gf256};
use crate::message::Point;
use crate::tree::Tree;

const HEADER_BYTES: usize = 8 + 4 + 8 + 4;
const SUM_BYTES: usize = 4;

/// The pages of a server.
pub(super) struct Marks<'f> {
    pub(super) file: &'f dyn ShareFile,
    /// Of the first of them.
    pub(super) offset: u64,
    pub(super) tree: Tree,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Page {
    /// The write or the eviction after which it holds.
    at: Point,
    write: Marked,
    marks: Vec<u8>,
}

/// Which write has made a page, of those that there can be at one point. An eviction has zeros, and so has what was put into a new server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marked {
    leaf: Leaf,
    query_sum: u32,
}

impl Marked {
    const NOTHING: Self = Self { leaf: Leaf(0), query_sum: 0 };

    /// By a write to this path, after this query.
    pub(super) fn of(leaf: Leaf, query: &[u8]) -> Self {
        Self { leaf, query_sum: sum(query) }
    }

    /// What the record says of it.
    pub(super) fn query_sum(self) -> u32 {
        self.query_sum
    }
}

fn page_bytes(tree: Tree) -> u64 {
    (HEADER_BYTES + tree.slots() + SUM_BYTES) as u64
}

/// Bytes of all pages.
pub(super) fn bytes_of_pages(tree: Tree) -> u64 {
    2 * (2 * tree.leaves() - 1) * page_bytes(tree)
}

impl Marks<'_> {
    /// Those of a bucket that holds something at this point.
    pub(super) fn of(&self, bucket: BucketId, at: Point) -> io::Result<Vec<u8>> {
        let pages = self.pages(bucket)?;
        let latest = latest(&pages, at).and_then(|place| pages[place].as_ref());
        Ok(latest.map_or_else(|| vec![0; self.tree.slots()], |page| page.marks.clone()))
    }

    /// Whether it is known of a bucket what was marked at this point. A point before the one where the server is may have been taken back, or never been here.
    pub(super) fn are_known(&self, bucket: BucketId, at: Point) -> io::Result<bool> {
        let is_empty = bucket == BucketId::ROOT && at.written == 0;
        if is_empty || !self.has_page(bucket, at.evictions) {
            return Ok(true);
        }
        Ok(latest(&self.pages(bucket)?, at).is_some())
    }

    /// Adds a query to those of its path, for the write after this point. They are durable with the record of it. What [another](Self::take_back_another) has marked is gone.
    pub(super) fn add(&self, at: Point, leaf: Leaf, query: &[u8]) -> io::Result<()> {
        let after = Point { written: at.written + 1, ..at };
        let write = Marked::of(leaf, query);
        // The root is first: from then on its page tells of the others.
        for (bucket, taken) in self.tree.path(leaf).zip(query.chunks(self.tree.slots())) {
            if !self.has_page(bucket, at.evictions) {
                continue;
            }
            // Slots of the root in which nothing is yet have no marks: a server that is made anew knows nothing of them.
            let held = if bucket == BucketId::ROOT { at.written } else { taken.len() };
            let mut marks = self.of(bucket, at)?;
            Gf256::add_multiple(&mut marks[..held], Gf256::ONE, &taken[..held]);
            self.put(bucket, Some(at), &Page { at: after, write, marks })?;
        }
        Ok(())
    }

    /// Removes what another write has marked than this one, after the same point. Answers whether it did: that has to be durable before anything else is written.
    pub(super) fn take_back_another(&self, at: Point, write: Marked) -> io::Result<bool> {
        let after = Point { written: at.written + 1, ..at };
        let Some(another) = self.write_before(after)?.filter(|another| *another != write) else {
            return Ok(false);
        };
        let others = self.tree.path(another.leaf).filter(|bucket| *bucket != BucketId::ROOT);
        for bucket in others {
            self.remove(bucket, |page| page.at == after)?;
        }
        Ok(true)
    }

    /// Removes what writes and evictions have marked that do not count at this point, where the server is.
    pub(super) fn remove_later(&self, at: Point) -> io::Result<()> {
        for bucket in self.tree.buckets().filter(|bucket| self.has_page(*bucket, at.evictions)) {
            self.remove(bucket, |page| page.at > at)?;
        }
        Ok(())
    }

    fn remove(&self, bucket: BucketId, which: impl Fn(&Page) -> bool) -> io::Result<()> {
        for (place, page) in self.pages(bucket)?.iter().enumerate() {
            if page.as_ref().is_some_and(&which) {
                let nothing = vec![0; page_bytes(self.tree) as usize];
                self.file.write_at(self.offset_of(bucket, place), &nothing)?;
            }
        }
        Ok(())
    }

    /// The write after which servers are at this point; none if the page of the root that says it is torn.
    pub(super) fn write_before(&self, at: Point) -> io::Result<Option<Marked>> {
        let pages = self.pages(BucketId::ROOT)?;
        Ok(pages.into_iter().flatten().find(|page| page.at == at).map(|page| page.write))
    }

    /// Whether all is there that the write has marked after which the server is at this point, and whose query has this sum.
    pub(super) fn are_whole(&self, at: Point, query_sum: u32) -> io::Result<bool> {
        let Some(write) = self.write_before(at)? else { return Ok(false) };
        Ok(write.query_sum == query_sum && self.places_of(at, write)?.is_some())
    }

    /// Writes those pages again.
    pub(super) fn write_again(&self, at: Point) -> io::Result<()> {
        let Some(write) = self.write_before(at)? else { return Ok(()) };
        for (offset, page) in self.places_of(at, write)?.unwrap_or_default() {
            self.file.write_at(offset, &page.encode())?;
        }
        Ok(())
    }

    /// The pages that the write has made after which the server is at this point; none if some of them are torn, or another's.
    fn places_of(&self, at: Point, write: Marked) -> io::Result<Option<Vec<(u64, Page)>>> {
        let mut found = Vec::new();
        for bucket in self.tree.path(write.leaf).filter(|it| self.has_page(*it, at.evictions)) {
            let pages = self.pages(bucket)?.into_iter().enumerate();
            let mut pages = pages.filter_map(|(place, page)| Some((place, page?)));
            match pages.find(|(_, page)| page.at == at && page.write == write) {
                Some((place, page)) => found.push((self.offset_of(bucket, place), page)),
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    /// Makes those of all buckets that an eviction makes. The sibling of the first step is a copy of the root. All else is made of blocks that were not taken.
    pub(super) fn evict(&self, before: Point) -> io::Result<()> {
        let number = before.evictions;
        let at = Point { evictions: number + 1, written: 0 };
        let page = |marks| Page { at, write: Marked::NOTHING, marks };
        let of_nothing = page(vec![0; self.tree.slots()]);
        for triplet in self.tree.triplets(number) {
            if triplet.is_last {
                self.put(triplet.destination, Some(before), &of_nothing)?;
                self.put(triplet.sibling, Some(before), &of_nothing)?;
            } else if triplet.source == BucketId::ROOT {
                let copied = page(self.of(BucketId::ROOT, before)?);
                self.put(triplet.sibling, Some(before), &copied)?;
            } else {
                self.put(triplet.sibling, Some(before), &of_nothing)?;
            }
        }
        self.put(BucketId::ROOT, Some(before), &of_nothing)
    }

    /// Whether those are there that held before the eviction after this point, in all buckets that it has written.
    pub(super) fn are_kept(&self, before: Point) -> io::Result<bool> {
        let triplets = self.tree.triplets(before.evictions);
        let written = triplets.flat_map(|it| [it.source, it.sibling, it.destination]);
        for bucket in written.filter(|bucket| self.has_page(*bucket, before.evictions)) {
            if latest(&self.pages(bucket)?, before).is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Puts some marks of a new server where they are at this point. Those that were put for the point before stay, for an access that is done again.
    pub(super) fn load(
        &self,
        bucket: BucketId,
        at: Point,
        first: usize,
        loaded: &[u8],
    ) -> io::Result<()> {
        let mut marks = self.of(bucket, at)?;
        marks[first..first + loaded.len()].copy_from_slice(loaded);
        let before = at.written.checked_sub(1).map(|written| Point { written, ..at });
        self.put(bucket, before, &Page { at, write: Marked::NOTHING, marks })
    }

    /// Buckets that hold nothing have none, but for the root. That includes leaves to which no eviction has come yet, though they have a place.
    fn has_page(&self, bucket: BucketId, evictions: u64) -> bool {
        bucket == BucketId::ROOT || self.tree.is_filled(bucket, evictions)
    }

    /// Puts a page where the one does not lie that holds before.
    fn put(&self, bucket: BucketId, before: Option<Point>, page: &Page) -> io::Result<()> {
        let kept = match before {
            Some(before) => latest(&self.pages(bucket)?, before),
            None => None,
        };
        let place = kept.map_or(0, |kept| 1 - kept);
        self.file.write_at(self.offset_of(bucket, place), &page.encode())
    }

    fn offset_of(&self, bucket: BucketId, place: usize) -> u64 {
        self.offset + (2 * bucket.0 + place as u64) * page_bytes(self.tree)
    }

    /// What lies in both places, if it is whole.
    fn pages(&self, bucket: BucketId) -> io::Result<[Option<Page>; 2]> {
        let mut both = vec![0; 2 * page_bytes(self.tree) as usize];
        self.file.read_at(self.offset_of(bucket, 0), &mut both)?;
        let (one, other) = both.split_at(both.len() / 2);
        Ok([one, other].map(|bytes| Page::decode(bytes, self.tree.slots())))
    }
}

/// Where the page lies that holds at a point.
fn latest(pages: &[Option<Page>; 2], at: Point) -> Option<usize> {
    let held = pages.iter().enumerate().filter_map(|(place, page)| Some((place, page.as_ref()?)));
    let held = held.filter(|(_, page)| page.at <= at);
    held.max_by_key(|(_, page)| page.at).map(|(place, _)| place)
}

impl Page {
    fn encode(&self) -> Vec<u8> {
        let Self { at, write: Marked { leaf, query_sum }, marks } = self;
        let mut bytes = at.evictions.to_le_bytes().to_vec();
        bytes.extend((at.written as u32).to_le_bytes());
        bytes.extend(leaf.0.to_le_bytes());
        bytes.extend(query_sum.to_le_bytes());
        bytes.extend(marks);
        bytes.extend(sum(&bytes).to_le_bytes());
        bytes
    }

    /// None if it is torn, or was never written.
    fn decode(bytes: &[u8], slots: usize) -> Option<Self> {
        let (fields, summed) = bytes.split_last_chunk::<SUM_BYTES>()?;
        if sum(fields) != u32::from_le_bytes(*summed) {
            return None;
        }
        let mut fields = Fields::of(fields);
        let at = Point { evictions: fields.u64().ok()?, written: fields.u32().ok()? as usize };
        let write = Marked { leaf: Leaf(fields.u64().ok()?), query_sum: fields.u32().ok()? };
        let marks = fields.bytes(slots).ok()?.to_vec();
        Some(Self { at, write, marks })
    }
}
