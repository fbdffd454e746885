//! The anchor: the name of the client's latest checkpoint, kept in storage. It lets the client
//! detect a rollback of storage or of its own directory.
//!
//! The anchor of a checkpoint is written after the checkpoint is durable on the client, alternately
//! to two places. So storage shows the latest checkpoint or the one before it, even after a crash,
//! or the checkpoint that an opening [announced](crate::announced), unless it was rolled back.

use oblivio_core::records::{self, RecordPlace, RecordStore};
use oblivio_core::store::{TreeId, TreeShape};
use ring::hmac;
use zeroize::Zeroizing;

use crate::error::{VolumeError, VolumeErrorKind};
use crate::state::record::{CheckpointName, NAME_BYTES};

/// The tree of the store that holds the anchors.
pub(crate) const TREE: TreeId = TreeId(1);

const MAGIC: [u8; 8] = *b"oblanchr";
const MAC_BYTES: usize = 32;
pub(crate) const BYTES: usize = 8 + 8 + NAME_BYTES + MAC_BYTES;

/// The shape of [`TREE`]: room for two anchors.
pub(crate) fn shape() -> TreeShape {
    records::pair_shape(BYTES)
}

/// The key that authenticates anchors. Secret.
pub(crate) struct AnchorKey(hmac::Key);

impl AnchorKey {
    pub(crate) fn new(key: &Zeroizing<[u8; 32]>) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()))
    }

    pub(crate) fn bytes(&self, checkpoint: &CheckpointName) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&checkpoint.number.to_le_bytes());
        bytes[16..BYTES - MAC_BYTES].copy_from_slice(&checkpoint.name);
        let mac = hmac::sign(&self.0, &bytes[..BYTES - MAC_BYTES]);
        bytes[BYTES - MAC_BYTES..].copy_from_slice(mac.as_ref());
        bytes
    }

    pub(crate) fn read(&self, bytes: &[u8]) -> Option<CheckpointName> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let (claim, mac) = bytes.split_at(BYTES - MAC_BYTES);
        hmac::verify(&self.0, claim, mac).ok()?;
        let number = u64::from_le_bytes(*claim[8..].first_chunk()?);
        Some(CheckpointName { number, name: *claim[16..].first_chunk()? })
    }
}

fn place(index: u64) -> RecordPlace {
    RecordPlace { tree: TREE, index }
}

/// Writes an anchor. It is durable after the next flush.
pub(crate) fn write(
    store: &mut (impl RecordStore + ?Sized),
    key: &AnchorKey,
    checkpoint: &CheckpointName,
) -> Result<(), VolumeError> {
    let place = place(checkpoint.number % records::PAIR);
    Ok(store.write_records(&[place], &key.bytes(checkpoint))?)
}

/// The latest authentic anchor that storage shows.
pub(crate) fn read(
    store: &mut (impl RecordStore + ?Sized),
    key: &AnchorKey,
) -> Result<Option<CheckpointName>, VolumeError> {
    Ok(read_with_damage(store, key)?.0)
}

/// Reads the latest authentic anchor, and counts the places that hold bytes but no authentic
/// anchor. A crash may have torn the bytes of one such place.
pub(crate) fn read_with_damage(
    store: &mut (impl RecordStore + ?Sized),
    key: &AnchorKey,
) -> Result<(Option<CheckpointName>, usize), VolumeError> {
    let found = read_places(store, key)?;
    let damaged = found.iter().filter(|found| found.newest.is_none() && found.is_written).count();
    Ok((found.into_iter().filter_map(|found| found.newest).max_by_key(|it| it.number), damaged))
}

/// The newest authentic anchor of each place that has one, as a record.
pub(crate) fn authentic_records(
    store: &mut (impl RecordStore + ?Sized),
    key: &AnchorKey,
) -> Result<Vec<(RecordPlace, Vec<u8>)>, VolumeError> {
    let found = (0..).zip(read_places(store, key)?);
    let record = |(index, found): (u64, PlaceContents)| {
        Some((place(index), key.bytes(&found.newest?).to_vec()))
    };
    Ok(found.filter_map(record).collect())
}

/// The latest authentic anchor among `records`.
pub(crate) fn newest_of(
    records: &[(RecordPlace, Vec<u8>)],
    key: &AnchorKey,
) -> Option<CheckpointName> {
    let anchors = records.iter().filter(|(place, _)| place.tree == TREE);
    anchors.filter_map(|(_, bytes)| key.read(bytes)).max_by_key(|anchor| anchor.number)
}

/// The contents of one of the two places for anchors in storage.
#[derive(Default)]
struct PlaceContents {
    newest: Option<CheckpointName>,
    /// Whether any byte of the place is set. A place that was never written reads as zeros.
    is_written: bool,
}

fn read_places(
    store: &mut (impl RecordStore + ?Sized),
    key: &AnchorKey,
) -> Result<[PlaceContents; records::PAIR as usize], VolumeError> {
    let mut found: [PlaceContents; records::PAIR as usize] = Default::default();
    store.read_records(&[place(0), place(1)], &mut |i, value| {
        let Some(found) = found.get_mut(i) else { return };
        found.is_written |= value.iter().any(|byte| *byte != 0);
        let newest = found.newest.take().into_iter().chain(key.read(value));
        found.newest = newest.max_by_key(|anchor| anchor.number);
    })?;
    Ok(found)
}

