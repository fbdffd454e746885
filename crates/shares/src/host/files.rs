//! The files of a server: slots of buckets, and in front of the root the record of how far it is.

use std::io;

use oblivio_core::Leaf;

use super::folder::{Folder, ShareFile};
use super::marks::{Marked, Marks, bytes_of_pages};
use super::places::{File, Place, place, slots_of_file};
use super::record::{HEAD_BYTES, RECORD_BYTES, Record, sum};
use super::sums::{Order, Pieces, SUM_BYTES, Sum};
use crate::message::{Point, Setup};

/// Shares of a tree and how far they are.
pub(super) struct Files {
    root: Box<dyn ShareFile>,
    siblings: Box<dyn ShareFile>,
    leaves: Box<dyn ShareFile>,
    pub(super) setup: Setup,
    pieces: Pieces,
    pub(super) record: Record,
    /// The query that came last, if slots say whose they are: the next write marks what it has selected.
    pub(super) asked: Option<Asked>,
    /// A sync has failed: the system may have forgotten what it could not write, and say the next time that all is well.
    pub(super) is_doubtful: bool,
}

/// A query, and what it was for.
pub(super) struct Asked {
    pub(super) at: Point,
    pub(super) leaf: Leaf,
    /// A byte for each slot of the path.
    pub(super) query: Vec<u8>,
}

/// A bucket, or what is to be taken for all zeros.
pub(super) struct Bucket<'f> {
    file: &'f dyn ShareFile,
    /// Of its first slot.
    offset: u64,
    /// Slots that hold something. The others are zeros, whatever is in the file.
    pub(super) slots: usize,
    block_bytes: usize,
    pieces: Pieces,
    /// Where its checksums begin, and their order.
    sums: (u64, Order),
}

/// A part of every block: its first byte and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) first: usize,
    pub(super) bytes: usize,
}

impl Files {
    /// Opens those of a tree, or makes them if they may be new: they are there before it is kept what the server is.
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
                "the record of how far the server is is damaged",
            )
        })?;
        let (asked, is_doubtful, pieces) = (None, false, Pieces::new(&setup));
        let mut files = Self { root, siblings, leaves, setup, pieces, record, asked, is_doubtful };
        files.forget_a_torn_block()?;
        files.make_durable_what_was_left()?;
        Ok(files)
    }

    /// Makes durable what a program has left that died before its own sync, or after one that has
    /// failed, before any client hears of it. A sync alone is not enough: the system may have
    /// forgotten what it could not write. So the record, the block of which it tells, and the marks
    /// that came with it are written again: what came before them was durable when they were
    /// written.
    ///
    /// A block that does not fit the record was there before the last write, and damaged since. Its
    /// checksums stay as they are, or an eviction would take it for right.
    fn make_durable_what_was_left(&mut self) -> io::Result<()> {
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
        // A new tree may be one that is put where it is, and has not adopted its point.
        if let (false, Some(marks)) = (self.is_new(), self.marks()) {
            marks.remove_later(at)?;
        }
        if number > 0 {
            self.root.write_at(self.record.offset(), &self.record.encode())?;
        }
        self.root.sync()
    }

    /// The block that was written last was not acknowledged if it is torn, or marks that came with
    /// it are: its record was made durable with them. Damage looks the same: then the client writes
    /// the block again.
    fn forget_a_torn_block(&mut self) -> io::Result<()> {
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

    /// A record of a point to which the server goes back or that it adopts, with the sums of what
    /// was written last there: that of a block is what was kept, also if the block is damaged
    /// since.
    pub(super) fn with_sums(&self, record: Record) -> io::Result<Record> {
        let write = match self.marks() {
            Some(marks) => marks.write_before(record.at)?,
            None => None,
        };
        let query_sum = write.map_or(0, Marked::query_sum);
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

    /// Where it is kept which slots were taken, if slots say whose they are.
    pub(super) fn marks(&self) -> Option<Marks<'_>> {
        let Setup { tree, block_bytes, metadata_bytes, .. } = self.setup;
        let slots = slots_of_file(tree, File::Root);
        let offset = HEAD_BYTES + slots * block_bytes as u64 + self.pieces.sums_bytes(slots);
        (metadata_bytes > 0).then_some(Marks { file: &*self.root, offset, tree })
    }

    fn offset(&self, Place { file, first_slot }: Place) -> u64 {
        head_bytes(file) + first_slot * self.setup.block_bytes as u64
    }

    /// The root after `evictions` evictions, with room for *A* slots.
    fn root_after(&self, evictions: u64) -> Bucket<'_> {
        let accesses = self.setup.tree.accesses();
        let first_slot = evictions % 2 * accesses as u64;
        self.bucket_at(Place { file: File::Root, first_slot }, accesses)
    }

    /// What a bucket holds at this point; none if all of it is zeros.
    pub(super) fn bucket(&self, bucket: oblivio_core::BucketId, at: Point) -> Option<Bucket<'_>> {
        let place = place(self.setup.tree, bucket, at.evictions)?;
        let slots = match place.file {
            File::Root => at.written,
            File::Siblings | File::Leaves => self.setup.tree.slots(),
        };
        (slots > 0).then(|| self.bucket_at(place, slots))
    }

    /// The bucket that lies there.
    pub(super) fn bucket_at(&self, place: Place, slots: usize) -> Bucket<'_> {
        let (file, pieces) = (self.file(place.file), self.pieces);
        let Setup { tree, block_bytes, .. } = self.setup;
        let sums_at = self.offset(Place { first_slot: slots_of_file(tree, place.file), ..place });
        let order = match place.file {
            File::Root => Order::by_slot(pieces),
            File::Siblings | File::Leaves => Order::by_piece(tree.slots()),
        };
        let sums = (sums_at + pieces.sums_bytes(place.first_slot), order);
        Bucket { file, offset: self.offset(place), slots, block_bytes, pieces, sums }
    }

    /// Whether nothing was done with it yet.
    pub(super) fn is_new(&self) -> bool {
        self.record.at == Point::default() && self.record.attempt == 0
    }

    /// Puts a block into the slot of the root that is next at this point, and keeps that it is there, with what was marked before.
    pub(super) fn write_block(
        &mut self,
        at: Point,
        block: &[u8],
        query_sum: u32,
    ) -> io::Result<()> {
        self.root_after(at.evictions).write(at.written, block)?;
        let at = Point { written: at.written + 1, ..at };
        self.keep(Record { at, block_sum: sum(block), query_sum, ..self.record })
    }

    /// Makes buckets durable that were written.
    pub(super) fn sync_buckets(&mut self) -> io::Result<()> {
        self.sync(File::Siblings)?;
        self.sync(File::Leaves)
    }

    /// Makes the file durable in which this bucket lies.
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

    /// Keeps how far the server is.
    pub(super) fn keep(&mut self, record: Record) -> io::Result<()> {
        let record = Record { number: self.record.number + 1, ..record };
        self.root.write_at(record.offset(), &record.encode())?;
        self.sync(File::Root)?;
        self.record = record;
        Ok(())
    }
}

