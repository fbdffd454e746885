//! The files of a server, which hold the slots of buckets and the record of the server's progress.
//! The record is at the beginning of the root's file.

use std::io;

use oblivio_core::Leaf;

use super::folder::{Folder, ShareFile};
use super::marks::{Marks, WriteIdentity, bytes_of_pages};
use super::places::{BucketPlace, File, place, slots_of_file};
use super::record::{HEAD_BYTES, RECORD_BYTES, Record, sum};
use super::sums::{Pieces, SUM_BYTES, Sum, SumOrder};
use crate::message::{Setup, TreePoint};

/// The files with one tree's shares, and the server's progress in this tree.
pub(super) struct Files {
    root: Box<dyn ShareFile>,
    siblings: Box<dyn ShareFile>,
    leaves: Box<dyn ShareFile>,
    pub(super) setup: Setup,
    pieces: Pieces,
    pub(super) record: Record,
    /// The last query, if slots have metadata: the next write marks the slot that it selected.
    pub(super) last_query: Option<LastQuery>,
    /// Whether a sync has failed. The system may then have dropped data, and report success for the
    /// next sync.
    pub(super) is_doubtful: bool,
}

/// A select's query, with the point and the path of the select.
pub(super) struct LastQuery {
    pub(super) at: TreePoint,
    pub(super) leaf: Leaf,
    /// The server's share of the query, one byte for each slot of the path.
    pub(super) query: Vec<u8>,
}

/// A bucket in a file.
pub(super) struct Bucket<'f> {
    file: &'f dyn ShareFile,
    /// The offset of the bucket's first slot.
    offset: u64,
    /// The number of slots in use. The other slots count as zeros, whatever the file holds.
    pub(super) slots: usize,
    block_bytes: usize,
    pieces: Pieces,
    /// The offset of the bucket's checksums in the file, and their order.
    sums: (u64, SumOrder),
}

/// A part of every block, given by its first byte and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockPart {
    pub(super) first: usize,
    pub(super) bytes: usize,
}

