//! The superblock: the parameters and key slots of a volume, read before anything else.
//!
//! Storage can read and change a superblock, which is not encrypted. So its bytes pass two checks:
//!
//! ```text
//! bytes ── checksum, bounds ──► LockedSuperblock ── secret, HMAC ──► Superblock
//!            [`LockedSuperblock::decode`]              [`LockedSuperblock::unlock`]
//! ```
//!
//! The first check detects damage. The second detects changes by anyone without the volume key. A
//! [`LockedSuperblock`] is not authenticated, and the names of its accessors state that. The bytes
//! are specified in `docs/format.md` of the repository; [`copies`] stores four copies.

pub mod copies;
mod error;
mod format;
mod params;

use std::fmt;

use rand_core::CryptoRng;
use ring::hmac;

pub use error::{SuperblockError, SuperblockErrorKind};
pub use format::SUPERBLOCK_BYTES;
pub use params::{SchemeName, VolumeParams};

use crate::keys::{
    Budget, KeyError, KeyErrorKind, KeySlots, NewSlot, Secret, SlotInfo, UnlockLimits, VolumeKey,
};
use format::Body;
pub(crate) use format::MAC_BYTES;

/// The random id of a volume. Public.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VolumeId(pub [u8; 16]);

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VolumeId({self})")
    }
}

/// An authentic superblock. It holds no secret.
#[derive(Clone)]
pub struct Superblock {
    body: Body,
    mac: [u8; MAC_BYTES],
}

impl Superblock {
    /// The first superblock of a new volume, with `first_slot`.
    ///
    /// # Errors
    /// [`SuperblockErrorKind::InvalidRequest`] when no such volume or slot is possible;
    /// [`SuperblockErrorKind::TooCostly`] when there is not enough memory for the slot.
    pub fn create(
        params: VolumeParams,
        volume_key: &VolumeKey,
        first_slot: &NewSlot<'_>,
        coins: &mut impl CryptoRng,
    ) -> Result<Self, SuperblockError> {
        params.config().map_err(|problem| {
            SuperblockError::new(SuperblockErrorKind::InvalidRequest, problem.to_string())
        })?;
        let mut volume_id = VolumeId([0; 16]);
        coins.fill_bytes(&mut volume_id.0);
        let mut slots = KeySlots::default();
        slots.add(&volume_id.0, volume_key, first_slot, coins)?;
        Ok(Self::authenticate(Body { sequence: 1, volume_id, params, slots }, volume_key))
    }

    /// The bytes of the superblock, to store.
    pub fn encode(&self) -> Box<[u8; SUPERBLOCK_BYTES]> {
        format::finish(self.body.encode(), &self.mac)
    }

    /// The number of the superblock, which grows by one with every change: the higher number is
    /// newer.
    pub fn sequence(&self) -> u64 {
        self.body.sequence
    }

    /// The HMAC, which distinguishes superblocks of a volume. Public.
    pub(crate) fn mac(&self) -> &[u8; MAC_BYTES] {
        &self.mac
    }

    /// The id of the volume.
    pub fn volume_id(&self) -> VolumeId {
        self.body.volume_id
    }

    /// The parameters of the volume.
    pub fn params(&self) -> &VolumeParams {
        &self.body.params
    }

    /// The key slots in use.
    pub fn slots(&self) -> Vec<SlotInfo> {
        self.body.slots.list()
    }

    /// Adds a secret that opens the volume, and returns its slot. The secret is in effect once
    /// [`copies::write_copies`] has stored the superblock.
    ///
    /// # Errors
    /// If an error is returned, nothing has changed: [`SuperblockErrorKind::NoFreeSlot`],
    /// [`SuperblockErrorKind::InvalidRequest`] for an impossible slot,
    /// [`SuperblockErrorKind::TooCostly`] when there is not enough memory for the new slot,
    /// [`SuperblockErrorKind::WrongKey`] when `volume_key` is another volume's.
    pub fn add_slot(
        &mut self,
        volume_key: &VolumeKey,
        new: &NewSlot<'_>,
        coins: &mut impl CryptoRng,
    ) -> Result<u8, SuperblockError> {
        self.change(volume_key, |body| body.slots.add(&body.volume_id.0, volume_key, new, coins))
    }

    /// Empties a slot: its secret does not open the new superblock. It still opens every older
    /// superblock of which a copy exists.
    ///
    /// # Errors
    /// [`SuperblockErrorKind::LastSlot`], [`SuperblockErrorKind::InvalidRequest`] when the slot is
    /// empty, [`SuperblockErrorKind::WrongKey`] when `volume_key` is another volume's. Nothing was
    /// changed then.
    pub fn remove_slot(
        &mut self,
        volume_key: &VolumeKey,
        number: u8,
    ) -> Result<(), SuperblockError> {
        self.change(volume_key, |body| body.slots.remove(number))
    }

