//! The marks of blocks that were taken, where slots say whose they are (ADR 17): of each bucket a page with a share for each slot, behind the root.
//!
//! ```text
//! page = evictions 8 ‖ blocks in the root 4 ‖ leaf 8 ‖ Z marks ‖ CRC-32 4
//! ```
//! A page says after which write or eviction it holds, and to which path that write was. Each bucket has two places: a page is put where the
//! one does not lie that held before. So the state before is always there, for a client that asks the same again, and for a server that goes back;
//! and of two pages that are whole, the later one counts that is not later than the server is.
//!
//! Pages are made durable with the record of the write, in one sync. So some may be torn that the record takes for granted: then the write has not been acknowledged, and is
//! forgotten, as one whose block is torn. Which pages those are is in that of the root, which every write makes.

use std::io;

use oblivio_core::durable::section::Fields;
use oblivio_core::{BucketId, Leaf};

use super::folder::ShareFile;
use super::record::sum;
use crate::field::{Field, Gf256};
use crate::message::Point;
use crate::tree::Tree;

const HEADER_BYTES: usize = 8 + 4 + 8;
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
    /// The path of that write.
    leaf: Leaf,
    marks: Vec<u8>,
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

    /// Adds a query to those of its path, for the write after this point. They are durable with the record of it.
    pub(super) fn add(&self, at: Point, leaf: Leaf, query: &[u8]) -> io::Result<()> {
        let after = Point { written: at.written + 1, ..at };
        self.take_back_another(after, leaf)?;
        for (bucket, taken) in self.tree.path(leaf).zip(query.chunks(self.tree.slots())) {
            if !self.has_page(bucket, at.evictions) {
                continue;
            }
            // Slots of the root in which nothing is yet have no marks: a server that is made anew knows nothing of them.
            let held = if bucket == BucketId::ROOT { at.written } else { taken.len() };
            let mut marks = self.of(bucket, at)?;
            Gf256::add_multiple(&mut marks[..held], Gf256::ONE, &taken[..held]);
            self.put(bucket, Some(at), &Page { at: after, leaf, marks })?;
        }
        Ok(())
    }

    /// A write that is done again may be another one, of a client whose directory was set back. What the first has marked does not count then.
    fn take_back_another(&self, after: Point, leaf: Leaf) -> io::Result<()> {
        let Some(another) = self.path_of(after)?.filter(|another| *another != leaf) else {
            return Ok(());
        };
        for bucket in self.tree.path(another) {
            for (place, page) in self.pages(bucket)?.into_iter().enumerate() {
                if page.is_some_and(|page| page.at == after) {
                    let nothing = vec![0; page_bytes(self.tree) as usize];
                    self.file.write_at(self.offset_of(bucket, place), &nothing)?;
                }
            }
        }
        Ok(())
    }

    /// To which path the write was after which servers are at this point; none if the page of the root that says it is torn.
    fn path_of(&self, at: Point) -> io::Result<Option<Leaf>> {
        let pages = self.pages(BucketId::ROOT)?;
        Ok(pages.into_iter().flatten().find(|page| page.at == at).map(|page| page.leaf))
    }

    /// Whether all that the write has marked after which the server is at this point is there.
    pub(super) fn are_whole(&self, at: Point) -> io::Result<bool> {
        Ok(self.places_of_write(at)?.is_some())
    }

    /// Writes those pages again.
    pub(super) fn write_again(&self, at: Point) -> io::Result<()> {
        for (offset, page) in self.places_of_write(at)?.unwrap_or_default() {
            self.file.write_at(offset, &page.encode())?;
        }
        Ok(())
    }

    /// The pages that the write has made after which the server is at this point; none if some of them are torn.
    fn places_of_write(&self, at: Point) -> io::Result<Option<Vec<(u64, Page)>>> {
        let Some(leaf) = self.path_of(at)? else { return Ok(None) };
        let mut found = Vec::new();
        for bucket in self.tree.path(leaf).filter(|it| self.has_page(*it, at.evictions)) {
            let pages = self.pages(bucket)?.into_iter().enumerate();
            let page = pages.filter_map(|(place, page)| Some((place, page?)));
            match page.into_iter().find(|(_, page)| page.at == at) {
                Some((place, page)) => found.push((self.offset_of(bucket, place), page)),
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    /// Makes those of all buckets that an eviction makes. The sibling of the first step is a copy of the root. All else is made of blocks that were not taken.
    pub(super) fn evict(&self, before: Point) -> io::Result<()> {
        let number = before.evictions;
        let page =
            |marks| Page { at: Point { evictions: number + 1, written: 0 }, leaf: Leaf(0), marks };
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
        self.put(bucket, before, &Page { at, leaf: Leaf(0), marks })
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
        let Self { at, leaf, marks } = self;
        let mut bytes = at.evictions.to_le_bytes().to_vec();
        bytes.extend((at.written as u32).to_le_bytes());
        bytes.extend(leaf.0.to_le_bytes());
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
        let leaf = Leaf(fields.u64().ok()?);
        let marks = fields.bytes(slots).ok()?.to_vec();
        Some(Self { at, leaf, marks })
    }
}
