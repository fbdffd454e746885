//! States of a durable array that survive the client.

use rand_core::CryptoRng;

use crate::error::Error;
use crate::scheme::RollbackProbe;

/// The event at which an era of the seal begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraStart {
    /// The era begins at an opening: later writes must differ from writes that a crash lost.
    Opening,
    /// The era begins at a checkpoint. A scheme may begin eras at only every n-th checkpoint, to
    /// keep fewer of them.
    Checkpoint,
}

/// The part of a state that is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Save {
    /// The whole state. To restore it, no earlier record is needed.
    Whole,
    /// The part of the state that does not follow from the previous saved state and the plans
    /// carried out since.
    Changes,
    /// The whole state, padded: the number of sections and their lengths do not depend on the
    /// blocks. Used if storage sees how long saving a state takes.
    WholePadded,
}

/// An array whose state on the client can be saved and restored.
pub trait Snapshot {
    /// Passes the state to `out`, section by section. With [`Save::WholePadded`], the number of
    /// sections and their lengths depend only on the parameters and the numbers of accesses,
    /// [evictions](super::DurableOram::evict), openings and checkpoints.
    fn save(&self, what: Save, out: &mut dyn FnMut(&[u8]));

    /// Begins an era of the seal: every later write is sealed under fresh keys. At a
    /// [`Checkpoint`](EraStart::Checkpoint), the scheme may keep the current era instead.
    fn begin_era(&mut self, start: EraStart, coins: &mut dyn CryptoRng);

    /// Records that the caller has made the last saved state and all of storage durable. The client
    /// will not return to an earlier state.
    fn mark_durable(&mut self);

    /// Looks in storage for the first write after `accesses` more accesses and `evictions` more
    /// [evictions](super::DurableOram::evict). If that write is there, this state is older than
    /// storage. Changes nothing.
    ///
    /// # Errors
    /// [`MustReopen`](crate::ErrorKind::MustReopen), and any error of storage.
    fn probe_rollback(&mut self, accesses: u64, evictions: u64) -> Result<RollbackProbe, Error>;

    /// Restores the blocks on the client that a section of the latest state contains, after
    /// [`Restore::finish`](super::Restore::finish). The caller passes all sections, in order. A
    /// scheme that keeps no blocks on the client ignores them.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if the client cannot have held these
    /// blocks.
    fn restore_client_block(&mut self, _section: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}
