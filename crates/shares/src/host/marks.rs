//! The marks of taken blocks, if slots have metadata (ADR 17). Each bucket has a page with a share
//! for each slot, after the slots of the root.
//!
//! ```text
//! page = evictions 8 ‖ blocks in the root 4 ‖ leaf 8 ‖ sum of the query 4 ‖ Z marks ‖ CRC-32 4
//! ```
//! A page names the write or eviction after which it is valid, and the path and query of the write.
//! Each bucket has two places for its page. A new page goes to the place that does not hold the
//! currently valid one. So the previous state is always available, for a client that repeats a
//! request and for a rollback. A page later than the server's point is ignored. If two intact pages
//! remain, the later one is valid.
//!
//! Pages become durable with the record of the write, in one sync, so a crash may leave the record
//! intact and pages torn. The write was then not acknowledged, and is dropped, as if its block were
//! torn. The page of the root, which every write makes, names the other pages, and the record holds
//! the checksum of the query.
//!
//! # A different write at the same point
//! A client whose directory was rolled back may make a different write at a point that this server
//! has already reached. No page of the first write may then be used:
//! - **If the page of the root is from the first write**, its other pages are removed, durably,
//!   before any page of the second is written. The page of the root is replaced last.
//! - **If a crash tore that page**, the other pages are unknown. So a server that opens its files
//!   removes all pages that are later than its point.
//! - **If only some pages of the second write are durable**, pages of the first are not mistaken
//!   for them: their query differs, even if the path is the same.

use std::io;

use oblivio_core::durable::section::Fields;
use oblivio_core::{BucketId, Leaf};

use super::folder::ShareFile;
use super::record::sum;
use crate::field::{Field, Gf256};
use crate::message::TreePoint;
use crate::tree::Tree;

const HEADER_BYTES: usize = 8 + 4 + 8 + 4;
const SUM_BYTES: usize = 4;

/// Reads and writes the pages of marks of a tree.
pub(super) struct Marks<'f> {
    pub(super) file: &'f dyn ShareFile,
    /// The offset of the first page.
    pub(super) offset: u64,
    pub(super) tree: Tree,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Page {
    /// The point after the write or eviction that made the page.
    at: TreePoint,
    write: WriteIdentity,
    marks: Vec<u8>,
}

/// Identifies the write that made a page, among all possible writes at the same point. All zeros if
/// an eviction made the page, or a repair put the page onto a new server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteIdentity {
    leaf: Leaf,
    query_sum: u32,
}

impl WriteIdentity {
    const NONE: Self = Self { leaf: Leaf(0), query_sum: 0 };

    /// The identity of a write to path `leaf` with this query.
    pub(super) fn new(leaf: Leaf, query: &[u8]) -> Self {
        Self { leaf, query_sum: sum(query) }
    }

    /// The checksum of the query, for the record.
    pub(super) fn query_sum(self) -> u32 {
        self.query_sum
    }
}

fn page_bytes(tree: Tree) -> u64 {
    (HEADER_BYTES + tree.slots() + SUM_BYTES) as u64
}

/// Bytes of all pages of marks of a tree.
pub(super) fn bytes_of_pages(tree: Tree) -> u64 {
    2 * (2 * tree.leaves() - 1) * page_bytes(tree)
}

