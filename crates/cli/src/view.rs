//! `oblivio view`: recorded views.

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::path::Path;

use oblivio_core::store::Capabilities;
use oblivio_core::view::{Event, EventSink, Operation, Tally, csv, read_view};
use serde_json::json;

use crate::args::{ExportArgs, ViewShowArgs};
use crate::error::CliError;
use crate::{files, output};

/// `oblivio view export`.
pub(crate) fn export(args: &ExportArgs) -> Result<(), CliError> {
    let View { events, .. } = read(&args.file)?;
    if args.csv == Path::new("-") {
        output::print_with(|out| csv::write_csv(&events, out))
    } else {
        write_csv(&events, &args.csv)
    }
}

/// `oblivio view show`.
pub(crate) fn show(args: &ViewShowArgs) -> Result<(), CliError> {
    let View { capabilities, events } = read(&args.file)?;
    let mut tally = Tally::new();
    events.iter().for_each(|event| tally.record(event, &[]));
    if args.json {
        let totals = Operation::ALL.map(|operation| {
            let total = tally.of(operation);
            let figures =
                json!({ "trips": total.trips, "pieces": total.events, "bytes": total.bytes });
            (operation.name(), figures)
        });
        let mut shown = BTreeMap::from(totals);
        let names = capabilities.map(|these| these.names().collect::<Vec<_>>());
        shown.insert("capabilities", json!(names));
        return output::print(&format!("{:#}", json!(shown)));
    }
    let mut lines = vec!["storage saw      trips     pieces          bytes".to_owned()];
    lines.extend(Operation::ALL.map(|operation| {
        let total = tally.of(operation);
        format!(
            "{:<10} {:>11} {:>10} {:>14}",
            operation.name(),
            total.trips,
            total.events,
            total.bytes
        )
    }));
    let could = capabilities.map_or("not recorded".to_owned(), |these| these.to_string());
    lines.push(format!("it could do, besides whole buckets: {could}"));
    output::print(&lines.join("\n"))
}

/// What a view file holds.
pub(crate) struct View {
    /// What the store could do, if the file says it.
    capabilities: Option<Capabilities>,
    pub(crate) events: Vec<Event>,
}

/// All of a view file.
pub(crate) fn read(path: &Path) -> Result<View, CliError> {
    let file = BufReader::new(files::open(path)?);
    let view = read_view(file).and_then(|reader| {
        let capabilities = reader.capabilities();
        Ok(View { capabilities, events: reader.collect::<Result<_, _>>()? })
    });
    view.map_err(|error| {
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
