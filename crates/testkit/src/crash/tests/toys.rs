//! Tiny disks: two correct protocols with optional flaws, and a disk that overwrites blocks in
//! place.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::Range;
use std::sync::Mutex;

use oblivio_core::geometry::BucketId;
use oblivio_core::store::{BucketStore, Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape};
use oblivio_volume::device::{BlockDevice, DiskError, DiskErrorKind, DiskOp, Request, WipedBytes};
use oblivio_volume::state_dir::{StateDir, StateFile};

use crate::crash::{CrashDir, CrashStore};

pub(super) const BLOCK: usize = 1024;
const BUCKETS: usize = 7;
pub(super) const DISK: usize = BUCKETS * BLOCK;

/// A flaw that can be put into a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    /// A flush is answered although no sync was made.
    FlushDoesNotSync,
    /// A failed sync is retried, and the second answer is trusted.
    SyncIsRetried,
    /// An error of an append is ignored.
    FailedAppendIsIgnored,
    /// Records have no checksum.
    NoChecksum,
    /// Records do not name their log.
    NoGeneration,
    /// The new log is renamed over the old one before the new log is synced.
    RenameBeforeSync,
    /// The directory is not synced after the rename.
    NamesAreNotSynced,
    /// Records read from a log are assumed to be durable.
    OldLogIsTrusted,
    /// Blocks go to the store before their log records are durable.
    StoreBeforeLog,
    /// The log is discarded before the store is flushed.
    StoreIsNotFlushed,
}

/// The shapes of one tree of seven buckets, with one block each.
pub(super) fn shapes() -> Vec<TreeShape> {
    let level = |level: u32| LevelShape {
        buckets: 1 << level,
        slots: 1,
        header_bytes: 24,
        slots_offset: 24,
        slot_bytes: BLOCK as u64 - 24,
        bucket_bytes: BLOCK as u64,
    };
    vec![TreeShape::new((0..3).map(level).collect())]
}

/// A protocol that makes bytes durable.
pub(super) trait Protocol: Send + 'static {
    fn bytes(&self) -> &[u8];
    fn write(&mut self, offset: usize, data: &[u8]) -> io::Result<()>;
    fn flush(&mut self) -> io::Result<()>;
}

/// A protocol as a disk. After the first error, all requests fail.
pub(super) struct Toy<P>(Mutex<(P, bool)>);

impl<P: Protocol> Toy<P> {
    pub(super) fn new(opened: io::Result<P>) -> Result<Self, DiskError> {
        opened.map(|protocol| Self(Mutex::new((protocol, false)))).map_err(failed)
    }
}

impl<P: Protocol> BlockDevice for Toy<P> {
    fn bytes(&self) -> u64 {
        DISK as u64
    }
    fn block_bytes(&self) -> u32 {
        BLOCK as u32
    }
    fn request_bytes_max(&self) -> u32 {
        4096
    }
    fn submit(&self, request: Request) {
        let mut toy = self.0.lock().unwrap();
        let (protocol, is_failed) = &mut *toy;
        let answer = match *is_failed {
            true => Err(io::Error::other("failed before")),
            false => serve(protocol, request.op),
        };
        *is_failed = answer.is_err();
        (request.done)(answer.map(WipedBytes::from).map_err(failed));
    }
}

fn failed(error: io::Error) -> DiskError {
    DiskError::new(DiskErrorKind::Failed, error.to_string())
}

fn serve(protocol: &mut impl Protocol, op: DiskOp) -> io::Result<Vec<u8>> {
    let durable = match op {
        DiskOp::Read { offset, bytes } => {
            return Ok(protocol.bytes()[offset as usize..][..bytes as usize].to_vec());
        }
        DiskOp::Write { offset, data, durable } => {
            protocol.write(offset as usize, &data)?;
            durable
        }
        DiskOp::Zero { offset, bytes, durable } => {
            protocol.write(offset as usize, &vec![0; bytes as usize])?;
            durable
        }
        DiskOp::Trim { offset, bytes, durable } => {
            let start = (offset as usize).next_multiple_of(BLOCK);
            let end = (offset + bytes) as usize / BLOCK * BLOCK;
            protocol.write(start, &vec![0; end.saturating_sub(start)])?;
            durable
        }
        DiskOp::Flush => true,
    };
    if durable {
        protocol.flush()?;
    }
    Ok(Vec::new())
}

