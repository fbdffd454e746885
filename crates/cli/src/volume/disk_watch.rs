//! Tells the owner when a disk has failed, and when a fixed rate is not kept.

use std::sync::Arc;

use oblivio_volume::Disk;
use oblivio_volume::disk::Punctuality;

use super::clean_end::CleanEnd;
use crate::output;

/// Of so many ticks, more than one may be left out before anybody is told.
const TICKS_PER_REMARK: u64 = 100;

/// Looks at a disk from time to time.
pub(super) struct DiskWatch {
    disk: Arc<Disk>,
    /// Begun when the disk can answer nothing but errors, because of a defect.
    end: CleanEnd,
    /// How it was when the owner was told, or at the start.
    told: Punctuality,
    has_told: bool,
    has_told_failure: bool,
}

impl DiskWatch {
    pub(super) fn new(disk: &Arc<Disk>, end: &CleanEnd) -> Self {
        let told = Punctuality::default();
        let (disk, end) = (disk.clone(), end.clone());
        Self { disk, end, told, has_told: false, has_told_failure: false }
    }

    /// Tells the owner once that the disk has failed, and once that ticks are left out. Ends the
    /// program if the thread of the volume has died.
    pub(super) fn look(&mut self) {
        let failure = self.disk.failure();
        let has_died = self.disk.has_died();
        if has_died {
            self.end.begin();
        }
        if let Some(failure) = failure
            && !self.has_told_failure
        {
            let advice = if has_died { "This program ends" } else { "Stop this program" };
            output::remark(&format!(
                "the disk has failed, and every request fails from now on: {failure}. {advice}; \
                 what was flushed is kept"
            ));
            self.has_told_failure = true;
        }
        let now = self.disk.punctuality().unwrap_or_default();
        let ticks = now.ticks - self.told.ticks;
        let left_out = now.left_out - self.told.left_out;
        // Two of the first few are more than one of a hundred already.
        let of_ticks = (ticks + left_out).max(TICKS_PER_REMARK);
        if left_out * TICKS_PER_REMARK > of_ticks && !self.has_told {
            output::remark(&format!(
                "the rate is not kept: of {} ticks {left_out} were left out, because the accesses of the \
                 one before were not ready. Storage sees which. Choose a lower --rate, or a longer \
                 --period",
                ticks + left_out
            ));
            self.has_told = true;
        }
        if ticks + left_out >= TICKS_PER_REMARK {
            self.told = now;
        }
    }

    /// Tells the owner at the end how it was, if ticks were left out.
    pub(super) fn end(&self) {
        let Punctuality { ticks, left_out, latest } = self.disk.punctuality().unwrap_or_default();
        if left_out > 0 {
            output::remark(&format!(
                "at the fixed rate, {ticks} ticks were made and {left_out} left out; the latest began \
                 {:.1} ms after its time",
                latest.as_secs_f64() * 1e3
            ));
        }
    }
}
