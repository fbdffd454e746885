//! Crashes a small volume at more than ten thousand points, and checks that no data are lost.
//!
//! Exit status: 0 if nothing was lost, 1 if something was lost or a thread panicked, 2 if the tool
//! itself failed.

mod objects;
mod plan;
mod point;
mod remote;
mod setups;
mod shares;
mod tally;

use std::io::{self, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, panic, thread};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS};
use plan::{PointKind, RECOVERY_OPERATIONS_MAX};
use point::Point;
use serde_json::{Value, json};
use setups::setups;
use tally::{Tally, replay};

/// Maximum number of losses, and of panics, that the report describes.
const DESCRIBED_MAX: usize = 10;

/// Number of points that run at once per core. Share servers often wait for a dead peer, so more
/// threads than cores keep the cores busy.
const POINTS_AT_ONCE_PER_CORE: usize = 6;

/// Tests a small volume at thousands of points where a machine can die or an operation can fail.
#[derive(Parser)]
struct Arguments {
    /// Points to test, over all setups and seeds
    #[arg(
        long,
        value_name = "N",
        default_value_t = 24_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    points: u64,

    /// Workloads per setup, each with its own seed
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u64).range(1..1 << 20)
    )]
    seeds: u64,

    /// Quick run: one workload and 1000 points
    #[arg(long, conflicts_with_all = ["points", "seeds"])]
    quick: bool,

    /// Test only the setups whose name begins with SETUP; may be repeated
    #[arg(long, value_name = "SETUP")]
    setup: Vec<String>,

    /// Test only this point, named as in the report; may be repeated
    #[arg(long, value_name = "POINT")]
    replay: Vec<String>,

    /// Write the results to this JSON file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match work(&Arguments::parse(), &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            // If stderr cannot be written either, there is nowhere left to report.
            let _ = writeln!(io::stderr(), "error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs the tool. Returns whether no data were lost and no thread panicked.
fn work(arguments: &Arguments, out: &mut impl Write) -> Result<bool, String> {
    let panics = Panics::watch();
    let (points, parameters) = choose(arguments)?;
    let bar = bar(points.len() as u64);
    let tally = run(&points, &bar);
    bar.finish_and_clear();

    let panics = panics.messages();
    let mut results = tally.to_json();
    results["panics"] = json!(panics);
    results["parameters"] = parameters;
    results["seconds"] = json!(bar.elapsed().as_secs_f64());
    if let Some(file) = &arguments.json {
        let text = serde_json::to_string_pretty(&results).map_err(|error| error.to_string())?;
        fs::write(file, text + "\n")
            .map_err(|error| format!("cannot write the results to {}: {error}", file.display()))?;
    }
    out.write_all(describe(&tally, &panics).as_bytes())
        .map_err(|error| format!("cannot write the report to stdout: {error}"))?;
    Ok(tally.losses().len() == 0 && panics.is_empty())
}

/// Returns the points to test, and the parameters that the results file records.
fn choose(arguments: &Arguments) -> Result<(Vec<(PointKind, Point)>, Value), String> {
    if !arguments.replay.is_empty() {
        let named = |name: &String| {
            let point = Point::parse(name)?;
            Ok((PointKind::from_lives(&point.lives), point))
        };
        let points: Result<_, String> = arguments.replay.iter().map(named).collect();
        return Ok((points?, json!({ "replay": arguments.replay })));
    }
    let (seeds, points) =
        if arguments.quick { (1, 1000) } else { (arguments.seeds, arguments.points) };
    let mut setups = setups();
    let is_chosen =
        |setup: &setups::Setup| arguments.setup.iter().any(|it| setup.name.starts_with(it));
    setups.retain(|setup| arguments.setup.is_empty() || is_chosen(setup));
    if setups.is_empty() {
        return Err(format!("no setup's name begins with {}", arguments.setup.join(" or ")));
    }
    let described: serde_json::Map<_, _> =
        setups.iter().map(|setup| (setup.name.into(), describe_setup(setup))).collect();
    let parameters = json!({
        "points_wanted": points,
        "seeds": (1..=seeds).collect::<Vec<_>>(),
        "blocks": BLOCKS,
        "block_bytes": BLOCK_BYTES,
        "recovery_operations_max": RECOVERY_OPERATIONS_MAX,
        "setups": described,
    });
    Ok((plan::points(&setups, seeds, points)?, parameters))
}

fn describe_setup(setup: &setups::Setup) -> Value {
    let volume = &setup.volume;
    json!({
        "steps": volume.steps,
        "sync_moves": format!("{:?}", volume.sync_moves),
        "failed_sync": format!("{:?}", volume.failed_sync),
        "disks": volume.disks,
        "tree_top_levels": volume.tree_top_levels,
        "stash_blocks_max": volume.stash_blocks_max,
        "state_file_bytes_max": volume.state_file_bytes_max,
        "device": format!("{:?}", volume.device),
        "storage": format!("{:?}", setup.storage),
    })
}

/// Tests all points on all cores. Each point gets its own simulated world.
fn run(points: &[(PointKind, Point)], bar: &ProgressBar) -> Tally {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    let try_points = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((kind, point)) = points.get(number) else { return };
            let outcome = point.run();
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.add(number, *kind, point, outcome);
            bar.inc(1);
        }
    };
    thread::scope(|scope| {
        for _ in 0..cores * POINTS_AT_ONCE_PER_CORE {
            scope.spawn(try_points);
        }
    });
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn describe(tally: &Tally, panics: &[String]) -> String {
    let mut text = format!(
        "{} distinct crash and fault points in {} setups: {} bytes lost at {} points, {} panics\n",
        tally.distinct(),
        tally.setups().len(),
        tally.bytes_lost(),
        tally.losses().len(),
        panics.len(),
    );
    for (point, loss) in tally.losses().take(DESCRIBED_MAX) {
        text += &format!("\nLOST {} bytes: {loss}\n  {}\n", loss.bytes, replay(point));
    }
    for panic in panics.iter().take(DESCRIBED_MAX) {
        text += &format!("\nPANIC {panic}\n");
    }
    text
}

/// Creates a progress bar. It shows only on a terminal.
fn bar(points: u64) -> ProgressBar {
    let template = "{bar:40} {human_pos} of {human_len} points, {per_sec}, {eta} left";
    match ProgressStyle::with_template(template) {
        Ok(style) => ProgressBar::new(points).with_style(style),
        Err(_) => ProgressBar::new(points),
    }
}

/// The messages of all panics. A panic in a disk's thread would otherwise show only as a missing
/// answer, and the planned fault would explain that.
struct Panics(Arc<Mutex<Vec<String>>>);

impl Panics {
    fn watch() -> Self {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let noted = messages.clone();
        panic::set_hook(Box::new(move |panic| {
            noted.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
        }));
        Self(messages)
    }

    fn messages(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
