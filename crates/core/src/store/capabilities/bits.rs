//! What a store can do, as it is written down.

use super::Capabilities;

impl Capabilities {
    /// As they are written down.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// What was written down, unless a bit of it has no meaning.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        let these = Self(u32::try_from(bits).ok()?);
        let unknown = these.known().fold(these, |rest, (one, ..)| rest.missing_from(*one));
        (unknown == Self::NONE).then_some(these)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_without_a_meaning_are_not_taken() {
        for known in (0..1 << 4).map(Capabilities) {
            assert_eq!(Capabilities::from_bits(u64::from(known.bits())), Some(known));
        }
        for unknown in (4..u64::BITS).map(|bit| 1 << bit) {
            assert_eq!(Capabilities::from_bits(unknown), None);
            assert_eq!(Capabilities::from_bits(unknown | 1), None);
        }
    }
}
