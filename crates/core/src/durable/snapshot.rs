//! States of a durable array that survive the client.

use rand_core::CryptoRng;

use crate::error::Error;
use crate::scheme::RollbackProbe;

/// When an era of the seal begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraStart {
    /// At an opening: later writes must differ from writes that a crash lost.
    Opening,
    /// At a checkpoint. A scheme may begin an era only at every n-th, to keep fewer of them.
    Checkpoint,
}

/// The part of a state that is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Save {
    /// The whole state; the reader needs nothing that came before.
    Whole,
    /// What does not follow from the previous saved state and the plans carried out since.
    Changes,
    /// The whole state, padded: number and length of sections do not depend on the blocks. Used if
    /// storage sees how long it takes to save a state.
    WholePadded,
}

/// An array whose state on the client can be saved and restored.
pub trait Snapshot {
    /// Passes the state to `out`, section by section. Number and length of the sections of
    /// [`Save::WholePadded`] follow from the parameters and the numbers of accesses,
    /// [evictions](super::DurableOram::evict), openings and checkpoints alone.
    fn save(&self, what: Save, out: &mut dyn FnMut(&[u8]));

    /// Begins an era of the seal: every later write is sealed under fresh keys.
    fn begin_era(&mut self, start: EraStart, coins: &mut dyn CryptoRng);

    /// The caller has made the last saved state and all of storage durable: the client will not
    /// return to an earlier state.
    fn mark_durable(&mut self);

    /// Looks in storage for the first write after `accesses` more accesses and `evictions` more
    /// [evictions](super::DurableOram::evict). If it is there, this state is older than storage.
    /// Changes nothing.
    ///
    /// # Errors
    /// [`MustReopen`](crate::ErrorKind::MustReopen), and any error of storage.
    fn probe_rollback(&mut self, accesses: u64, evictions: u64) -> Result<RollbackProbe, Error>;

    /// Restores what a section of the latest state says of blocks on the client, after
    /// [`Restore::finish`](super::Restore::finish). The caller passes all sections, in order; a
    /// scheme that keeps no blocks on the client ignores them.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if the client cannot have held this.
    fn restore_client_block(&mut self, _section: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}
