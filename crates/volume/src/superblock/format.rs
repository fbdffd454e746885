//! The bytes of a superblock. `docs/format.md` of the repository specifies them.
//!
//! Every superblock has exactly one encoding: unused bytes are zero.

use ring::digest;

use super::VolumeId;
use super::error::{SuperblockError, SuperblockErrorKind};
use super::params::{NAME_BYTES, SchemeName, VolumeParams};
use crate::keys::fields::{FieldReader, FieldWriter};
use crate::keys::{KeySlots, OutOfRange, SLOT_BYTES, SLOTS_MAX};
use crate::schemes;

/// Bytes of a superblock.
pub const SUPERBLOCK_BYTES: usize = 16 << 10;

/// Bytes of the HMAC.
pub(crate) const MAC_BYTES: usize = 32;

const CHECKSUM_BYTES: usize = 32;
const MAC_AT: usize = SUPERBLOCK_BYTES - CHECKSUM_BYTES - MAC_BYTES;
const CHECKSUM_AT: usize = SUPERBLOCK_BYTES - CHECKSUM_BYTES;

const MAGIC: [u8; 8] = *b"oblivio\0";
const SLOTS_AT: usize = 256;

/// The versions of the format, and what each of them changed.
#[derive(Clone, Copy)]
enum Version {
    /// Schemes have a name, and parameters that only the scheme decodes. Before the first release,
    /// there were two versions: in 1, each part of a bucket had a tag; in 2, all parameters
    /// belonged to one scheme.
    V3 = 3,
}

/// Maximum sequence number. No honest program reaches it, so adding one cannot overflow.
const SEQUENCE_MAX: u64 = 1 << 63;

/// The part that the HMAC authenticates.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) sequence: u64,
    pub(super) volume_id: VolumeId,
    pub(super) params: VolumeParams,
    pub(super) slots: KeySlots,
}

impl Body {
    /// Encodes the body: the bytes before the HMAC.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut fields = FieldWriter::default();
        fields.put(&MAGIC);
        fields.put(&(Version::V3 as u32).to_le_bytes());
        fields.put(&[0; 4]);
        fields.put(&self.sequence.to_le_bytes());
        fields.put(&self.volume_id.0);
        let params = &self.params;
        fields.put(&params.blocks.to_le_bytes());
        fields.put(&params.block_bytes.to_le_bytes());
        fields.put(&(params.scheme_params.len() as u16).to_le_bytes());
        fields.put(&[0; 2]);
        fields.put(&params.scheme.encode());
        fields.put(&params.scheme_params);
        fields.zeros_until(SLOTS_AT);
        self.slots.encode(&mut fields);
        fields.zeros_until(MAC_AT);
        fields.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, SuperblockError> {
        let mut fields = FieldReader::new(bytes);
        let _magic_and_version: [u8; 12] = fields.take();
        let mut is_clean = fields.zeros(4);
        let sequence = fields.u64();
        if !(1..=SEQUENCE_MAX).contains(&sequence) {
            return Err(tampered("the sequence number is out of range"));
        }
        let volume_id = VolumeId(fields.take());
        let (blocks, block_bytes) = (fields.u64(), fields.u32());
        let params_bytes = usize::from(fields.u16());
        is_clean &= fields.zeros(2);
        let scheme = SchemeName::decode(&fields.take())
            .ok_or_else(|| tampered("the name of the scheme is not a valid one"))?;
        if params_bytes > PARAMS_BYTES_MAX {
            return Err(tampered("the parameters of its scheme do not fit"));
        }
        let scheme_params = fields.slice(params_bytes).to_vec();
        let params = VolumeParams { blocks, block_bytes, scheme, scheme_params };
        if schemes::find(params.scheme.as_str()).is_none() {
            let message = schemes::unknown(&params.scheme);
            return Err(SuperblockError::new(SuperblockErrorKind::UnknownVersion, message));
        }
        params.config().map_err(|problem| tampered(&problem.to_string()))?;
        is_clean &= fields.zeros(PARAMS_BYTES_MAX - params_bytes);
        let slots = KeySlots::decode(&mut fields)
            .map_err(|problem: OutOfRange| tampered(&problem.to_string()))?;
        is_clean &= fields.only_zeros_left();
        let body = Self { sequence, volume_id, params, slots };
        is_clean.then_some(body).ok_or_else(|| tampered("a reserved field is not zero"))
    }
}

/// The offset of the scheme's parameters.
const PARAMS_AT: usize = 56 + NAME_BYTES;

/// Maximum number of bytes of the scheme's parameters.
pub(super) const PARAMS_BYTES_MAX: usize = SLOTS_AT - PARAMS_AT;

const _: () = assert!(SLOTS_AT + SLOTS_MAX * SLOT_BYTES <= MAC_AT);

/// Appends the HMAC and the checksum to a body.
pub(super) fn finish(body: Vec<u8>, mac: &[u8; MAC_BYTES]) -> Box<[u8; SUPERBLOCK_BYTES]> {
    let mut bytes = body;
    bytes.extend_from_slice(mac);
    let checksum = digest::digest(&digest::SHA256, &bytes);
    bytes.extend_from_slice(checksum.as_ref());
    let bytes = bytes.into_boxed_slice();
    bytes.try_into().expect("a body ends where the HMAC begins")
}

/// Checks everything that can be checked without a key.
///
/// Magic, checksum and version have the same place in every version, so a program that is too old
/// can tell a newer volume from a damaged one.
pub(super) fn decode(bytes: &[u8]) -> Result<(Body, [u8; MAC_BYTES]), SuperblockError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(SuperblockError::new(
            SuperblockErrorKind::NotAVolume,
            "there is no Oblivio volume here: check the address, or create one",
        ));
    }
    let whole: &[u8; SUPERBLOCK_BYTES] = bytes.try_into().map_err(|_| damaged())?;
    let (content, checksum) = whole.split_at(CHECKSUM_AT);
    if digest::digest(&digest::SHA256, content).as_ref() != checksum {
        return Err(damaged());
    }
    let mut after_magic = FieldReader::new(&content[MAGIC.len()..]);
    let version = after_magic.u32();
    let known = Version::V3 as u32;
    if version != known {
        let advice = if version < known {
            "it was made before the first release. Copy its data with the program that made it, \
             and make a new volume"
        } else {
            "upgrade this program"
        };
        return Err(SuperblockError::new(
            SuperblockErrorKind::UnknownVersion,
            format!(
                "the volume has format version {version}, and this program knows only version \
                 {known}: {advice}"
            ),
        ));
    }
    let (body, mac) = content.split_at(MAC_AT);
    let mac = *mac.first_chunk().expect("the HMAC fills the room before the checksum");
    Ok((Body::decode(body)?, mac))
}

fn damaged() -> SuperblockError {
    SuperblockError::new(
        SuperblockErrorKind::Damaged,
        "the superblock is damaged: repair it from another copy, or restore it from a backup",
    )
}

fn tampered(problem: &str) -> SuperblockError {
    SuperblockError::new(
        SuperblockErrorKind::Tampered,
        format!(
            "no honest program wrote this superblock ({problem}): do not trust this storage, and \
             restore the superblock from a backup"
        ),
    )
}
