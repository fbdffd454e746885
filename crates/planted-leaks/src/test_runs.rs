//! Builds and runs the tests of a copy of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

use crate::switches;
use crate::tests::TestProgram;

/// The tests of one workspace, all built in one target directory.
pub(crate) struct TestRuns<'w> {
    workspace: &'w Path,
    /// The target directory, used for this workspace only. Cargo identifies a package by its path
    /// inside its workspace, so the copy and the original would overwrite each other's artifacts in
    /// a shared directory.
    target_dir: PathBuf,
    programs: Mutex<Programs>,
}

/// Test programs that have been built.
type Programs = BTreeMap<TestProgram, Program>;

/// A built test program, and the working directory in which cargo would run it.
#[derive(Clone)]
struct Program {
    path: PathBuf,
    folder: PathBuf,
}

/// The compiler's errors.
pub(crate) struct DoesNotCompile {
    pub(crate) errors: String,
}

impl<'w> TestRuns<'w> {
    /// Prepares to run the tests of `workspace`, built in `target_dir`.
    pub(crate) fn new(workspace: &'w Path, target_dir: PathBuf) -> Self {
        Self { workspace, target_dir, programs: Mutex::default() }
    }

    /// Builds the programs `wanted`. If they do not compile, the inner result has the errors.
    ///
    /// # Errors
    /// If cargo cannot be started, or another worker panicked.
    pub(crate) fn build(
        &self,
        wanted: &BTreeSet<TestProgram>,
    ) -> Result<Result<(), DoesNotCompile>, String> {
        let build = self
            .cargo(&TestProgram::arguments(wanted))
            .args(["--no-run", "--message-format", "json-render-diagnostics"])
            .output()
            .map_err(|cause| format!("cannot start cargo: {cause}"))?;
        if !build.status.success() {
            let errors = String::from_utf8_lossy(&build.stderr).into_owned();
            return Ok(Err(DoesNotCompile { errors }));
        }
        let output = String::from_utf8_lossy(&build.stdout);
        self.programs()?.extend(output.lines().filter_map(|line| program(line, wanted)));
        Ok(Ok(()))
    }

    /// Runs the named tests of `program`, which must have been built. If `switch` is given, the
    /// leak with this number is active. Returns the tests that failed.
    ///
    /// # Errors
    /// If the program cannot be started, ends without a result, or lacks a test of one of the
    /// names.
    pub(crate) fn run(
        &self,
        program: &TestProgram,
        names: &[&str],
        switch: Option<usize>,
    ) -> Result<Vec<String>, String> {
        let Program { path, folder } = self
            .programs()?
            .get(program)
            .cloned()
            .ok_or_else(|| format!("{program} was not built"))?;
        let mut tests = Command::new(path);
        tests
            .args(["--format", "pretty", "--exact"])
            .args(names)
            .current_dir(folder)
            // Failures are expected, so backtraces would only cost time.
            .env("RUST_BACKTRACE", "0")
            .env_remove(switches::VARIABLE);
        if let Some(leak) = switch {
            tests.env(switches::VARIABLE, leak.to_string());
        }
        let run = tests.output().map_err(|cause| format!("cannot start {program}: {cause}"))?;
        let text = String::from_utf8_lossy(&run.stdout);
        let results: Vec<_> = text.lines().filter_map(result).collect();
        let mut failed = Vec::new();
        for name in names {
            match results.iter().find(|(ran, _)| ran == name) {
                Some((_, true)) => {}
                Some((_, false)) => failed.push(format!("{program} {name}")),
                None => {
                    return Err(format!("{program} has no result for a test {name:?}:\n{text}"));
                }
            }
        }
        if run.status.success() == failed.is_empty() {
            Ok(failed)
        } else {
            Err(format!("the tests ended without a result ({}):\n{text}", run.status))
        }
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        // The cargo that runs this tool, if one does.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["test", "--quiet"])
            .args(arguments)
            .current_dir(self.workspace)
            .env("CARGO_TARGET_DIR", &self.target_dir)
            .env_remove("CARGO_BUILD_BUILD_DIR")
            // Code that a leak leaves unused must not become an error.
            .env_remove("RUSTFLAGS");
        command
    }

    fn programs(&self) -> Result<MutexGuard<'_, Programs>, String> {
        self.programs.lock().map_err(|_| "another worker panicked".to_owned())
    }
}

/// Returns the program of `wanted` that `line` of cargo's JSON output reports as built.
fn program(line: &str, wanted: &BTreeSet<TestProgram>) -> Option<(TestProgram, Program)> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_of_tests = message["profile"]["test"].as_bool()?;
    let path = PathBuf::from(message["executable"].as_str().filter(|_| is_of_tests)?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let (package, _version) = message["package_id"].as_str()?.split_once('#')?.1.split_once('@')?;
    let target = message["target"]["name"].as_str()?;
    let known = wanted.iter().find(|known| known.is(package, target))?;
    Some((known.clone(), Program { path, folder }))
}

/// Returns the test that `line` reports, and whether it passed.
fn result(line: &str) -> Option<(&str, bool)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    match result {
        "ok" => Some((name, true)),
        "FAILED" => Some((name, false)),
        _ => None,
    }
}

impl fmt::Display for DoesNotCompile {
    /// Prints the first 30 lines of the errors.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.errors.lines().take(30).collect();
        f.write_str(&lines.join("\n"))
    }
}
