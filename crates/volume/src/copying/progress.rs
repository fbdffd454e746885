//! The progress of a copy, and its encoding (`docs/format.md` of the repository).

use ring::digest::{SHA256, digest};

use super::source::VolumeFingerprint;

/// Bytes of an encoded progress.
pub const PROGRESS_BYTES: usize = 16 + 4 + 4 + 32 + 8 + 32;

const MAGIC: [u8; 16] = *b"OBLIVIO COPYING\n";
const VERSION: u32 = 1;
const CHECKSUM_BYTES: usize = 32;

/// A step of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStep {
    /// Buckets are copied to the destination.
    Moving,
    /// Buckets are read from both sides and compared.
    ReadingBack,
    /// Anchors and superblocks are copied, which make the destination a volume.
    Finishing,
}

/// The progress of a copy. Everything that it claims is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The volume that is copied.
    pub source: VolumeFingerprint,
    /// The current step.
    pub step: CopyStep,
    /// Number of buckets that the current step has finished.
    pub buckets: u64,
}

impl Progress {
    /// The progress at the start of a copy.
    pub fn begin(source: VolumeFingerprint) -> Self {
        Self { source, step: CopyStep::Moving, buckets: 0 }
    }

    /// Encodes the progress.
    pub fn encode(&self) -> [u8; PROGRESS_BYTES] {
        let step: u32 = match self.step {
            CopyStep::Moving => 0,
            CopyStep::ReadingBack => 1,
            CopyStep::Finishing => 2,
        };
        let mut bytes = Vec::with_capacity(PROGRESS_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(step.to_le_bytes());
        bytes.extend(self.source.0);
        bytes.extend(self.buckets.to_le_bytes());
        bytes.extend(digest(&SHA256, &bytes).as_ref());
        bytes.try_into().expect("the fields have that many bytes")
    }

    /// Decodes untrusted bytes. Each progress has exactly one encoding.
    ///
    /// # Errors
    /// When the bytes encode no progress.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProgressError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(ProgressError::NotOurs);
        }
        let mut fields = Fields(&bytes[MAGIC.len()..]);
        let version = u32::from_le_bytes(fields.take()?);
        if version != VERSION {
            return Err(ProgressError::UnknownVersion(version));
        }
        let claim = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or(ProgressError::Damaged)?;
        let (claim, checksum) = bytes.split_at(claim);
        if bytes.len() != PROGRESS_BYTES || digest(&SHA256, claim).as_ref() != checksum {
            return Err(ProgressError::Damaged);
        }
        let step = match u32::from_le_bytes(fields.take()?) {
            0 => CopyStep::Moving,
            1 => CopyStep::ReadingBack,
            2 => CopyStep::Finishing,
            _ => return Err(ProgressError::Damaged),
        };
        let source = VolumeFingerprint(fields.take()?);
        Ok(Self { source, step, buckets: u64::from_le_bytes(fields.take()?) })
    }
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ProgressError> {
        let (field, rest) = self.0.split_first_chunk().ok_or(ProgressError::Damaged)?;
        self.0 = rest;
        Ok(*field)
    }
}

/// The reason why bytes do not decode to a progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgressError {
    /// The bytes do not begin with the magic of a progress file.
    #[error(
        "this is not a progress file of a copy: check the path; if the file was damaged, remove \
         it and the unfinished copy, and begin the copy again"
    )]
    NotOurs,
    /// The bytes were written by another version of the program.
    #[error(
        "the progress file has format {0}, this program knows {VERSION}: use the program that \
         wrote it"
    )]
    UnknownVersion(u32),
    /// The length, the checksum or a field is wrong.
    #[error(
        "the progress file is damaged: remove it and the unfinished copy, and begin the copy \
         again"
    )]
    Damaged,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRESS: Progress =
        Progress { source: VolumeFingerprint([7; 32]), step: CopyStep::Finishing, buckets: 258 };

    #[test]
    fn a_progress_has_golden_bytes() {
        let bytes = PROGRESS.encode();
        assert_eq!(&bytes[..24], b"OBLIVIO COPYING\n\x01\0\0\0\x02\0\0\0");
        assert_eq!(bytes[24..56], [7; 32]);
        assert_eq!(bytes[56..64], [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&bytes[64..], digest(&SHA256, &bytes[..64]).as_ref());
    }

    #[test]
    fn every_progress_survives_encoding_and_nothing_else_decodes() {
        for step in [CopyStep::Moving, CopyStep::ReadingBack, CopyStep::Finishing] {
            let progress = Progress { step, ..PROGRESS };
            assert_eq!(Progress::decode(&progress.encode()), Ok(progress));
        }
        let good = PROGRESS.encode();
        for at in 0..good.len() {
            assert!(Progress::decode(&good[..at]).is_err(), "{at}");
            let mut bad = good;
            bad[at] ^= 1;
            let expected = match at {
                0..16 => ProgressError::NotOurs,
                16..20 => ProgressError::UnknownVersion(u32::from_le_bytes(
                    *bad[16..].first_chunk().unwrap(),
                )),
                _ => ProgressError::Damaged,
            };
            assert_eq!(Progress::decode(&bad), Err(expected), "{at}");
        }
        assert_eq!(Progress::decode(&[&good[..], b"\0"].concat()), Err(ProgressError::Damaged));
        // An unknown step under a valid checksum.
        let mut foreign = good[..64].to_vec();
        foreign[20] = 3;
        foreign.extend(digest(&SHA256, &foreign).as_ref());
        assert_eq!(Progress::decode(&foreign), Err(ProgressError::Damaged));
    }
}
