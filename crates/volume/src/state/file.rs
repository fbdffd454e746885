//! A state file: an unencrypted header, then sealed records.
//!
//! ```text
//! header:  magic │ version │ volume │ generation │ salt
//! record:  frame │ sealed( record ) │ tag
//! ```
//!
//! Records are sealed with AES-256-GCM under a key that the salt makes unique to this file, and the
//! record's number is the nonce. So a record opens only at its place in its file. Its frame states
//! how many records were durable when it was written. A crash may tear records that were not
//! durable, so a file ends at the first record that does not open. If any later frame states that
//! this record was durable, the cause was not a crash. No frame can state that for the last synced
//! records, so the reader reports the number of bytes that it ignored.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use oblivio_core::wiped::WipedBytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use zeroize::Zeroizing;

use super::frame::{FRAME_BYTES, Frame, NonceUse, TAG_BYTES, nonce};
use super::record::Record;
use crate::error::{VolumeError, VolumeErrorKind};
use crate::state_dir::{FILLER, StateFile, StateSource};

const MAGIC: [u8; 8] = *b"oblstate";
const VERSION: u32 = 3;
const SALT_BYTES: usize = 32;
pub(super) const HEADER_BYTES: usize = 8 + 4 + 16 + 8 + SALT_BYTES;

/// Bytes that are searched at a time for a frame.
const SCAN_BYTES: u64 = 64 << 10;

/// Bytes that a record takes in the file in addition to its contents.
pub(super) const RECORD_OVERHEAD_BYTES: usize = FRAME_BYTES + TAG_BYTES;

/// Length of the longest record in bytes: a batch with the maximum number of blocks of the maximum
/// size.
pub(crate) const RECORD_BYTES_MAX: usize = 80 << 20;

/// The key that the keys of all state files are derived from. Secret; wiped when dropped.
pub(crate) struct StateKey(pub(crate) Zeroizing<[u8; 32]>);

/// The header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The volume's id.
    pub(crate) volume: [u8; 16],
    /// The number of state files before this one.
    pub(crate) generation: u64,
    /// Random bytes that make the key of this file unique.
    pub(crate) salt: [u8; SALT_BYTES],
}

impl Header {
    fn bytes(&self) -> Vec<u8> {
        [
            &MAGIC[..],
            &VERSION.to_le_bytes(),
            &self.volume,
            &self.generation.to_le_bytes(),
            &self.salt,
        ]
        .concat()
    }

