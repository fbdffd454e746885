//! The schemes of volumes. No other module of this crate names them.
//!
//! A new scheme is added here and in the list of `oblivio_core::schemes`. No other part of a volume
//! or of the program needs to know it. `oblivio_core::durable` explains how to write a scheme, and
//! lists the tests and documents that it needs.

use oblivio_core::durable::range::DurableRange;
use oblivio_core::durable::rotating::DurableRaw;
use oblivio_core::durable::scan::DurableScan;
use oblivio_core::durable::{ArrayRequirements, DurableScheme};
use oblivio_core::schemes::VolumeScheme;
use oblivio_shares::durable::DurableS3Oram;

use crate::error::{VolumeError, VolumeErrorKind};
use crate::superblock::SchemeName;

macro_rules! descriptions {
    ($($scheme:ident $module:ident),*) => { &[$(description(VolumeScheme::$scheme)),*] };
}

/// Every scheme, in the order of [`VolumeScheme::ALL`]. The first is the default of new volumes.
pub const SCHEMES: &[&dyn DurableScheme] = oblivio_core::schemes!(volume => descriptions);

/// The description of a scheme, from the crate that implements it.
const fn description(scheme: VolumeScheme) -> &'static dyn DurableScheme {
    match scheme {
        VolumeScheme::Raw => &DurableRaw,
        VolumeScheme::Range => &DurableRange,
        VolumeScheme::Scan => &DurableScan,
        VolumeScheme::S3Oram => &DurableS3Oram,
    }
}

/// The scheme of new volumes, unless another is requested.
pub fn default() -> &'static dyn DurableScheme {
    SCHEMES[0]
}

/// Requirements on a disk of `bytes` bytes with the default scheme.
pub fn requirements(bytes: u64) -> ArrayRequirements {
    ArrayRequirements::new(bytes, default().name())
}

/// The scheme of this name, for a new volume.
///
/// # Errors
/// [`VolumeErrorKind::InvalidConfig`] when there is none.
pub fn named(name: &str) -> Result<&'static dyn DurableScheme, VolumeError> {
    find(name).ok_or_else(|| {
        VolumeError::new(
            VolumeErrorKind::InvalidConfig,
            format!("there is no scheme `{name}`: choose one of {}", names()),
        )
    })
}

/// The scheme of an existing volume.
///
/// # Errors
/// [`VolumeErrorKind::UnknownVersion`] when this program does not have it.
pub(crate) fn of_volume(name: &SchemeName) -> Result<&'static dyn DurableScheme, VolumeError> {
    find(name.as_str())
        .ok_or_else(|| VolumeError::new(VolumeErrorKind::UnknownVersion, unknown(name)))
}

/// The message for a volume whose scheme this program does not have.
pub(crate) fn unknown(name: &SchemeName) -> String {
    format!(
        "the volume's scheme is `{name}`, and this program has only {}: upgrade this program",
        names()
    )
}

/// The scheme of this name. `None` if this program does not have it.
pub(crate) fn find(name: &str) -> Option<&'static dyn DurableScheme> {
    SCHEMES.iter().copied().find(|scheme| scheme.name() == name)
}

fn names() -> String {
    let names: Vec<_> = SCHEMES.iter().map(|scheme| format!("`{}`", scheme.name())).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_has_a_name_of_its_own_that_fits_in_a_superblock() {
        for (i, scheme) in SCHEMES.iter().enumerate() {
            assert!(SchemeName::new(scheme.name()).is_some());
            assert_eq!(SCHEMES.iter().position(|it| it.name() == scheme.name()), Some(i));
        }
    }
}
