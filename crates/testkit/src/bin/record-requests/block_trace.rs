//! The requests that the kernel sends to a disk, read from the kernel's block trace.

use std::fmt;
use std::fs;
use std::io;

/// The mount point of tracefs.
const TRACING: &str = "/sys/kernel/tracing";
const EVENT: &str = "events/block/block_rq_issue";

/// Size of the trace buffer of each processor, in KiB.
const BUFFER_KIB: u32 = 32 << 10;

/// Number of sectors in a block of 4 KiB.
const BLOCK_SECTORS: u64 = 8;

/// A request that the kernel sent to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    is_write: bool,
    first_block: u64,
    blocks: u64,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_write { 'w' } else { 'r' };
        write!(f, "{what},{},{}", self.first_block, self.blocks)
    }
}

/// A running trace of one disk. Dropping it turns tracing of requests off, and gives tracefs its
/// usual settings.
pub(super) struct BlockTrace;

impl BlockTrace {
    pub(super) fn start((major, minor): (u64, u64)) -> io::Result<Self> {
        set("tracing_on", "0")?;
        set("trace", "")?;
        set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        // The kernel's internal device number has 20 bits for the minor number.
        set(&format!("{EVENT}/filter"), &format!("dev == {}", major << 20 | minor))?;
        set(&format!("{EVENT}/enable"), "1")?;
        set("tracing_on", "1")?;
        Ok(Self)
    }

    /// Stops the trace. Returns the requests in the order of their issue.
    pub(super) fn end(self) -> io::Result<Vec<Request>> {
        set("tracing_on", "0")?;
        let text = fs::read_to_string(format!("{TRACING}/trace"))?;
        if text.lines().any(|line| line.contains("LOST")) {
            return Err(io::Error::other("the kernel lost part of the trace; raise BUFFER_KIB"));
        }
        Ok(text.lines().filter_map(request).collect())
    }
}

impl Drop for BlockTrace {
    fn drop(&mut self) {
        let undone = [
            set(&format!("{EVENT}/enable"), "0"),
            set(&format!("{EVENT}/filter"), "0"),
            set("trace", ""),
            set("buffer_size_kb", "1408"),
            set("tracing_on", "1"),
        ];
        undone.into_iter().filter_map(Result::err).for_each(super::warn);
    }
}

fn set(name: &str, value: &str) -> io::Result<()> {
    let path = format!("{TRACING}/{name}");
    fs::write(&path, value)
        .map_err(|cause| io::Error::new(cause.kind(), format!("cannot write to {path}: {cause}")))
}

/// Parses a trace line such as `… block_rq_issue: 7,0 WS 131072 () 2048 + 256 none,0,0 [kworker]`.
/// `None` for other lines, and for a request that moves no data.
fn request(line: &str) -> Option<Request> {
    let (_, event) = line.split_once("block_rq_issue: ")?;
    let mut words = event.split_whitespace();
    let (_device, kind, _bytes, _command) =
        (words.next()?, words.next()?, words.next()?, words.next()?);
    let (first, _plus, count) = (words.next()?, words.next()?, words.next()?);
    let (first, count): (u64, u64) = (first.parse().ok()?, count.parse().ok()?);
    let is_write = kind.contains('W');
    if count == 0 || kind.contains('D') || !is_write && !kind.contains('R') {
        return None;
    }
    let end = (first + count).div_ceil(BLOCK_SECTORS);
    let first_block = first / BLOCK_SECTORS;
    Some(Request { is_write, first_block, blocks: end - first_block })
}
