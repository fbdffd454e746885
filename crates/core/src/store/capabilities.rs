//! What a store can do.

#[cfg(feature = "std")]
mod bits;

use alloc::format;
use core::fmt;
use core::ops::{BitAnd, BitOr};

use super::{BucketStore, Part, Piece};
use crate::error::{Error, ErrorKind};

/// What a store can do besides reading and writing whole buckets, which every store can.
///
/// A scheme that needs more is refused when it is made on a store that cannot. Nobody makes up for
/// what is missing: storage would see other trips than those of the scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Capabilities(u32);

/// Each by itself, with its name for programs and what people call it, in the order of their bits.
const KNOWN: [(Capabilities, &str, &str); 4] = [
    (Capabilities::PARTS, "parts", "parts of buckets"),
    (Capabilities::CONDITIONAL_RECORDS, "conditional-records", "conditional writes of records"),
    (Capabilities::XOR_READS, "xor-reads", "the XOR of slots"),
    (Capabilities::DEAD_PLACES, "dead-places", "hints that a written place is dead"),
];

impl Capabilities {
    /// Whole buckets, and nothing else.
    pub const NONE: Self = Self(0);

    /// Headers and single slots can be prefetched, read and written. The rest of their bucket stays
    /// as it was.
    pub const PARTS: Self = Self(1);

    /// A record can be written on the condition that it is still the one that was read. So two
    /// clients that take over a volume at once cannot both succeed.
    pub const CONDITIONAL_RECORDS: Self = Self(1 << 1);

    /// One read answers the XOR of slots of several buckets (Ring ORAM, section 3.2).
    pub const XOR_READS: Self = Self(1 << 2);

    /// The client says of a written place that it will not be read again, and storage frees it.
    pub const DEAD_PLACES: Self = Self(1 << 3);

    /// Whether all of `others` are among these.
    pub fn contains(self, others: Self) -> bool {
        others.missing_from(self) == Self::NONE
    }

    /// Those of these that are not among `others`.
    #[must_use]
    pub fn missing_from(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether a store that has these can be asked for `piece`.
    pub fn allow(self, piece: &Piece) -> bool {
        piece.part == Part::Whole || self.contains(Self::PARTS)
    }

    /// The name of each, for programs.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.known().map(|(_, name, _)| *name)
    }

    fn known(self) -> impl Iterator<Item = &'static (Self, &'static str, &'static str)> {
        KNOWN.iter().filter(move |(one, ..)| self.contains(*one))
    }

    /// Refuses a store that lacks one of these. Nothing is asked of it.
    pub(crate) fn check(self, store: &dyn BucketStore) -> Result<(), Error> {
        let missing = self.missing_from(store.capabilities());
        if missing == Self::NONE {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::StoreMismatch,
            format!(
                "the store cannot do what this scheme needs: {missing}; choose a store that can, or \
                 a scheme that moves whole buckets alone, such as Path ORAM or rotating RAW ORAM"
            ),
        ))
    }
}

/// What these and those have in common.
impl BitAnd for Capabilities {
    type Output = Self;

    fn bitand(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }
}

impl BitOr for Capabilities {
    type Output = Self;

    fn bitor(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

/// For people: what there is besides whole buckets.
impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return f.write_str("nothing more");
        }
        for (i, (_, _, name)) in self.known().enumerate() {
            write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_from_what_is_there() {
        let (none, parts) = (Capabilities::NONE, Capabilities::PARTS);
        assert_eq!(parts.missing_from(none), parts);
        assert_eq!(parts.missing_from(parts), none);
        assert_eq!(none.missing_from(parts), none);
        assert!(parts.contains(none) && parts.contains(parts) && !none.contains(parts));
        assert_eq!([parts & none, none & parts, parts & parts], [none, none, parts]);
    }

    #[test]
    fn people_and_programs_read_names() {
        assert_eq!(Capabilities::NONE.to_string(), "nothing more");
        assert_eq!(Capabilities::PARTS.to_string(), "parts of buckets");
        assert_eq!(Capabilities::NONE.names().count(), 0);
        let all = KNOWN.iter().fold(Capabilities::NONE, |all, (one, ..)| all | *one);
        let names = ["parts", "conditional-records", "xor-reads", "dead-places"];
        assert_eq!(all.names().collect::<Vec<_>>(), names);
        let some = Capabilities::PARTS | Capabilities::XOR_READS;
        assert_eq!(some.to_string(), "parts of buckets, the XOR of slots");
    }
}
