//! `oblivio man`: man pages, from the same definitions as the help texts.

use std::path::Path;

use crate::args;
use crate::error::CliError;
use crate::files::OutputDir;
use crate::{files, output};

/// `oblivio man`.
pub(crate) fn man(directory: &Path) -> Result<(), CliError> {
    OutputDir::prepare(directory)?;
    clap_mangen::generate_to(args::command(), directory)
        .map_err(|error| files::cannot_write(directory, &error))?;
    output::print(&format!("the man pages are in {}", directory.display()))
}
