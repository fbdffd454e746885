//! `oblivio bench`: measures how fast a volume is on this machine, without any other program.
//!
//! | module | what it holds |
//! |---|---|
//! | `bench_volume` | the volume that is measured, and what storage sees of it |
//! | `load` | the requests |
//! | `drive` | sends the requests, many at once |
//! | `spending` | the time, by purpose, of the thread that uses the volume |
//! | `latency` | a histogram of latencies |
//! | `report` | the results |

mod bench_volume;
mod drive;
mod latency;
mod load;
mod report;
mod spending;

use std::env;
use std::path::PathBuf;

use oblivio::Location;
use oblivio_core::view::Operation;

use self::bench_volume::BenchVolume;
use self::drive::drive;
use self::load::Load;
use self::report::{Figures, Traffic};
use crate::args::BenchArgs;
use crate::clock::{self, Stopwatch};
use crate::error::CliError;
use crate::signals::StopFlag;
use crate::{files, output, progress};

/// `oblivio bench`.
pub(crate) fn bench(args: &BenchArgs) -> Result<(), CliError> {
    let end = StopFlag::listen()?;
    let parent: PathBuf = args.directory.clone().unwrap_or_else(env::temp_dir);
    use oblivio_store::Location::File;
    if !matches!(Location::parse(parent.as_os_str()), Ok(Location::Store(File(_)))) {
        return Err(CliError::Input(
            "bench creates a volume in a directory of this machine: name one. To measure a volume \
             elsewhere, serve it with `oblivio serve nbd`, and read and write that disk"
                .into(),
        ));
    }
    let place = tempfile::Builder::new()
        .prefix("oblivio-bench-")
        .tempdir_in(&parent)
        .map_err(|error| files::cannot_write(&parent, &error))?;
    let outcome = BenchVolume::create(place.path(), args).and_then(|mut volume| {
        let figures = measure(&mut volume, args, &end);
        // Close the volume even after an error of `measure`, which matters more than an error of
        // `close`.
        let closed = volume.close();
        figures.and_then(|figures| closed.map(|()| figures))
    });
    let removed = place.close().map_err(|error| {
        CliError::Output(format!("cannot remove the files of the benchmark: {error}"))
    });
    let figures = outcome.and_then(|figures| removed.map(|()| figures))?;
    if args.json {
        output::print(&format!("{:#}", report::json(args, &figures)))
    } else {
        output::print(&report::text(args, &figures))
    }
}

/// Runs all loads, one after the other. Each uses the volume as the previous load left it. Fails if
/// a signal sets `end`.
fn measure(
    volume: &mut BenchVolume,
    args: &BenchArgs,
    end: &StopFlag,
) -> Result<Vec<Figures>, CliError> {
    let loads = Load::all(volume.bytes(), args.seconds);
    let bar = progress::bar_of_parts(loads.len() as u64);
    let mut figures = Vec::new();
    for load in loads {
        bar.set_message(load.name);
        // This clock starts before and stops after the other clocks are read, so it includes all
        // time that they count.
        let clock = Stopwatch::start();
        let before = (volume.seen(), volume.spent(), clock::processor_time_of_process());
        let outcome = drive(volume.disk(), &load, args.queue_depth as usize, &mut |part| {
            bar.set_position(progress::position(figures.len() as u64, part));
            !end.is_requested()
        });
        let outcome = outcome.map_err(|error| CliError::Engine(error.to_string()))?;
        if end.is_requested() {
            bar.finish_and_clear();
            return Err(CliError::Engine("stopped before the end: there are no results".into()));
        }
        let seen = volume.seen();
        let of = |operation| Traffic::between(before.0.of(operation), seen.of(operation));
        let (read, written) = (of(Operation::Read), of(Operation::Write));
        let spent = volume.spent() - before.1;
        let processors = clock::processor_time_of_process().saturating_sub(before.2);
        let elapsed = clock.elapsed();
        figures.push(Figures { load, outcome, elapsed, read, written, spent, processors });
    }
    bar.finish_and_clear();
    Ok(figures)
}
