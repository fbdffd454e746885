//! `oblivio lab run dram`.

use oblivio_lab::LabError;
use oblivio_lab::dram::{self, Results, figures};
use oblivio_lab::report;

use crate::args::DramArgs;
use crate::error::CliError;
use crate::files::OutputDir;
use crate::output;

/// `oblivio lab run dram`.
pub(crate) fn run_dram(args: &DramArgs) -> Result<(), CliError> {
    let output_dir = OutputDir::prepare(&args.output)?;
    let measured = dram::run(args.seed)?;
    let results = measured.to_json()?;
    let json = serde_json::to_string_pretty(&figures(&measured)).map_err(LabError::from)?;
    let results_path = output_dir.write("results.json", &results)?;
    let figures_path = output_dir.write("figures.json", &json)?;
    if args.json {
        return output::print(&results);
    }
    output::print(&format!(
        "{}\nresults  {}\nfigures  {}",
        tables(&measured),
        results_path.display(),
        figures_path.display()
    ))
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), CliError> {
    output::print(&tables(&Results::from_json(file)?))
}

fn tables(results: &Results) -> String {
    figures(results).iter().map(report::section).collect::<Vec<_>>().join("\n")
}
