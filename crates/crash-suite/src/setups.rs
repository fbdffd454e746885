//! The volumes under test: their names, schemes, devices and storage.

mod range;
mod raw;
mod s3oram;
mod scan;

use oblivio_testkit::crash::small_volume::{Device, SmallVolume};
use oblivio_testkit::crash::{Life, Loss, TrialOutcome};

use crate::objects::CloudService;
use crate::remote::Remote;
use crate::shares::{MissingAnswerPolicy, Servers};

/// A volume under test, with its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) volume: SmallVolume,
    pub(crate) storage: Storage,
}

/// The location of a volume's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// The client's machine.
    Local,
    /// A bucket server.
    Remote,
    /// Objects of a service, which may lose those that are not synced.
    Objects { loses: bool },
    /// `servers` share servers.
    Shared { servers: u8, missing_answer_policy: MissingAnswerPolicy },
}

impl Setup {
    /// Runs the volume through `lives`, with `seed` for all randomness.
    pub(crate) fn run(&self, seed: u64, lives: &[Life]) -> Result<TrialOutcome, Loss> {
        let volume = SmallVolume { seed, ..self.volume };
        match self.storage {
            Storage::Local => volume.run(lives),
            Storage::Remote => {
                let server = Remote::new(seed);
                volume.run_over(lives, |store| server.connect(&store, &volume.shapes()))
            }
            Storage::Objects { loses } => {
                let mut service = CloudService::new(seed, loses);
                volume.run_over(lives, |store| service.connect(store, &volume.shapes()))
            }
            Storage::Shared { servers, missing_answer_policy } => {
                let servers = Servers::new(seed, servers, missing_answer_policy);
                let ran = volume.run_over(lives, |store| Ok(servers.connect(store)))?;
                servers.check()?;
                Ok(ran)
            }
        }
    }
}

/// Creates the setup of a volume stored on the client's machine.
fn local(name: &'static str, volume: SmallVolume) -> Setup {
    Setup { name, volume, storage: Storage::Local }
}

/// Creates the setup of a volume stored on a bucket server.
fn remote(name: &'static str, volume: SmallVolume) -> Setup {
    Setup { name, volume, storage: Storage::Remote }
}

/// Creates the setup of a volume stored in objects.
fn objects(name: &'static str, loses: bool, volume: SmallVolume) -> Setup {
    Setup { name, volume, storage: Storage::Objects { loses } }
}

fn scheduled(cache_blocks_max: u64, accesses: usize) -> Device {
    Device::Scheduled { cache_blocks_max, accesses }
}

/// The base volume. Each setup states its differences from it.
fn common() -> SmallVolume {
    SmallVolume { steps: 60, ..SmallVolume::default() }
}

macro_rules! setups_of_each_scheme {
    ($($scheme:ident $module:ident),*) => { [$($module::setups(common())),*].concat() };
}

/// The setups of every scheme.
pub(crate) fn setups() -> Vec<Setup> {
    oblivio_core::schemes!(volume => setups_of_each_scheme)
}

#[cfg(test)]
mod tests {
    use std::mem;

    use oblivio_core::schemes::VolumeScheme;
    use oblivio_testkit::crash::small_volume::SmallScheme;

    use super::*;

    #[test]
    fn every_scheme_is_tried() {
        for scheme in VolumeScheme::ALL {
            let scheme = mem::discriminant(&SmallScheme::from_scheme(*scheme));
            let mut tried = setups().into_iter().map(|setup| setup.volume.scheme);
            assert!(tried.any(|it| mem::discriminant(&it) == scheme));
        }
    }

    #[test]
    fn every_setup_has_a_name_of_its_own() {
        let mut names: Vec<_> = setups().iter().map(|setup| setup.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
