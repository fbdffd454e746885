//! Traces as text, one record a line: what the formats of USIMM and Ramulator have in common.

use std::io::{self, BufRead, Read};

use super::{Record, ramulator, usimm};
use crate::{LINE_BYTES, SimError};

/// The longest line, in bytes with its end: no record comes near.
const TEXT_LINE_BYTES_MAX: usize = 128;

/// A format of text.
#[derive(Clone, Copy)]
pub(super) enum TextFormat {
    Usimm,
    Ramulator,
}

/// What a line says: a record, and perhaps another right after.
pub(super) struct Line {
    pub(super) first: Record,
    pub(super) then: Option<Record>,
}

impl TextFormat {
    const ALL: [Self; 2] = [Self::Usimm, Self::Ramulator];

    fn parse(self, line: &str) -> Option<Line> {
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

    /// What a record looks like, for who gave something else.
    fn description(format: Option<Self>) -> String {
        let forms = Self::ALL.map(Self::form).join(", or ");
        format!("one is {}", format.map_or(forms, |format| format.form().to_owned()))
    }
}

/// All records of `file`, `records_max` at most. Without a format, the first line decides.
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
        let Some((known, Line { first, then })) = known else {
            return Err(SimError::Trace(format!(
                "{name}, line {number}: this is no record of a trace{}; {}",
                defect(&line),
                TextFormat::description(format)
            )));
        };
        format = Some(known);
        // Before they are in: a list that is full takes twice its memory for one record more.
        if records.len() + 1 + usize::from(then.is_some()) > records_max {
            return Err(SimError::Trace(format!(
                "{name}, line {number}: there are more than {records_max} records; cut the trace"
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

/// What is wrong with a line, if it is a mistake that its look hides.
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
    SimError::Trace(format!("{name}, line {line}: it cannot be read: {error}"))
}

/// The number of the line of memory that holds the byte at `address`.
pub(super) fn line_at(address: u64) -> u64 {
    address / LINE_BYTES
}

/// A number of digits only: no sign.
pub(super) fn number(digits: &str, radix: u32) -> Option<u64> {
    let all_digits = digits.chars().all(|digit| digit.is_digit(radix));
    all_digits.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// A line without its end; none if it is cut or no text.
fn text_of(line: &[u8]) -> Option<&str> {
    let is_cut = line.len() == TEXT_LINE_BYTES_MAX && !line.ends_with(b"\n");
    let text = (!is_cut).then(|| str::from_utf8(line).ok()).flatten()?;
    Some(text.trim_end())
}
