//! `oblivio-lab run s3oram`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use oblivio_cli::clock::{Stopwatch, processor_time_of_process, processor_time_of_thread};
use oblivio_lab::s3oram::{Clocks, Evaluation, S3oramPlan, Servers};

use super::LabCommand;
use super::share_servers::ShareServers;
use crate::error::ProgramError;

/// Is S³ORAM as fast as its paper states? Table 1 and Figs. 3 to 8 by a model, which is compared
/// with real servers.
///
/// Counts the work of an access in published S³ORAM, in this project's S³ORAM, in Path ORAM and in
/// Ring ORAM, and divides it by rates of links, disks and this machine. Then starts share servers,
/// and times accesses and evictions: on loopback with three, five and seven servers, and behind the
/// home link of `oblivio-lab relay` with three. This takes some minutes, and some GB in the folder.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run s3oram --quick\n  \
        oblivio-lab run s3oram --folder /srv/scratch\n\n\
        Measured times depend on the load of the machine: their spread is shown.")]
pub(crate) struct S3oramArgs {
    /// Only the model, with rough rates of this machine: takes seconds.
    #[arg(long)]
    quick: bool,
    /// With --quick: also time real servers. Without --quick they are always timed.
    #[arg(long)]
    measure: bool,
    /// Replace the small trees by one of 1.4 GiB in blocks of 128 KiB. Compare it, behind the same
    /// link, with Path ORAM and a default volume of the same number of blocks on a bucket server.
    /// Takes half an hour, and 30 GB in the folder.
    #[arg(long, conflicts_with_all = ["quick", "measure"])]
    large: bool,
    /// Folder for the servers' files while they run [default: the system's temporary folder].
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl LabCommand for Evaluation {
    type Args = S3oramArgs;
    const DIRECTORY: &'static str = "lab-results/s3oram";

    fn from_args(args: &S3oramArgs, _: &Path) -> Result<Self, ProgramError> {
        let plan = match (args.quick, args.large) {
            (true, _) => S3oramPlan::quick(),
            (_, true) => S3oramPlan::large(),
            _ => S3oramPlan::full(),
        };
        let plan = if args.measure {
            S3oramPlan { shapes: S3oramPlan::full().shapes, ..plan }
        } else {
            plan
        };
        let folder = args.folder.clone().unwrap_or_else(std::env::temp_dir);
        let servers: Option<Box<dyn Servers>> = match plan.shapes.is_empty() {
            true => None,
            false => Some(Box::new(ShareServers::start(&folder, plan.servers())?)),
        };
        Ok(Self { plan, clocks: clocks(), servers, load })
    }
}

/// Makes the clocks for an evaluation whose client and servers run in this process.
pub(super) fn clocks() -> Clocks {
    let stopwatch = Stopwatch::start();
    Clocks {
        wall: Arc::new(move || stopwatch.elapsed()),
        thread: Arc::new(processor_time_of_thread),
        processors: Arc::new(processor_time_of_process),
    }
}

/// The load average of the last minute, in runnable threads. `None` if `/proc/loadavg` cannot be
/// read.
fn load() -> Option<String> {
    let loads = fs::read_to_string("/proc/loadavg").ok()?;
    loads.split(' ').next().map(str::to_owned)
}
