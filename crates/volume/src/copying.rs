//! Copies a volume from one store to another without opening it. This needs no key and no client's
//! directory.
//!
//! | step | what is done | what the destination then holds |
//! |---|---|---|
//! | [`CopyStep::Moving`] | buckets are copied and made durable | no volume |
//! | [`CopyStep::ReadingBack`] | both sides are read and compared | no volume |
//! | [`CopyStep::Finishing`] | anchors and superblocks are copied and compared | a volume |
//!
//! `Moving` copies all buckets except those of [superblocks](crate::superblock) and anchors, byte
//! by byte.
//!
//! A copy that is resumed at [`CopyStep::Finishing`] or when it is complete is compared again from
//! the start if [`CopyOptions::reads_back`] is set: it may have been damaged since.
//!
//! Until the last step, a copy has no superblock, so no program takes it for a volume. Its state is
//! saved as a [`Progress`], which claims only what is durable. An interrupted copy resumes there.
//! Repeated work writes the same bytes, as long as the volume has not changed;
//! [`VolumeFingerprint`] detects a change.
//!
//! Buckets that were never written are skipped. The copy reads tree by tree and level by level, in
//! an order that depends on the shapes alone. Storage learns only which buckets were ever written,
//! which it knows already.
//!
//! Copying authenticates no bucket. Opening the copy detects changes, as with any storage.

mod order;
mod progress;
mod source;

use std::io;

use oblivio_core::StoreError;
use oblivio_core::store::{
    BucketRange, BucketStore, Piece, SealedCopy, TreeId, TreeShape, shapes_of,
};

use self::order::{BucketOrder, count};
pub use self::progress::{CopyStep, PROGRESS_BYTES, Progress, ProgressError};
pub use self::source::VolumeFingerprint;
use self::source::{FINAL_TREES, bucket_ranges};
use crate::anchor;
use crate::superblock::{LockedSuperblock, SuperblockError, SuperblockErrorKind};
use crate::unlock;

/// Options of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyOptions {
    /// Whether to read everything back and compare it.
    pub reads_back: bool,
    /// Number of bytes to read before the progress is saved again.
    pub keep_each_bytes: u64,
}

impl Default for CopyOptions {
    /// Reads everything back. Saves the progress often enough that a crash costs only seconds of
    /// repeated work on a disk.
    fn default() -> Self {
        Self { reads_back: true, keep_each_bytes: 256 << 20 }
    }
}

/// Follows a running copy: saves its progress, and can stop it.
pub trait CopyWatch {
    /// Saves `progress` durably. Everything that it claims is already durable in the destination.
    ///
    /// # Errors
    /// When it cannot be saved. The copy ends then.
    fn keep(&mut self, progress: &Progress) -> io::Result<()>;

    /// Called after each trip with the progress so far. `of` is the number of buckets that each
    /// step processes. Returns whether the copy should continue.
    fn should_continue(&mut self, progress: &Progress, of: u64) -> bool;
}

/// Counts of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Number of buckets of the volume.
    pub buckets: u64,
    /// Buckets written to the destination since the copy was last begun or resumed.
    pub buckets_written: u64,
    /// Bytes of the written buckets.
    pub bytes_written: u64,
    /// Buckets read from both sides and compared since the copy was last begun or resumed.
    pub buckets_compared: u64,
}

/// The public superblock of the volume to copy. Not authenticated.
///
/// # Errors
/// When the store fails, holds no volume, or has no room for anchors.
pub fn read_superblock(from: &mut dyn BucketStore) -> Result<LockedSuperblock, SuperblockError> {
    let superblock = unlock::read_public(&mut &mut *from)?;
    // The shape decides how much the next steps read at once.
    if from.shape(anchor::TREE) != Some(&anchor::shape()) {
        let message = "storage has no room for anchors: it was made for something else";
        return Err(SuperblockError::new(SuperblockErrorKind::Store, message));
    }
    Ok(superblock)
}

