//! What is wanted of an access, in the words of a scheme without ranges and without positions in its trees.

use oblivio_core::Error;
use oblivio_core::durable::Want;

use super::invalid;

/// The address of the block that is wanted; none if the access is for nothing. Secret.
///
/// # Errors
/// [`InvalidRequest`](oblivio_core::ErrorKind::InvalidRequest) for a block that is none of so many, and for what the scheme does not have.
pub(super) fn address_of(want: Want, blocks: u64) -> Result<Option<u64>, Error> {
    match want {
        Want::Block(address) if address < blocks => Ok(Some(address)),
        Want::Nothing => Ok(None),
        Want::Block(_) | Want::Position(_) => Err(invalid("the address is past the end")),
        Want::Range { .. } | Want::NoRange { .. } => Err(invalid("this scheme has no ranges")),
    }
}
