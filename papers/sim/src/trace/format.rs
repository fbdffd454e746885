//! The formats of trace files.

use std::fmt;

/// A format of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// USIMM: one record per line, `<gap> R <hex address> [<hex pc>]` or `<gap> W <hex address>`.
    /// The program counter is ignored.
    Usimm,
    /// Ramulator 1.0, processor traces: `<gap> <read address> [<write-back address>]` in decimal. A
    /// line of the file is a read, optionally followed by a write with gap 0. So every write
    /// follows a read.
    Ramulator,
    /// This project's binary format: two to fourteen bytes per record, with a checksum.
    Binary,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Usimm, Self::Ramulator, Self::Binary];

    /// The name of the format on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usimm => "usimm",
            Self::Ramulator => "ramulator",
            Self::Binary => "binary",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