impl Files {
    /// Opens the files of a tree, or creates them if `may_be_new`. The setup file is written only
    /// after these files exist.
    pub(super) fn open(
        folder: &dyn Folder,
        tree: usize,
        setup: Setup,
        may_be_new: bool,
    ) -> io::Result<Self> {
        let open =
            |name, file| folder.open(&name_in(tree, name), bytes_of_file(&setup, file), may_be_new);
        let root = open("root", File::Root)?;
        let (siblings, leaves) = (open("siblings", File::Siblings)?, open("leaves", File::Leaves)?);
        let mut places = [[0; RECORD_BYTES]; 2];
        for (number, place) in (0..).zip(&mut places) {
            let offset = Record { number, ..Record::default() }.offset();
            root.read_at(offset, place)?;
        }
        let record = Record::latest([&places[0], &places[1]]).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the record of the server's progress is damaged",
            )
        })?;
        let (last_query, is_doubtful, pieces) = (None, false, Pieces::new(&setup));
        let mut files =
            Self { root, siblings, leaves, setup, pieces, record, last_query, is_doubtful };
        files.drop_torn_block()?;
        files.make_leftovers_durable()?;
        Ok(files)
    }

    /// Makes durable the data that an earlier process left in the files, before a client learns of
    /// the data. The process may have died before its sync, or after a failed sync. A sync alone is
    /// not enough: the system may have dropped data. So the last record, the block it covers, and
    /// the marks written with it are written again. Earlier data was already durable before that
    /// write.
    ///
    /// A block that does not match the record was written before the last write, and damaged since.
    /// Its old checksums stay, because with new ones an eviction would accept the damaged block.
    fn make_leftovers_durable(&mut self) -> io::Result<()> {
        let Record { at, number, .. } = self.record;
        if let Some(last) = at.written.checked_sub(1) {
            let block = self.block_of_root(at.evictions, last)?;
            if sum(&block) == self.record.block_sum {
                self.root_after(at.evictions).write(last, &block)?;
            }
            if let Some(marks) = self.marks() {
                marks.write_again(at)?;
            }
        }
        // A new tree may be in a repair and not yet at its point.
        if let (false, Some(marks)) = (self.is_new(), self.marks()) {
            marks.remove_later(at)?;
        }
        if number > 0 {
            self.root.write_at(self.record.offset(), &self.record.encode())?;
        }
        self.root.sync()
    }

    /// Drops the last block if the block, or a mark written with it, is torn. The server had not
    /// acknowledged such a block, because it acknowledges only once record, block and marks are
    /// durable. A damaged block looks like a torn one, and is dropped too; the client then writes
    /// the block again.
    fn drop_torn_block(&mut self) -> io::Result<()> {
        let at = self.record.at;
        if at.written == 0 {
            return Ok(());
        }
        let block = self.block_of_root(at.evictions, at.written - 1)?;
        let is_torn = sum(&block) != self.record.block_sum;
        let has_all_marks = match self.marks() {
            Some(marks) => marks.are_whole(at, self.record.query_sum)?,
            None => true,
        };
        if is_torn || !has_all_marks {
            self.record.at.written -= 1;
            self.record = self.with_sums(self.record)?;
        }
        Ok(())
    }

    /// Completes a record for a rollback or an adopted point with the checksums of the last write
    /// at that point. The checksum of a block is the stored one, even if the block was damaged
    /// since.
    pub(super) fn with_sums(&self, record: Record) -> io::Result<Record> {
        let write = match self.marks() {
            Some(marks) => marks.write_before(record.at)?,
            None => None,
        };
        let query_sum = write.map_or(0, WriteIdentity::query_sum);
        let block_sum = match record.at.written.checked_sub(1) {
            Some(last) => self.root_after(record.at.evictions).kept_sum_of_slot(last)?,
            None => 0,
        };
        Ok(Record { block_sum, query_sum, ..record })
    }

    fn block_of_root(&self, evictions: u64, slot: usize) -> io::Result<Vec<u8>> {
        let mut block = vec![0; self.setup.block_bytes];
        self.root_after(evictions).read(slot, &mut block)?;
        Ok(block)
    }

    fn file(&self, file: File) -> &dyn ShareFile {
        match file {
            File::Root => &*self.root,
            File::Siblings => &*self.siblings,
            File::Leaves => &*self.leaves,
        }
    }

    /// The marks of taken blocks; `None` if slots have no metadata.
    pub(super) fn marks(&self) -> Option<Marks<'_>> {
        let Setup { tree, block_bytes, metadata_bytes, .. } = self.setup;
        let slots = slots_of_file(tree, File::Root);
        let offset = HEAD_BYTES + slots * block_bytes as u64 + self.pieces.sums_bytes(slots);
        (metadata_bytes > 0).then_some(Marks { file: &*self.root, offset, tree })
    }

    fn offset(&self, BucketPlace { file, first_slot }: BucketPlace) -> u64 {
        head_bytes(file) + first_slot * self.setup.block_bytes as u64
    }

    /// The root after `evictions` evictions, with *A* slots.
    fn root_after(&self, evictions: u64) -> Bucket<'_> {
        let accesses = self.setup.tree.accesses();
        let first_slot = evictions % 2 * accesses as u64;
        self.bucket_at(BucketPlace { file: File::Root, first_slot }, accesses)
    }

    /// A bucket at point `at`; `None` if all slots of the bucket are zeros.
    pub(super) fn bucket(
        &self,
        bucket: oblivio_core::BucketId,
        at: TreePoint,
    ) -> Option<Bucket<'_>> {
        let place = place(self.setup.tree, bucket, at.evictions)?;
        let slots = match place.file {
            File::Root => at.written,
            File::Siblings | File::Leaves => self.setup.tree.slots(),
        };
        (slots > 0).then(|| self.bucket_at(place, slots))
    }

    /// The bucket at a place in the files, of which the first `slots` slots are in use.
    pub(super) fn bucket_at(&self, place: BucketPlace, slots: usize) -> Bucket<'_> {
        let (file, pieces) = (self.file(place.file), self.pieces);
        let Setup { tree, block_bytes, .. } = self.setup;
        let sums_at =
            self.offset(BucketPlace { first_slot: slots_of_file(tree, place.file), ..place });
        let order = match place.file {
            File::Root => SumOrder::by_slot(pieces),
            File::Siblings | File::Leaves => SumOrder::by_piece(tree.slots()),
        };
        let sums = (sums_at + pieces.sums_bytes(place.first_slot), order);
        Bucket { file, offset: self.offset(place), slots, block_bytes, pieces, sums }
    }

    /// Whether the tree is new: no block was written to it, and no eviction was attempted.
    pub(super) fn is_new(&self) -> bool {
        self.record.at == TreePoint::default() && self.record.attempt == 0
    }

    /// Writes a block to the next slot of the root. Records the block's checksum, and `query_sum`:
    /// the checksum of the query whose marks were written with the block.
    pub(super) fn write_block(
        &mut self,
        at: TreePoint,
        block: &[u8],
        query_sum: u32,
    ) -> io::Result<()> {
        self.root_after(at.evictions).write(at.written, block)?;
        let at = TreePoint { written: at.written + 1, ..at };
        self.store_record(Record { at, block_sum: sum(block), query_sum, ..self.record })
    }

    /// Makes the buckets written by an eviction durable.
    pub(super) fn sync_buckets(&mut self) -> io::Result<()> {
        self.sync(File::Siblings)?;
        self.sync(File::Leaves)
    }

    /// Makes the file that holds a bucket durable.
    pub(super) fn sync_bucket(&mut self, bucket: oblivio_core::BucketId) -> io::Result<()> {
        self.sync(match bucket.level() {
            0 => File::Root,
            level if level == self.setup.tree.height() => File::Leaves,
            _ => File::Siblings,
        })
    }

    fn sync(&mut self, file: File) -> io::Result<()> {
        let synced = self.file(file).sync();
        self.is_doubtful |= synced.is_err();
        synced
    }

    /// Stores the server's progress in the place of the older record, and makes it durable.
    pub(super) fn store_record(&mut self, record: Record) -> io::Result<()> {
        let record = Record { number: self.record.number + 1, ..record };
        self.root.write_at(record.offset(), &record.encode())?;
        self.sync(File::Root)?;
        self.record = record;
        Ok(())
    }
}