/// The checkpoints whose anchors storage may show, according to the client's directory.
pub(crate) struct KnownCheckpoints {
    pub(crate) latest: CheckpointName,
    pub(crate) previous: CheckpointName,
    /// The checkpoint that an interrupted opening announced.
    pub(crate) announced: Option<CheckpointName>,
}

impl KnownCheckpoints {
    /// Compares the checkpoint that storage shows with those that the client knows. Returns the
    /// shown checkpoint: the client's latest, the one before it after a crash, or the announced
    /// one. Any other result is an error, whose kind says whether storage or the client's directory
    /// is older, or that storage shows no anchor.
    pub(crate) fn check(
        &self,
        shown: Option<CheckpointName>,
    ) -> Result<CheckpointName, VolumeError> {
        let Self { latest, previous, announced } = self;
        let newest = announced.as_ref().unwrap_or(latest);
        let gone_back = |kind, message: &str| Err(VolumeError::new(kind, message));
        match shown {
            None => gone_back(
                VolumeErrorKind::Tampered,
                "storage shows no anchor of this volume: it is damaged or was emptied. Restore the \
                 store, or save what is left with `oblivio rescue`",
            ),
            Some(shown) if [latest, previous, newest].contains(&&shown) => Ok(shown),
            Some(shown) if shown.number > newest.number => gone_back(
                VolumeErrorKind::StateRolledBack,
                "the client's directory is older than storage: it was restored from a backup, or \
                 the volume was used from another directory. Use the directory the volume was last \
                 used with; with this one, the blocks written since cannot be found. `oblivio \
                 rescue` saves the blocks that it knows",
            ),
            Some(_) => gone_back(
                VolumeErrorKind::StoreRolledBack,
                "storage is older than the client's directory, or belongs to another history: it \
                 was restored from a backup, or the server shows an old copy. Bring the latest \
                 back. A backup of storage needs the backup of the client's directory that was \
                 made with it; without that, `oblivio rescue` saves what storage holds",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_core::{LayoutKind, MemoryStore};

    fn name(number: u64) -> CheckpointName {
        CheckpointName { number, name: [number as u8 ^ 0x5A; NAME_BYTES] }
    }

    fn world() -> (MemoryStore, AnchorKey) {
        let empty = TreeShape::new(Vec::new());
        let store = MemoryStore::new(&[empty, shape()], LayoutKind::Striped).unwrap();
        (store, AnchorKey::new(&Zeroizing::new([3; 32])))
    }

    #[test]
    fn the_latest_of_two_is_shown_and_a_torn_one_leaves_the_other() {
        let (mut store, key) = world();
        assert_eq!(read_with_damage(&mut store, &key).unwrap(), (None, 0));
        for number in 0..5 {
            write(&mut store, &key, &name(number)).unwrap();
            assert_eq!(read(&mut store, &key).unwrap(), Some(name(number)));
        }
        let torn = store.span(&place(4 % 2).piece()).unwrap();
        for byte in 0..BYTES {
            store.contents_mut()[torn.start + byte] ^= 1;
            assert_eq!(read(&mut store, &key).unwrap(), Some(name(3)), "byte {byte}");
            assert_eq!(read_with_damage(&mut store, &key).unwrap().1, 1);
            store.contents_mut()[torn.start + byte] ^= 1;
        }
        let other = AnchorKey::new(&Zeroizing::new([4; 32]));
        assert_eq!(read(&mut store, &other).unwrap(), None);
    }

    #[test]
    fn the_side_that_was_rolled_back_is_named() {
        let known = KnownCheckpoints { latest: name(7), previous: name(6), announced: None };
        let kind = |shown| known.check(shown).map_err(|error| error.kind());
        assert_eq!(kind(Some(name(7))), Ok(name(7)));
        assert_eq!(kind(Some(name(6))), Ok(name(6)));
        assert_eq!(kind(Some(name(5))), Err(VolumeErrorKind::StoreRolledBack));
        assert_eq!(kind(Some(name(8))), Err(VolumeErrorKind::StateRolledBack));
        let other = CheckpointName { name: [0; NAME_BYTES], ..name(7) };
        assert_eq!(kind(Some(other)), Err(VolumeErrorKind::StoreRolledBack));
        assert_eq!(kind(None), Err(VolumeErrorKind::Tampered));

        let known = KnownCheckpoints { announced: Some(name(9)), ..known };
        let kind = |shown| known.check(shown).map_err(|error| error.kind());
        assert_eq!(kind(Some(name(9))), Ok(name(9)));
        assert_eq!(kind(Some(name(6))), Ok(name(6)));
        assert_eq!(kind(Some(name(8))), Err(VolumeErrorKind::StoreRolledBack));
        assert_eq!(kind(Some(name(10))), Err(VolumeErrorKind::StateRolledBack));
    }
}
