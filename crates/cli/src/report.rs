//! `oblivio lab report`: figures of files on one page.

use std::path::Path;

use oblivio_lab::report::{self, About, Figure};

use crate::args::ReportArgs;
use crate::error::CliError;
use crate::files::{self, Kind, Output};
use crate::output;

/// `oblivio lab report`.
pub(crate) fn run(args: &ReportArgs) -> Result<(), CliError> {
    let outputs = || [Some(&args.output), args.markdown.as_ref()].into_iter().flatten();
    if let Some(twice) = outputs().find(|path| args.files.contains(path)) {
        return Err(CliError::Input(format!(
            "{} holds figures, and the report would replace it: choose another place",
            twice.display()
        )));
    }
    if args.markdown.as_ref() == Some(&args.output) {
        return Err(CliError::Input(format!(
            "the page and its Markdown cannot both be {}: choose two places",
            args.output.display()
        )));
    }
    let mut figures = Vec::new();
    for path in &args.files {
        figures.extend(read(path)?);
    }
    // What explains a number of one file may be in another.
    report::look_up(&mut figures)
        .map_err(|error| CliError::Input(format!("these figures cannot be one report: {error}")))?;
    let about = About {
        title: args.title.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: args.machine.clone(),
        when: args.when.clone(),
    };

    // Both are whole before either has its name.
    let page = Output::with(&args.output, Kind::Page, &report::html(&figures, &about))?;
    let markdown = args
        .markdown
        .as_ref()
        .map(|path| Output::with(path, Kind::Markdown, &report::markdown(&figures, &about)));
    let markdown = markdown.transpose()?;
    page.finish()?;
    markdown.map(Output::finish).transpose()?;

    let places = outputs().zip(["report  ", "markdown"]);
    let places = places.map(|(path, what)| format!("{what} {}", path.display()));
    output::print(&format!(
        "{}\n{}",
        report::summary(&figures),
        places.collect::<Vec<_>>().join("\n")
    ))
}

fn read(path: &Path) -> Result<Vec<Figure>, CliError> {
    let text = files::read_regular_text(path, report::BYTES_MAX)?;
    report::read(&text)
        .map_err(|error| CliError::Input(format!("{} cannot be used: {error}", path.display())))
}
