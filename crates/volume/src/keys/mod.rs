//! The keys of a volume: one volume key, wrapped once for each secret that opens it.
//!
//! ```text
//! passphrase ─ Argon2id ─┐
//!                        ├─► key of the slot ─ AES-256-GCM ─► volume key ─ HKDF ─► key per purpose
//! key file ─── HKDF ─────┘
//! ```
//!
//! A volume has up to [`SLOTS_MAX`] slots. Each holds the same [`VolumeKey`], so secrets are added
//! and removed without touching the data. Anyone who once had the volume key keeps it: removing a
//! slot does not revoke old copies of that slot (`docs/format.md` of the repository).
//!
//! The stored bytes of a slot are public and untrusted. A slot is bound to its volume, its number
//! and its description, and the cost that it states is bounded before it is spent.

mod cost;
mod error;
pub(crate) mod fields;
mod secret;
mod slot;
mod table;
mod unlock_limits;
mod volume_key;

pub use cost::Cost;
pub use error::{KeyError, KeyErrorKind};
pub use secret::{
    KEY_FILE_BYTES_MAX, KEY_FILE_BYTES_MIN, PASSPHRASE_BYTES_MAX, Secret, SecretKind,
};
pub use slot::{LABEL_BYTES_MAX, NewSlot};
pub(crate) use slot::{OutOfRange, SLOT_BYTES};
pub(crate) use table::KeySlots;
pub use table::{SLOTS_MAX, SlotInfo};
pub(crate) use unlock_limits::Budget;
pub use unlock_limits::UnlockLimits;
pub use volume_key::VolumeKey;
