//! One slot: the volume key, wrapped under the key that a secret gives.
//!
//! The bytes of a slot are in `docs/format.md` of the repository. The description before the nonce
//! is bound to the wrapped key, together with the volume and the slot's number: a slot that was
//! changed or moved does not open.

use std::fmt;

use rand_core::CryptoRng;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::cost::Cost;
use super::error::KeyError;
use super::fields::{FieldReader, FieldWriter};
use super::secret::{Secret, SecretKind};
use super::unlock_limits::Budget;
use super::volume_key::{KEY_BYTES, VolumeKey, expand};

/// Bytes of a slot in the superblock.
pub(crate) const SLOT_BYTES: usize = 256;

/// The longest label, in bytes of UTF-8.
pub const LABEL_BYTES_MAX: usize = 32;

const SALT_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const WRAPPED_BYTES: usize = KEY_BYTES + TAG_BYTES;

/// Bytes of the description, which precedes the nonce.
const DESCRIPTION_BYTES: usize = 16 + SALT_BYTES + LABEL_BYTES_MAX;

/// The stored codes of the kinds of slots.
mod kind_code {
    pub(super) const EMPTY: u8 = 0;
    pub(super) const PASSPHRASE: u8 = 1;
    pub(super) const KEY_FILE: u8 = 2;
}

/// A slot to create.
#[derive(Debug)]
pub struct NewSlot<'a> {
    /// The secret that opens the slot.
    pub secret: &'a Secret,
    /// The cost of a guess, if the secret is a passphrase. A key file is not stretched.
    pub cost: Cost,
    /// The owner's label: up to [`LABEL_BYTES_MAX`] bytes, no control characters. Public.
    pub label: &'a str,
}

/// A slot in use.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KeySlot {
    description: Description,
    nonce: [u8; NONCE_LEN],
    wrapped: [u8; WRAPPED_BYTES],
}

/// The unencrypted description in a slot.
#[derive(Clone, PartialEq, Eq)]
struct Description {
    lock: Lock,
    salt: [u8; SALT_BYTES],
    label: String,
}

/// The derivation of the slot's key from a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    Passphrase(Cost),
    KeyFile,
}

/// The reason why stored bytes do not decode to a slot. No honest program writes such bytes.
#[derive(Debug)]
pub(crate) struct OutOfRange(pub(crate) &'static str);

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl KeySlot {
    /// Wraps the volume key for a new slot.
    pub(crate) fn wrap(
        volume_key: &VolumeKey,
        location: &SlotLocation<'_>,
        new: &NewSlot<'_>,
        coins: &mut impl CryptoRng,
    ) -> Result<Self, KeyError> {
        new.secret.check()?;
        check_label(new.label).map_err(|problem| KeyError::invalid(problem.0))?;
        let lock = match new.secret {
            Secret::Passphrase(_) => Lock::Passphrase(new.cost),
            Secret::KeyFile(_) => Lock::KeyFile,
        };
        let (mut salt, mut nonce) = ([0; SALT_BYTES], [0; NONCE_LEN]);
        coins.fill_bytes(&mut salt);
        coins.fill_bytes(&mut nonce);
        let description = Description { lock, salt, label: new.label.to_owned() };
        let key = description.slot_key(new.secret)?;
        let mut plain = Zeroizing::new(*volume_key.bytes());
        let tag = key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                description.bound_to(location),
                &mut *plain,
            )
            .expect("a few bytes are less than AES-GCM can seal");
        let mut wrapped = [0; WRAPPED_BYTES];
        wrapped[..KEY_BYTES].copy_from_slice(&*plain);
        wrapped[KEY_BYTES..].copy_from_slice(tag.as_ref());
        Ok(Self { description, nonce, wrapped })
    }

    /// The volume key, if `secret` opens this slot at this location. A secret of another kind does
    /// not open it.
    pub(crate) fn unwrap(
        &self,
        location: &SlotLocation<'_>,
        secret: &Secret,
        budget: &mut Budget,
    ) -> Result<Option<VolumeKey>, KeyError> {
        if secret.kind() != self.kind() {
            return Ok(None);
        }
        if let Lock::Passphrase(cost) = self.description.lock {
            budget.spend(cost)?;
        }
        let key = self.description.slot_key(secret)?;
        let mut room = Zeroizing::new(self.wrapped);
        let nonce = Nonce::assume_unique_for_key(self.nonce);
        let opened = key.open_in_place(nonce, self.description.bound_to(location), &mut *room);
        Ok(opened.ok().and_then(|key| key.first_chunk().map(VolumeKey::from_bytes)))
    }

    pub(crate) fn kind(&self) -> SecretKind {
        match self.description.lock {
            Lock::Passphrase(_) => SecretKind::Passphrase,
            Lock::KeyFile => SecretKind::KeyFile,
        }
    }

    pub(crate) fn cost(&self) -> Option<Cost> {
        match self.description.lock {
            Lock::Passphrase(cost) => Some(cost),
            Lock::KeyFile => None,
        }
    }

    pub(crate) fn label(&self) -> &str {
        &self.description.label
    }

    /// The slot as bytes; an empty one is all zeros.
    pub(crate) fn encode(slot: Option<&Self>) -> Vec<u8> {
        let mut fields = FieldWriter::default();
        if let Some(slot) = slot {
            fields.put(&slot.description.encode());
            fields.put(&slot.nonce);
            fields.put(&slot.wrapped);
        }
        fields.zeros_until(SLOT_BYTES);
        fields.finish()
    }

    /// The slot that `bytes` encode; `None` for an empty one.
    pub(crate) fn decode(bytes: &[u8; SLOT_BYTES]) -> Result<Option<Self>, OutOfRange> {
        if bytes[0] == kind_code::EMPTY {
            let is_clean = bytes.iter().all(|byte| *byte == 0);
            return is_clean
                .then_some(None)
                .ok_or(OutOfRange("an empty key slot has nonzero bytes"));
        }
        let mut fields = FieldReader::new(bytes);
        let description = Description::decode(&mut fields)?;
        let slot = Self { description, nonce: fields.take(), wrapped: fields.take() };
        let is_clean = fields.only_zeros_left();
        is_clean.then_some(Some(slot)).ok_or(OutOfRange("a key slot is followed by nonzero bytes"))
    }
}

