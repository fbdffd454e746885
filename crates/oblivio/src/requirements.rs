//! What a new disk is like unless its owner says otherwise.

use oblivio_store::StoreKind;
use oblivio_volume::ArrayRequirements;
use oblivio_volume::schemes::{self, SCHEMES};

/// Bytes of a block on share servers: each access moves a select vector as well, which is as long for a small one.
const BLOCK_BYTES_OF_SHARES: u32 = 128 << 10;

/// A disk of so many bytes on storage of this kind, with the scheme that stands on it.
pub fn requirements(bytes: u64, kind: StoreKind) -> ArrayRequirements {
    let StoreKind::Shares { servers, colluding } = kind else {
        return schemes::requirements(bytes);
    };
    let scheme = SCHEMES.iter().find(|scheme| scheme.needs_servers());
    let scheme = scheme.copied().unwrap_or(schemes::default());
    let count = |count: usize| u8::try_from(count).ok();
    ArrayRequirements {
        block_bytes: BLOCK_BYTES_OF_SHARES,
        servers: count(servers),
        colluding: count(colluding),
        ..ArrayRequirements::new(bytes, scheme.name())
    }
}
