//! Capabilities in view files. The format of view files has a bit for parts of buckets and for no
//! other capability.

use super::Capabilities;

impl Capabilities {
    /// The bits of the capabilities that a view file can hold.
    pub(crate) fn bits(self) -> u32 {
        (self & Self::PARTS).0
    }

    /// The capabilities of a view file; `None` if an unknown bit is set.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        let these = Self(u32::try_from(bits).ok()?);
        Self::PARTS.contains(these).then_some(these)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_bits_are_refused() {
        for known in [Capabilities::NONE, Capabilities::PARTS] {
            assert_eq!(Capabilities::from_bits(u64::from(known.bits())), Some(known));
        }
        for unknown in (1..u64::BITS).map(|bit| 1 << bit) {
            assert_eq!(Capabilities::from_bits(unknown), None);
            assert_eq!(Capabilities::from_bits(unknown | 1), None);
        }
    }
}
