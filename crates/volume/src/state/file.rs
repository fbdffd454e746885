//! A state file: a header in clear, then sealed records.
//!
//! ```text
//! header:  magic │ version │ volume │ generation │ salt
//! record:  length │ sealed( synced ‖ record ) │ tag
//! ```
//!
//! Records are sealed with AES-256-GCM under a key that the salt gives to this file alone, and their
//! number is the nonce: a record opens in its place of its file and nowhere else. `synced` says how
//! many records were durable when this one was written. A crash may have torn what was not, and so a
//! file ends at the first record that does not open; but if a later one says that it was durable, it
//! was not a crash.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use zeroize::Zeroizing;

use super::record::Record;
use crate::error::{VolumeError, VolumeErrorKind};
use crate::state_dir::{StateFile, StateSource};

const MAGIC: [u8; 8] = *b"oblstate";
const VERSION: u32 = 2;
const SALT_BYTES: usize = 32;
const HEADER_BYTES: usize = 8 + 4 + 16 + 8 + SALT_BYTES;
const LENGTH_BYTES: usize = 4;
const SYNCED_BYTES: usize = 8;
const TAG_BYTES: usize = 16;

/// The longest record, in bytes: a batch of the most and the largest blocks.
pub(crate) const RECORD_BYTES_MAX: usize = 80 << 20;

/// The key that the keys of all state files are derived from. Secret; wiped when dropped.
pub(crate) struct StateKey(pub(crate) Zeroizing<[u8; 32]>);

/// What stands at the start of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Which volume.
    pub(crate) volume: [u8; 16],
    /// How many files there were before it.
    pub(crate) generation: u64,
    /// What tells its key from those of all other files.
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
        let damaged = || damaged("a state file is too short to be one");
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or_else(damaged)?;
        if *magic != MAGIC {
            return Err(self::damaged("a state file does not begin like one"));
        }
        let (version, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(VolumeError::new(
                VolumeErrorKind::UnknownVersion,
                format!(
                    "the client's state has format version {version}, this program knows \
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
        // The whole header is part of the key: no field of it can be changed.
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
    bytes: u64,
    /// The record under way.
    scratch: Zeroizing<Vec<u8>>,
}

impl StateWriter {
    /// Begins an empty file.
    pub(crate) fn begin(
        mut file: Box<dyn StateFile>,
        header: &Header,
        key: &StateKey,
    ) -> io::Result<Self> {
        file.append(&header.bytes())?;
        let key = header.key(key);
        let bytes = HEADER_BYTES as u64;
        Ok(Self { file, key, records: 0, synced: 0, bytes, scratch: Zeroizing::default() })
    }

    /// Bytes of the file so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends the record that `put` writes.
    pub(crate) fn append(&mut self, put: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let Self { file, key, records, synced, scratch, .. } = self;
        scratch.clear();
        scratch.extend_from_slice(&[0; LENGTH_BYTES]);
        scratch.extend_from_slice(&synced.to_le_bytes());
        put(scratch);
        let (length, plain) = scratch.split_at_mut(LENGTH_BYTES);
        assert!(plain.len() <= RECORD_BYTES_MAX, "records are bounded by what a batch can hold");
        length.copy_from_slice(&(plain.len() as u32).to_le_bytes());
        let aad = Aad::from(<[u8; LENGTH_BYTES]>::try_from(&*length).expect("four bytes"));
        let tag = key
            .seal_in_place_separate_tag(nonce(*records), aad, plain)
            .expect("a record is shorter than the 64 GiB that GCM can seal");
        scratch.extend_from_slice(tag.as_ref());
        file.append(scratch)?;
        *records += 1;
        self.bytes += scratch.len() as u64;
        Ok(())
    }

    /// Makes all records durable.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if self.synced < self.records {
            self.file.sync()?;
            self.synced = self.records;
        }
        Ok(())
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[..8].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// Opens the records of a file, one after the other. No more than one of them is in memory.
pub(crate) struct StateReader {
    pub(crate) header: Header,
    key: LessSafeKey,
    source: BufReader<Box<dyn StateSource>>,
    /// Where the source stands.
    cursor: u64,
    /// Bytes of the file.
    end: u64,
    position: Position,
}

/// Between two records of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// From the start of the file.
    at: u64,
    /// Before it.
    records: u64,
}

impl StateReader {
    /// Of a file that `source` reads.
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

    /// Before the record that comes [next](Self::next).
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// Goes back to where it has been.
    pub(crate) fn go_to(&mut self, position: Position) {
        self.position = position;
    }

    /// The next record, or `None` where a crash ended the file.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, VolumeError> {
        match self.open_at(self.position)? {
            Some((plain, next)) => {
                let record = plain.get(SYNCED_BYTES..).and_then(Record::read);
                self.position = next;
                record.map(Some).ok_or_else(|| damaged("the client's state holds a strange record"))
            }
            None if self.was_durable()? => {
                Err(damaged("a record of the client's state was changed"))
            }
            None => Ok(None),
        }
    }

    /// Whether a later record says that the one which does not open was durable.
    fn was_durable(&mut self) -> io::Result<bool> {
        let Position { at, records } = self.position;
        let Some(frame) = self.frame_at(at)? else {
            return Ok(false);
        };
        let next = Position { at: at + (LENGTH_BYTES + frame.len()) as u64, records: records + 1 };
        let plain = self.open_at(next)?;
        let synced = plain.and_then(|(plain, _)| plain.first_chunk().copied());
        Ok(synced.is_some_and(|synced| u64::from_le_bytes(synced) > records))
    }

    /// The sealed bytes of the record at `at`, tag included, if there are so many.
    fn frame_at(&mut self, at: u64) -> io::Result<Option<Vec<u8>>> {
        if self.cursor != at {
            self.source.seek(SeekFrom::Start(at))?;
        }
        let mut length = [0; LENGTH_BYTES];
        let after_length = at + LENGTH_BYTES as u64;
        if after_length > self.end {
            // Wherever the source stands now is found out the next time.
            self.cursor = u64::MAX;
            return Ok(None);
        }
        self.source.read_exact(&mut length)?;
        self.cursor = after_length;
        let length = u32::from_le_bytes(length) as usize;
        let sealed = length + TAG_BYTES;
        if length > RECORD_BYTES_MAX || sealed as u64 > self.end - after_length {
            return Ok(None);
        }
        let mut frame = vec![0; sealed];
        self.source.read_exact(&mut frame)?;
        self.cursor += sealed as u64;
        Ok(Some(frame))
    }

    /// The record at a position, and where it ends.
    fn open_at(
        &mut self,
        Position { at, records }: Position,
    ) -> io::Result<Option<(Zeroizing<Vec<u8>>, Position)>> {
        let Some(frame) = self.frame_at(at)? else {
            return Ok(None);
        };
        let next = Position { at: at + (LENGTH_BYTES + frame.len()) as u64, records: records + 1 };
        let length = frame.len() - TAG_BYTES;
        let mut plain = Zeroizing::new(frame);
        let aad = Aad::from((length as u32).to_le_bytes());
        if self.key.open_in_place(nonce(records), aad, &mut plain).is_err() {
            return Ok(None);
        }
        plain.truncate(length);
        Ok(Some((plain, next)))
    }
}

pub(crate) fn damaged(defect: &str) -> VolumeError {
    VolumeError::new(
        VolumeErrorKind::StateDamaged,
        format!(
            "{defect}: the client's directory is damaged or does not belong to this key. Restore \
             the directory as it was when the volume was last used"
        ),
    )
}
