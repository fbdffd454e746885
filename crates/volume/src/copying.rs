//! A volume moved from one store to another without being opened: no key, and no client's directory, is needed.
//!
//! | step | what is done | what is in the new place |
//! |---|---|---|
//! | [`Step::Moving`] | all buckets but those of [superblocks](crate::superblock) and anchors are written there, as they are, and made durable | no volume |
//! | [`Step::ReadingBack`] | all are read at both places and compared | as before this step |
//! | [`Step::Closing`] | anchors and superblocks are written, made durable and compared | from here on, a volume |
//!
//! A copy that is resumed at [`Step::Closing`], or when it is whole, is compared again from the
//! beginning if [`CopyOptions::reads_back`] is set: it may have been damaged since.
//!
//! So what is not wholly copied has no superblock, and nothing takes it for a volume. What has been done is kept as a
//! [`Progress`], which never says more than what is durable; a copy that ended anywhere goes on from there. What it does
//! again is the same as before, because the volume is the same: [`Source`] tells if it is not.
//!
//! Buckets that were never written are not written there either. Trips go through trees and levels in one order, which
//! follows from shapes: storage sees nothing in it but which buckets were ever written, which it knows.
//!
//! Nothing vouches for what is copied. Whoever opens the copy finds out what was changed, as with any storage.

mod order;
mod progress;
mod source;

use std::io;

use oblivio_core::StoreError;
use oblivio_core::store::{BucketStore, Moved, Piece, Stretch, TreeId, TreeShape, shapes_of};

use self::order::{Order, count};
pub use self::progress::{PROGRESS_BYTES, Progress, ProgressError, Step};
pub use self::source::Source;
use self::source::{CLOSING_TREES, stretches};
use crate::anchor;
use crate::superblock::{LockedSuperblock, SuperblockError, SuperblockErrorKind};
use crate::unlock;

/// How a volume is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyOptions {
    /// Read everything back and compare it.
    pub reads_back: bool,
    /// The progress is kept each time when so many bytes were looked at.
    pub keep_each_bytes: u64,
}

impl Default for CopyOptions {
    /// Reads back. Some seconds' work of a disk are done again after a crash.
    fn default() -> Self {
        Self { reads_back: true, keep_each_bytes: 256 << 20 }
    }
}

/// What a copy tells of itself while it runs.
pub trait CopyWatch {
    /// Keeps this progress, durably. All that it says is durable at the new place.
    ///
    /// # Errors
    /// When it cannot be kept. The copy ends then.
    fn keep(&mut self, progress: &Progress) -> io::Result<()>;

    /// A trip was made, and this is how far it has come, of so many buckets for each step. Whether it shall go on.
    fn goes_on(&mut self, progress: &Progress, of: u64) -> bool;
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Buckets that the volume has.
    pub buckets: u64,
    /// Those that were written at the new place by now, since the copy was last begun or resumed.
    pub buckets_written: u64,
    /// The bytes of those.
    pub bytes_written: u64,
    /// Buckets that were read at both places and compared, since the copy was last begun or
    /// resumed.
    pub buckets_compared: u64,
}

/// What anyone can see of the volume that would be copied. Nothing vouches for it.
///
/// # Errors
/// When the store holds none.
pub fn look(from: &mut dyn BucketStore) -> Result<LockedSuperblock, SuperblockError> {
    let superblock = unlock::look(&mut &mut *from)?;
    // Of what follows, as much is asked for at once as this says.
    if from.shape(anchor::TREE) != Some(&anchor::shape()) {
        let message = "storage has no room for anchors: it was made for something else";
        return Err(SuperblockError::new(SuperblockErrorKind::Store, message));
    }
    Ok(superblock)
}

