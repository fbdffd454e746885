//! Prints the results of the tool as text or JSON.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::leaks::Leak;
use crate::tests::Test;

/// A line of output, as JSON and as text.
pub(crate) struct ReportLine {
    pub(crate) json: serde_json::Value,
    pub(crate) text: String,
}

/// Prints lines from several threads to standard output.
pub(crate) struct Report {
    as_json: bool,
    out: Mutex<io::Stdout>,
}

impl Report {
    pub(crate) fn new(as_json: bool) -> Self {
        Self { as_json, out: Mutex::new(io::stdout()) }
    }

    pub(crate) fn print(&self, line: &ReportLine) -> Result<(), String> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match self.as_json {
            true => writeln!(out, "{}", line.json),
            false => writeln!(out, "{}", line.text),
        };
        written.and_then(|()| out.flush()).map_err(|cause| format!("cannot print: {cause}"))
    }
}

pub(crate) fn listing(leak: &Leak) -> ReportLine {
    let found_by: Vec<_> = leak.found_by.iter().map(Test::to_string).collect();
    ReportLine {
        json: json!({ "leak": leak.name, "shows": leak.shows, "found_by": found_by }),
        text: format!("{:32} {}", leak.name, leak.shows),
    }
}
