//! Loads for disks.

/// One fio job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub name: &'static str,
    /// The pattern of requests, as fio names it.
    pub pattern: &'static str,
    pub request_bytes: u64,
    /// Number of requests in flight at once.
    pub depth: u32,
    /// Whether a flush follows each request, and the load waits for it.
    pub flushes: bool,
    /// Additional options of fio.
    pub more: &'static [&'static str],
}

pub const RANDOM_READ: Load = Load {
    name: "4 KiB random read, qd 16",
    pattern: "randread",
    request_bytes: 4096,
    depth: 16,
    flushes: false,
    more: &[],
};

pub const RANDOM_WRITE: Load =
    Load { name: "4 KiB random write, qd 16", pattern: "randwrite", ..RANDOM_READ };

pub const SINGLE_READ: Load = Load { name: "4 KiB random read, qd 1", depth: 1, ..RANDOM_READ };

pub const FLUSHED_WRITE: Load =
    Load { name: "4 KiB random write + flush, qd 1", depth: 1, flushes: true, ..RANDOM_WRITE };

pub const SEQUENTIAL_READ: Load = Load {
    name: "1 MiB sequential read, qd 4",
    pattern: "read",
    request_bytes: 1 << 20,
    depth: 4,
    flushes: false,
    more: &[],
};

const SEQUENTIAL_WRITE: Load =
    Load { name: "1 MiB sequential write, qd 4", pattern: "write", ..SEQUENTIAL_READ };

/// The loads under which every subject is measured, in order.
pub const LOADS: [Load; 5] =
    [RANDOM_READ, RANDOM_WRITE, FLUSHED_WRITE, SEQUENTIAL_READ, SEQUENTIAL_WRITE];

/// A load that requests a few blocks often, and most blocks rarely.
const ZIPF: Load = Load {
    name: "Zipf 1.2, 70 % 4 KiB reads, qd 16",
    pattern: "randrw",
    more: &["--random_distribution=zipf:1.2", "--rwmixread=70"],
    ..RANDOM_READ
};

/// A load of bursts of 2 MiB with pauses between them.
const BURSTS: Load = Load {
    name: "bursts of 512 4 KiB random writes, pauses of 0.4 s, qd 16",
    more: &["--thinktime=400ms", "--thinktime_blocks=512"],
    ..RANDOM_WRITE
};

const SCAN: Load =
    Load { name: "64 KiB sequential read, qd 4", request_bytes: 64 << 10, ..SEQUENTIAL_READ };

/// The loads under which the techniques of IR-ORAM are measured, in order.
pub const TECHNIQUE_LOADS: [Load; 3] = [ZIPF, BURSTS, SCAN];

/// A load that writes the whole disk once.
pub const FILL: Load = Load { name: "fill", ..SEQUENTIAL_WRITE };

impl Load {
    /// Whether all requests of the load are writes.
    pub fn writes(&self) -> bool {
        self.pattern.ends_with("write")
    }

    /// Whether the load mixes reads and writes.
    pub fn is_mixed(&self) -> bool {
        self.pattern.ends_with("rw")
    }
}
