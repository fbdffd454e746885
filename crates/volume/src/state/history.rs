//! Reads the records of a state file: the state at the last checkpoint, and the records after it.

use oblivio_core::MasterKey;
use oblivio_core::durable::{AnyStore, Durable, DurableConfig, Restore};
use oblivio_core::scheme::RollbackProbe;

use super::file::{Position, StateReader, damaged};
use super::record::{Head, Record};
use crate::error::{VolumeError, VolumeErrorKind};
use crate::volume::trees;

/// The contents of a state file, except for large parts: states and pending records are read when
/// they are needed.
pub(crate) struct History {
    pub(crate) head: Head,
    /// The start of the file's first record.
    first: Position,
    /// The start and end of the last complete state.
    state: (Position, Position),
    /// The records after the last complete state.
    pub(crate) pending: PendingRecords,
    /// Bytes at the end of the file that cannot be opened.
    pub(crate) bytes_ignored: u64,
    reader: StateReader,
}

/// Counts of the records to replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingRecords {
    pub(crate) records: u64,
    pub(crate) accesses: u64,
    /// Number of evictions ahead of schedule.
    pub(crate) evictions: u64,
}

impl PendingRecords {
    pub(crate) fn is_any(&self) -> bool {
        self.records > 0
    }

    fn add(&mut self, record: &Record) {
        self.records += 1;
        match record {
            Record::Accesses(logged) => self.accesses += logged.plan.accesses() as u64,
            Record::Evict => self.evictions += 1,
            _ => (),
        }
    }
}

impl History {
    /// Reads a whole file of a volume once.
    pub(crate) fn read(mut reader: StateReader) -> Result<Self, VolumeError> {
        let first = reader.position();
        let FileOutline { complete, pending, .. } = FileOutline::read(&mut reader)?;
        let bytes_ignored = reader.bytes_ignored()?;
        let (head, state) =
            complete.ok_or_else(|| damaged("the client's state has no complete snapshot"))?;
        Ok(Self { head, first, state, pending, bytes_ignored, reader })
    }

    /// The array as it was at the last checkpoint. Reads nothing from `store`.
    pub(crate) fn array(
        &mut self,
        config: &dyn DurableConfig,
        seal_key: MasterKey,
        store: AnyStore,
    ) -> Result<Box<dyn Durable>, VolumeError> {
        let restored = self.restore(config)?;
        let trees = trees(config.shapes()?.len());
        let mut array = restored.finish(seal_key, &trees, store).map_err(damaged_state)?;
        self.each_section(|section| array.restore_client_block(section).map_err(damaged_state))?;
        Ok(array)
    }

    /// The state at the last checkpoint, without the blocks on the client.
    pub(super) fn restore(
        &mut self,
        config: &dyn DurableConfig,
    ) -> Result<Box<dyn Restore>, VolumeError> {
        let mut restore = config.restore()?;
        self.reader.go_to(self.first);
        while self.reader.position() < self.state.1
            && let Some(record) = self.reader.next()?
        {
            match record {
                Record::Head(_) => restore.begin_state(),
                Record::Section(section) => restore.section(&section),
                Record::Accesses(logged) => {
                    let is_written: Vec<_> = logged.writes.iter().map(Option::is_some).collect();
                    restore.replay(&logged.plan, &is_written)
                }
                Record::Forget { start, end } => restore.replay_forget(start..end),
                Record::End | Record::Evict | Record::InPlace { .. } | Record::Padding { .. } => {
                    Ok(())
                }
            }
            .map_err(damaged_state)?;
        }
        Ok(restore)
    }

    /// Whether storage has seen an access that this history does not have. Always
    /// [`RollbackProbe::NotYet`] if storage may still show moves that the client has lost. `array`
    /// is in the state of the last checkpoint. Changes nothing.
    pub(crate) fn probe_rollback(
        &self,
        array: &mut dyn Durable,
    ) -> Result<RollbackProbe, VolumeError> {
        // In an honest history storage sees no access before the directory holds it, unless moves
        // are synced late. Traces of lost moves stay in storage until they are overwritten.
        if self.head.may_lose_moves {
            return Ok(RollbackProbe::NotYet);
        }
        let PendingRecords { accesses, evictions, .. } = self.pending;
        Ok(array.probe_rollback(accesses, evictions)?)
    }

