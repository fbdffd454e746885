//! A superblock as bytes. `docs/format.md` says what each of them is.
//!
//! There is exactly one encoding of every superblock: what is not used is zero.

use ring::digest;

use super::VolumeId;
use super::error::{SuperblockError, SuperblockErrorKind};
use super::params::{MapRecursion, SchemeId, Slots, VolumeParams};
use crate::keys::fields::{FieldReader, FieldWriter};
use crate::keys::{KeySlots, OutOfRange, SLOT_BYTES, SLOTS_MAX};

/// Bytes of a superblock.
pub const SUPERBLOCK_BYTES: usize = 16 << 10;

/// Bytes of the HMAC.
pub(crate) const MAC_BYTES: usize = 32;

const CHECKSUM_BYTES: usize = 32;
const MAC_AT: usize = SUPERBLOCK_BYTES - CHECKSUM_BYTES - MAC_BYTES;
const CHECKSUM_AT: usize = SUPERBLOCK_BYTES - CHECKSUM_BYTES;

const MAGIC: [u8; 8] = *b"oblivio\0";
const SLOTS_AT: usize = 256;

/// The versions of the format. A line says what each one brought.
#[derive(Clone, Copy)]
enum Version {
    /// Buckets have one tag each, and their slots and heads lie apart. Before it, in no release, each part of
    /// a bucket had a tag.
    V2 = 2,
}

/// No honest program counts so far, so counting on never overflows.
const SEQUENCE_MAX: u64 = 1 << 63;

/// All that the HMAC vouches for.
#[derive(Clone)]
pub(super) struct Body {
    pub(super) sequence: u64,
    pub(super) volume_id: VolumeId,
    pub(super) params: VolumeParams,
    pub(super) slots: KeySlots,
}

impl Body {
    /// The bytes before the HMAC.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut fields = FieldWriter::default();
        fields.put(&MAGIC);
        fields.put(&(Version::V2 as u32).to_le_bytes());
        fields.put(&[0; 4]);
        fields.put(&self.sequence.to_le_bytes());
        fields.put(&self.volume_id.0);
        let params = &self.params;
        fields.put(&params.blocks.to_le_bytes());
        fields.put(&params.block_bytes.to_le_bytes());
        fields.put(&params.scheme.code().to_le_bytes());
        fields.put(&[params.leaf_level, params.tree_top_levels]);
        let (same, per_level) = match &params.slots {
            Slots::Same(slots) => (*slots, &[][..]),
            Slots::PerLevel(slots) => (0, &slots[..]),
        };
        fields.put(&same.to_le_bytes());
        fields.put(&params.tree_top_ways.to_le_bytes());
        fields.put(&params.evict_period.to_le_bytes());
        fields.put(&params.stash_blocks_max.to_le_bytes());
        let nothing = MapRecursion { client_entries_max: 0, plb_blocks: 0 };
        let recursion = params.recursion.unwrap_or(nothing);
        fields.put(&recursion.client_entries_max.to_le_bytes());
        fields.put(&recursion.plb_blocks.to_le_bytes());
        per_level.iter().for_each(|slots| fields.put(&slots.to_le_bytes()));
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
            return Err(tampered("the sequence number cannot be"));
        }
        let volume_id = VolumeId(fields.take());
        let (blocks, block_bytes) = (fields.u64(), fields.u32());
        let scheme = SchemeId::from_code(fields.u16())
            .ok_or_else(|| tampered("it names a scheme that this version does not have"))?;
        let (leaf_level, tree_top_levels) = (fields.u8(), fields.u8());
        let (slots, tree_top_ways) = (fields.u16(), fields.u16());
        let (evict_period, stash_blocks_max) = (fields.u32(), fields.u32());
        let recursion = MapRecursion { client_entries_max: fields.u64(), plb_blocks: fields.u32() };
        let per_level: [u16; LEVELS_MAX] = std::array::from_fn(|_| fields.u16());
        let (told, rest) = per_level.split_at(LEVELS_MAX.min(usize::from(leaf_level) + 1));
        is_clean &= rest.iter().all(|slots| *slots == 0);
        let slots = match slots {
            0 => Slots::PerLevel(told.to_vec()),
            same => {
                is_clean &= told.iter().all(|slots| *slots == 0);
                Slots::Same(same)
            }
        };
        let recursion = match recursion {
            MapRecursion { client_entries_max: 0, plb_blocks } => {
                is_clean &= plb_blocks == 0;
                None
            }
            recursion => Some(recursion),
        };
        let params = VolumeParams {
            blocks,
            block_bytes,
            scheme,
            leaf_level,
            slots,
            evict_period,
            stash_blocks_max,
            tree_top_levels,
            tree_top_ways,
            recursion,
        };
        params.check().map_err(|problem| tampered(&problem))?;
        is_clean &= fields.zeros(SLOTS_AT - PARAMS_END);
        let slots = KeySlots::decode(&mut fields)
            .map_err(|problem: OutOfRange| tampered(&problem.to_string()))?;
        is_clean &= fields.only_zeros_left();
        let body = Self { sequence, volume_id, params, slots };
        is_clean.then_some(body).ok_or_else(|| tampered("a reserved field is not zero"))
    }
}

/// The most levels that a tree can have.
const LEVELS_MAX: usize = 41;

/// Where the parameters end.
const PARAMS_END: usize = 80 + 2 * LEVELS_MAX;

const _: () = assert!(SLOTS_AT + SLOTS_MAX * SLOT_BYTES <= MAC_AT);

/// Puts the HMAC and the checksum behind a body.
pub(super) fn finish(body: Vec<u8>, mac: &[u8; MAC_BYTES]) -> Box<[u8; SUPERBLOCK_BYTES]> {
    let mut bytes = body;
    bytes.extend_from_slice(mac);
    let checksum = digest::digest(&digest::SHA256, &bytes);
    bytes.extend_from_slice(checksum.as_ref());
    let bytes = bytes.into_boxed_slice();
    bytes.try_into().expect("a body has all bytes up to the HMAC")
}

/// Checks everything that can be checked without a key.
///
/// Magic, checksum and version stand where they do in every version: so a program that is too old can
/// tell a newer volume from a damaged one.
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
    let known = Version::V2 as u32;
    if version != known {
        let advice = if version < known {
            "it was made before the first release. Copy its data with the program that made it, and make \
             a new volume"
        } else {
            "upgrade this program"
        };
        return Err(SuperblockError::new(
            SuperblockErrorKind::UnknownVersion,
            format!(
                "the volume has format version {version}, and this program knows version {known} \
                 alone: {advice}"
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
