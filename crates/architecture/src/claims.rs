//! The claims of the threat model, and the tests that fail if a claim is false.
//!
//! The claims come only from `docs/claims.toml`. [`Claims::to_markdown`] makes the page
//! `docs/claims.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

/// All claims, in the order of the threat model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The claims, one per row of the file.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// A claim of the threat model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Identifier of the claim: `C` and a number that does not change.
    pub id: String,
    /// The claim in one sentence.
    pub text: String,
    /// Tests of the claim, each as `CRATE/TARGET PATH`, or `fuzz NAME`.
    pub tests: Vec<String>,
}

impl Claims {
    /// Parses `docs/claims.toml`.
    ///
    /// # Errors
    /// If `text` is not a list of claims.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Formats the claims as the page `docs/claims.md`.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut page = HEAD.to_owned();
        for claim in &self.claims {
            let Claim { id, text, .. } = claim;
            let anchor = claim.anchor();
            let tests = claim.tests_by_target();
            // Writing to a string does not fail.
            let _ = writeln!(page, "| <a id=\"{anchor}\"></a>{id} | {text} | {tests} |");
        }
        page
    }
}

impl Claim {
    /// The anchor by which pages link to the claim.
    #[must_use]
    pub fn anchor(&self) -> String {
        self.id.to_lowercase()
    }

    /// The tests of the claim, grouped by target.
    fn tests_by_target(&self) -> String {
        let mut targets: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for test in &self.tests {
            let (target, path) = test.split_once(' ').unwrap_or(("", test));
            targets.entry(target).or_default().push(format!("`{path}`"));
        }
        let target =
            |(target, paths): (&str, Vec<String>)| format!("{target}: {}", paths.join(", "));
        targets.into_iter().map(target).collect::<Vec<_>>().join("; ")
    }
}

/// The page before the table of claims.
const HEAD: &str = "\
# Claims and their tests

Annex of the [threat model](threat-model.md) and its [page on share
servers](threat-model-shares.md): each claim, and the tests that fail if it is false. A test is
named by its crate, its target and its path. For example, this command runs
`core/engine: privacy::ciphertext::never_repeats`:

```sh understood
cargo test --package oblivio-core --test engine privacy::ciphertext::never_repeats
```

The target `lib` is the unit tests (`--lib`). `fuzz` is a fuzz target (`make fuzz`). `make claims`
writes this page from `docs/claims.toml`.

| | claim | tests |
|---|---|---|
";
