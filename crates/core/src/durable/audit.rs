//! Checks of a durable array's whole storage, and recovery from damaged storage.

use super::{Recoverability, Salvage};
use crate::error::Error;

/// Checks of an array that read all of its storage.
pub trait Audit {
    /// Number of buckets that [`check`](Self::check) and [`salvage`](Self::salvage) read: those of
    /// the present state that were ever written, without older versions. Public, because it follows
    /// from the numbers of accesses and evictions. The client counts these, so storage cannot pass
    /// off a written bucket as unwritten.
    fn buckets_written(&self) -> u64;

    /// Reads every written bucket, and checks that it holds the latest write and that no block is
    /// missing. Passes the number of buckets read so far to `progress`. Returns the number of
    /// blocks with contents.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for the first violation,
    /// [`MustReopen`](crate::ErrorKind::MustReopen), and any error of storage.
    fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error>;

    /// Reads every written bucket, and passes each block with an authentic copy to `each`. May pass
    /// a block more than once; a later copy is better. Passes a description of each damaged part to
    /// `damaged`, and the number of buckets read so far to `progress`. Changes nothing.
    ///
    /// # Errors
    /// [`MustReopen`](crate::ErrorKind::MustReopen). Damage is no error.
    fn salvage(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error>;

    /// The recoverability of a block, given the result of [`salvage`](Self::salvage).
    fn recoverability(&self, salvage: &Salvage, address: u64) -> Recoverability {
        salvage.recoverability(address)
    }

    /// Checks that storage is ready for accesses, so that an opening can fail instead of the first
    /// access. Changes nothing.
    ///
    /// # Errors
    /// Any error that the first access would return before it shows storage anything.
    fn check_storage(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Checks for a storage rollback that the records alone would not reveal. Works on storage that
    /// is open read-only. Changes nothing. Ignores other faults of storage.
    ///
    /// # Errors
    /// [`StoreRolledBack`](crate::ErrorKind::StoreRolledBack) if a part of storage was rolled back;
    /// the error names it. [`Unreachable`](crate::StoreErrorKind::Unreachable) if a part that may
    /// have newer records does not answer.
    fn check_not_rolled_back(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
