//! Warns the owner when a disk has failed, and when it does not keep its fixed rate.

use std::sync::Arc;

use oblivio_volume::Disk;
use oblivio_volume::disk::Punctuality;

use super::clean_end::GracefulStop;
use crate::output;

/// Minimum length, in ticks, of the spans in which skipped ticks are counted. The owner is warned
/// if more than 1 % of a span is skipped, and more than one tick.
const TICKS_PER_REMARK: u64 = 100;

/// Watches a disk.
pub(super) struct DiskWatch {
    disk: Arc<Disk>,
    /// The clean end of this program. It begins if the thread of the volume has panicked.
    end: GracefulStop,
    /// The counts at the start of the current span of at least [`TICKS_PER_REMARK`] ticks.
    reported: Punctuality,
    has_reported: bool,
    has_reported_failure: bool,
}

impl DiskWatch {
    pub(super) fn new(disk: &Arc<Disk>, end: &GracefulStop) -> Self {
        let reported = Punctuality::default();
        let (disk, end) = (disk.clone(), end.clone());
        Self { disk, end, reported, has_reported: false, has_reported_failure: false }
    }

    /// Warns once if the disk has failed, and once if too many ticks are skipped. Begins the end of
    /// the program if the thread of the volume has panicked.
    pub(super) fn poll(&mut self) {
        let failure = self.disk.failure();
        let has_panicked = self.disk.has_panicked();
        if has_panicked {
            self.end.begin();
        }
        if let Some(failure) = failure
            && !self.has_reported_failure
        {
            let advice = if has_panicked { "This program ends" } else { "Stop this program" };
            output::print_remark(&format!(
                "the disk has failed, and every request fails from now on: {failure}. {advice}; \
                 what was flushed is kept"
            ));
            self.has_reported_failure = true;
        }
        let now = self.disk.punctuality().unwrap_or_default();
        let ticks = now.ticks - self.reported.ticks;
        let left_out = now.left_out - self.reported.left_out;
        // Before the span has 100 ticks, two skipped ticks are already too many.
        let of_ticks = (ticks + left_out).max(TICKS_PER_REMARK);
        if left_out * TICKS_PER_REMARK > of_ticks && !self.has_reported {
            output::print_remark(&format!(
                "the rate is not kept: {left_out} of {} ticks were left out, because the accesses \
                 of the previous tick were not finished. Storage sees which. Choose a lower \
                 --rate, or a longer --period",
                ticks + left_out
            ));
            self.has_reported = true;
        }
        if ticks + left_out >= TICKS_PER_REMARK {
            self.reported = now;
        }
    }

    /// Reports at the end the number of skipped ticks, if it is not 0.
    pub(super) fn end(&self) {
        let Punctuality { ticks, left_out, latest } = self.disk.punctuality().unwrap_or_default();
        if left_out > 0 {
            output::print_remark(&format!(
                "at the fixed rate, {ticks} ticks were made and {left_out} were left out; the \
                 latest tick began {:.1} ms late",
                latest.as_secs_f64() * 1e3
            ));
        }
    }
}
