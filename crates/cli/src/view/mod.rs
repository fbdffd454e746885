//! `oblivio view`: recorded views.
//!
//! - [`input`]: reads the events of a file one by one; [`inputs`]: reads several files as one,
//!   restricted to some servers ([`parties`]).
//! - [`evaluation`]: evaluates a view in two passes. [`counts`] counts by level (with the [`order`]
//!   in which buckets are written) and over time ([`rates`]). [`leaves`] counts the leaves that
//!   accesses went to, and [`uniformity`] tests them. [`exchanges`] counts messages between
//!   servers. [`summary`] samples the data for the picture of a tree.
//! - [`text`], [`figures`], [`picture`]: show the results.

mod counts;
mod evaluation;
mod exchanges;
mod figures;
mod input;
mod inputs;
mod leaves;
mod order;
mod parties;
mod picture;
mod rates;
mod summary;
mod text;
mod uniformity;

use std::io::{BufWriter, Write};
use std::path::Path;
use std::slice;

use oblivio_core::store::TreeId;

pub(crate) use self::evaluation::ViewEvaluation;
pub(crate) use self::leaves::BucketVisit;
pub(crate) use self::summary::TreeSummary;

use self::input::ViewInput;
use self::parties::Parties;
use crate::args::{ExportArgs, ViewShowArgs};
use crate::error::CliError;
use crate::files::{FileKind, OutputTarget};
use crate::output;

/// `oblivio view export`.
pub(crate) fn export(args: &ExportArgs) -> Result<(), CliError> {
    let mut input = ViewInput::open(&args.file)?;
    let parties = Parties::of(slice::from_ref(&input), &args.parties)?;
    // Write nothing if the view is not complete.
    input.each(&mut |_, _| ())?;
    if args.csv == Path::new("-") {
        return output::print_with(|out| input.write_csv(parties.as_ref(), out));
    }
    let output = OutputTarget::begin(&args.csv, FileKind::CSV)?;
    let mut out = BufWriter::new(output.file());
    input
        .write_csv(parties.as_ref(), &mut out)
        .and_then(|()| out.flush())
        .map_err(|error| output.failed(&error))?;
    drop(out);
    output.finish()
}

/// `oblivio view show`.
pub(crate) fn show(args: &ViewShowArgs) -> Result<(), CliError> {
    let evaluation = ViewEvaluation::read(&args.files, &args.parties, args.tree.map(TreeId))?;
    if let Some(path) = &args.svg {
        picture::draw(&evaluation, args.tree, path)?;
    }
    if args.json {
        return output::print(&format!("{:#}", figures::figures(&evaluation)));
    }
    let picture = args.svg.as_ref().map(|path| format!("\n\npicture    {}", path.display()));
    output::print(&format!("{}{}", text::text(&evaluation), picture.unwrap_or_default()))
}
