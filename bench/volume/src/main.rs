//! Measures an Oblivio volume and other disks under the same loads in one interleaved run.
//!
//! | module | contents |
//! |---|---|
//! | [`subjects`] | the disks that are compared |
//! | [`load`] | the loads |
//! | [`fio`] | the load generator |
//! | [`floor`] | a lower bound: moving and encrypting the bytes |
//! | [`rounds`] | every subject under every load, in turns |
//! | [`growth`] | how a volume's speed changes with its size |
//! | [`techniques`] | the gain of IR-ORAM's techniques at a fixed rate |
//! | [`links`] | a volume behind a link, and over TLS on one machine |
//! | [`wire`] | a lower bound: TLS alone |
//! | [`verdict`] | whether the targets are met |
//! | [`report`] | the results as tables and a file |
//! | [`tools`] | finds, runs and stops other programs |

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

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

/// Measures an Oblivio volume and other disks under the same loads in one interleaved run.
#[derive(Parser)]
struct Arguments {
    /// Run quickly: a small volume, few and short rounds.
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

    /// Only subjects and parts whose name contains this; may be repeated. Parts: `growth` compares
    /// volumes of several sizes, `creation` times the creation of volumes, `techniques` measures
    /// the techniques of IR-ORAM at a fixed rate, and `links` measures a volume on a bucket server.
    #[arg(long, value_name = "SUBSTRING")]
    only: Vec<String>,

    /// List the subjects and parts without measuring.
    #[arg(long)]
    list: bool,

    /// Directory for the disks during the run: 13 MiB per MiB of a disk, and 2 GiB for `links`. All
    /// files are removed at the end.
    #[arg(long, value_name = "PATH", default_value = "target/bench/volume")]
    directory: PathBuf,

    /// File for the results.
    #[arg(long, value_name = "PATH", default_value = "target/bench/volume.json")]
    json: PathBuf,

    /// The `oblivio` program to measure.
    #[arg(long, value_name = "PATH", default_value = "target/release/oblivio")]
    oblivio: PathBuf,

    /// Slots of each level for volumes with IR-Alloc, as a file for `oblivio create --alloc-from`.
    /// Without it, these volumes are skipped.
    #[arg(long, value_name = "FILE")]
    alloc: Option<PathBuf>,

    /// Directory where the peers from crates.io are installed.
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
        return Err("nothing matches --only; --list alone prints all names".into());
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

/// Finds the required programs and creates the directories, so that errors come before the
/// measurement.
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
