//! Names of the tests that must find leaks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Program name that denotes the unit tests of the library.
const UNIT_TESTS: &str = "lib";

/// A test, written as `core/engine privacy::leaves::are_uniform`: package without `oblivio-`, test
/// program, and name in the program.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Test {
    pub(crate) program: TestProgram,
    pub(crate) name: String,
}

/// A test binary: one integration test target of a package, or the unit tests of its library.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TestProgram {
    package: String,
    name: String,
}

impl FromStr for Test {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(' ').and_then(|(program, name)| {
            let (package, program) = program.split_once('/')?;
            let known =
                PACKAGES.iter().find(|known| known.strip_prefix("oblivio-") == Some(package))?;
            let program = TestProgram { package: (*known).to_owned(), name: program.to_owned() };
            Some(Self { program, name: name.to_owned() })
        });
        parts.ok_or_else(|| {
            format!("{text:?} is no test: write `core/engine module::name`, of one of {PACKAGES:?}")
        })
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.program, self.name)
    }
}

impl fmt::Display for TestProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let package = self.package.trim_start_matches("oblivio-");
        write!(f, "{package}/{}", self.name)
    }
}

/// The distinct names in `tests`, by program.
pub(crate) fn by_program<'t>(
    tests: impl IntoIterator<Item = &'t Test>,
) -> BTreeMap<&'t TestProgram, Vec<&'t str>> {
    let mut programs: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for Test { program, name } in tests.into_iter().collect::<BTreeSet<_>>() {
        programs.entry(program).or_default().push(name.as_str());
    }
    programs
}

/// The packages with tests that find leaks. Every call of cargo names all these packages, so that
/// cargo always selects the same features for their dependencies and builds the dependencies once.
const PACKAGES: [&str; 9] = [
    "oblivio-wire",
    "oblivio-core",
    "oblivio-shares",
    "oblivio-store",
    "oblivio-volume",
    "oblivio-nbd",
    "oblivio-watch",
    "oblivio-bucket-server",
    "oblivio-cli",
];

impl TestProgram {
    /// The arguments of cargo that select `programs`.
    pub(crate) fn arguments(programs: &BTreeSet<Self>) -> Vec<&str> {
        let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
        let (units, integration): (Vec<&Self>, Vec<&Self>) =
            programs.iter().partition(|program| program.name == UNIT_TESTS);
        let units = units.first().map(|_| "--lib");
        let integration = integration.iter().flat_map(|program| ["--test", &program.name]);
        packages.chain(units).chain(integration).collect()
    }

    /// Whether this program is the target that cargo calls `target`, in `package`.
    pub(crate) fn is(&self, package: &str, target: &str) -> bool {
        let is_named = match &*self.name {
            UNIT_TESTS => target == package.replace('-', "_"),
            name => target == name,
        };
        is_named && package == self.package
    }
}