/// Copies a volume, or resumes a copy. `to` is a new store with the same shapes, or the destination
/// of the copy that `progress` belongs to.
///
/// # Errors
/// [`CopyError`]. The copy can be resumed from the last saved progress if a store failed, the
/// progress could not be saved, or `watch` ended the copy.
pub fn copy(
    from: &mut dyn BucketStore,
    to: &mut dyn BucketStore,
    progress: Progress,
    options: CopyOptions,
    watch: &mut dyn CopyWatch,
) -> Result<Copied, CopyError> {
    read_superblock(from).map_err(CopyError::NoVolume)?;
    let shapes = shapes_of(from);
    if shapes_of(to) != shapes {
        return Err(CopyError::OtherShapes);
    }
    let trees = (0..).map(TreeId).zip(&shapes).filter(|(tree, _)| !FINAL_TREES.contains(tree));
    let order = BucketOrder::new(trees).ok_or(CopyError::OtherShapes)?;
    if progress.buckets > order.buckets() {
        return Err(CopyError::OtherShapes);
    }
    let final_buckets = FINAL_TREES.iter().filter_map(|tree| shapes.get(usize::from(tree.0)));
    let final_buckets: u64 =
        final_buckets.flat_map(TreeShape::levels).map(|level| level.buckets).sum();
    let buckets = order.buckets() + final_buckets;
    let copied = Copied { buckets, buckets_written: 0, bytes_written: 0, buckets_compared: 0 };
    let moved = SealedCopy::default();
    Copying { from, to, order, progress, options, watch, moved, copied, since_kept: 0 }.run()
}

struct Copying<'c> {
    from: &'c mut dyn BucketStore,
    to: &'c mut dyn BucketStore,
    order: BucketOrder,
    progress: Progress,
    options: CopyOptions,
    watch: &'c mut dyn CopyWatch,
    /// The sealed buckets that the latest trip read.
    moved: SealedCopy,
    copied: Copied,
    /// Bytes read since the progress was last saved.
    since_kept: u64,
}

impl Copying<'_> {
    fn run(mut self) -> Result<Copied, CopyError> {
        self.check_source()?;
        if self.progress.step == CopyStep::Moving {
            self.check_final_trees(|now, _| now.iter().all(|byte| *byte == 0))?;
            self.each_trip(Self::move_trip)?;
            self.begin_step(CopyStep::ReadingBack)?;
        } else if self.progress.step == CopyStep::Finishing && self.options.reads_back {
            // The progress does not say whether an earlier run compared anything.
            self.begin_step(CopyStep::ReadingBack)?;
        }
        if self.progress.step == CopyStep::ReadingBack {
            self.check_final_trees_are_ours()?;
            if self.options.reads_back {
                self.each_trip(Self::compare_trip)?;
            }
            self.begin_step(CopyStep::Finishing)?;
        }
        self.finish()?;
        Ok(self.copied)
    }

    /// Reads the remaining trips of the current step from the source, and runs `act` on each of
    /// them. Saves the progress from time to time.
    fn each_trip(
        &mut self,
        act: impl Fn(&mut Self, &BucketRange) -> Result<(), CopyError>,
    ) -> Result<(), CopyError> {
        while let Some(trip) = self.order.trip(self.progress.buckets) {
            let end = self.progress.buckets + count(&trip.buckets);
            self.announce(end);
            self.read(&trip)?;
            act(self, &trip)?;
            self.progress.buckets = end;
            let should_continue = self.watch.should_continue(&self.progress, self.order.buckets());
            if !should_continue || self.since_kept >= self.options.keep_each_bytes {
                self.keep()?;
            }
            if !should_continue {
                return Err(CopyError::Interrupted);
            }
        }
        Ok(())
    }

    /// Announces the reads of the trip that starts at bucket `at`.
    fn announce(&mut self, at: u64) {
        let Some(next) = self.order.trip(at) else { return };
        let pieces: Vec<_> = next.pieces().collect();
        self.from.prefetch(&pieces);
        if self.progress.step == CopyStep::ReadingBack {
            self.to.prefetch(&pieces);
        }
    }

    fn read(&mut self, range: &BucketRange) -> Result<(), CopyError> {
        self.moved.read(self.from, range).map_err(CopyError::Source)?;
        self.since_kept += self.moved.bytes();
        Ok(())
    }

    fn move_trip(&mut self, _: &BucketRange) -> Result<(), CopyError> {
        let written = self.moved.write(self.to).map_err(CopyError::Destination)?;
        self.copied.buckets_written += written.buckets;
        self.copied.bytes_written += written.bytes;
        Ok(())
    }

    fn compare_trip(&mut self, range: &BucketRange) -> Result<(), CopyError> {
        match self.moved.first_difference(self.to).map_err(CopyError::Destination)? {
            None => {
                self.copied.buckets_compared += count(&range.buckets);
                Ok(())
            }
            Some(piece) => {
                self.check_source()?;
                Err(CopyError::Different(piece))
            }
        }
    }

    fn begin_step(&mut self, step: CopyStep) -> Result<(), CopyError> {
        self.to.flush().map_err(CopyError::Destination)?;
        self.progress = Progress { step, buckets: 0, ..self.progress };
        self.keep()
    }

    /// Makes the copied buckets durable, then saves the progress.
    fn keep(&mut self) -> Result<(), CopyError> {
        if self.progress.step == CopyStep::Moving {
            self.to.flush().map_err(CopyError::Destination)?;
        }
        self.since_kept = 0;
        self.watch.keep(&self.progress).map_err(CopyError::Progress)
    }

    /// Copies anchors and superblocks, which make the destination a volume.
    fn finish(&mut self) -> Result<(), CopyError> {
        self.check_source()?;
        self.check_final_trees_are_ours()?;
        for tree in FINAL_TREES {
            for range in bucket_ranges(self.from, tree) {
                self.read(&range)?;
                self.move_trip(&range)?;
                self.to.flush().map_err(CopyError::Destination)?;
                if self.options.reads_back {
                    self.compare_trip(&range)?;
                }
            }
        }
        Ok(())
    }

    /// Checks that the destination's anchors and superblocks are zeros or the source's bytes: an
    /// earlier run may have reached [`CopyStep::Finishing`] and left torn records. If the copy was
    /// opened since, its anchor has another name and MAC, which differ from the source's.
    fn check_final_trees_are_ours(&mut self) -> Result<(), CopyError> {
        self.check_final_trees(|now, then| {
            let is_ours = |(now, then): (&u8, &u8)| *now == 0 || now == then;
            now.len() == then.len() && now.iter().zip(then).all(is_ours)
        })
    }

    /// Checks each anchor and superblock bucket of the destination: `is` gets its current bytes and
    /// the source's bytes, and returns whether the current ones are acceptable.
    fn check_final_trees(&mut self, is: impl Fn(&[u8], &[u8]) -> bool) -> Result<(), CopyError> {
        let mut there = SealedCopy::default();
        for tree in FINAL_TREES {
            for range in bucket_ranges(self.from, tree) {
                self.read(&range)?;
                there.read(self.to, &range).map_err(CopyError::Destination)?;
                let (then, now) = (self.moved.frames(), there.frames());
                if !(0..now.len()).all(|i| is(now.get(i), then.get(i))) {
                    return Err(CopyError::InUse);
                }
            }
        }
        Ok(())
    }

    fn check_source(&mut self) -> Result<(), CopyError> {
        let source = VolumeFingerprint::compute(self.from).map_err(CopyError::Source)?;
        if source == self.progress.source { Ok(()) } else { Err(CopyError::Changed) }
    }
}

