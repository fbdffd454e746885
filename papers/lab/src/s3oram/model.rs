//! Computes the seconds of every scheme on every link and disk, for figures and claims.

use super::place::{DelayParts, Deployment, Disk};
use super::rates::{Machine, Rates};
use super::work::Scheme;
use crate::LabError;
use oblivio_models::link::Link;

/// The size in bytes of the database for which the paper states most numbers.
pub(super) const DATABASE: u64 = 40 << 30;

/// A KiB, in bytes.
pub(super) const KIB: u32 = 1 << 10;

/// The link of the paper's laptop, as stated in section 5.1.
pub(super) const HOME: Link = Link::new(29.0, 5.0, 15.0);

/// The link of the paper's phone.
pub(super) const LTE: Link = Link::new(27.0, 9.0, 25.0);

/// The delay in seconds that the paper states for blocks of 128 KiB in 40 GB over [`HOME`].
pub(super) const STATED_SECONDS: f64 = 2.4;

/// The model of the paper's servers, if they computed as fast as this machine.
pub(super) struct Model {
    pub(super) machine: Machine,
    /// The disk with which the model gives [`STATED_SECONDS`]. The paper's servers had an unstated
    /// part of the data in memory.
    pub(super) fitted: Disk,
}

impl Model {
    pub(super) fn new(machine: Machine) -> Result<Self, LabError> {
        let scheme = Scheme::Published;
        let work = scheme.works(DATABASE, 128 * KIB)?.mean();
        let place = Deployment::paper(HOME, Disk::memory());
        let rest = place.parts(&work, rates(&machine, scheme)).seconds();
        let moved = work.disk_read_bytes + work.disk_written_bytes;
        // If this machine computes slower than the paper's servers, no time is left for a disk.
        let left = (STATED_SECONDS - rest).max(1e-3);
        let megabytes = moved / left / 1e6;
        let fitted =
            Disk { name: format!("{megabytes:.0} MB/s, fitted"), ..Disk::with_rate("", megabytes) };
        Ok(Self { machine, fitted })
    }

    /// The time of an access with its share of an eviction, in parts.
    pub(super) fn parts(
        &self,
        scheme: Scheme,
        (link, disk): (Link, &Disk),
        database_bytes: u64,
        block_bytes: u32,
    ) -> Result<DelayParts, LabError> {
        let work = scheme.works(database_bytes, block_bytes)?.mean();
        Ok(Deployment::paper(link, disk.clone()).parts(&work, rates(&self.machine, scheme)))
    }

    /// The seconds of an access to the largest database, on the fitted disk.
    pub(super) fn seconds(
        &self,
        scheme: Scheme,
        link: Link,
        block_bytes: u32,
    ) -> Result<f64, LabError> {
        Ok(self.parts(scheme, (link, &self.fitted), DATABASE, block_bytes)?.seconds())
    }

    /// The rate in Mbit/s, equal in both directions, above which `scheme` is faster than `other`.
    /// `None` if `scheme` is already faster at 1 Mbit/s, or still not faster at 100,000.
    pub(super) fn crossover(
        &self,
        scheme: Scheme,
        other: Scheme,
        disk: &Disk,
    ) -> Result<Option<f64>, LabError> {
        let is_faster = |megabits: f64| {
            let link = Link::new(megabits, megabits, HOME.round_trip_millis);
            let of = |scheme| self.parts(scheme, (link, disk), DATABASE, 128 * KIB);
            Ok::<_, LabError>(of(scheme)?.seconds() < of(other)?.seconds())
        };
        let (mut least, mut most) = (1.0, 100_000.0);
        if is_faster(least)? || !is_faster(most)? {
            return Ok(None);
        }
        while most - least > 0.01 {
            let middle = f64::midpoint(least, most);
            if is_faster(middle)? {
                most = middle;
            } else {
                least = middle;
            }
        }
        Ok(Some(most))
    }
}

fn rates(machine: &Machine, scheme: Scheme) -> &Rates {
    match scheme {
        Scheme::Published => &machine.words,
        _ => &machine.bytes,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::links::TABLE1_LINK;

    /// Example rates for tests: one to ten nanoseconds per element, and less for multiply-adds of
    /// bytes.
    pub(in crate::s3oram) fn machine() -> Machine {
        let bytes = Rates { inner: 5e9, matrix: 3e10, share: 5e8, recover: 1e9, draw: 1e9 };
        let words = Rates { inner: 6e8, matrix: 6e8, share: 1e8, recover: 2e8, draw: 2e8 };
        Machine { bytes, words }
    }

    #[test]
    fn path_oram_takes_the_stated_20_3_seconds_only_on_the_link_of_table_1() {
        let model = Model::new(machine()).unwrap();
        let seconds = |link| {
            let memory = Disk::memory();
            let parts = model.parts(Scheme::Path, (link, &memory), DATABASE, 128 * KIB).unwrap();
            parts.client_server
        };
        assert!((seconds(TABLE1_LINK) - 20.3).abs() < 0.06);
        assert!((seconds(HOME) - 23.4).abs() < 0.06);
    }

    #[test]
    fn the_fitted_disk_gives_the_stated_seconds() {
        let model = Model::new(machine()).unwrap();
        let seconds = model.seconds(Scheme::Published, HOME, 128 * KIB).unwrap();
        assert!((seconds - STATED_SECONDS).abs() < 1e-9, "{seconds}, {}", model.fitted);
    }

    /// At the crossover two schemes take equal time. On either side, one of them is faster.
    #[test]
    fn schemes_cross_at_equal_times() {
        let model = Model::new(machine()).unwrap();
        let at = model.crossover(Scheme::Path, Scheme::Published, &Disk::local()).unwrap().unwrap();
        let of = |scheme, megabits| {
            let link = Link::new(megabits, megabits, HOME.round_trip_millis);
            let disk = Disk::local();
            model.parts(scheme, (link, &disk), DATABASE, 128 * KIB).unwrap().seconds()
        };
        for (megabits, is_path_faster) in [(at * 0.99, false), (at * 1.01, true)] {
            let (path, published) = (of(Scheme::Path, megabits), of(Scheme::Published, megabits));
            assert_eq!(path < published, is_path_faster, "{megabits}");
        }
        assert_eq!(model.crossover(Scheme::Path, Scheme::Path, &Disk::local()).unwrap(), None);
    }
}
