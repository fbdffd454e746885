//! Runs tests of a copy of the workspace.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::targets::TestTarget;

/// As many lines of the compiler's errors as are worth showing.
const ERROR_LINES_MAX: usize = 30;

/// The tests of one workspace, always built in the same place.
pub(crate) struct TestRuns<'w> {
    pub(crate) workspace: &'w Path,
    pub(crate) target_dir: PathBuf,
}

/// What came of a run.
pub(crate) enum Outcome {
    /// They were built and run; the names of those that failed.
    Ran { failed: Vec<String> },
    /// They could not be built.
    DoesNotCompile { errors: String },
}

impl TestRuns<'_> {
    /// Builds `target`, and runs those of its tests that are named.
    ///
    /// # Errors
    /// When cargo cannot be started, the tests ended without a result, or there is no test of one of
    /// these names.
    pub(crate) fn run(&self, target: &TestTarget, names: &[&str]) -> Result<Outcome, String> {
        let build = self.cargo(target, &["--no-run"])?;
        if !build.status.success() {
            let errors = String::from_utf8_lossy(&build.stderr);
            let errors: Vec<_> = errors.lines().take(ERROR_LINES_MAX).collect();
            return Ok(Outcome::DoesNotCompile { errors: errors.join("\n") });
        }
        let harness = [&["--no-fail-fast", "--", "--format", "pretty", "--exact"], names].concat();
        let run = self.cargo(target, &harness)?;
        let text = String::from_utf8_lossy(&run.stdout);
        let results: Vec<_> = text.lines().filter_map(result).collect();
        if let Some(unknown) = names.iter().find(|name| results.iter().all(|(ran, _)| ran != *name))
        {
            return Err(format!("{target} has no result for a test {unknown:?}:\n{text}"));
        }
        let failed = results.iter().filter(|(_, passed)| !passed);
        let failed: Vec<_> = failed.map(|(name, _)| (*name).to_owned()).collect();
        if run.status.success() == failed.is_empty() {
            Ok(Outcome::Ran { failed })
        } else {
            Err(format!("the tests ended without a result ({}):\n{text}", run.status))
        }
    }

    fn cargo(&self, target: &TestTarget, more: &[&str]) -> Result<Output, String> {
        // The cargo that runs this tool, if one does.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Command::new(cargo)
            .args(["test", "--quiet"])
            .args(target.arguments())
            .args(more)
            .current_dir(self.workspace)
            .env("CARGO_TARGET_DIR", &self.target_dir)
            // What a leak leaves unused is no error here.
            .env_remove("RUSTFLAGS")
            .env("RUST_BACKTRACE", "0")
            .output()
            .map_err(|cause| format!("cargo cannot be started: {cause}"))
    }
}

/// The test that a line tells of, and whether it passed.
fn result(line: &str) -> Option<(&str, bool)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    match result {
        "ok" => Some((name, true)),
        "FAILED" => Some((name, false)),
        _ => None,
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ran { failed } => write!(f, "these fail: {}", failed.join(", ")),
            Self::DoesNotCompile { errors } => write!(f, "they do not compile\n{errors}"),
        }
    }
}
