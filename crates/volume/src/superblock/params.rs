//! The parameters of a volume: chosen at its creation, and never changed.

use std::fmt;

use oblivio_core::durable::DurableConfig;

use crate::error::VolumeError;
use crate::schemes;

/// The parameters of a volume. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeParams {
    /// The number of blocks (N).
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// The name of the scheme.
    pub scheme: SchemeName,
    /// The parameters of the scheme, as it [encodes](DurableConfig::encode) them.
    pub scheme_params: Vec<u8>,
}

impl VolumeParams {
    /// The parameters of a configuration.
    pub fn of(config: &dyn DurableConfig) -> Self {
        Self {
            blocks: config.blocks(),
            block_bytes: config.block_bytes(),
            scheme: SchemeName::new(config.scheme()).expect("schemes have names that fit"),
            scheme_params: config.encode(),
        }
    }

    /// Whether the scheme needs share servers.
    pub(crate) fn is_on_servers(&self) -> bool {
        schemes::find(self.scheme.as_str()).is_some_and(|scheme| scheme.needs_servers())
    }

    /// The configuration of the scheme.
    ///
    /// # Errors
    /// [`VolumeErrorKind::UnknownVersion`](crate::VolumeErrorKind::UnknownVersion) when this
    /// program does not have the scheme,
    /// [`VolumeErrorKind::InvalidConfig`](crate::VolumeErrorKind::InvalidConfig) when no such
    /// volume is possible.
    pub fn config(&self) -> Result<Box<dyn DurableConfig>, VolumeError> {
        let scheme = schemes::of_volume(&self.scheme)?;
        Ok(scheme.decode(self.blocks, self.block_bytes, &self.scheme_params)?)
    }

    /// Bytes of the disk.
    pub fn capacity_bytes(&self) -> u64 {
        self.blocks * u64::from(self.block_bytes)
    }
}

/// Maximum number of bytes of a scheme's name.
pub(super) const NAME_BYTES: usize = 16;

/// The name of a scheme, whether this program has it or not: lower-case letters, digits and `-`.
#[derive(Clone, PartialEq, Eq)]
pub struct SchemeName(String);

impl SchemeName {
    /// The name of a scheme, if `name` is a valid one.
    pub fn new(name: &str) -> Option<Self> {
        let is_of_names = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        let can_be = (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(is_of_names);
        can_be.then(|| Self(name.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn encode(&self) -> [u8; NAME_BYTES] {
        let mut bytes = [0; NAME_BYTES];
        bytes[..self.0.len()].copy_from_slice(self.0.as_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; NAME_BYTES]) -> Option<Self> {
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        let (name, rest) = bytes.split_at(length);
        let is_padded = rest.iter().all(|byte| *byte == 0);
        std::str::from_utf8(name).ok().filter(|_| is_padded).and_then(Self::new)
    }
}

impl fmt::Display for SchemeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SchemeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
