//! `oblivio bench`: measures how fast a volume is on this machine, without any other program.
//!
//! | module | what it holds |
//! |---|---|
//! | `subject` | the volume that is measured, and what storage sees of it |
//! | `load` | the requests |
//! | `drive` | sends the requests, many at once |
//! | `spending` | where the thread that uses the volume spends its time |
//! | `latency` | how long the answers took |
//! | `report` | the results |

mod drive;
mod latency;
mod load;
mod report;
mod spending;
mod subject;

use std::env;
use std::path::PathBuf;

use oblivio::Location;
use oblivio_core::view::Operation;

use self::drive::drive;
use self::load::Load;
use self::report::{Figures, Traffic};
use self::subject::Subject;
use crate::args::BenchArgs;
use crate::clock::{self, Stopwatch};
use crate::error::CliError;
use crate::signals::EndAsked;
use crate::{files, output, progress};

/// `oblivio bench`.
pub(crate) fn bench(args: &BenchArgs) -> Result<(), CliError> {
    let end = EndAsked::listen()?;
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
    let outcome = Subject::create(place.path(), args).and_then(|mut subject| {
        let figures = measure(&mut subject, args, &end);
        // Close the volume even after an error. That error matters more than one of closing.
        let closed = subject.close();
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

/// Runs every load on the state that the previous one left.
fn measure(
    subject: &mut Subject,
    args: &BenchArgs,
    end: &EndAsked,
) -> Result<Vec<Figures>, CliError> {
    let loads = Load::all(subject.bytes(), args.seconds);
    let bar = progress::bar_of_parts(loads.len() as u64);
    let mut figures = Vec::new();
    for load in loads {
        bar.set_message(load.name);
        // This clock runs while the others are read, so they count no time outside of it.
        let clock = Stopwatch::start();
        let before = (subject.seen(), subject.spent(), clock::processor_time_of_process());
        let outcome = drive(subject.disk(), &load, args.queue_depth as usize, &mut |part| {
            bar.set_position(progress::position(figures.len() as u64, part));
            !end.is_asked()
        });
        let outcome = outcome.map_err(|error| CliError::Engine(error.to_string()))?;
        if end.is_asked() {
            bar.finish_and_clear();
            return Err(CliError::Engine("stopped before the end: there are no results".into()));
        }
        let seen = subject.seen();
        let of = |operation| Traffic::between(before.0.of(operation), seen.of(operation));
        let (read, written) = (of(Operation::Read), of(Operation::Write));
        let spent = subject.spent() - before.1;
        let processors = clock::processor_time_of_process().saturating_sub(before.2);
        let elapsed = clock.elapsed();
        figures.push(Figures { load, outcome, elapsed, read, written, spent, processors });
    }
    bar.finish_and_clear();
    Ok(figures)
}