impl Bucket<'_> {
    /// Fills `out` with the contents of slots, beginning with slot `first`.
    pub(super) fn read(&self, first: usize, out: &mut [u8]) -> io::Result<()> {
        self.file.read_at(self.offset + (first * self.block_bytes) as u64, out)
    }

    /// Reads a part of each slot in use. Returns the parts one after the other.
    pub(super) fn read_part(&self, part: BlockPart) -> io::Result<Vec<u8>> {
        let mut out = vec![0; self.slots * part.bytes];
        if part.bytes == self.block_bytes {
            self.read(0, &mut out)?;
            return Ok(out);
        }
        for (slot, out) in out.chunks_exact_mut(part.bytes).enumerate() {
            let offset = slot * self.block_bytes + part.first;
            self.file.read_at(self.offset + offset as u64, out)?;
        }
        Ok(out)
    }

    /// Reads a piece of each slot in use, and verifies each piece's checksum.
    ///
    /// # Errors
    /// System errors, and `InvalidData` if a checksum does not match.
    pub(super) fn read_checked(&self, part: BlockPart) -> io::Result<Vec<u8>> {
        let read = self.read_part(part)?;
        if self.kept_sums(part)? != self.sums_of(part, &read) {
            let message = "a share on its disk does not match its checksum";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(read)
    }

    /// The stored checksums of one piece of each slot in use.
    pub(super) fn kept_sums(&self, part: BlockPart) -> io::Result<Vec<Sum>> {
        let ((_, order), piece) = (self.sums, self.pieces.number(part.first));
        let first = if order.is_by_slot() { 0 } else { piece };
        // Checksums of other pieces in between are read as well.
        let start = order.index(0, first);
        let end = order.index(self.slots - 1, piece) + 1;
        let mut stored = vec![0; (end - start) * SUM_BYTES];
        self.file.read_at(self.sum_offset(0, first), &mut stored)?;
        let stored = stored.as_chunks::<SUM_BYTES>().0;
        Ok((0..self.slots).map(|slot| stored[order.index(slot, piece) - start]).collect())
    }

    /// The stored checksum of a slot of the root.
    fn kept_sum_of_slot(&self, slot: usize) -> io::Result<u32> {
        let mut stored = vec![0; self.pieces.count() * SUM_BYTES];
        self.file.read_at(self.sum_offset(slot, 0), &mut stored)?;
        Ok(self.pieces.sum_of_slot(stored.as_chunks().0))
    }

    /// Computes the checksums of the pieces in `slots`, which holds one piece of each slot.
    fn sums_of(&self, part: BlockPart, slots: &[u8]) -> Vec<Sum> {
        let pieces = slots.chunks_exact(part.bytes);
        pieces.map(|piece| self.pieces.sum_of(piece).to_le_bytes()).collect()
    }

    /// The offset of the checksum of a piece of a slot.
    fn sum_offset(&self, slot: usize, piece: usize) -> u64 {
        let (offset, order) = self.sums;
        offset + (order.index(slot, piece) * SUM_BYTES) as u64
    }

    /// Writes a piece of each slot, and the checksums of the pieces. Computes the checksums, unless
    /// the caller passes `kept_sums` for data that was copied without verification. Slots after
    /// those in `slots` become zeros.
    pub(super) fn write_part(
        &self,
        part: BlockPart,
        slots: &[u8],
        kept_sums: Option<Vec<Sum>>,
    ) -> io::Result<()> {
        let mut sums = kept_sums.unwrap_or_else(|| self.sums_of(part, slots));
        // The stored checksum of zeros is zero.
        sums.resize(self.slots, [0; SUM_BYTES]);
        let mut whole;
        let slots = if slots.len() < self.slots * part.bytes {
            whole = slots.to_vec();
            whole.resize(self.slots * part.bytes, 0);
            &whole
        } else {
            slots
        };
        let at = self.sum_offset(0, self.pieces.number(part.first));
        self.file.write_at(at, sums.as_flattened())?;
        if part.bytes == self.block_bytes {
            return self.file.write_at(self.offset, slots);
        }
        for (slot, bytes) in slots.chunks_exact(part.bytes).enumerate() {
            let offset = slot * self.block_bytes + part.first;
            self.file.write_at(self.offset + offset as u64, bytes)?;
        }
        Ok(())
    }

    /// Writes blocks, and their checksums, to consecutive slots, beginning with slot `first`.
    pub(super) fn write(&self, first: usize, blocks: &[u8]) -> io::Result<()> {
        self.file.write_at(self.offset + (first * self.block_bytes) as u64, blocks)?;
        let slots = blocks.chunks_exact(self.block_bytes);
        let sums: Vec<Vec<_>> = slots.map(|it| self.pieces.sums_of_slot(it).collect()).collect();
        if self.sums.1.is_by_slot() {
            let sums: Vec<_> = sums.concat().into_iter().flat_map(u32::to_le_bytes).collect();
            return self.file.write_at(self.sum_offset(first, 0), &sums);
        }
        for piece in 0..self.pieces.count() {
            let of_piece: Vec<_> = sums.iter().flat_map(|of| of[piece].to_le_bytes()).collect();
            self.file.write_at(self.sum_offset(first, piece), &of_piece)?;
        }
        Ok(())
    }

    /// Tells the system that the whole bucket will be read soon.
    pub(super) fn will_be_read(&self) {
        self.file.will_need(self.offset, (self.slots * self.block_bytes) as u64);
    }
}

fn head_bytes(file: File) -> u64 {
    match file {
        File::Root => HEAD_BYTES,
        File::Siblings | File::Leaves => 0,
    }
}

/// The length of a file of a tree, in bytes.
pub(super) fn bytes_of_file(setup: &Setup, file: File) -> u64 {
    let has_marks = file == File::Root && setup.metadata_bytes > 0;
    let marks = if has_marks { bytes_of_pages(setup.tree) } else { 0 };
    let slots = slots_of_file(setup.tree, file);
    let sums = Pieces::new(setup).sums_bytes(slots);
    head_bytes(file) + slots * setup.block_bytes as u64 + sums + marks
}

/// The name of a file of a tree.
pub(super) fn name_in(tree: usize, name: &str) -> String {
    if tree == 0 { name.into() } else { format!("{name}.{tree}") }
}
