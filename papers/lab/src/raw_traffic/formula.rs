//! The formulas of Tiny ORAM, section IV-B: blocks that an access transfers per bucket of a path,
//! where a header counts as a block.

use super::RawTrafficSetting;

/// Slots of a bucket in the Path ORAM that RAW ORAM is compared with.
pub(super) const PATH_Z: u16 = 4;

/// Blocks that Path ORAM transfers and encrypts: a whole path, read and written.
pub(super) fn path() -> f64 {
    2.0 * (f64::from(PATH_Z) + 1.0)
}

/// Blocks that RAW ORAM transfers: `Z + 2 + 2 (Z + 1) / A`.
pub(super) fn memory(RawTrafficSetting { z, a }: RawTrafficSetting) -> f64 {
    f64::from(z) + 2.0 + 2.0 * (f64::from(z) + 1.0) / f64::from(a)
}

/// Blocks that RAW ORAM encrypts: "roughly `1 + 2 (Z + 1) / A`".
pub(super) fn encryption(RawTrafficSetting { z, a }: RawTrafficSetting) -> f64 {
    1.0 + 2.0 * (f64::from(z) + 1.0) / f64::from(a)
}

/// The left side of Ring ORAM's condition. If it is positive, the stash is bounded.
pub(super) fn ring_bound(RawTrafficSetting { z, a }: RawTrafficSetting) -> f64 {
    let (z, a) = (f64::from(z), f64::from(a));
    z * (2.0 * z / a).ln() + a / 2.0 - z - 4f64.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the formulas with section IV-B: "6 % memory bandwidth improvement and ~3x
    /// encryption reduction".
    #[test]
    fn the_formulas_give_the_papers_numbers_for_z5a5() {
        let setting = RawTrafficSetting { z: 5, a: 5 };
        assert!((memory(setting) / path() - 0.94).abs() < 1e-9);
        assert!((path() / encryption(setting) - 2.94).abs() < 0.01);
        assert!((ring_bound(setting) + 0.42).abs() < 0.01);
    }
}
