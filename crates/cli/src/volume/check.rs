//! `oblivio check`: checks every bucket of a volume that was ever written.

use std::thread;
use std::time::Duration;

use oblivio::Location;
use serde_json::json;

use super::opening;
use crate::args::{CheckArgs, RunArgs};
use crate::clock::Stopwatch;
use crate::error::CliError;
use crate::{output, progress};

/// `oblivio check`.
pub(crate) fn check(args: &CheckArgs) -> Result<(), CliError> {
    if args.rate_max.is_some() && matches!(args.at.volume.volume, Location::Shares(_)) {
        let message = "--rate-max has no effect on share servers, which read their shares \
                       themselves: leave it out";
        return Err(CliError::Input(message.into()));
    }
    let after_tampering = args.after_tampering;
    let run = RunArgs { cache: 0, after_tampering, ..RunArgs::default() };
    let opened = opening::open(&args.at, &run)?;
    let mut volume = opened.volume;
    let (buckets, written) = (volume.buckets_in_storage(), volume.buckets_written());
    let pace = args.rate_max.map(|bytes_per_second| {
        Pace::begin(opened.store_bytes as f64 / buckets.max(1) as f64, bytes_per_second)
    });
    let bar = progress::bar_of(written, "buckets");
    bar.tick();
    let checked = volume.check(&mut |read| {
        bar.set_position(read);
        pace.iter().for_each(|pace| pace.keep(read));
    });
    bar.finish_and_clear();
    let blocks = checked?;
    progress::with_spinner("closing the volume", || volume.close())?;
    if args.json {
        output::print(&format!(
            "{:#}",
            json!({
                "buckets": buckets,
                "buckets_written": written,
                "blocks": blocks,
                "recovered": opened.recovery.was_needed,
            })
        ))
    } else {
        let read = match written {
            0 => format!("none of {buckets} buckets was ever written"),
            _ if written == buckets => format!("{buckets} buckets hold what was written last"),
            _ => format!(
                "{written} of {buckets} buckets were ever written, and hold what was written last"
            ),
        };
        output::print(&format!("{read}; {blocks} blocks hold data, and each is in its place"))
    }
}

/// Limits the number of buckets that a check reads per second.
struct Pace {
    clock: Stopwatch,
    /// Seconds per bucket, on average.
    seconds: f64,
}

/// The shortest wait that is worth a sleep.
const WAIT_MIN: Duration = Duration::from_millis(5);

impl Pace {
    fn begin(bytes_per_bucket: f64, bytes_per_second: u64) -> Self {
        Self { clock: Stopwatch::start(), seconds: bytes_per_bucket / bytes_per_second as f64 }
    }

    /// Waits until the limit allows `read` buckets, if the wait is longer than [`WAIT_MIN`].
    fn keep(&self, read: u64) {
        let due = Duration::try_from_secs_f64(self.seconds * read as f64).unwrap_or(Duration::MAX);
        let ahead = due.saturating_sub(self.clock.elapsed());
        if ahead > WAIT_MIN {
            thread::sleep(ahead);
        }
    }
}
