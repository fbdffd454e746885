//! Checks whether a disk is empty enough to create a file system on it.

use oblivio_volume::device::{BlockDevice, DiskOp, WipedBytes, call};

use super::MountError;

/// Bytes that are read at the start and at the end of the disk. File systems, volume managers and
/// partition tables leave a signature there; the signature of btrfs is at 64 KiB.
const LOOKED_AT_BYTES: u64 = 1 << 20;

/// Offset and value of the signature of ext2, ext3 and ext4.
const EXT_MARK: (usize, [u8; 2]) = (1080, [0x53, 0xef]);

/// The contents of a disk, judged by its start and end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// All bytes that were read are zero.
    Zeros,
    /// A file system of the ext family.
    Ext,
    /// Other data.
    Something,
}

/// Reads the start and the end of a disk to judge its contents.
pub(super) fn look_at(device: &dyn BlockDevice) -> Result<Content, MountError> {
    let looked_at = LOOKED_AT_BYTES.min(device.bytes());
    let start = read(device, 0, looked_at)?;
    let (place, mark) = EXT_MARK;
    if start.get(place..place + mark.len()) == Some(&mark) {
        return Ok(Content::Ext);
    }
    let end = read(device, device.bytes() - looked_at, looked_at)?;
    let all_zeros = start.iter().chain(end.iter()).all(|byte| *byte == 0);
    Ok(if all_zeros { Content::Zeros } else { Content::Something })
}

fn read(device: &dyn BlockDevice, mut offset: u64, bytes: u64) -> Result<WipedBytes, MountError> {
    let mut data = WipedBytes::with_capacity(bytes as usize);
    let end = offset + bytes;
    while offset < end {
        let left = u32::try_from(end - offset).unwrap_or(u32::MAX);
        let bytes = left.min(device.request_bytes_max());
        let read = call(device, DiskOp::Read { offset, bytes }).map_err(MountError::Disk)?;
        data.extend_from_slice(&read);
        offset += u64::from(bytes);
    }
    Ok(data)
}
