//! Measures Oblivio's engine, lower bounds and other ORAMs (peers) in one interleaved run.
//!
//! [`interleave`] runs [`subject`]s in turns, and [`report`] prints the results. The subjects are
//! lower bounds ([`floor`]), [`ours`] and the [`peers`]. [`ram`] drives and checks Oblivio's engine
//! and the peers.

mod floor;
mod interleave;
mod ours;
mod peers;
mod ram;
mod report;
mod subject;

use std::{env, fs, path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    interleave::MeasurementPlan,
    subject::{Description, ROWS},
};

/// Measures Oblivio's engine, lower bounds and peers in one interleaved run.
#[derive(Parser)]
struct Arguments {
    /// Run quickly: few and short rounds, little filling.
    #[arg(long)]
    quick: bool,

    /// File for the records.
    #[arg(long, value_name = "PATH", default_value = "target/bench/engine.json")]
    json: PathBuf,

    /// Rounds to measure [default: 15, or 3 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// Only subjects whose row or name contains this; may be repeated. The baseline always runs.
    #[arg(long, value_name = "SUBSTRING")]
    only: Vec<String>,

    /// No subject whose row or name contains this; may be repeated. The baseline always runs.
    #[arg(long, value_name = "SUBSTRING")]
    skip: Vec<String>,

    /// List the subjects without measuring.
    #[arg(long)]
    list: bool,
}

impl Arguments {
    fn plan(&self) -> MeasurementPlan {
        let (rounds, batch, fill) = if self.quick { (3, 100, 1) } else { (15, 250, 20) };
        MeasurementPlan {
            rounds: self.rounds.map_or(rounds, |rounds| rounds as usize),
            batch: Duration::from_millis(batch),
            fill: Duration::from_secs(fill),
        }
    }

    fn selects(&self, description: &Description) -> bool {
        let label = label(description);
        let matches = |patterns: &[String]| patterns.iter().any(|pattern| label.contains(pattern));
        (self.only.is_empty() || matches(&self.only)) && !matches(&self.skip)
    }

    /// Returns the selected subjects by row, each row with its baseline. Rows without a selected
    /// subject are omitted.
    fn selection(&self) -> Vec<(subject::Row, Vec<Description>)> {
        ROWS.into_iter()
            .filter_map(|row| {
                let mut subjects: Vec<_> =
                    all().into_iter().filter(|subject| subject.row == row).collect();
                let any = subjects.iter().any(|subject| self.selects(subject));
                subjects.retain(|subject| subject.ruler || self.selects(subject));
                any.then_some((row, subjects))
            })
            .collect()
    }
}

fn all() -> Vec<Description> {
    [floor::all(), ours::all(), peers::all()].into_iter().flatten().collect()
}

fn label(description: &Description) -> String {
    format!("{}  {}", description.row, description.name)
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
    let selection = arguments.selection();
    if selection.is_empty() {
        return Err("no subject matches --only and --skip; --list alone prints all".to_owned());
    }
    if arguments.list {
        let subjects = selection.iter().flat_map(|(_, subjects)| subjects);
        subjects.for_each(|subject| println!("{}", label(subject)));
        return Ok(());
    }
    // Fail before the measurement, not after it.
    if let Some(folder) = arguments.json.parent() {
        fs::create_dir_all(folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    }

    let plan = arguments.plan();
    let subjects: usize = selection.iter().map(|(_, subjects)| subjects.len()).sum();
    let progress = ProgressBar::new(subjects as u64 * plan.steps()).with_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} {prefix} {msg}")
            .expect("the template is well formed"),
    );

    report::print_machine();
    let compared: Vec<_> = ours::compared().collect();
    let mut measured = Vec::new();
    for (row, subjects) in selection {
        progress.set_prefix(row.to_string());
        let results = interleave::measure(subjects, &plan, &progress)?;
        progress.suspend(|| {
            report::print(row, &results);
            report::print_compared(&results, &compared);
        });
        measured.push(results);
    }
    progress.finish_and_clear();
    let counts = ours::counts();
    report::print_counts(&counts);
    report::write(&arguments.json, &measured, &compared, &counts, &command())?;
    eprintln!("records: {}", arguments.json.display());
    Ok(())
}

/// Returns the command that repeats this run.
fn command() -> String {
    let mut command = "cargo run --release --manifest-path bench/Cargo.toml --".to_owned();
    for argument in env::args().skip(1) {
        command += &match argument.contains(' ') {
            true => format!(" '{argument}'"),
            false => format!(" {argument}"),
        };
    }
    command
}
