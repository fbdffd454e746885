//! Capabilities in view files. Their format has parts of buckets, and no other capability yet.

use super::Capabilities;

impl Capabilities {
    /// The bits of those that a view file can have.
    pub(crate) fn bits(self) -> u32 {
        (self & Self::PARTS).0
    }

    /// The capabilities of a view file; `None` if a bit has no meaning there.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        let these = Self(u32::try_from(bits).ok()?);
        Self::PARTS.contains(these).then_some(these)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_without_a_meaning_are_not_taken() {
        for known in [Capabilities::NONE, Capabilities::PARTS] {
            assert_eq!(Capabilities::from_bits(u64::from(known.bits())), Some(known));
        }
        for unknown in (1..u64::BITS).map(|bit| 1 << bit) {
            assert_eq!(Capabilities::from_bits(unknown), None);
            assert_eq!(Capabilities::from_bits(unknown | 1), None);
        }
    }
}
