//! `oblivio-lab run s3oram`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use oblivio_cli::clock::{Stopwatch, processor_time_of_process, processor_time_of_thread};
use oblivio_lab::s3oram::{Clocks, Evaluation, Plan, Servers};

use super::LabCommand;
use super::share_servers::ShareServers;
use crate::error::ProgramError;

/// Is S³ORAM as fast as its paper states? Table 1 and Figs. 3 to 8, by a model, and the model
/// beside real servers.
///
/// Counts what an access takes, of S³ORAM as published and as it is here, of Path ORAM and Ring
/// ORAM, and divides it by rates of links and disks and of this machine. Then it starts share
/// servers, and times accesses and evictions on loopback, of three, five and seven of them, and
/// behind `oblivio-lab relay`'s home link, of three: that takes some minutes, and some GB of the
/// folder.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  oblivio-lab run s3oram --quick\n  oblivio-lab run s3oram --folder /srv/scratch\n\nWhat is measured depends on what else the machine does: spreads are shown."
)]
pub(crate) struct S3oramArgs {
    /// The model alone, at rough rates of this machine: seconds.
    #[arg(long)]
    quick: bool,
    /// With --quick: real servers all the same. Without it they are always there.
    #[arg(long)]
    measure: bool,
    /// In the place of the small trees one of 1.4 GiB in blocks of 128 KiB, and beside it, behind
    /// the same link, Path ORAM and a default volume of as many blocks on a bucket server: half an
    /// hour, and 30 GB of the folder.
    #[arg(long, conflicts_with_all = ["quick", "measure"])]
    large: bool,
    /// Where the servers keep their files while they run [default: that of the system for temporary
    /// files].
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl LabCommand for Evaluation {
    type Args = S3oramArgs;
    const DIRECTORY: &'static str = "lab-results/s3oram";

    fn typed(args: &S3oramArgs, _: &Path) -> Result<Self, ProgramError> {
        let plan = match (args.quick, args.large) {
            (true, _) => Plan::quick(),
            (_, true) => Plan::large(),
            _ => Plan::full(),
        };
        let plan = if args.measure { Plan { shapes: Plan::full().shapes, ..plan } } else { plan };
        let folder = args.folder.clone().unwrap_or_else(std::env::temp_dir);
        let servers: Option<Box<dyn Servers>> = match plan.shapes.is_empty() {
            true => None,
            false => Some(Box::new(ShareServers::start(&folder, plan.servers())?)),
        };
        Ok(Self { plan, clocks: clocks(), servers, load })
    }
}

/// Client and servers are in this process.
pub(super) fn clocks() -> Clocks {
    let stopwatch = Stopwatch::start();
    Clocks {
        wall: Arc::new(move || stopwatch.elapsed()),
        thread: Arc::new(processor_time_of_thread),
        processors: Arc::new(processor_time_of_process),
    }
}

/// The number of threads that want a processor, on average over the last minute.
fn load() -> Option<String> {
    let loads = fs::read_to_string("/proc/loadavg").ok()?;
    loads.split(' ').next().map(str::to_owned)
}