/// Copies a volume, or goes on with a copy. `to` is a new store with the same shapes, or the one that was begun with this
/// progress.
///
/// # Errors
/// [`CopyError`]. It can be resumed with the progress that was kept last.
pub fn copy(
    from: &mut dyn BucketStore,
    to: &mut dyn BucketStore,
    progress: Progress,
    options: CopyOptions,
    watch: &mut dyn CopyWatch,
) -> Result<Copied, CopyError> {
    look(from).map_err(CopyError::NoVolume)?;
    let shapes = shapes_of(from);
    if shapes_of(to) != shapes {
        return Err(CopyError::OtherShapes);
    }
    let trees = (0..).map(TreeId).zip(&shapes).filter(|(tree, _)| !CLOSING_TREES.contains(tree));
    let order = Order::new(trees).ok_or(CopyError::OtherShapes)?;
    if progress.buckets > order.buckets() {
        return Err(CopyError::OtherShapes);
    }
    let closing = CLOSING_TREES.iter().filter_map(|tree| shapes.get(usize::from(tree.0)));
    let closing: u64 = closing.flat_map(TreeShape::levels).map(|level| level.buckets).sum();
    let buckets = order.buckets() + closing;
    let copied = Copied { buckets, buckets_written: 0, bytes_written: 0, buckets_compared: 0 };
    let moved = Moved::default();
    Copying { from, to, order, progress, options, watch, moved, copied, since_kept: 0 }.run()
}

struct Copying<'c> {
    from: &'c mut dyn BucketStore,
    to: &'c mut dyn BucketStore,
    order: Order,
    progress: Progress,
    options: CopyOptions,
    watch: &'c mut dyn CopyWatch,
    /// Those of the latest trip.
    moved: Moved,
    copied: Copied,
    /// Bytes that were looked at since the progress was kept.
    since_kept: u64,
}