impl Marks<'_> {
    /// The marks of a bucket at point `at`. The bucket must be in use.
    pub(super) fn of(&self, bucket: BucketId, at: TreePoint) -> io::Result<Vec<u8>> {
        let pages = self.pages(bucket)?;
        let latest = latest(&pages, at).and_then(|place| pages[place].as_ref());
        Ok(latest.map_or_else(|| vec![0; self.tree.slots()], |page| page.marks.clone()))
    }

    /// Whether this server knows the marks of a bucket at point `at`. It can lack the marks of an
    /// earlier point if it has rolled back since, or never reached that point.
    pub(super) fn are_known(&self, bucket: BucketId, at: TreePoint) -> io::Result<bool> {
        let is_empty = bucket == BucketId::ROOT && at.written == 0;
        if is_empty || !self.has_page(bucket, at.evictions) {
            return Ok(true);
        }
        Ok(latest(&self.pages(bucket)?, at).is_some())
    }

    /// Adds a query to the marks of its path, for the write after `at`. The marks become durable
    /// with the record of the write. The caller must have removed the marks of [any other
    /// write](Self::remove_other_write).
    pub(super) fn add(&self, at: TreePoint, leaf: Leaf, query: &[u8]) -> io::Result<()> {
        let after = TreePoint { written: at.written + 1, ..at };
        let write = WriteIdentity::new(leaf, query);
        // Begin with the root, whose page names the others.
        for (bucket, taken) in self.tree.path(leaf).zip(query.chunks(self.tree.slots())) {
            if !self.has_page(bucket, at.evictions) {
                continue;
            }
            // Empty slots of the root have no marks: a rebuilt server would not know them.
            let held = if bucket == BucketId::ROOT { at.written } else { taken.len() };
            let mut marks = self.of(bucket, at)?;
            Gf256::add_multiple(&mut marks[..held], Gf256::ONE, &taken[..held]);
            self.put(bucket, Some(at), &Page { at: after, write, marks })?;
        }
        Ok(())
    }

    /// Removes the marks of a different write after the same point. Returns whether it removed any.
    /// The caller must then make the removal durable before any other write.
    pub(super) fn remove_other_write(
        &self,
        at: TreePoint,
        write: WriteIdentity,
    ) -> io::Result<bool> {
        let after = TreePoint { written: at.written + 1, ..at };
        let Some(another) = self.write_before(after)?.filter(|another| *another != write) else {
            return Ok(false);
        };
        let others = self.tree.path(another.leaf).filter(|bucket| *bucket != BucketId::ROOT);
        for bucket in others {
            self.remove(bucket, |page| page.at == after)?;
        }
        Ok(true)
    }

    /// Removes all pages later than the server's point `at`.
    pub(super) fn remove_later(&self, at: TreePoint) -> io::Result<()> {
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

    /// Identifies the write that led to point `at`; `None` if the root has no intact page for this
    /// point.
    pub(super) fn write_before(&self, at: TreePoint) -> io::Result<Option<WriteIdentity>> {
        let pages = self.pages(BucketId::ROOT)?;
        Ok(pages.into_iter().flatten().find(|page| page.at == at).map(|page| page.write))
    }

    /// Whether all pages of the write that led to point `at` are intact, and its query has checksum
    /// `query_sum`.
    pub(super) fn are_whole(&self, at: TreePoint, query_sum: u32) -> io::Result<bool> {
        let Some(write) = self.write_before(at)? else { return Ok(false) };
        Ok(write.query_sum == query_sum && self.places_of(at, write)?.is_some())
    }

    /// Rewrites the pages of the write that led to point `at`, if all of them are intact.
    pub(super) fn write_again(&self, at: TreePoint) -> io::Result<()> {
        let Some(write) = self.write_before(at)? else { return Ok(()) };
        for (offset, page) in self.places_of(at, write)?.unwrap_or_default() {
            self.file.write_at(offset, &page.encode())?;
        }
        Ok(())
    }

    /// The pages of the write that led to point `at`, each with its offset; `None` if a page is
    /// torn or from another write.
    fn places_of(
        &self,
        at: TreePoint,
        write: WriteIdentity,
    ) -> io::Result<Option<Vec<(u64, Page)>>> {
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

    /// Writes new pages for all buckets that an eviction writes. In the first step, a sibling that
    /// is no leaf becomes a copy of the root, so its page is a copy of the root's page. The pages
    /// of all other buckets have no marks, because no block in them was taken.
    pub(super) fn evict(&self, before: TreePoint) -> io::Result<()> {
        let number = before.evictions;
        let at = TreePoint { evictions: number + 1, written: 0 };
        let page = |marks| Page { at, write: WriteIdentity::NONE, marks };
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

    /// Whether each bucket that takes part in the eviction at point `before` still has its page
    /// from before that eviction.
    pub(super) fn has_pages_before(&self, before: TreePoint) -> io::Result<bool> {
        let triplets = self.tree.triplets(before.evictions);
        let written = triplets.flat_map(|it| [it.source, it.sibling, it.destination]);
        for bucket in written.filter(|bucket| self.has_page(*bucket, before.evictions)) {
            if latest(&self.pages(bucket)?, before).is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Stores marks on a new server for point `at`. Does not overwrite the marks stored for the
    /// point before, because an access may be repeated from there.
    pub(super) fn load(
        &self,
        bucket: BucketId,
        at: TreePoint,
        first: usize,
        loaded: &[u8],
    ) -> io::Result<()> {
        let mut marks = self.of(bucket, at)?;
        marks[first..first + loaded.len()].copy_from_slice(loaded);
        let before = at.written.checked_sub(1).map(|written| TreePoint { written, ..at });
        self.put(bucket, before, &Page { at, write: WriteIdentity::NONE, marks })
    }

    /// Whether a bucket has pages. The root always has pages. An unused bucket has none. This
    /// includes a leaf before its first eviction, although the leaf has a place.
    fn has_page(&self, bucket: BucketId, evictions: u64) -> bool {
        bucket == BucketId::ROOT || self.tree.is_in_use(bucket, evictions)
    }

    /// Writes a page to the place whose page is not valid at `before`.
    fn put(&self, bucket: BucketId, before: Option<TreePoint>, page: &Page) -> io::Result<()> {
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

    /// The pages in both places of a bucket; `None` for a page that is not intact.
    fn pages(&self, bucket: BucketId) -> io::Result<[Option<Page>; 2]> {
        let mut both = vec![0; 2 * page_bytes(self.tree) as usize];
        self.file.read_at(self.offset_of(bucket, 0), &mut both)?;
        let (one, other) = both.split_at(both.len() / 2);
        Ok([one, other].map(|bytes| Page::decode(bytes, self.tree.slots())))
    }
}

/// The index of the page that is valid at point `at`.
fn latest(pages: &[Option<Page>; 2], at: TreePoint) -> Option<usize> {
    let held = pages.iter().enumerate().filter_map(|(place, page)| Some((place, page.as_ref()?)));
    let held = held.filter(|(_, page)| page.at <= at);
    held.max_by_key(|(_, page)| page.at).map(|(place, _)| place)
}

impl Page {
    fn encode(&self) -> Vec<u8> {
        let Self { at, write: WriteIdentity { leaf, query_sum }, marks } = self;
        let mut bytes = at.evictions.to_le_bytes().to_vec();
        bytes.extend((at.written as u32).to_le_bytes());
        bytes.extend(leaf.0.to_le_bytes());
        bytes.extend(query_sum.to_le_bytes());
        bytes.extend(marks);
        bytes.extend(sum(&bytes).to_le_bytes());
        bytes
    }

    /// Decodes a page; `None` if the page is torn, or was never written.
    fn decode(bytes: &[u8], slots: usize) -> Option<Self> {
        let (fields, summed) = bytes.split_last_chunk::<SUM_BYTES>()?;
        if sum(fields) != u32::from_le_bytes(*summed) {
            return None;
        }
        let mut fields = Fields::new(fields);
        let at = TreePoint { evictions: fields.u64().ok()?, written: fields.u32().ok()? as usize };
        let write = WriteIdentity { leaf: Leaf(fields.u64().ok()?), query_sum: fields.u32().ok()? };
        let marks = fields.bytes(slots).ok()?.to_vec();
        Some(Self { at, write, marks })
    }
}
