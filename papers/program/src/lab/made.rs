//! What an experiment that makes figures gives.

use oblivio_cli::files::OutputDir;
use oblivio_cli::output;
use oblivio_lab::LabError;
use oblivio_lab::report::{self, Figure};

use crate::error::ProgramError;

/// The file of all figures.
pub(super) const FIGURES_FILE: &str = "figures.json";

/// Figures that are kept.
pub(super) struct Made {
    pub(super) figures: Vec<Figure>,
    json: String,
    /// How much was done, and where it is.
    end: String,
}

/// The figures, and the file of results that they are of.
pub(super) struct Measured {
    pub(super) made: Made,
    pub(super) results: String,
}

impl Made {
    /// Keeps `figures`. `done` says what was done for them, and where that is.
    pub(super) fn keep(
        figures: Vec<Figure>,
        output_dir: &OutputDir,
        done: &str,
    ) -> Result<Self, ProgramError> {
        let json = serde_json::to_string_pretty(&figures).map_err(LabError::from)?;
        let path = output_dir.write(FIGURES_FILE, &json)?;
        let end = format!("{done}\nfigures  {}", path.display());
        Ok(Self { figures, json, end })
    }

    /// Shows all of it.
    pub(super) fn print(&self, as_json: bool) -> Result<(), ProgramError> {
        if as_json {
            return Ok(output::print(&self.json)?);
        }
        let tables: Vec<_> = self.figures.iter().map(report::section).collect();
        Ok(output::print(&format!("{}\n{}", tables.join("\n"), self.end))?)
    }

    /// How much was done, and where it is.
    pub(super) fn end(&self) -> &str {
        &self.end
    }
}
