//! Arguments of `oblivio-lab report`.

use std::path::PathBuf;

use clap::Args;

pub(crate) const REPORT_EXAMPLES: &str = "\
Examples:
  oblivio-lab report figures.json
  oblivio-lab report fig*.json --output report.html --markdown report.md --when 'May 2026'

A file holds a list of figures as JSON. The page contains its plots and its style: it loads nothing
and runs no script. The same files and arguments give the same page.";

/// The default title of a page.
pub(crate) const TITLE: &str = "Oblivio beside the papers";

#[derive(Args)]
pub(crate) struct ReportArgs {
    /// The figures, in the order of the page.
    #[arg(required = true, value_name = "FIGURES")]
    pub(crate) files: Vec<PathBuf>,
    /// The page to write. An existing report is replaced; a file of another kind is not.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Also write Markdown, without plots. An existing report is replaced; a file of another kind
    /// is not.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// The title of the page.
    #[arg(long, value_name = "TEXT", default_value = TITLE)]
    pub(crate) title: String,
    /// The machine that measured, for the heading of the page.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) machine: String,
    /// The date of the measurement, for the heading of the page.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) when: String,
}
