//! The formulas of Tiny ORAM, section IV-B: blocks for each bucket of a path, of an access, with a header as large as
//! a block.

use super::Setting;

/// Slots of a bucket of the Path ORAM that RAW ORAM is held against.
pub(super) const PATH_Z: u16 = 4;

/// What Path ORAM moves, and what it encrypts: all of a path, there and back.
pub(super) fn path() -> f64 {
    2.0 * (f64::from(PATH_Z) + 1.0)
}

/// What RAW ORAM moves: `Z + 2 + 2 (Z + 1) / A`.
pub(super) fn memory(Setting { z, a }: Setting) -> f64 {
    f64::from(z) + 2.0 + 2.0 * (f64::from(z) + 1.0) / f64::from(a)
}

/// What it encrypts: "roughly `1 + 2 (Z + 1) / A`".
pub(super) fn encryption(Setting { z, a }: Setting) -> f64 {
    1.0 + 2.0 * (f64::from(z) + 1.0) / f64::from(a)
}

/// Ring ORAM's condition for a stash that is bounded: what is above 0 is.
pub(super) fn ring_bound(Setting { z, a }: Setting) -> f64 {
    let (z, a) = (f64::from(z), f64::from(a));
    z * (2.0 * z / a).ln() + a / 2.0 - z - 4f64.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section IV-B: "6 % memory bandwidth improvement and ~3x encryption reduction".
    #[test]
    fn the_paper_has_the_same_of_z5a5() {
        let setting = Setting { z: 5, a: 5 };
        assert!((memory(setting) / path() - 0.94).abs() < 1e-9);
        assert!((path() / encryption(setting) - 2.94).abs() < 0.01);
        assert!((ring_bound(setting) + 0.42).abs() < 0.01);
    }
}
