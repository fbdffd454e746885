//! The header of the file: the shapes and positions of its trees. `docs/format.md` in the
//! repository specifies the bytes.
//!
//! The header is neither secret nor trusted. Its checksum detects accidental damage. Because the
//! header may be forged, every number is checked against a bound before it is used, and the scheme
//! compares the shapes with those that it needs.

use oblivio_core::store::{LevelShape, TreeShape};
use oblivio_core::{Layout, LayoutKind};
use sha2::{Digest, Sha256};

use crate::error::{OpenError, OpenErrorKind};
use crate::fields::Fields;

/// The number of bytes of one copy of the header.
pub const HEADER_BYTES: usize = 64 << 10;

/// The number of copies of the header: two before the trees, one after them.
pub const HEADER_COPIES: usize = 3;

/// The alignment of buckets in bytes, and the size of the smallest unit of direct I/O.
pub const SECTOR_BYTES: u64 = 512;

/// The alignment in bytes of the trees and of the copies of the header.
pub const PAGE_BYTES: u64 = 4096;

/// The maximum number of trees in one file.
pub const TREES_MAX: usize = 256;

/// The maximum number of levels of all trees together.
pub const LEVELS_MAX: usize = 1280;

/// The maximum number of bytes of a bucket, larger than any bucket of the engine.
pub const BUCKET_BYTES_MAX: u64 = 1 << 30;

const MAGIC: [u8; 16] = *b"OBLIVIO BUCKETS\n";
const VERSION: u32 = 1;
const STRIPED: u32 = 1;
const CHECKSUM_BYTES: usize = 32;

/// The parsed header with the layout that follows from it.
#[derive(Debug)]
pub struct Container {
    trees: Vec<PlacedTree>,
    bytes: u64,
}

/// A tree and the offset of its data in the file.
#[derive(Debug)]
pub(crate) struct PlacedTree {
    pub(crate) base: u64,
    pub(crate) layout: Layout,
}

impl Container {
    /// Lays out trees of these shapes one after the other.
    ///
    /// # Errors
    /// [`OpenErrorKind::InvalidShapes`] if no file can hold trees of these shapes.
    pub fn new(shapes: &[TreeShape]) -> Result<Self, OpenError> {
        let levels: usize = shapes.iter().map(TreeShape::level_count).sum();
        if shapes.is_empty() || shapes.len() > TREES_MAX || levels > LEVELS_MAX {
            return Err(invalid(format!(
                "a file holds 1 to {TREES_MAX} trees with at most {LEVELS_MAX} levels in total, \
             but {} trees with {levels} levels were requested",
                shapes.len()
            )));
        }
        let mut trees = Vec::with_capacity(shapes.len());
        let mut end = 2 * HEADER_BYTES as u64;
        for shape in shapes {
            shape.levels().iter().try_for_each(check_level)?;
            let layout = Layout::new(shape, LayoutKind::Striped, SECTOR_BYTES)
                .map_err(|cause| invalid(cause.to_string()))?;
            let base = end;
            end = end
                .checked_add(layout.bytes())
                .and_then(|end| end.checked_next_multiple_of(PAGE_BYTES))
                .ok_or_else(too_large)?;
            trees.push(PlacedTree { base, layout });
        }
        let bytes = end.checked_add(HEADER_BYTES as u64).ok_or_else(too_large)?;
        if bytes > i64::MAX as u64 {
            return Err(too_large());
        }
        Ok(Self { trees, bytes })
    }

    /// The number of bytes of the whole file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The offsets of the copies of the header.
    pub fn header_offsets(&self) -> [u64; HEADER_COPIES] {
        [0, HEADER_BYTES as u64, self.bytes - HEADER_BYTES as u64]
    }

    pub(crate) fn into_trees(self) -> Vec<PlacedTree> {
        self.trees
    }
}

/// Encodes the header of a file with trees of these shapes.
///
/// # Errors
/// [`OpenErrorKind::InvalidShapes`] if no file can hold trees of these shapes.
pub fn encode(shapes: &[TreeShape]) -> Result<Vec<u8>, OpenError> {
    let container = Container::new(shapes)?;
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend(MAGIC);
    for number in [VERSION].into_iter().chain(PARAMETERS) {
        header.extend(number.to_le_bytes());
    }
    header.extend(container.bytes.to_le_bytes());
    encode_shapes(&mut header, shapes);
    header.resize(HEADER_BYTES - CHECKSUM_BYTES, 0);
    header.extend(checksum(&header));
    Ok(header)
}