/// A log of writes, which is replayed on opening. Each opening writes a new log that starts with
/// the whole disk, so that no data depends on records that may exist only in a cache.
pub(super) struct LogDisk {
    disk: Vec<u8>,
    log: Log,
}

impl LogDisk {
    pub(super) fn open(mut dir: CrashDir, flaw: Flaw) -> io::Result<Self> {
        let mut disk = vec![0; DISK];
        let generation = replay(&dir, flaw, &mut disk)?;
        let log = match flaw {
            Flaw::OldLogIsTrusted => Log::follow(&mut dir, generation + 1, flaw)?,
            _ => Log::replace(&mut dir, generation + 1, &disk, flaw)?,
        };
        Ok(Self { disk, log })
    }
}

impl Protocol for LogDisk {
    fn bytes(&self) -> &[u8] {
        &self.disk
    }

    fn write(&mut self, offset: usize, data: &[u8]) -> io::Result<()> {
        self.log.append(offset, data)?;
        self.disk[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.log.sync()
    }
}

/// Blocks in the buckets of a store. A log gets each block before the store overwrites it.
pub(super) struct JournalDisk {
    disk: Vec<u8>,
    log: Log,
    store: CrashStore,
    /// Blocks whose contents are newer than those in the store.
    dirty: BTreeSet<usize>,
}

impl JournalDisk {
    pub(super) fn open(mut store: CrashStore, mut dir: CrashDir, flaw: Flaw) -> io::Result<Self> {
        let pieces: Vec<_> = (0..BUCKETS).map(piece).collect();
        let frames = store.read(&pieces).map_err(io::Error::other)?;
        let mut disk: Vec<u8> = (0..BUCKETS).flat_map(|i| frames.get(i).to_vec()).collect();
        let generation = replay(&dir, flaw, &mut disk)?;
        // Replayed records may exist only in a cache: make a durable log before writing the blocks.
        Log::replace(&mut dir, generation + 1, &disk, flaw)?;
        write_blocks(&mut store, &disk, 0..BUCKETS)?;
        if flaw != Flaw::StoreIsNotFlushed {
            store.flush().map_err(io::Error::other)?;
        }
        let log = Log::replace(&mut dir, generation + 2, &[], flaw)?;
        Ok(Self { disk, log, store, dirty: BTreeSet::new() })
    }
}

impl Protocol for JournalDisk {
    fn bytes(&self) -> &[u8] {
        &self.disk
    }

    fn write(&mut self, offset: usize, data: &[u8]) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.disk[offset..offset + data.len()].copy_from_slice(data);
        let blocks = offset / BLOCK..(offset + data.len()).div_ceil(BLOCK);
        self.log
            .append(blocks.start * BLOCK, &self.disk[blocks.start * BLOCK..blocks.end * BLOCK])?;
        if self.log.flaw == Flaw::StoreBeforeLog {
            write_blocks(&mut self.store, &self.disk, blocks.clone())?;
        }
        self.dirty.extend(blocks);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.log.sync()?;
        while let Some(block) = self.dirty.pop_first() {
            write_blocks(&mut self.store, &self.disk, block..block + 1)?;
        }
        Ok(())
    }
}

/// Blocks in the buckets of a store without a log, overwritten in place.
pub(super) struct InPlaceDisk {
    disk: Vec<u8>,
    store: CrashStore,
}

impl InPlaceDisk {
    pub(super) fn open(mut store: CrashStore) -> io::Result<Self> {
        // Reads show what a killed process left in the cache, so make it durable.
        store.flush().map_err(io::Error::other)?;
        let pieces: Vec<_> = (0..BUCKETS).map(piece).collect();
        let frames = store.read(&pieces).map_err(io::Error::other)?;
        let disk = (0..BUCKETS).flat_map(|i| frames.get(i).to_vec()).collect();
        Ok(Self { disk, store })
    }
}

impl Protocol for InPlaceDisk {
    fn bytes(&self) -> &[u8] {
        &self.disk
    }

    fn write(&mut self, offset: usize, data: &[u8]) -> io::Result<()> {
        self.disk[offset..offset + data.len()].copy_from_slice(data);
        let blocks = offset / BLOCK..(offset + data.len()).div_ceil(BLOCK);
        write_blocks(&mut self.store, &self.disk, blocks)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.store.flush().map_err(io::Error::other)
    }
}