impl Copying<'_> {
    fn run(mut self) -> Result<Copied, CopyError> {
        self.check_source()?;
        if self.progress.step == Step::Moving {
            self.check_closing_is(|now, _| now.iter().all(|byte| *byte == 0))?;
            self.each_trip(Self::move_trip)?;
            self.begin_step(Step::ReadingBack)?;
        } else if self.progress.step == Step::Closing && self.options.reads_back {
            // The progress does not say whether an earlier run compared anything.
            self.begin_step(Step::ReadingBack)?;
        }
        if self.progress.step == Step::ReadingBack {
            self.check_closing_is_ours()?;
            if self.options.reads_back {
                self.each_trip(Self::compare_trip)?;
            }
            self.begin_step(Step::Closing)?;
        }
        self.close()?;
        Ok(self.copied)
    }

    /// Does the rest of a step.
    fn each_trip(
        &mut self,
        act: impl Fn(&mut Self, &Stretch) -> Result<(), CopyError>,
    ) -> Result<(), CopyError> {
        while let Some(trip) = self.order.trip(self.progress.buckets) {
            let end = self.progress.buckets + count(&trip.buckets);
            self.announce(end);
            self.read(&trip)?;
            act(self, &trip)?;
            self.progress.buckets = end;
            let goes_on = self.watch.goes_on(&self.progress, self.order.buckets());
            if !goes_on || self.since_kept >= self.options.keep_each_bytes {
                self.keep()?;
            }
            if !goes_on {
                return Err(CopyError::Interrupted);
            }
        }
        Ok(())
    }

    /// The trip that begins there will be next.
    fn announce(&mut self, at: u64) {
        let Some(next) = self.order.trip(at) else { return };
        let pieces: Vec<_> = next.pieces().collect();
        self.from.prefetch(&pieces);
        if self.progress.step == Step::ReadingBack {
            self.to.prefetch(&pieces);
        }
    }

    fn read(&mut self, stretch: &Stretch) -> Result<(), CopyError> {
        self.moved.read(self.from, stretch).map_err(CopyError::From)?;
        self.since_kept += self.moved.bytes();
        Ok(())
    }

    fn move_trip(&mut self, _: &Stretch) -> Result<(), CopyError> {
        let written = self.moved.write(self.to).map_err(CopyError::To)?;
        self.copied.buckets_written += written.buckets;
        self.copied.bytes_written += written.bytes;
        Ok(())
    }

    fn compare_trip(&mut self, stretch: &Stretch) -> Result<(), CopyError> {
        match self.moved.first_difference(self.to).map_err(CopyError::To)? {
            None => {
                self.copied.buckets_compared += count(&stretch.buckets);
                Ok(())
            }
            Some(piece) => {
                self.check_source()?;
                Err(CopyError::Different(piece))
            }
        }
    }

    fn begin_step(&mut self, step: Step) -> Result<(), CopyError> {
        self.to.flush().map_err(CopyError::To)?;
        self.progress = Progress { step, buckets: 0, ..self.progress };
        self.keep()
    }

    /// What was done is durable, and then the progress says so.
    fn keep(&mut self) -> Result<(), CopyError> {
        if self.progress.step == Step::Moving {
            self.to.flush().map_err(CopyError::To)?;
        }
        self.since_kept = 0;
        self.watch.keep(&self.progress).map_err(CopyError::Progress)
    }

    /// Makes it a volume.
    fn close(&mut self) -> Result<(), CopyError> {
        self.check_source()?;
        self.check_closing_is_ours()?;
        for tree in CLOSING_TREES {
            for stretch in stretches(self.from, tree) {
                self.read(&stretch)?;
                self.move_trip(&stretch)?;
                self.to.flush().map_err(CopyError::To)?;
                if self.options.reads_back {
                    self.compare_trip(&stretch)?;
                }
            }
        }
        Ok(())
    }

    /// An earlier run may have reached [`Step::Closing`] and left what a crash tore. If the copy
    /// was opened since, its anchor has another name and MAC, which are not those of the source
    /// with gaps.
    fn check_closing_is_ours(&mut self) -> Result<(), CopyError> {
        self.check_closing_is(|now, then| {
            let is_ours = |(now, then): (&u8, &u8)| *now == 0 || now == then;
            now.len() == then.len() && now.iter().zip(then).all(is_ours)
        })
    }

    /// Of what makes it a volume, the new place holds what `is` allows: it is told what is there, and what will be.
    fn check_closing_is(&mut self, is: impl Fn(&[u8], &[u8]) -> bool) -> Result<(), CopyError> {
        let mut there = Moved::default();
        for tree in CLOSING_TREES {
            for stretch in stretches(self.from, tree) {
                self.read(&stretch)?;
                there.read(self.to, &stretch).map_err(CopyError::To)?;
                let (then, now) = (self.moved.frames(), there.frames());
                if !(0..now.len()).all(|i| is(now.get(i), then.get(i))) {
                    return Err(CopyError::InUse);
                }
            }
        }
        Ok(())
    }

    fn check_source(&mut self) -> Result<(), CopyError> {
        match Source::of(self.from).map_err(CopyError::From)? == self.progress.source {
            true => Ok(()),
            false => Err(CopyError::Changed),
        }
    }
}

/// Why a copy ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// There is no volume to copy.
    #[error("there is no volume to copy: {0}")]
    NoVolume(#[source] SuperblockError),
    /// The old place failed.
    #[error("the old place failed: {0}")]
    From(#[source] StoreError),
    /// The new place failed.
    #[error("the new place failed: {0}")]
    To(#[source] StoreError),
    /// The progress could not be kept.
    #[error("the progress of the copy cannot be kept: {0}")]
    Progress(#[source] io::Error),
    /// The new place, or the progress, is of a volume of another form.
    #[error("the new place is not that of this copy: name the two places with which it was begun")]
    OtherShapes,
    /// The volume was opened since its copy was begun.
    #[error(
        "the volume has been opened since its copy was begun, so the copy is neither the old \
         one nor the new: remove what was copied, and begin again"
    )]
    Changed,
    /// The new place holds a volume: the copy was opened, or it is another one.
    #[error(
        "the new place holds a volume that is not as it was copied: the copy was finished and \
         has been opened, or it is another volume"
    )]
    InUse,
    /// The two places differ in this bucket.
    #[error(
        "bucket {} of tree {} is not the same at both places: one of them does not hold what \
         was written. Remove the copy and begin again, to other media if it comes back",
        .0.bucket,
        .0.tree.0
    )]
    Different(Piece),
    /// It was asked to end, and can be resumed.
    #[error("the copy was asked to end before it was whole")]
    Interrupted,
}
