//! How traces are written down.

use std::fmt;

/// A format of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// USIMM: `<gap> R <hex address> [<hex pc>]` or `<gap> W <hex address>`, one record a line. The
    /// program counter is dropped.
    Usimm,
    /// Ramulator (1.0, of a processor): `<gap> <read address> [<write-back address>]` in decimal, a
    /// read and then a write with gap 0 on a line. So every write follows a read.
    Ramulator,
    /// Two to fourteen bytes a record, with a checksum.
    Binary,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Usimm, Self::Ramulator, Self::Binary];

    /// What it is called.
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
