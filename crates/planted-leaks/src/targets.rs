//! The test targets that are to find leaks.

use std::fmt;

/// A file, or a folder, of integration tests of one crate; or its unit tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TestTarget {
    pub(crate) package: &'static str,
    pub(crate) name: &'static str,
}

/// Instead of the name of integration tests: the unit tests of the library.
const UNIT_TESTS: &str = "lib";

/// What storage sees of the engine.
pub(crate) const PRIVACY: TestTarget = TestTarget { package: "oblivio-core", name: "privacy" };

/// What storage may learn of a volume, law by law.
pub(crate) const VOLUME_PRIVACY: TestTarget =
    TestTarget { package: "oblivio-volume", name: "privacy" };

/// What storage sees of a disk at a fixed rate.
pub(crate) const VOLUME_SCHEDULE: TestTarget =
    TestTarget { package: "oblivio-volume", name: "schedule" };

/// What storage sees of a volume across crashes.
pub(crate) const VOLUME_VIEW: TestTarget = TestTarget { package: "oblivio-volume", name: "view" };

/// What storage that changes bytes learns.
pub(crate) const VOLUME_LYING_STORAGE: TestTarget =
    TestTarget { package: "oblivio-volume", name: "lying_storage" };

/// What is taken for the latest of a damaged volume.
pub(crate) const VOLUME_RESCUE: TestTarget =
    TestTarget { package: "oblivio-volume", name: "rescue" };

/// Old directories, old storage, and copies of a client.
pub(crate) const VOLUME_GOING_BACK: TestTarget =
    TestTarget { package: "oblivio-volume", name: "going_back" };

/// Who may open a volume.
pub(crate) const VOLUME_KEYS: TestTarget = TestTarget { package: "oblivio-volume", name: "keys" };

/// What a volume is after a crash.
pub(crate) const VOLUME_CRASH: TestTarget = TestTarget { package: "oblivio-volume", name: "crash" };

/// What is left where the write of an anchor is torn.
pub(crate) const VOLUME_TORN_ANCHOR: TestTarget =
    TestTarget { package: "oblivio-volume", name: "torn_anchor" };

/// What no user of a volume can see from outside.
pub(crate) const VOLUME_UNITS: TestTarget =
    TestTarget { package: "oblivio-volume", name: UNIT_TESTS };

/// What reaches the disk behind the NBD server.
pub(crate) const SERVE_NBD: TestTarget = TestTarget { package: "oblivio-serve", name: "nbd" };

/// Volumes as users of the program meet them.
pub(crate) const CLI_VOLUME: TestTarget = TestTarget { package: "oblivio-cli", name: "volume" };

impl TestTarget {
    /// Those of its tests that have these names.
    pub(crate) const fn tests(self, names: &'static [&'static str]) -> Finders {
        Finders { target: self, names }
    }

    /// How cargo is told of it.
    pub(crate) fn arguments(&self) -> Vec<&'static str> {
        let tests = if self.name == UNIT_TESTS { vec!["--lib"] } else { vec!["--test", self.name] };
        [vec!["--package", self.package], tests].concat()
    }
}

impl fmt::Display for TestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.package, self.name)
    }
}

/// Tests of one target that must find a leak, each of them.
pub(crate) struct Finders {
    pub(crate) target: TestTarget,
    pub(crate) names: &'static [&'static str],
}

impl Finders {
    /// The tests, with the name of their target before them.
    pub(crate) fn full_names(&self) -> impl Iterator<Item = String> {
        self.names.iter().map(|name| full_name(&self.target, name))
    }
}

/// What people are shown of a test.
pub(crate) fn full_name(target: &TestTarget, test: &str) -> String {
    format!("{target} {test}")
}
