//! Default parameters of a new disk.

use oblivio_store::StoreKind;
use oblivio_volume::ArrayRequirements;
use oblivio_volume::schemes::{self, SCHEMES};

/// Bytes of a block on share servers. Blocks are large because each access also sends a select
/// vector, whose length does not depend on the size of a block.
const BLOCK_BYTES_OF_SHARES: u32 = 128 << 10;

/// The defaults of a disk of `bytes` bytes on storage of this kind, with the scheme for that kind.
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