    /// Refuses to continue from this history if storage has seen accesses that are not in it.
    /// Without `after_tampering`, also refuses if that cannot be determined.
    pub(crate) fn refuse_if_behind(
        &self,
        array: &mut dyn Durable,
        after_tampering: bool,
    ) -> Result<(), VolumeError> {
        match self.probe_rollback(array)? {
            RollbackProbe::Seen => Err(VolumeError::new(
                VolumeErrorKind::StateRolledBack,
                "storage has seen accesses that the client's directory does not know of: it was \
                 restored from a copy made before them, or its end is damaged. Use the latest \
                 directory; `oblivio rescue` saves the blocks that this one knows",
            )),
            RollbackProbe::Unclear if !after_tampering => Err(VolumeError::new(
                VolumeErrorKind::Tampered,
                "storage is damaged where it would show whether the client's directory is the \
                 latest. Restore the store; or, if you know that the directory is the latest, open \
                 the volume with `after_tampering`",
            )),
            RollbackProbe::Unclear | RollbackProbe::NotYet => Ok(()),
        }
    }

    /// Calls `each` with the sections of the last complete state.
    pub(super) fn each_section(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        self.reader.go_to(self.state.0);
        while self.reader.position() < self.state.1
            && let Some(record) = self.reader.next()?
        {
            if let Record::Section(section) = record {
                each(&section)?;
            }
        }
        Ok(())
    }

    /// Calls `each` with each record after the last complete state, except padding. Stops at an
    /// incomplete state.
    pub(crate) fn each_pending(
        &mut self,
        mut each: impl FnMut(Record) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        self.reader.go_to(self.state.1);
        while let Some(record) = self.reader.next()? {
            match record {
                // An incomplete state: nothing comes after it.
                Record::Head(_) => return Ok(()),
                Record::Padding { .. } => (),
                record => {
                    each(record)?;
                }
            }
        }
        Ok(())
    }
}

/// The last complete state in a file, and counts of the records after it. Building the outline
/// checks the order of records.
struct FileOutline {
    /// The last complete state.
    complete: Option<(Head, (Position, Position))>,
    /// The start of a state whose end is missing.
    incomplete: Option<(Head, Position)>,
    pending: PendingRecords,
}

impl FileOutline {
    fn read(reader: &mut StateReader) -> Result<Self, VolumeError> {
        let mut outline =
            Self { complete: None, incomplete: None, pending: PendingRecords::default() };
        loop {
            let start = reader.position();
            let Some(record) = reader.next()? else {
                return Ok(outline);
            };
            let Self { complete, incomplete, pending } = &mut outline;
            match (record, incomplete.is_some(), complete.is_some()) {
                (Record::Head(head), false, _) => *incomplete = Some((head, start)),
                (Record::Section(_), true, _) => (),
                (Record::End, true, _) => {
                    *complete =
                        incomplete.take().map(|(head, start)| (head, (start, reader.position())));
                    *pending = PendingRecords::default();
                }
                (Record::Padding { .. }, false, true) => (),
                (
                    record @ (Record::Accesses(_)
                    | Record::Forget { .. }
                    | Record::Evict
                    | Record::InPlace { .. }),
                    false,
                    true,
                ) => pending.add(&record),
                _ => return Err(damaged("the client's state holds a record out of place")),
            }
        }
    }
}

/// Maps the scheme's rejection of a saved state to the error for a damaged state.
fn damaged_state(error: oblivio_core::Error) -> VolumeError {
    match error.kind() {
        oblivio_core::ErrorKind::InvalidRequest => damaged(&format!("the client's state: {error}")),
        _ => error.into(),
    }
}

/// The error for a record with a block past the end of the volume.
pub(crate) fn out_of_bounds() -> VolumeError {
    damaged("the client's state names a block that does not exist")
}