    fn read(bytes: &[u8]) -> Result<Self, VolumeError> {
        let damaged = || damaged("a state file is shorter than its header");
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or_else(damaged)?;
        if *magic != MAGIC {
            return Err(self::damaged("a state file does not begin with its magic number"));
        }
        let (version, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(VolumeError::new(
                VolumeErrorKind::UnknownVersion,
                format!(
                    "the client's state has format version {version}, and this program knows \
                     {VERSION}: use the program that wrote it, or a newer one"
                ),
            ));
        }
        let (volume, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let (generation, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let salt = rest.first_chunk().ok_or_else(damaged)?;
        let generation = u64::from_le_bytes(*generation);
        Ok(Self { volume: *volume, generation, salt: *salt })
    }

    fn key(&self, key: &StateKey) -> LessSafeKey {
        // The key depends on the whole header, so no field can be changed.
        let salt = Salt::new(HKDF_SHA256, &self.bytes());
        let pseudorandom = salt.extract(key.0.as_ref());
        let key = pseudorandom.expand(&[b"oblivio state file v1"], &AES_256_GCM);
        LessSafeKey::new(UnboundKey::from(key.expect("AES-256 has a key of 32 bytes")))
    }
}

/// Seals records into a file.
pub(crate) struct StateWriter {
    file: Box<dyn StateFile>,
    key: LessSafeKey,
    records: u64,
    synced: u64,
    /// The number of records that will be durable after the current sync.
    being_synced: Option<u64>,
    bytes: u64,
    /// The next append: one sealed record, or two.
    scratch: WipedBytes,
    /// The first error of the file. Later successes are not trusted: a later sync may report data
    /// as durable that a failed sync has dropped.
    failure: Option<(io::ErrorKind, String)>,
}

impl StateWriter {
    /// Begins a state file in an empty file.
    pub(crate) fn begin(
        mut file: Box<dyn StateFile>,
        header: &Header,
        key: &StateKey,
    ) -> io::Result<Self> {
        file.append(&header.bytes())?;
        file.expect_more();
        let key = header.key(key);
        let bytes = HEADER_BYTES as u64;
        let scratch = WipedBytes::default();
        Ok(Self {
            file,
            key,
            records: 0,
            synced: 0,
            being_synced: None,
            bytes,
            scratch,
            failure: None,
        })
    }

    /// Number of bytes of the file so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends one record, which `put` writes.
    pub(crate) fn append(&mut self, put: impl FnOnce(&mut WipedBytes)) -> io::Result<()> {
        self.scratch.clear();
        self.seal(self.records, put);
        self.append_sealed(1)
    }

    /// Appends two records in one piece, so that the lengths of appends do not reveal the length of
    /// each record.
    pub(crate) fn append_both(
        &mut self,
        put: impl FnOnce(&mut WipedBytes),
        put_next: impl FnOnce(&mut WipedBytes),
    ) -> io::Result<()> {
        self.scratch.clear();
        self.seal(self.records, put);
        self.seal(self.records + 1, put_next);
        self.append_sealed(2)
    }

    /// Seals record `number` and adds it to the scratch buffer.
    fn seal(&mut self, number: u64, put: impl FnOnce(&mut WipedBytes)) {
        let Self { key, synced, scratch, .. } = self;
        let start = scratch.len();
        scratch.extend_from_slice(&[0; FRAME_BYTES]);
        put(scratch);
        let (head, plain) = scratch[start..].split_at_mut(FRAME_BYTES);
        assert!(plain.len() <= RECORD_BYTES_MAX, "records are bounded by what a batch can hold");
        let frame = Frame { length: plain.len() as u32, number, synced: *synced };
        head.copy_from_slice(&frame.seal(key));
        let aad = Aad::from(frame.claim());
        let tag = key
            .seal_in_place_separate_tag(nonce(number, NonceUse::Record), aad, plain)
            .expect("a record is shorter than the 64 GiB that GCM can seal");
        scratch.extend_from_slice(tag.as_ref());
    }

    /// Appends the scratch buffer, which holds `records` records.
    fn append_sealed(&mut self, records: u64) -> io::Result<()> {
        self.checked(|writer| writer.file.append(&writer.scratch))?;
        self.records += records;
        self.bytes += self.scratch.len() as u64;
        Ok(())
    }

    /// The number of records so far.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// The number of records that are known to be durable.
    pub(crate) fn synced_records(&self) -> u64 {
        self.synced
    }

    /// Makes the records so far durable in the background, one sync after the other. Does not wait.
    pub(crate) fn keep_syncing(&mut self) -> io::Result<()> {
        if self.being_synced.is_some() && self.file.is_sync_over() {
            self.finish_sync()?;
        }
        if self.being_synced.is_none() && self.synced < self.records {
            self.checked(|writer| writer.file.begin_sync())?;
            self.being_synced = Some(self.records);
        }
        Ok(())
    }

    /// Returns once the first `records` records are durable.
    pub(crate) fn sync_up_to(&mut self, records: u64) -> io::Result<()> {
        if self.synced < records {
            self.finish_sync()?;
        }
        if self.synced < records {
            self.checked(|writer| writer.file.sync())?;
            self.synced = self.records;
        }
        Ok(())
    }

    /// Waits for the current sync, if there is one.
    fn finish_sync(&mut self) -> io::Result<()> {
        if let Some(coming) = self.being_synced.take() {
            self.checked(|writer| writer.file.finish_sync())?;
            self.synced = coming;
        }
        Ok(())
    }

    /// Runs `operation` on the file. Once any operation on the file has failed, runs none, and
    /// returns the first error again.
    fn checked(&mut self, operation: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        if let Some((kind, message)) = &self.failure {
            return Err(io::Error::new(*kind, message.clone()));
        }
        let result = operation(self);
        self.failure = result.as_ref().err().map(|error| (error.kind(), error.to_string()));
        result
    }

    /// Makes all records durable.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.sync_up_to(self.records)
    }
}

/// Opens the records of a file, one after the other. At most one of them is in memory.
pub(crate) struct StateReader {
    pub(crate) header: Header,
    key: LessSafeKey,
    source: BufReader<Box<dyn StateSource>>,
    /// The offset of the next byte that `source` reads; `u64::MAX` if the next read must seek.
    cursor: u64,
    /// Length of the file in bytes.
    end: u64,
    position: Position,
}

/// A position between two records of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// Offset in bytes from the start of the file.
    at: u64,
    /// Number of records before this position.
    records: u64,
}

