//! `oblivio lab run dram`.

use std::path::Path;

use oblivio_lab::dram::{self, Results, figures};
use oblivio_lab::report;

use super::made::{Made, Measured};
use crate::args::DramArgs;
use crate::error::CliError;
use crate::files::OutputDir;
use crate::output;

/// `oblivio lab run dram`.
pub(crate) fn run_dram(args: &DramArgs) -> Result<(), CliError> {
    let Measured { made, results } = make(args.seed, &args.output)?;
    if args.json {
        return output::print(&results);
    }
    made.print(false)
}

/// Measures, and keeps what came out.
pub(super) fn make(seed: u64, output: &Path) -> Result<Measured, CliError> {
    let output_dir = OutputDir::prepare(output)?;
    let measured = dram::run(seed)?;
    let results = measured.to_json()?;
    let path = output_dir.write("results.json", &results)?;
    let done = format!("results  {}", path.display());
    Ok(Measured { made: Made::keep(figures(&measured), &output_dir, &done)?, results })
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), CliError> {
    let results = Results::from_json(file)?;
    output::print(&figures(&results).iter().map(report::section).collect::<Vec<_>>().join("\n"))
}
