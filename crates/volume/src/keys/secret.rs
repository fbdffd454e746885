//! The secrets that open a volume.

use std::fmt;
use std::ops::RangeInclusive;

use zeroize::Zeroizing;

use super::error::KeyError;

/// Maximum length of a passphrase, in bytes.
pub const PASSPHRASE_BYTES_MAX: usize = 4 << 10;

/// Minimum length of a key file, in bytes. A key file is not stretched, so it should hold 32 random
/// bytes.
pub const KEY_FILE_BYTES_MIN: usize = 32;

/// Maximum length of a key file, in bytes.
pub const KEY_FILE_BYTES_MAX: usize = 8 << 20;

/// A secret of the owner. Wiped from memory when dropped.
#[derive(Clone)]
pub enum Secret {
    /// A secret that a person can remember, and so an attacker may guess: stretched by Argon2id.
    Passphrase(Zeroizing<Vec<u8>>),
    /// The contents of a key file, which no attacker can guess.
    KeyFile(Zeroizing<Vec<u8>>),
}

/// The kind of secret that opens a slot. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SecretKind {
    /// A passphrase, which is stretched.
    Passphrase,
    /// A key file, which is not stretched.
    KeyFile,
}

impl Secret {
    /// A passphrase, which is stretched. All bytes of `text` count, including a line end. The
    /// command line accepts only a single line, without its end, so that the owner can type it in a
    /// terminal again (`docs/formats/keys.md`). This copy is wiped when dropped.
    pub fn passphrase(text: &str) -> Self {
        Self::Passphrase(Zeroizing::new(text.as_bytes().to_vec()))
    }

    /// The contents of a key file: at least 32 bytes that no attacker can guess. They are not
    /// stretched.
    pub fn key_file(bytes: &[u8]) -> Self {
        Self::KeyFile(Zeroizing::new(bytes.to_vec()))
    }

    /// The kind of the secret.
    pub fn kind(&self) -> SecretKind {
        match self {
            Self::Passphrase(_) => SecretKind::Passphrase,
            Self::KeyFile(_) => SecretKind::KeyFile,
        }
    }

    /// Checks that the secret has a permitted length.
    pub(crate) fn check(&self) -> Result<(), KeyError> {
        match self {
            Self::Passphrase(bytes) => {
                check_length("a passphrase", bytes.len(), 1..=PASSPHRASE_BYTES_MAX)
            }
            Self::KeyFile(bytes) => {
                check_length("a key file", bytes.len(), KEY_FILE_BYTES_MIN..=KEY_FILE_BYTES_MAX)
            }
        }
    }
}

fn check_length(what: &str, bytes: usize, range: RangeInclusive<usize>) -> Result<(), KeyError> {
    if range.contains(&bytes) {
        Ok(())
    } else {
        let (min, max) = (range.start(), range.end());
        Err(KeyError::invalid(format!("{what} must have {min} to {max} bytes: use another")))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(secret)")
    }
}
