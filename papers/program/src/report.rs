//! `oblivio-lab report`: builds a page from the figures in files.

use std::path::Path;

use oblivio_cli::error::CliError;
use oblivio_cli::files::{self, FileKind, OutputTarget};
use oblivio_cli::output;
use oblivio_lab::report::{self, About, Figure};

use crate::args::ReportArgs;
use crate::error::ProgramError;

/// The kind of file that `--output` may replace.
const PAGE: FileKind = FileKind::public("a report", |start| start.starts_with(b"<!DOCTYPE html>"));

/// The kind of file that `--markdown` may replace.
const MARKDOWN: FileKind = FileKind::public("a report in Markdown", |start| {
    files::is_text(start) && start.starts_with(b"# ")
});

/// Runs `oblivio-lab report`.
pub(crate) fn run(args: &ReportArgs) -> Result<(), ProgramError> {
    let outputs = || [Some(&args.output), args.markdown.as_ref()].into_iter().flatten();
    if let Some(twice) = outputs().find(|path| args.files.contains(path)) {
        return Err(CliError::Input(format!(
            "{} holds figures, and the report would replace it: choose another file",
            twice.display()
        ))
        .into());
    }
    if args.markdown.as_ref() == Some(&args.output) {
        return Err(CliError::Input(format!(
            "the page and its Markdown cannot both be {}: choose two files",
            args.output.display()
        ))
        .into());
    }
    let mut figures = Vec::new();
    for path in &args.files {
        figures.extend(read(path)?);
    }
    let about = About {
        title: args.title.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: args.machine.clone(),
        when: args.when.clone(),
    };

    // Write both completely before naming either.
    let page = OutputTarget::with(&args.output, PAGE, &report::html(&figures, &about))?;
    let markdown = args
        .markdown
        .as_ref()
        .map(|path| OutputTarget::with(path, MARKDOWN, &report::markdown(&figures, &about)));
    let markdown = markdown.transpose()?;
    page.finish()?;
    markdown.map(OutputTarget::finish).transpose()?;

    let places = outputs().zip(["report  ", "markdown"]);
    let places = places.map(|(path, what)| format!("{what} {}", path.display()));
    Ok(output::print(&format!(
        "{}\n{}",
        report::summary(&figures),
        places.collect::<Vec<_>>().join("\n")
    ))?)
}

fn read(path: &Path) -> Result<Vec<Figure>, CliError> {
    let text = files::read_regular_text(path, report::BYTES_MAX)?;
    let read = report::read(&text);
    read.map_err(|error| CliError::Input(format!("{} cannot be used: {error}", path.display())))
}
