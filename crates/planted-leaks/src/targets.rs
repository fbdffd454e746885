//! The test targets that are to find leaks.

use std::collections::BTreeSet;
use std::fmt;

/// Integration tests of one crate, or its unit tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TestTarget {
    pub(crate) package: &'static str,
    /// The name of the program that they are in.
    pub(crate) program: &'static str,
    /// The module of the program that they are in.
    pub(crate) module: &'static str,
}

/// Instead of the name of integration tests: the unit tests of the library.
const UNIT_TESTS: &str = "lib";

/// Integration tests of volumes, in one module.
const fn of_volumes(module: &'static str) -> TestTarget {
    TestTarget { package: "oblivio-volume", program: "volume", module }
}

/// What storage sees of the engine.
pub(crate) const PRIVACY: TestTarget =
    TestTarget { package: "oblivio-core", program: "engine", module: "privacy" };

/// What storage sees of background evictions.
pub(crate) const BACKGROUND_EVICTION: TestTarget =
    TestTarget { package: "oblivio-core", program: "engine", module: "background_eviction" };

/// What storage may learn of a volume, law by law.
pub(crate) const VOLUME_PRIVACY: TestTarget = of_volumes("privacy");

/// What storage sees of a disk at a fixed rate.
pub(crate) const VOLUME_SCHEDULE: TestTarget = of_volumes("schedule");

/// What is done in the client's directory at a fixed rate.
pub(crate) const VOLUME_PADDING: TestTarget = of_volumes("padding");

/// What storage sees of a volume across crashes.
pub(crate) const VOLUME_VIEW: TestTarget = of_volumes("view");

/// What storage that changes bytes learns.
pub(crate) const VOLUME_LYING_STORAGE: TestTarget = of_volumes("lying_storage");

/// What is taken for the latest of a damaged volume.
pub(crate) const VOLUME_RESCUE: TestTarget = of_volumes("rescue");

/// What storage learns of ranges, and what of requests becomes one.
pub(crate) const VOLUME_RANGE: TestTarget = of_volumes("range");

/// What storage learns of the trivial ORAM, and whatever else a volume on it promises.
pub(crate) const VOLUME_SCAN: TestTarget = of_volumes("scan");

/// Old directories, old storage, and copies of a client.
pub(crate) const VOLUME_GOING_BACK: TestTarget = of_volumes("going_back");

/// Who may open a volume.
pub(crate) const VOLUME_KEYS: TestTarget = of_volumes("keys");

/// Volumes on share servers.
pub(crate) const VOLUME_S3ORAM: TestTarget = of_volumes("s3oram");

/// What a volume is after a crash.
pub(crate) const VOLUME_CRASH: TestTarget = of_volumes("crash");

/// What a disk answers, and how many accesses it makes for that.
pub(crate) const VOLUME_DISK: TestTarget = of_volumes("disk");

/// What is done while the next batch is begun.
pub(crate) const VOLUME_OVERLAP: TestTarget = of_volumes("overlap");

/// Reads that are begun before those before them are over.
pub(crate) const VOLUME_READS: TestTarget = of_volumes("reads");

/// What a volume says about itself, and what storage can make of it.
pub(crate) const VOLUME_SUPERBLOCK: TestTarget = of_volumes("superblock");

/// What is left where the write of an anchor is torn.
pub(crate) const VOLUME_TORN_ANCHOR: TestTarget = of_volumes("torn_anchor");

/// What no user of a volume can see from outside.
pub(crate) const VOLUME_UNITS: TestTarget =
    TestTarget { package: "oblivio-volume", program: UNIT_TESTS, module: "" };

/// What an array over ranges promises.
pub(crate) const CORE_RANGE: TestTarget =
    TestTarget { package: "oblivio-core", program: "engine", module: "durable::range" };