/// Appends the shapes of trees: their number, and for each its levels.
pub(crate) fn encode_shapes(bytes: &mut Vec<u8>, shapes: &[TreeShape]) {
    bytes.extend((shapes.len() as u64).to_le_bytes());
    for shape in shapes {
        bytes.extend((shape.level_count() as u64).to_le_bytes());
        for level in shape.levels() {
            let LevelShape {
                // Every field, in the order of the format.
                buckets,
                slots,
                header_bytes,
                slots_offset,
                slot_bytes,
                bucket_bytes,
            } = *level;
            let slots = u64::from(slots);
            for number in [buckets, slots, header_bytes, slots_offset, slot_bytes, bucket_bytes] {
                bytes.extend(number.to_le_bytes());
            }
        }
    }
}

/// Parses the shapes from one copy of the header, which is untrusted.
///
/// # Errors
/// [`OpenErrorKind::NotAStore`], [`OpenErrorKind::UnknownVersion`] or [`OpenErrorKind::Damaged`].
pub fn decode(copy: &[u8]) -> Result<Vec<TreeShape>, OpenError> {
    if !copy.starts_with(&MAGIC) {
        return Err(OpenError::new(
            OpenErrorKind::NotAStore,
            "this is not an Oblivio volume (not a container file); check the path. If its first \
             and last bytes were overwritten, `oblivio rescue` can recover it with the client's \
             directory",
        ));
    }
    let mut fields = Fields::new(&copy[MAGIC.len()..]);
    let version = fields.u32().ok_or_else(damaged)?;
    if version != VERSION {
        return Err(OpenError::new(
            OpenErrorKind::UnknownVersion,
            format!(
                "the file has format {version}, this program knows {VERSION}; use a newer program"
            ),
        ));
    }
    let parameters = [fields.u32(), fields.u32(), fields.u32()];
    if parameters != PARAMETERS.map(Some) {
        return Err(damaged());
    }
    let _bytes = fields.u64();
    let shapes = decode_shapes(&mut fields).ok_or_else(damaged)?;
    // Shapes determine the header. So this comparison also checks the checksum, the file's length,
    // and the padding between the numbers and the checksum.
    match encode(&shapes) {
        Ok(header) if header == copy => Ok(shapes),
        _ => Err(damaged()),
    }
}

const PARAMETERS: [u32; 3] = [STRIPED, SECTOR_BYTES as u32, PAGE_BYTES as u32];

/// Parses shapes as [`encode_shapes`] writes them, without checking that a store can hold them.
pub(crate) fn decode_shapes(fields: &mut Fields<'_>) -> Option<Vec<TreeShape>> {
    let trees = fields.count(TREES_MAX)?;
    (0..trees).map(|_| decode_shape(fields)).collect()
}

fn decode_shape(fields: &mut Fields<'_>) -> Option<TreeShape> {
    let levels = fields.count(LEVELS_MAX)?;
    let levels: Option<_> = (0..levels).map(|_| decode_level(fields)).collect();
    levels.map(TreeShape::new)
}

fn decode_level(fields: &mut Fields<'_>) -> Option<LevelShape> {
    Some(LevelShape {
        buckets: fields.u64()?,
        slots: u16::try_from(fields.u64()?).ok()?,
        header_bytes: fields.u64()?,
        slots_offset: fields.u64()?,
        slot_bytes: fields.u64()?,
        bucket_bytes: fields.u64()?,
    })
}

/// Checks that the parts of a bucket are within the bucket, in order, and do not overlap. A level
/// without buckets may have bucket size 0.
fn check_level(level: &LevelShape) -> Result<(), OpenError> {
    let slots_end = u64::from(level.slots)
        .checked_mul(level.slot_bytes)
        .and_then(|bytes| bytes.checked_add(level.slots_offset));
    let fits = level.header_bytes <= level.slots_offset
        && slots_end.is_some_and(|end| end <= level.bucket_bytes)
        && level.bucket_bytes <= BUCKET_BYTES_MAX
        && (level.bucket_bytes > 0 || level.buckets == 0);
    fits.then_some(()).ok_or_else(|| {
        invalid(format!(
            "the parts of a bucket of {} bytes do not fit into it, or it exceeds \
             {BUCKET_BYTES_MAX} bytes",
            level.bucket_bytes
        ))
    })
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    Sha256::digest(bytes).into()
}

fn invalid(message: String) -> OpenError {
    OpenError::new(OpenErrorKind::InvalidShapes, message)
}

fn too_large() -> OpenError {
    invalid("the trees exceed 2^63 bytes; use a smaller capacity".into())
}

fn damaged() -> OpenError {
    OpenError::new(
        OpenErrorKind::Damaged,
        "every copy of the header is damaged; restore the file from a backup",
    )
}
