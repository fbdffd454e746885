//! What is asked of a disk.

/// One fio job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub name: &'static str,
    /// fio's name of the pattern.
    pub pattern: &'static str,
    pub request_bytes: u64,
    /// Requests in flight together.
    pub depth: u32,
    /// A flush after each request, which is waited for.
    pub flushes: bool,
}

pub const RANDOM_READ: Load = Load {
    name: "4 KiB random read, qd 16",
    pattern: "randread",
    request_bytes: 4096,
    depth: 16,
    flushes: false,
};

pub const RANDOM_WRITE: Load =
    Load { name: "4 KiB random write, qd 16", pattern: "randwrite", ..RANDOM_READ };

const FLUSHED_WRITE: Load =
    Load { name: "4 KiB random write + flush, qd 1", depth: 1, flushes: true, ..RANDOM_WRITE };

const SEQUENTIAL_READ: Load = Load {
    name: "1 MiB sequential read, qd 4",
    pattern: "read",
    request_bytes: 1 << 20,
    depth: 4,
    flushes: false,
};

const SEQUENTIAL_WRITE: Load =
    Load { name: "1 MiB sequential write, qd 4", pattern: "write", ..SEQUENTIAL_READ };

/// What every subject is put under, in this order.
pub const LOADS: [Load; 5] =
    [RANDOM_READ, RANDOM_WRITE, FLUSHED_WRITE, SEQUENTIAL_READ, SEQUENTIAL_WRITE];

/// Writes the whole disk once.
pub const FILL: Load = Load { name: "fill", ..SEQUENTIAL_WRITE };

impl Load {
    pub fn writes(&self) -> bool {
        self.pattern.ends_with("write")
    }
}