/// What each of several stores sees of one that is striped over them.
pub(crate) const STORE_STRIPE: TestTarget =
    TestTarget { package: "oblivio-store", program: "file", module: "stripe" };

/// What servers that hold shares see, alone and together.
pub(crate) const SHARES_VIEW: TestTarget =
    TestTarget { package: "oblivio-shares", program: "scheme", module: "view" };

/// What they see if the position map is in smaller trees.
pub(crate) const SHARES_RECURSIVE_VIEW: TestTarget =
    TestTarget { package: "oblivio-shares", program: "recursive", module: "view" };

/// What is drawn for shares, and how often.
pub(crate) const SHARES_COINS: TestTarget =
    TestTarget { package: "oblivio-shares", program: "scheme", module: "coins" };

/// What share servers see of a volume.
pub(crate) const SHARES_DURABLE_VIEW: TestTarget =
    TestTarget { package: "oblivio-shares", program: "durable", module: "view" };

/// What share servers see of each other, alone and together.
pub(crate) const SHARES_DURABLE_PEERS: TestTarget =
    TestTarget { package: "oblivio-shares", program: "durable", module: "peers" };

/// What share servers see of copies of a client.
pub(crate) const SHARES_DURABLE_COPIES: TestTarget =
    TestTarget { package: "oblivio-shares", program: "durable", module: "copies" };

/// Servers of a volume that lie.
pub(crate) const SHARES_DURABLE_TRUST: TestTarget =
    TestTarget { package: "oblivio-shares", program: "durable", module: "trust" };

/// Which servers of a volume deal.
pub(crate) const SHARES_DURABLE_DEALERS: TestTarget =
    TestTarget { package: "oblivio-shares", program: "durable", module: "dealers" };

/// Volumes on share servers that hold something from their beginning.
pub(crate) const SHARES_DURABLE_LOADED: TestTarget =
    TestTarget { package: "oblivio-shares", program: "durable", module: "loaded" };

/// A volume on share servers, and crashes of its client.
pub(crate) const SHARES_DURABLE: TestTarget =
    TestTarget { package: "oblivio-shares", program: "durable", module: "" };

/// A volume on share servers whose position map is in smaller trees.
pub(crate) const SHARES_MAPPED: TestTarget =
    TestTarget { package: "oblivio-shares", program: "durable", module: "mapped" };

/// What servers see of such a volume.
pub(crate) const SHARES_MAPPED_VIEW: TestTarget =
    TestTarget { package: "oblivio-shares", program: "durable", module: "mapped_view" };

/// What slots say of themselves on share servers over files.
pub(crate) const SHARES_HOST_METADATA: TestTarget =
    TestTarget { package: "oblivio-shares", program: "host", module: "metadata" };

/// Secret sharing alone.
pub(crate) const SHARES_SHARING: TestTarget =
    TestTarget { package: "oblivio-shares", program: UNIT_TESTS, module: "sharing::tests" };

/// What a share server takes from others.
pub(crate) const SHARES_MAILBOX: TestTarget =
    TestTarget { package: "oblivio-shares", program: UNIT_TESTS, module: "host::mailbox::tests" };

/// What a share server deals.
pub(crate) const SHARES_HOST_EVICT: TestTarget =
    TestTarget { package: "oblivio-shares", program: UNIT_TESTS, module: "host::evict::tests" };

/// What share servers and their client say, as bytes.
pub(crate) const SHARES_MESSAGES: TestTarget =
    TestTarget { package: "oblivio-shares", program: UNIT_TESTS, module: "message::bytes::tests" };

/// What a share server does with what its disk has spoilt.
pub(crate) const SHARES_HOST_DAMAGE: TestTarget =
    TestTarget { package: "oblivio-shares", program: "host", module: "damage" };

/// What a share server answers after its disk has failed.
pub(crate) const SHARES_HOST_SYNCS: TestTarget =
    TestTarget { package: "oblivio-shares", program: "host", module: "syncs" };

