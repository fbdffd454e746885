//! `oblivio-lab run roram`.

use std::path::Path;

use oblivio_cli::error::CliError;
use oblivio_cli::files::OutputDir;
use oblivio_cli::{output, progress};
use oblivio_lab::report;
use oblivio_lab::roram::{self, Form, PAPER_ELL, PAPER_LEVEL, Plan, Results, figures};

use super::made::{Made, Measured};
use crate::args::RoramArgs;
use crate::error::ProgramError;

/// With `--quick`.
const QUICK_LEVEL: u8 = 14;
const QUICK_ELL: u8 = 10;
const QUICK_MIX_REQUESTS: usize = 50;

/// `oblivio-lab run roram`.
pub(crate) fn run_roram(args: &RoramArgs) -> Result<(), ProgramError> {
    let default = plan(args.quick, args.seed);
    let level = args.level.unwrap_or(default.level);
    let ell = args.ell.unwrap_or(default.ell.min(level));
    if ell > level {
        return Err(CliError::Input(format!(
            "ranges of 2^{ell} blocks are longer than 2^{level} blocks: choose a smaller --ell"
        ))
        .into());
    }
    let Measured { made, results } = make(&Plan { level, ell, ..default }, &args.output)?;
    if args.json { Ok(output::print(&results)?) } else { made.print(false) }
}

/// That of the paper, or a quick one.
pub(super) fn plan(quick: bool, seed: u64) -> Plan {
    match quick {
        true => {
            Plan { level: QUICK_LEVEL, ell: QUICK_ELL, mix_requests_max: QUICK_MIX_REQUESTS, seed }
        }
        false => Plan { level: PAPER_LEVEL, ell: PAPER_ELL, mix_requests_max: usize::MAX, seed },
    }
}

/// Counts, and keeps what came out.
pub(super) fn make(plan: &Plan, output: &Path) -> Result<Measured, ProgramError> {
    let output_dir = OutputDir::prepare(output)?;
    let bar = progress::bar_of(Form::ALL.len() as u64, "ORAMs");
    let measured = roram::run(plan, &|| bar.inc(1));
    bar.finish_and_clear();
    let results = measured.to_json()?;
    let path = output_dir.write("results.json", &results)?;
    let done = format!("results  {}", path.display());
    Ok(Measured { made: Made::keep(figures(&measured), &output_dir, &done)?, results })
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), ProgramError> {
    let results = Results::from_json(file)?;
    Ok(output::print(
        &figures(&results).iter().map(report::section).collect::<Vec<_>>().join("\n"),
    )?)
}