impl StateReader {
    /// Opens the file that `source` reads.
    pub(crate) fn new(
        mut source: Box<dyn StateSource>,
        key: &StateKey,
    ) -> Result<Self, VolumeError> {
        let end = source.seek(SeekFrom::End(0))?;
        source.rewind()?;
        let mut source = BufReader::new(source);
        let mut start = Vec::new();
        source.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut start)?;
        let header = Header::read(&start)?;
        let key = header.key(key);
        let cursor = HEADER_BYTES as u64;
        Ok(Self { header, key, source, cursor, end, position: Position { at: cursor, records: 0 } })
    }

    /// The position before the [next](Self::next) record.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// Returns to an earlier position.
    pub(crate) fn go_to(&mut self, position: Position) {
        self.position = position;
    }

    /// The next record; `None` at the end of the file or at a record that a crash may have torn.
    /// Fails if the record is malformed, or if it was durable and does not open.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, VolumeError> {
        match self.open_at(self.position)? {
            Some((plain, next)) => {
                let record = Record::read(&plain);
                self.position = next;
                record
                    .map(Some)
                    .ok_or_else(|| damaged("the client's state holds a malformed record"))
            }
            None if self.was_durable()? => {
                Err(damaged("a record of the client's state was changed"))
            }
            None => Ok(None),
        }
    }

    /// The number of bytes after the last record that opened. Filler at the end of the file does
    /// not count.
    pub(crate) fn bytes_ignored(&mut self) -> io::Result<u64> {
        let (mut from, mut left_out) = (0, 0);
        self.read_on(|_, bytes| {
            let last = bytes.iter().rposition(|byte| *byte != FILLER);
            left_out = last.map_or(left_out, |last| from + last as u64 + 1);
            from += bytes.len() as u64;
            ControlFlow::Continue(())
        })?;
        Ok(left_out)
    }

    /// Passes all bytes after the current position to `each`, piece by piece, until `each` returns
    /// [`ControlFlow::Break`].
    fn read_on(
        &mut self,
        mut each: impl FnMut(&LessSafeKey, &[u8]) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut left = self.bytes_left();
        // The next read seeks, wherever this leaves the source.
        self.cursor = u64::MAX;
        self.source.seek(SeekFrom::Start(self.position.at))?;
        let mut piece = Vec::new();
        while left > 0 {
            let bytes = left.min(SCAN_BYTES);
            piece.clear();
            self.source.by_ref().take(bytes).read_to_end(&mut piece)?;
            left -= bytes;
            if each(&self.key, &piece).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn bytes_left(&self) -> u64 {
        self.end.saturating_sub(self.position.at)
    }

    /// Whether a later frame states that the record at the current position, which does not open,
    /// was durable. The starts of later records are unknown, so every byte is tried as the start of
    /// a frame.
    fn was_durable(&mut self) -> io::Result<bool> {
        let records = self.position.records;
        let fitting = self.bytes_left() / FRAME_BYTES as u64;
        let (mut window, mut was_durable) = (Vec::new(), false);
        self.read_on(|key, bytes| {
            window.extend_from_slice(bytes);
            was_durable =
                window.windows(FRAME_BYTES).filter_map(<[u8]>::first_chunk).any(|bytes| {
                    let claimed = Frame::unauthenticated(bytes);
                    let may_vouch = claimed.synced > records
                        && claimed.number > records
                        && claimed.number - records <= fitting;
                    may_vouch && Frame::open(bytes, key).is_some()
                });
            // Keeps the bytes that may begin a frame.
            window.drain(..window.len().saturating_sub(FRAME_BYTES - 1));
            if was_durable { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(was_durable)
    }

    /// The contents of the record at a position, and the position after it. `None` if no authentic
    /// record with this number is there.
    fn open_at(
        &mut self,
        Position { at, records }: Position,
    ) -> io::Result<Option<(WipedBytes, Position)>> {
        let after_frame = at + FRAME_BYTES as u64;
        if after_frame > self.end {
            return Ok(None);
        }
        if self.cursor != at {
            self.source.seek(SeekFrom::Start(at))?;
        }
        let mut frame = [0; FRAME_BYTES];
        self.source.read_exact(&mut frame)?;
        self.cursor = after_frame;
        let Some(frame) = Frame::open(&frame, &self.key) else {
            return Ok(None);
        };
        let length = frame.length as usize;
        let sealed = (length + TAG_BYTES) as u64;
        if frame.number != records || length > RECORD_BYTES_MAX || sealed > self.end - after_frame {
            return Ok(None);
        }
        let mut plain = WipedBytes::zeros(length + TAG_BYTES);
        self.source.read_exact(&mut plain)?;
        self.cursor += sealed;
        let nonce = nonce(records, NonceUse::Record);
        if self.key.open_in_place(nonce, Aad::from(frame.claim()), &mut plain).is_err() {
            return Ok(None);
        }
        plain.truncate(length);
        Ok(Some((plain, Position { at: after_frame + sealed, records: records + 1 })))
    }
}

/// The error for a state file with this defect.
pub(crate) fn damaged(defect: &str) -> VolumeError {
    VolumeError::new(
        VolumeErrorKind::StateDamaged,
        format!(
            "{defect}: the client's directory is damaged or does not belong to this key. Restore \
             the directory as it was when the volume was last used"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose `fails_at`-th call (counted from 0) fails. Later calls succeed.
    struct FailsOnce {
        calls: u64,
        fails_at: u64,
    }

    impl FailsOnce {
        fn call(&mut self) -> io::Result<()> {
            self.calls += 1;
            if self.calls == self.fails_at + 1 {
                Err(io::ErrorKind::StorageFull.into())
            } else {
                Ok(())
            }
        }
    }

    impl StateFile for FailsOnce {
        fn append(&mut self, _: &[u8]) -> io::Result<()> {
            self.call()
        }
        fn sync(&mut self) -> io::Result<()> {
            self.call()
        }
        fn begin_sync(&mut self) -> io::Result<()> {
            self.call()
        }
        fn finish_sync(&mut self) -> io::Result<()> {
            self.call()
        }
    }

    /// A file whose background syncs end at once and fail.
    struct NeverSyncs;

    impl StateFile for NeverSyncs {
        fn append(&mut self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }
        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn is_sync_over(&mut self) -> bool {
            true
        }
        fn finish_sync(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_sync_that_is_over_may_have_failed() {
        let header = Header { volume: [1; 16], generation: 1, salt: [2; SALT_BYTES] };
        let key = StateKey(Zeroizing::new([3; 32]));
        let mut writer = StateWriter::begin(Box::new(NeverSyncs), &header, &key).unwrap();
        writer.append(|out| out.extend_from_slice(b"record")).unwrap();
        writer.keep_syncing().unwrap();
        assert!(writer.keep_syncing().is_err());
        assert_eq!(writer.synced_records(), 0);
    }

    #[test]
    fn after_an_error_a_file_is_never_trusted_again() {
        let header = Header { volume: [1; 16], generation: 1, salt: [2; SALT_BYTES] };
        let key = StateKey(Zeroizing::new([3; 32]));
        type Step = fn(&mut StateWriter) -> io::Result<()>;
        let append: Step = |writer| writer.append(|out| out.extend_from_slice(b"record"));
        let steps: [Step; 6] = [
            append,
            StateWriter::keep_syncing,
            append,
            |writer| writer.sync_up_to(1),
            |writer| writer.sync_up_to(2),
            StateWriter::sync,
        ];
        // The header is appended first.
        for fails_at in 1..=5 {
            let file = Box::new(FailsOnce { calls: 0, fails_at });
            let mut writer = StateWriter::begin(file, &header, &key).unwrap();
            let failed = steps.iter().position(|step| step(&mut writer).is_err());
            assert_eq!(failed, Some(fails_at as usize - 1));
            let synced = writer.synced_records();
            let mut again = vec![append, append];
            if synced < writer.records() {
                again.push(StateWriter::sync);
            }
            for step in again {
                let result = step(&mut writer).map_err(|error| error.kind());
                assert_eq!(result, Err(io::ErrorKind::StorageFull), "{fails_at}");
            }
            assert_eq!(writer.synced_records(), synced);
        }
    }
}
