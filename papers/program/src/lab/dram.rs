//! `oblivio-lab run dram`.

use std::path::Path;

use oblivio_cli::files::OutputDir;
use oblivio_cli::output;
use oblivio_lab::dram::{self, Results, figures};
use oblivio_lab::report;

use super::made::{Made, Measured};
use crate::args::DramArgs;
use crate::error::ProgramError;

/// `oblivio-lab run dram`.
pub(crate) fn run_dram(args: &DramArgs) -> Result<(), ProgramError> {
    let Measured { made, results } = make(args.seed, &args.output)?;
    if args.json {
        return Ok(output::print(&results)?);
    }
    made.print(false)
}

/// Measures, and keeps what came out.
pub(super) fn make(seed: u64, output: &Path) -> Result<Measured, ProgramError> {
    let output_dir = OutputDir::prepare(output)?;
    let measured = dram::run(seed)?;
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