impl Bucket<'_> {
    /// Slots from `first` on, as many as there is room for.
    pub(super) fn read(&self, first: usize, out: &mut [u8]) -> io::Result<()> {
        self.file.read_at(self.offset + (first * self.block_bytes) as u64, out)
    }

    /// A part of each slot that holds something, one after the other.
    pub(super) fn read_part(&self, part: Part) -> io::Result<Vec<u8>> {
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

    /// The same of a part that is a piece.
    ///
    /// # Errors
    /// `InvalidData` when one of them does not have its checksum.
    pub(super) fn read_checked(&self, part: Part) -> io::Result<Vec<u8>> {
        let read = self.read_part(part)?;
        if self.kept_sums(part)? != self.sums_of(part, &read) {
            let message = "a share on its disk does not have its checksum any more";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(read)
    }

    /// The checksums that are kept of a piece of each slot that holds something.
    pub(super) fn kept_sums(&self, part: Part) -> io::Result<Vec<Sum>> {
        let ((_, order), piece) = (self.sums, self.pieces.number(part.first));
        let first = if order.is_by_slot() { 0 } else { piece };
        // The others between them are read as well.
        let start = order.index(0, first);
        let end = order.index(self.slots - 1, piece) + 1;
        let mut kept = vec![0; (end - start) * SUM_BYTES];
        self.file.read_at(self.sum_offset(0, first), &mut kept)?;
        let kept = kept.as_chunks::<SUM_BYTES>().0;
        Ok((0..self.slots).map(|slot| kept[order.index(slot, piece) - start]).collect())
    }

    /// The checksum that a slot of the root had when it was written.
    fn kept_sum_of_slot(&self, slot: usize) -> io::Result<u32> {
        let mut kept = vec![0; self.pieces.count() * SUM_BYTES];
        self.file.read_at(self.sum_offset(slot, 0), &mut kept)?;
        Ok(self.pieces.sum_of_slot(kept.as_chunks().0))
    }

    /// The checksums of a piece of each of these slots.
    fn sums_of(&self, part: Part, slots: &[u8]) -> Vec<Sum> {
        let pieces = slots.chunks_exact(part.bytes);
        pieces.map(|piece| self.pieces.sum_of(piece).to_le_bytes()).collect()
    }

    /// Where the checksum of a piece of a slot lies.
    fn sum_offset(&self, slot: usize, piece: usize) -> u64 {
        let (offset, order) = self.sums;
        offset + (order.index(slot, piece) * SUM_BYTES) as u64
    }

    /// Writes a piece of each slot, and its checksum: that of what is written, or the one that was
    /// kept where it was read. Slots behind those that are given become zeros.
    pub(super) fn write_part(
        &self,
        part: Part,
        slots: &[u8],
        kept_sums: Option<Vec<Sum>>,
    ) -> io::Result<()> {
        let mut sums = kept_sums.unwrap_or_else(|| self.sums_of(part, slots));
        // That of zeros is zero.
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

    /// Puts blocks into slots from `first` on.
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

    /// All of it will be read soon.
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

/// Bytes of a file.
pub(super) fn bytes_of_file(setup: &Setup, file: File) -> u64 {
    let has_marks = file == File::Root && setup.metadata_bytes > 0;
    let marks = if has_marks { bytes_of_pages(setup.tree) } else { 0 };
    let slots = slots_of_file(setup.tree, file);
    let sums = Pieces::new(setup).sums_bytes(slots);
    head_bytes(file) + slots * setup.block_bytes as u64 + sums + marks
}

/// What a file is called that belongs to a tree.
pub(super) fn name_in(tree: usize, name: &str) -> String {
    if tree == 0 { name.into() } else { format!("{name}.{tree}") }
}