/// A store that is several servers.
pub(crate) const STORE_REMOTE_SHARED: TestTarget =
    TestTarget { package: "oblivio-store", program: "remote", module: "shared" };

/// What the client of a bucket server does when links break and servers die.
pub(crate) const STORE_REMOTE_FAULTS: TestTarget =
    TestTarget { package: "oblivio-store", program: "remote", module: "faults" };

/// What the client of a bucket server does when the server lies.
pub(crate) const STORE_REMOTE_LIES: TestTarget =
    TestTarget { package: "oblivio-store", program: "remote", module: "lies" };

/// Who has a volume of a bucket server.
pub(crate) const SERVE_BUCKET_SESSIONS: TestTarget =
    TestTarget { package: "oblivio-serve", program: "servers", module: "buckets::sessions" };

/// What a bucket server does about guests of all kinds.
pub(crate) const SERVE_BUCKET_GUESTS: TestTarget =
    TestTarget { package: "oblivio-serve", program: "servers", module: "buckets::hostile" };

/// What no guest of a bucket server can see from outside.
pub(crate) const SERVE_BUCKET_UNITS: TestTarget =
    TestTarget { package: "oblivio-serve", program: UNIT_TESTS, module: "buckets" };

/// Who meets whom.
pub(crate) const WIRE_TLS: TestTarget =
    TestTarget { package: "oblivio-wire", program: UNIT_TESTS, module: "tls::tests" };

/// What reaches the disk behind the NBD server.
pub(crate) const SERVE_NBD: TestTarget =
    TestTarget { package: "oblivio-serve", program: "servers", module: "nbd" };

/// The page that watches a disk.
pub(crate) const SERVE_WATCH: TestTarget =
    TestTarget { package: "oblivio-serve", program: "servers", module: "watch" };

/// Volumes as users of the program meet them.
pub(crate) const CLI_VOLUME: TestTarget =
    TestTarget { package: "oblivio-cli", program: "program", module: "volume" };

impl TestTarget {
    /// Those of its tests that have these names.
    pub(crate) const fn tests(self, names: &'static [&'static str]) -> Finders {
        Finders { target: self, names }
    }

    /// The name that a test has in its program.
    pub(crate) fn name_in_program(&self, test: &str) -> String {
        if self.module.is_empty() { test.into() } else { format!("{}::{test}", self.module) }
    }

    /// The program that it is in.
    pub(crate) fn program(&self) -> TestProgram {
        TestProgram { package: self.package, name: self.program }
    }
}

/// Tests that are built together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TestProgram {
    package: &'static str,
    name: &'static str,
}

/// The packages with tests that are to find leaks. They are always chosen together, so that cargo gives what is below
/// them the same features for each, and builds it once.
const PACKAGES: [&str; 7] = [
    "oblivio-wire",
    "oblivio-core",
    "oblivio-shares",
    "oblivio-store",
    "oblivio-volume",
    "oblivio-serve",
    "oblivio-cli",
];

impl TestProgram {
    /// How cargo is told of `programs`.
    pub(crate) fn arguments(programs: &BTreeSet<Self>) -> Vec<&'static str> {
        let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
        let (units, integration): (Vec<&Self>, Vec<&Self>) =
            programs.iter().partition(|program| program.name == UNIT_TESTS);
        let units = units.first().map(|_| "--lib");
        let integration = integration.iter().flat_map(|program| ["--test", program.name]);
        packages.chain(units).chain(integration).collect()
    }

    /// Whether it is the target of `package` with this name that cargo tells of.
    pub(crate) fn is(&self, package: &str, target: &str) -> bool {
        let is_named = match self.name {
            UNIT_TESTS => target == package.replace('-', "_"),
            name => target == name,
        };
        is_named && package == self.package
    }
}

impl fmt::Display for TestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}",
            self.package,
            if self.module.is_empty() { self.program } else { self.module }
        )
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
