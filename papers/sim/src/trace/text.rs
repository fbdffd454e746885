//! Text traces, with one record per line: common parts of the USIMM and Ramulator formats.

use std::io::{self, BufRead, Read};

use super::{Record, ramulator, usimm};
use crate::{LINE_BYTES, SimError};

/// The maximum length of a line in bytes, including its end. Records are much shorter.
const TEXT_LINE_BYTES_MAX: usize = 128;

/// A text format of trace files.
#[derive(Clone, Copy)]
pub(super) enum TextFormat {
    Usimm,
    Ramulator,
}

/// The contents of a line: one or two records.
pub(super) struct TextLine {
    pub(super) first: Record,
    pub(super) then: Option<Record>,
}

impl TextFormat {
    const ALL: [Self; 2] = [Self::Usimm, Self::Ramulator];

    fn parse(self, line: &str) -> Option<TextLine> {
        match self {
            Self::Usimm => usimm::parse(line),
            Self::Ramulator => ramulator::parse(line),
        }
    }

    fn form(self) -> &'static str {
        match self {
            Self::Usimm => usimm::FORM,
            Self::Ramulator => ramulator::FORM,
        }
    }

    /// The form of a record, for messages.
    fn description(format: Option<Self>) -> String {
        let forms = Self::ALL.map(Self::form).join(", or ");
        format!("a record is {}", format.map_or(forms, |format| format.form().to_owned()))
    }
}

/// Reads all records of `file`. More than `records_max` records are an error. Without a format, the
/// first line determines the format.
pub(super) fn read(
    name: &str,
    mut format: Option<TextFormat>,
    mut file: impl BufRead,
    records_max: usize,
) -> Result<Vec<Record>, SimError> {
    let mut records = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut within = Read::by_ref(&mut file).take(TEXT_LINE_BYTES_MAX as u64);
        let bytes = within.read_until(b'\n', &mut line);
        if bytes.map_err(|error| unreadable(name, number, &error))? == 0 {
            break;
        }
        let of = |format: TextFormat| Some((format, format.parse(text_of(&line)?)?));
        let known = format.map_or_else(|| TextFormat::ALL.into_iter().find_map(of), of);
        let Some((known, TextLine { first, then })) = known else {
            return Err(SimError::Trace(format!(
                "{name}, line {number}: not a trace record{}; {}",
                defect(&line),
                TextFormat::description(format)
            )));
        };
        format = Some(known);
        // Check before adding: growing a full list for one more record takes twice its memory.
        if records.len() + 1 + usize::from(then.is_some()) > records_max {
            return Err(SimError::Trace(format!(
                "{name}, line {number}: more than {records_max} records; shorten the trace"
            )));
        }
        records.push(first);
        records.extend(then);
    }
    if records.is_empty() {
        return Err(SimError::Trace(format!(
            "{name}, line 1: the trace is empty; give a file with records: {}",
            TextFormat::description(format)
        )));
    }
    Ok(records)
}

/// Describes a mistake that is invisible or easily overlooked, if the line has one.
fn defect(line: &[u8]) -> &'static str {
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let gap = str::from_utf8(&line[..digits]).ok().filter(|gap| !gap.is_empty());
    if line.starts_with("\u{feff}".as_bytes()) {
        " (it begins with a byte order mark: save the file as UTF-8 without one)"
    } else if gap.is_some_and(|gap| gap.parse::<u32>().is_err()) {
        " (its gap is 2^32 or more)"
    } else {
        ""
    }
}

pub(super) fn unreadable(name: &str, line: u64, error: &io::Error) -> SimError {
    SimError::Trace(format!("{name}, line {line}: the file cannot be read: {error}"))
}

/// Converts the byte address `address` to the number of its line.
pub(super) fn line_at(address: u64) -> u64 {
    address / LINE_BYTES
}

/// Parses a number that consists of digits only, without a sign.
pub(super) fn number(digits: &str, radix: u32) -> Option<u64> {
    let all_digits = digits.chars().all(|digit| digit.is_digit(radix));
    all_digits.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// Returns a line without trailing white space; `None` if the line is too long or not UTF-8.
fn text_of(line: &[u8]) -> Option<&str> {
    let is_cut = line.len() == TEXT_LINE_BYTES_MAX && !line.ends_with(b"\n");
    let text = (!is_cut).then(|| str::from_utf8(line).ok()).flatten()?;
    Some(text.trim_end())
}
