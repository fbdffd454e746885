//! The optional capabilities of stores.

#[cfg(feature = "std")]
mod bits;

use alloc::format;
use core::fmt;
use core::ops::{BitAnd, BitOr};

use super::{BucketStore, Part, Piece};
use crate::error::{Error, ErrorKind};

/// The operations that a store offers in addition to reading and writing whole buckets.
///
/// A scheme that needs a missing capability is refused when it is made on such a store. No layer
/// emulates a missing capability, because storage would then see trips that the scheme did not
/// make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Capabilities(u32);

/// All capabilities in the order of their bits, each with its name for programs and its
/// description.
const KNOWN: [(Capabilities, &str, &str); 4] = [
    (Capabilities::PARTS, "parts", "parts of buckets"),
    (Capabilities::CONDITIONAL_RECORDS, "conditional-records", "conditional writes of records"),
    (Capabilities::XOR_READS, "xor-reads", "the XOR of slots"),
    (Capabilities::DEAD_PLACES, "dead-places", "hints that a written place is dead"),
];

impl Capabilities {
    /// No capability in addition to whole buckets.
    pub const NONE: Self = Self(0);

    /// Headers and single slots can be prefetched, read and written. A write leaves the rest of the
    /// bucket unchanged.
    pub const PARTS: Self = Self(1);

    /// A record can be written on the condition that it still has the value that was read. So if
    /// two clients take over a volume at the same time, only one succeeds.
    pub const CONDITIONAL_RECORDS: Self = Self(1 << 1);

    /// One read returns the XOR of slots of several buckets (Ring ORAM, section 3.2).
    pub const XOR_READS: Self = Self(1 << 2);

    /// The client tells storage that it will not read a written place again, and storage frees it.
    pub const DEAD_PLACES: Self = Self(1 << 3);

    /// Whether all of `others` are in this set.
    pub fn contains(self, others: Self) -> bool {
        others.missing_from(self) == Self::NONE
    }

    /// The capabilities in this set that are not in `others`.
    #[must_use]
    pub fn missing_from(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether a store with these capabilities can serve `piece`.
    pub fn allow(self, piece: &Piece) -> bool {
        piece.part == Part::Whole || self.contains(Self::PARTS)
    }

    /// The names of these capabilities, for programs.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.known().map(|(_, name, _)| *name)
    }

    fn known(self) -> impl Iterator<Item = &'static (Self, &'static str, &'static str)> {
        KNOWN.iter().filter(move |(one, ..)| self.contains(*one))
    }

    /// Fails with [`ErrorKind::StoreMismatch`] if a store lacks one of these capabilities. Sends no
    /// request to the store.
    pub(crate) fn check(self, store: &dyn BucketStore) -> Result<(), Error> {
        let missing = self.missing_from(store.capabilities());
        if missing == Self::NONE {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::StoreMismatch,
            format!(
                "this scheme needs a store with {missing}: choose such a store, or \
                 a scheme that moves only whole buckets, such as Path ORAM or rotating RAW ORAM"
            ),
        ))
    }
}

/// The intersection of two sets of capabilities.
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

/// The descriptions of the capabilities, separated by commas; "nothing more" if there are none.
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
    fn missing_and_present_capabilities_are_distinguished() {
        let (none, parts) = (Capabilities::NONE, Capabilities::PARTS);
        assert_eq!(parts.missing_from(none), parts);
        assert_eq!(parts.missing_from(parts), none);
        assert_eq!(none.missing_from(parts), none);
        assert!(parts.contains(none) && parts.contains(parts) && !none.contains(parts));
        assert_eq!([parts & none, none & parts, parts & parts], [none, none, parts]);
    }

    #[test]
    fn capabilities_have_names_for_people_and_programs() {
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
