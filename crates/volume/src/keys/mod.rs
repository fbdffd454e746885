//! Who may open a volume: one volume key, wrapped once for each secret that opens it.
//!
//! ```text
//! passphrase ─ Argon2id ─┐
//!                        ├─► key of the slot ─ AES-256-GCM ─► volume key ─ HKDF ─► one key a purpose
//! key file ─── HKDF ─────┘
//! ```
//!
//! A volume has up to [`SLOTS_MAX`] slots. Each holds the same [`VolumeKey`], so a secret is added or
//! removed without touching the data. Whoever has once had the volume key has it for good: removing
//! a slot takes nothing back from those who kept an old copy of it (`docs/format.md` of the repository).
//!
//! What is stored of a slot is public and not trusted: a slot is bound to its volume, its number and
//! all that is said about it, and what it asks for is bounded before it is done.

mod attempt;
mod cost;
mod error;
pub(crate) mod fields;
mod secret;
mod slot;
mod table;
mod volume_key;

pub use attempt::Attempt;
pub(crate) use attempt::Budget;
pub use cost::Cost;
pub use error::{KeyError, KeyErrorKind};
pub use secret::{
    KEY_FILE_BYTES_MAX, KEY_FILE_BYTES_MIN, PASSPHRASE_BYTES_MAX, Secret, SecretKind,
};
pub use slot::{LABEL_BYTES_MAX, NewSlot};
pub(crate) use slot::{OutOfRange, SLOT_BYTES};
pub(crate) use table::KeySlots;
pub use table::{SLOTS_MAX, SlotInfo};
pub use volume_key::VolumeKey;
