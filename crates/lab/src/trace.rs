//! What a program asked memory for, as it was recorded: traces in the format of Ramulator.
//!
//! One record a line: `<instructions before it> <read address> [<write-back address>]`, in decimal.
//! A record is a read, and then a write if there is a write-back. Addresses are those of bytes; all
//! that counts is which line of 64 bytes they are in. Files may be compressed (gzip).

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use crate::LabError;

/// Bytes of a line of memory, which is what a request is for.
const LINE_BYTES: u64 = 64;

/// No record is longer: three numbers of 64 bits.
const RECORD_BYTES_MAX: u64 = 128;

/// The longest trace, in requests: a gigabyte of them.
const REQUESTS_MAX: usize = 1 << 26;

/// How a compressed file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A request for a line of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Which line; in a workload, which block.
    pub(crate) address: u64,
    pub(crate) writes: bool,
}

/// A recorded trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    name: String,
    requests: Vec<Request>,
}

impl Trace {
    /// Reads a trace, compressed or not. `name` is what it is called in results and errors.
    ///
    /// # Errors
    /// [`LabError::Trace`] with the number of the first line that is no record, or when there is none,
    /// there are too many, or the file cannot be read or unpacked.
    pub fn read(name: &str, file: impl Read) -> Result<Self, LabError> {
        let mut file = BufReader::new(file);
        let start = file.fill_buf().map_err(|error| unreadable(name, 1, &error))?;
        let requests = if start.starts_with(&GZIP) {
            read_requests(name, BufReader::new(MultiGzDecoder::new(file)))?
        } else {
            read_requests(name, file)?
        };
        Ok(Self { name: name.to_owned(), requests })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many requests it makes: reads and writes.
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Request `number`, its address folded into `capacity` blocks: the line's number modulo that.
    /// After the last comes the first again.
    pub(crate) fn request(&self, number: u64, capacity: u64) -> Request {
        let request = self.requests[(number % self.requests.len() as u64) as usize];
        Request { address: request.address % capacity, ..request }
    }
}

fn read_requests(name: &str, mut file: impl BufRead) -> Result<Vec<Request>, LabError> {
    let mut requests = Vec::new();
    let mut record = Vec::new();
    for line in 1.. {
        record.clear();
        let mut within = Read::by_ref(&mut file).take(RECORD_BYTES_MAX);
        let read = within.read_until(b'\n', &mut record);
        if read.map_err(|error| unreadable(name, line, &error))? == 0 {
            break;
        }
        let Some((read, written)) = parse(&record) else {
            return Err(LabError::Trace(format!(
                "{name}, line {line}: this is no record of a trace; one is \
                 `<instructions> <read address> [<write-back address>]`, in decimal"
            )));
        };
        let request = |address: u64, writes| Request { address: address / LINE_BYTES, writes };
        requests.push(request(read, false));
        requests.extend(written.map(|address| request(address, true)));
        if requests.len() > REQUESTS_MAX {
            return Err(LabError::Trace(format!(
                "{name}, line {line}: there are more than {REQUESTS_MAX} requests; cut the trace"
            )));
        }
    }
    if requests.is_empty() {
        return Err(LabError::Trace(format!("{name}, line 1: the trace is empty")));
    }
    Ok(requests)
}

/// The read address of a record, and that of its write-back.
fn parse(record: &[u8]) -> Option<(u64, Option<u64>)> {
    let record = str::from_utf8(record).ok()?.trim_end();
    let numbers = record.split(' ').map(|number| number.parse().ok());
    match numbers.collect::<Option<Vec<u64>>>()?[..] {
        [_, read] => Some((read, None)),
        [_, read, written] => Some((read, Some(written))),
        _ => None,
    }
}

fn unreadable(name: &str, line: u64, error: &std::io::Error) -> LabError {
    LabError::Trace(format!("{name}, line {line}: it cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn read(text: impl AsRef<[u8]>) -> Result<Trace, String> {
        Trace::read("a.trace", text.as_ref()).map_err(|error| error.to_string())
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(text.as_bytes()).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn a_record_is_a_read_and_then_its_write_back() {
        let trace = read("3 640\n0 18446744073709551615 64\r\n7 0").unwrap();
        let asked: Vec<_> = (0..5).map(|number| trace.request(number, 1000)).collect();
        let [read, written] =
            [false, true].map(|writes| move |address| Request { address, writes });
        let last = (u64::MAX / 64) % 1000;
        assert_eq!(asked, [read(10), read(last), written(1), read(0), read(10)]);
        assert_eq!(trace.requests(), 4);
        assert_eq!(trace.request(0, 8), read(2), "folded");
    }

    #[test]
    fn a_compressed_trace_is_the_same_trace() {
        let text = "1 64\n2 128 192\n".repeat(5000);
        let mut in_two_parts = packed(&text[..7]);
        in_two_parts.extend(packed(&text[7..]));
        assert_eq!(read(in_two_parts), read(&text));
        assert_eq!(read(packed(&text)), read(&text));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        let long = format!("1 64\n{} 5\n", "1".repeat(200));
        let no_records = [
            "1 64\n5\n",
            "1 64\n1 2 3 4",
            "1 64\n\n1 64",
            "1 64\n1 -5",
            "1 64\n1 0x40",
            "1 64\n1  5",
        ];
        for text in no_records.into_iter().chain(["1 64\n1 18446744073709551616", &long]) {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("a.trace, line 2: this is no record"), "{text:?}: {error}");
        }
        assert!(read([b'1', 0xff]).unwrap_err().contains("line 1"));
        assert!(read("").unwrap_err().contains("empty"));
        let mut cut = packed(&"1 64\n".repeat(9));
        cut.truncate(cut.len() - 9);
        assert!(read(cut).unwrap_err().contains("cannot be read"));
    }
}