fn piece(block: usize) -> Piece {
    Piece { tree: TreeId(0), bucket: BucketId(block as u64), part: Part::Whole }
}

fn write_blocks(store: &mut CrashStore, disk: &[u8], blocks: Range<usize>) -> io::Result<()> {
    let pieces: Vec<_> = blocks.clone().map(piece).collect();
    let spans: Vec<_> = blocks.map(|block| Span { start: block * BLOCK, bytes: BLOCK }).collect();
    store
        .write(&pieces, &mut |blanks| blanks.relay(Frames::new(disk, &spans)))
        .map_err(io::Error::other)
}

struct Log {
    file: Box<dyn StateFile>,
    generation: u64,
    flaw: Flaw,
}

impl Log {
    /// Replaces the log with a new log that starts with a write of `first` at 0.
    fn replace(dir: &mut CrashDir, generation: u64, first: &[u8], flaw: Flaw) -> io::Result<Self> {
        if dir.names()?.iter().any(|name| name == "new") {
            dir.remove("new")?;
        }
        let mut log = Self { file: dir.create("new")?, generation, flaw };
        log.append(0, first)?;
        if flaw != Flaw::RenameBeforeSync {
            log.file.sync()?;
        }
        dir.rename("new", "log")?;
        if flaw != Flaw::NamesAreNotSynced {
            dir.sync_names()?;
        }
        Ok(log)
    }

    /// Creates a log that follows the earlier ones.
    fn follow(dir: &mut CrashDir, generation: u64, flaw: Flaw) -> io::Result<Self> {
        let name = format!("log-{generation:08}");
        if dir.names()?.contains(&name) {
            dir.remove(&name)?;
        }
        let file = dir.create(&name)?;
        dir.sync_names()?;
        Ok(Self { file, generation, flaw })
    }

    fn append(&mut self, offset: usize, data: &[u8]) -> io::Result<()> {
        let mut record = Vec::new();
        record.extend((data.len() as u64).to_be_bytes());
        record.extend((offset as u64).to_be_bytes());
        record.extend(self.generation.to_be_bytes());
        record.extend(checksum(self.generation, offset as u64, data).to_be_bytes());
        record.extend(data);
        match self.file.append(&record) {
            Err(_) if self.flaw == Flaw::FailedAppendIsIgnored => self.file.append(&record),
            answer => answer,
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.flaw {
            Flaw::FlushDoesNotSync => Ok(()),
            Flaw::SyncIsRetried => self.file.sync().or_else(|_| self.file.sync()),
            _ => self.file.sync(),
        }
    }
}

/// Applies every log to `disk`, each up to its first invalid record. Returns the latest generation.
fn replay(dir: &CrashDir, flaw: Flaw, disk: &mut [u8]) -> io::Result<u64> {
    let mut names = dir.names()?;
    names.retain(|name| name.starts_with("log"));
    names.sort_unstable();
    let mut latest = 0;
    for name in names {
        let log = dir.read(&name)?;
        let mut rest = log.as_slice();
        let mut log_generation = None;
        while let Some((header, after)) = rest.split_at_checked(32) {
            let word = |i: usize| u64::from_be_bytes(header[8 * i..8 * i + 8].try_into().unwrap());
            let (bytes, offset, generation) = (word(0), word(1), word(2));
            let in_range = bytes <= DISK as u64 && offset <= DISK as u64 - bytes;
            let Some((data, after)) = after.split_at_checked(bytes as usize).filter(|_| in_range)
            else {
                break;
            };
            let is_sound = word(3) == checksum(generation, offset, data);
            let is_own = *log_generation.get_or_insert(generation) == generation;
            if (!is_sound && flaw != Flaw::NoChecksum)
                || (!is_own && !matches!(flaw, Flaw::NoGeneration | Flaw::NoChecksum))
            {
                break;
            }
            disk[offset as usize..][..data.len()].copy_from_slice(data);
            latest = latest.max(generation);
            rest = after;
        }
        if let Some(number) = name.strip_prefix("log-") {
            latest = latest.max(number.parse().unwrap());
        }
    }
    Ok(latest)
}

fn checksum(generation: u64, offset: u64, data: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (generation, offset, data).hash(&mut hasher);
    hasher.finish()
}