/// The reason why a copy ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The source holds no volume.
    #[error("there is no volume to copy: {0}")]
    NoVolume(#[source] SuperblockError),
    /// The source store failed.
    #[error("the source of the copy failed: {0}")]
    Source(#[source] StoreError),
    /// The destination store failed.
    #[error("the destination of the copy failed: {0}")]
    Destination(#[source] StoreError),
    /// The progress could not be saved.
    #[error("cannot save the progress of the copy: {0}")]
    Progress(#[source] io::Error),
    /// The trees of the destination do not have the shapes of the source's, the progress counts
    /// more buckets than the source has, or the number of buckets overflows.
    #[error("the destination is not the one of this copy: name the two stores it was begun with")]
    OtherShapes,
    /// The volume was opened, or its keys were changed, since its copy was begun.
    #[error(
        "the volume has been opened since its copy was begun, so the copy would mix two \
         states: remove what was copied, and begin again"
    )]
    Changed,
    /// The destination already holds a volume: a finished copy that has been opened since, or
    /// another volume.
    #[error(
        "the destination holds a volume that differs from the source: the copy was finished and \
         has been opened, or it is another volume. Choose another destination"
    )]
    InUse,
    /// A bucket that differs between source and destination.
    #[error(
        "bucket {} of tree {} is not the same at both places: one of them does not hold what \
         was written. Remove the copy and begin again, on other media if it happens again",
        .0.bucket,
        .0.tree.0
    )]
    Different(Piece),
    /// The copy was ended by [`CopyWatch::should_continue`], and can be resumed.
    #[error("the copy was stopped before it was complete: resume it")]
    Interrupted,
}
