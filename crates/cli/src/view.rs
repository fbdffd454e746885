//! `oblivio view`: recorded views.

use std::io::{self, BufReader};
use std::path::Path;

use oblivio_core::view::{Event, csv, read_view};

use crate::args::ExportArgs;
use crate::error::CliError;
use crate::{files, output};

/// `oblivio view export`.
pub(crate) fn export(args: &ExportArgs) -> Result<(), CliError> {
    let events = read(&args.file)?;
    if args.csv == Path::new("-") {
        output::print_with(|out| csv::write_csv(&events, out))
    } else {
        write_csv(&events, &args.csv)
    }
}

/// Every event of a view file.
pub(crate) fn read(path: &Path) -> Result<Vec<Event>, CliError> {
    let file = BufReader::new(files::open(path)?);
    read_view(file).and_then(Iterator::collect).map_err(|error| {
        CliError::Input(format!(
            "{} is not a whole view file: {error}; record the view again",
            path.display()
        ))
    })
}

/// Writes events as comma-separated values.
pub(crate) fn write_csv(events: &[Event], path: &Path) -> Result<(), CliError> {
    let mut out = files::create(path)?;
    csv::write_csv(events, &mut out)
        .and_then(|()| io::Write::flush(&mut out))
        .map_err(|error| files::cannot_write(path, &error))
}
