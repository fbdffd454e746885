//! Windows of accesses: makes room, plans them, logs the plan, and then accesses the paths.

use oblivio_core::durable::{Headroom, Want};
use oblivio_core::{Access, HitPolicy, Op};

use super::{SyncMoves, Volume};
use crate::error::{VolumeError, VolumeErrorKind};
use crate::ledger::IsClean;
use crate::state::record::{self, Record};

/// A volume makes as many evictions in a row as it has blocks, but at least this number, before it
/// reports that evictions do not help.
const EVICTIONS_IN_A_ROW_MIN: u64 = 1024;

/// The error for blocks left on the client that evictions of all paths could not place. Data that
/// was written is not lost.
fn no_room() -> VolumeError {
    let message = "the stash is full: evictions of all paths have found no room in the trees, \
                   because buckets are too small for the accesses between evictions. Copy the data \
                   to a volume with more slots (`oblivio rescue` reads it)";
    VolumeError::new(VolumeErrorKind::InvalidConfig, message)
}

impl Volume {
    /// Makes room to begin accesses. Returns the number of accesses, up to `wanted`, that can
    /// begin.
    pub(super) fn make_room(&mut self, wanted: usize) -> Result<usize, VolumeError> {
        self.make_room_of(1, wanted)
    }

    /// Makes room to begin `accesses` accesses together.
    pub(super) fn make_room_for(&mut self, accesses: usize) -> Result<(), VolumeError> {
        self.make_room_of(accesses, accesses).map(drop)
    }

    fn make_room_of(&mut self, least: usize, wanted: usize) -> Result<usize, VolumeError> {
        let least = least as u64;
        // This number of evictions covers each path at least once.
        let mut evictions_left = self.facts.blocks.max(EVICTIONS_IN_A_ROW_MIN);
        loop {
            let Headroom { accesses, evictions, must_evict } = self.live.array.headroom()?;
            let must_evict = must_evict || self.owes_eviction;
            if accesses < least || must_evict && evictions == 0 {
                self.checkpoint()?;
            }
            if must_evict {
                evictions_left = evictions_left.checked_sub(1).ok_or_else(no_room)?;
                self.ledger.before_accesses(&mut self.live)?;
                self.ledger.log.append(|out| Record::Evict.put(out))?;
                self.sync_moves()?;
                self.live.array.evict()?;
                self.insight.stash_is(self.live.array.stash_fill());
                self.owes_eviction = false;
            } else if accesses >= least {
                let fitting = wanted.min(self.facts.window_accesses_max);
                return Ok(fitting.min(usize::try_from(accesses).unwrap_or(usize::MAX)));
            }
        }
    }

    pub(super) fn access_window(&mut self, window: &mut [Access<'_>]) -> Result<(), VolumeError> {
        let wanted: Vec<_> = window.iter().map(|request| Want::Block(request.address)).collect();
        let mut ops: Vec<_> = window.iter_mut().map(|request| request.op.reborrow()).collect();
        self.carry_out(&wanted, &mut ops)
    }

    /// Accesses blocks of the position map, so that the blocks they map can be accessed.
    pub(super) fn fetch(&mut self, needed: &[u64]) -> Result<(), VolumeError> {
        let wanted: Vec<_> = needed.iter().copied().map(Want::Position).collect();
        self.carry_out(&wanted, &mut ignored_ops(wanted.len()))
    }

    /// Serves a request without an access, if the client finds its block by its address and the
    /// options allow it. Logs only the data of a write.
    pub(super) fn serve_on_client(
        &mut self,
        request: &mut Access<'_>,
    ) -> Result<bool, VolumeError> {
        if !self.finds_on_client(request.address)? {
            return Ok(false);
        }
        if let Op::Write(data) = &request.op {
            let address = request.address;
            self.ledger.log.append(|out| record::put_in_place(out, address, data))?;
        }
        Ok(self.live.array.serve_on_client(request.address, &mut request.op)?)
    }

    pub(super) fn finds_on_client(&mut self, address: u64) -> Result<bool, VolumeError> {
        match self.options.hits {
            HitPolicy::Access => Ok(false),
            HitPolicy::Serve => {
                Ok(self.live.array.serve_on_client(address, &mut Op::Update(&mut |_| ()))?)
            }
        }
    }

    /// Plans accesses, logs them, and makes them.
    pub(super) fn carry_out(
        &mut self,
        wanted: &[Want],
        ops: &mut [Op<'_>],
    ) -> Result<(), VolumeError> {
        let plan = self.live.array.plan(wanted, &[], &mut self.live.coins)?;
        self.ledger.before_accesses(&mut self.live)?;
        let writes = ops.iter().map(|op| match op {
            Op::Write(data) if !data.is_empty() => Some(*data),
            _ => None,
        });
        self.ledger.log_accesses(&plan, writes)?;
        self.sync_moves()?;
        self.live.array.carry_out(&plan, ops)?;
        self.insight.accessed(wanted);
        self.insight.stash_is(self.live.array.stash_fill());
        Ok(())
    }

    /// Makes the log durable before storage sees the accesses, if the options require it.
    fn sync_moves(&mut self) -> Result<(), VolumeError> {
        match self.options.sync_moves {
            SyncMoves::BeforeReads => Ok(self.ledger.log.sync()?),
            SyncMoves::AtFlush => Ok(()),
        }
    }

    pub(super) fn checkpoint(&mut self) -> Result<(), VolumeError> {
        self.ledger.checkpoint(&mut self.live, IsClean(false), self.options.state_file_bytes_max)
    }
}

/// Operations for accesses that are dummies or to blocks of the position map, which ignore them.
pub(super) fn ignored_ops<'a>(accesses: usize) -> Vec<Op<'a>> {
    (0..accesses).map(|_| Op::Write(&[])).collect()
}
