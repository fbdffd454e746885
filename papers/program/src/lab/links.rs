//! `oblivio-lab run links`.

use std::path::Path;

use oblivio_cli::files::OutputDir;
use oblivio_cli::output;
use oblivio_lab::links::{self, Results, figures};
use oblivio_lab::report;

use super::made::{Made, Measured};
use crate::args::LinksArgs;
use crate::error::ProgramError;

/// `oblivio-lab run links`.
pub(crate) fn run_links(args: &LinksArgs) -> Result<(), ProgramError> {
    let Measured { made, results } = make(args.size, &args.output)?;
    if args.json { Ok(output::print(&results)?) } else { made.print(false) }
}

/// Computes, and keeps what came out.
pub(super) fn make(disk_bytes: u64, output: &Path) -> Result<Measured, ProgramError> {
    let output_dir = OutputDir::prepare(output)?;
    let computed = links::run(disk_bytes)?;
    let results = computed.to_json()?;
    let path = output_dir.write("results.json", &results)?;
    let done = format!("results  {}", path.display());
    Ok(Measured { made: Made::keep(figures(&computed), &output_dir, &done)?, results })
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), ProgramError> {
    let results = Results::from_json(file)?;
    Ok(output::print(
        &figures(&results).iter().map(report::section).collect::<Vec<_>>().join("\n"),
    )?)
}