    /// Makes a change and authenticates the result. If the change fails, the superblock stays as it
    /// was.
    fn change<T>(
        &mut self,
        volume_key: &VolumeKey,
        change: impl FnOnce(&mut Body) -> Result<T, KeyError>,
    ) -> Result<T, SuperblockError> {
        if !is_authentic(volume_key, &self.body.encode(), &self.mac) {
            let message = "this is the key of another volume";
            return Err(KeyError::new(KeyErrorKind::WrongKey, message).into());
        }
        let mut body = self.body.clone();
        let outcome = change(&mut body)?;
        body.sequence += 1;
        *self = Self::authenticate(body, volume_key);
        Ok(outcome)
    }

    fn authenticate(body: Body, volume_key: &VolumeKey) -> Self {
        let tag = hmac::sign(&mac_key(volume_key), &body.encode());
        let mac = *tag.as_ref().first_chunk().expect("HMAC-SHA-256 gives 32 bytes");
        Self { body, mac }
    }
}

/// A superblock with a valid checksum, which is not authenticated. Equal values have equal bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct LockedSuperblock {
    body: Body,
    mac: [u8; MAC_BYTES],
}

impl LockedSuperblock {
    /// Decodes a superblock.
    ///
    /// # Errors
    /// In the order of the checks: [`SuperblockErrorKind::NotAVolume`],
    /// [`SuperblockErrorKind::Damaged`], [`SuperblockErrorKind::UnknownVersion`],
    /// [`SuperblockErrorKind::Tampered`] when the checksum is valid and no honest program wrote the
    /// bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, SuperblockError> {
        let (body, mac) = format::decode(bytes)?;
        Ok(Self { body, mac })
    }

    /// Tries the slots of the secret's kind, one after the other, until one gives the volume key.
    /// Then authenticates the superblock with that key. Spends at most [`UnlockLimits::default`].
    ///
    /// # Errors
    /// [`SuperblockErrorKind::WrongKey`], [`SuperblockErrorKind::TooCostly`],
    /// [`SuperblockErrorKind::Tampered`], and [`SuperblockErrorKind::InvalidRequest`] for a secret
    /// that is too short or too long.
    pub fn unlock(&self, secret: &Secret) -> Result<Unlocked, SuperblockError> {
        self.unlock_within(secret, &mut Budget::new(UnlockLimits::default()))
    }

    /// Like [`Self::unlock`], but spends at most the remaining `budget`.
    pub(crate) fn unlock_within(
        &self,
        secret: &Secret,
        budget: &mut Budget,
    ) -> Result<Unlocked, SuperblockError> {
        let Self { body, mac } = self;
        let (volume_key, slot) = body.slots.open(&body.volume_id.0, secret, budget)?;
        if !self.is_authentic(&volume_key) {
            return Err(SuperblockError::new(
                SuperblockErrorKind::Tampered,
                "the superblock was changed by someone without the key: do not trust this storage, \
                 and restore the superblock from a backup",
            ));
        }
        let superblock = Superblock { body: body.clone(), mac: *mac };
        Ok(Unlocked { superblock, volume_key, slot })
    }

    /// Whether the superblock is authentic under this volume key.
    pub(crate) fn is_authentic(&self, volume_key: &VolumeKey) -> bool {
        // Every body has one encoding, so these are the bytes that were read.
        is_authentic(volume_key, &self.body.encode(), &self.mac)
    }

    /// Whether this superblock and `superblock` have the same bytes.
    pub(crate) fn is(&self, superblock: &Superblock) -> bool {
        self.body == superblock.body && self.mac == superblock.mac
    }

    /// The claimed sequence number.
    pub fn unauthenticated_sequence(&self) -> u64 {
        self.body.sequence
    }

    /// The claimed id of the volume.
    pub fn unauthenticated_volume_id(&self) -> VolumeId {
        self.body.volume_id
    }

    /// The claimed parameters. They are within bounds.
    pub fn unauthenticated_params(&self) -> &VolumeParams {
        &self.body.params
    }

    /// The slots that are in use, as this superblock claims.
    pub fn unauthenticated_slots(&self) -> Vec<SlotInfo> {
        self.body.slots.list()
    }

    /// The bytes that this superblock was decoded from.
    pub fn encode(&self) -> Box<[u8; SUPERBLOCK_BYTES]> {
        format::finish(self.body.encode(), &self.mac)
    }
}

impl fmt::Debug for LockedSuperblock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedSuperblock").field("sequence", &self.body.sequence).finish()
    }
}

impl fmt::Debug for Superblock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Superblock").field("sequence", &self.body.sequence).finish()
    }
}

/// An unlocked volume.
#[derive(Debug)]
pub struct Unlocked {
    /// The superblock, now authenticated.
    pub superblock: Superblock,
    /// The key from which all other keys are derived.
    pub volume_key: VolumeKey,
    /// The number of the slot that the secret opened.
    pub slot: u8,
}

fn is_authentic(volume_key: &VolumeKey, body: &[u8], mac: &[u8; MAC_BYTES]) -> bool {
    hmac::verify(&mac_key(volume_key), body, mac).is_ok()
}

fn mac_key(volume_key: &VolumeKey) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &*volume_key.derive("superblock"))
}
