//! An Oblivio volume beside other disks, under the same loads in one interleaved run.
//!
//! | module | what it holds |
//! |---|---|
//! | [`subjects`] | the disks that are compared |
//! | [`load`] | what is asked of them |
//! | [`fio`] | the program that asks |
//! | [`floor`] | what its bytes alone would take |
//! | [`rounds`] | every subject under every load, in turns |
//! | [`growth`] | how a volume's speed changes with its size |
//! | [`techniques`] | what IR-ORAM's techniques gain at a fixed rate |
//! | [`links`] | what it does behind a link, and over TLS alone |
//! | [`wire`] | what TLS alone would take |
//! | [`verdict`] | whether the targets are met |
//! | [`report`] | what came out: a table and a file |
//! | [`tools`] | other programs: found, run, stopped by their number |

#![allow(clippy::disallowed_methods, reason = "measuring is reading the clock")]

mod fio;
mod floor;
mod growth;
mod links;
mod load;
mod machine;
mod report;
mod rounds;
mod spread;
mod subjects;
mod techniques;
mod tools;
mod verdict;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::report::Results;
use crate::rounds::BenchPlan;
use crate::subjects::{Description, Testbed};
use crate::tools::{End, Programs};

/// Measures an Oblivio volume beside other disks, under the same loads in one interleaved run.
#[derive(Parser)]
struct Arguments {
    /// A first look: a small volume, few and short rounds.
    #[arg(long)]
    quick: bool,

    /// Rounds to measure [default: 5, or 2 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Seconds of each load in each round [default: 5, or 1 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,

    /// MiB of the disks, except oramfs's [default: 1024, or 128 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    mebibytes: Option<u64>,

    /// Only what has this in its name; may be repeated. `growth` is how volumes of several sizes
    /// compare, `creation` how long making one takes, `techniques` what those of IR-ORAM gain at a
    /// fixed rate, `links` what a volume on a bucket server does.
    #[arg(long, value_name = "SUBSTRING")]
    only: Vec<String>,

    /// Names what there is to measure, and measures nothing.
    #[arg(long)]
    list: bool,

    /// Where the disks are kept meanwhile: 13 MiB for each MiB of a disk, and 2 GiB for `links`.
    /// What is made is removed.
    #[arg(long, value_name = "PATH", default_value = "target/bench/volume")]
    directory: PathBuf,

    /// Where the figures go.
    #[arg(long, value_name = "PATH", default_value = "target/bench/volume.json")]
    json: PathBuf,

    /// The program that is measured.
    #[arg(long, value_name = "PATH", default_value = "target/release/oblivio")]
    oblivio: PathBuf,

    /// Slots of each level for the volumes that have them (IR-Alloc): what `oblivio create
    /// --alloc-from` takes. Without it they are left out.
    #[arg(long, value_name = "FILE")]
    alloc: Option<PathBuf>,

    /// Where peers from crates.io are installed.
    #[arg(long, value_name = "PATH", default_value = "target/bench/peers")]
    peers: PathBuf,
}

impl Arguments {
    fn plan(&self) -> BenchPlan {
        let (rounds, seconds, mebibytes) = if self.quick { (2, 1, 128) } else { (5, 5, 1024) };
        BenchPlan {
            rounds: self.rounds.unwrap_or(rounds),
            time: Duration::from_secs(self.seconds.unwrap_or(seconds)),
            disk_bytes: self.mebibytes.unwrap_or(mebibytes) << 20,
        }
    }

    fn selects(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part))
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let mut subjects = subjects::all();
    subjects.retain(|subject| arguments.selects(subject.name));
    let (creates, grows) = (arguments.selects("creation"), arguments.selects("growth"));
    let compares_techniques = arguments.selects("techniques");
    let goes_far = arguments.selects("links");
    if arguments.list {
        let names = subjects.iter().map(|subject| subject.name);
        names
            .chain(creates.then_some("creation"))
            .chain(grows.then_some("growth"))
            .chain(compares_techniques.then_some("techniques"))
            .chain(goes_far.then_some("links"))
            .for_each(|name| println!("{name}"));
        return Ok(());
    }
    if subjects.is_empty() && !creates && !grows && !compares_techniques && !goes_far {
        return Err("nothing is selected; --list without --only shows all".into());
    }
    let end = End::listen()?;
    let testbed = prepare(arguments, &subjects, if goes_far { &links::PROGRAMS } else { &[] })?;
    let plan = arguments.plan();

    report::print_head(&plan);
    let (measured, floor) = rounds::measure(&subjects, &plan, &testbed, &end)?;
    report::print_loads(&measured, floor.as_ref(), &plan);
    let created = if creates { growth::creation(&testbed, &end)? } else { Vec::new() };
    report::print_creation(&created);
    let grown = if grows { growth::measure(&plan, &testbed, &end)? } else { Vec::new() };
    report::print_growth(&grown);
    let techniques = if compares_techniques {
        techniques::measure(&plan, arguments.alloc.as_deref(), &testbed, &end)?
    } else {
        Vec::new()
    };
    report::print_techniques(&techniques);
    let links = if goes_far { links::measure(&plan, &testbed, &end)? } else { Vec::new() };
    report::print_links(&links);
    let verdict = verdict::judge(&measured, &created, &links, &plan);
    report::print_verdict(&verdict);
    let results = Results { measured, created, grown, techniques, links, verdict };
    report::write(&arguments.json, &plan, &results)?;
    eprintln!("figures: {}", arguments.json.display());
    Ok(())
}

/// Finds the programs that are needed, and makes the directories: before the measurement rather than
/// after it, where failing would cost all of it.
fn prepare(
    arguments: &Arguments,
    subjects: &[Description],
    more: &[&str],
) -> Result<Testbed, String> {
    let programs = Programs::find(arguments.oblivio.clone(), &arguments.peers, subjects, more)?;
    if let Some(folder) = arguments.json.parent() {
        make_dir(folder)?;
    }
    make_dir(&arguments.directory)?;
    Testbed::new(&arguments.directory, programs)
}

fn make_dir(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("cannot create {}: {error}", path.display()))
}