/// The number of a slot and its volume.
pub(crate) struct SlotLocation<'a> {
    pub(crate) volume_id: &'a [u8; 16],
    pub(crate) number: u8,
}

impl Description {
    /// The slot's key, if `secret` is right; some other key if it is not.
    fn slot_key(&self, secret: &Secret) -> Result<LessSafeKey, KeyError> {
        let key = match (self.lock, secret) {
            (Lock::Passphrase(cost), Secret::Passphrase(bytes)) => {
                cost.stretch(bytes, &self.salt)?
            }
            (_, Secret::Passphrase(bytes) | Secret::KeyFile(bytes)) => {
                expand(&self.salt, bytes, &[b"oblivio key file v1"])
            }
        };
        let key = UnboundKey::new(&AES_256_GCM, &*key).expect("an AES-256 key has 32 bytes");
        Ok(LessSafeKey::new(key))
    }

    fn bound_to(&self, location: &SlotLocation<'_>) -> Aad<Vec<u8>> {
        let mut fields = FieldWriter::default();
        fields.put(b"oblivio key slot v1");
        fields.put(location.volume_id);
        fields.put(&[location.number]);
        fields.put(&self.encode());
        Aad::from(fields.finish())
    }

    fn encode(&self) -> Vec<u8> {
        let (kind, [memory_kib, passes, lanes]) = match self.lock {
            Lock::Passphrase(cost) => {
                (kind_code::PASSPHRASE, [cost.memory_kib(), cost.passes(), cost.lanes()])
            }
            Lock::KeyFile => (kind_code::KEY_FILE, [0; 3]),
        };
        let mut fields = FieldWriter::default();
        fields.put(&[kind, self.label.len() as u8, 0, 0]);
        [memory_kib, passes, lanes].iter().for_each(|field| fields.put(&field.to_le_bytes()));
        fields.put(&self.salt);
        fields.put_padded(self.label.as_bytes(), LABEL_BYTES_MAX);
        let bytes = fields.finish();
        debug_assert_eq!(bytes.len(), DESCRIPTION_BYTES);
        bytes
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, OutOfRange> {
        let (kind, label_bytes) = (fields.u8(), usize::from(fields.u8()));
        if !fields.zeros(2) {
            return Err(OutOfRange("a reserved field of a key slot is not zero"));
        }
        let (memory_kib, passes, lanes) = (fields.u32(), fields.u32(), fields.u32());
        let lock = match (kind, memory_kib, passes, lanes) {
            (kind_code::KEY_FILE, 0, 0, 0) => Lock::KeyFile,
            (kind_code::PASSPHRASE, ..) => Cost::from_stored(memory_kib, passes, lanes)
                .map(Lock::Passphrase)
                .ok_or(OutOfRange("a key slot states a cost that Argon2 cannot run at"))?,
            _ => return Err(OutOfRange("a key slot is of an unknown kind")),
        };
        let salt = fields.take();
        let room: [u8; LABEL_BYTES_MAX] = fields.take();
        let (label, padding) = room
            .split_at_checked(label_bytes)
            .ok_or(OutOfRange("the label of a key slot is too long"))?;
        if padding.iter().any(|byte| *byte != 0) {
            return Err(OutOfRange("the label of a key slot is followed by nonzero bytes"));
        }
        let label = std::str::from_utf8(label)
            .map_err(|_| OutOfRange("the label of a key slot is not UTF-8"))?;
        check_label(label)?;
        Ok(Self { lock, salt, label: label.to_owned() })
    }
}

/// Checks a label. People see labels before they are authenticated.
fn check_label(label: &str) -> Result<(), OutOfRange> {
    if label.len() > LABEL_BYTES_MAX {
        Err(OutOfRange("a label has 32 bytes at most: choose a shorter one"))
    } else if label.chars().any(char::is_control) {
        Err(OutOfRange("a label has no control characters: choose another one"))
    } else {
        Ok(())
    }
}
