//! Runs tests of a copy of the workspace.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::switches;
use crate::targets::TestTarget;

/// The tests of one workspace, always built in the same place.
pub(crate) struct TestRuns<'w> {
    pub(crate) workspace: &'w Path,
    pub(crate) target_dir: PathBuf,
}

/// What the compiler said.
pub(crate) struct DoesNotCompile {
    pub(crate) errors: String,
}

/// The names of the tests that failed.
pub(crate) struct Failed(pub(crate) Vec<String>);

impl TestRuns<'_> {
    /// Builds `target`.
    ///
    /// # Errors
    /// When cargo cannot be started.
    pub(crate) fn build(&self, target: &TestTarget) -> Result<Result<(), DoesNotCompile>, String> {
        let build = self.output(self.cargo(target).arg("--no-run"))?;
        Ok(match build.status.success() {
            true => Ok(()),
            false => {
                Err(DoesNotCompile { errors: String::from_utf8_lossy(&build.stderr).into_owned() })
            }
        })
    }

    /// Runs those tests of `target` that are named, with the switch of one leak thrown, or none.
    ///
    /// # Errors
    /// When cargo cannot be started, the tests ended without a result, or there is no test of one of
    /// these names.
    pub(crate) fn run(
        &self,
        target: &TestTarget,
        names: &[&str],
        switch: Option<usize>,
    ) -> Result<Failed, String> {
        let in_program: Vec<_> = names.iter().map(|name| target.name_in_program(name)).collect();
        let mut cargo = self.cargo(target);
        cargo.args(["--no-fail-fast", "--", "--format", "pretty", "--exact"]).args(&in_program);
        if let Some(leak) = switch {
            cargo.env(switches::VARIABLE, leak.to_string());
        }
        let run = self.output(&mut cargo)?;
        let text = String::from_utf8_lossy(&run.stdout);
        let results: Vec<_> = text.lines().filter_map(result).collect();
        let mut failed = Vec::new();
        for (name, in_program) in names.iter().zip(&in_program) {
            match results.iter().find(|(ran, _)| ran == in_program) {
                Some((_, true)) => {}
                Some((_, false)) => failed.push((*name).to_owned()),
                None => {
                    return Err(format!("{target} has no result for a test {name:?}:\n{text}"));
                }
            }
        }
        if run.status.success() == failed.is_empty() {
            Ok(Failed(failed))
        } else {
            Err(format!("the tests ended without a result ({}):\n{text}", run.status))
        }
    }

    fn cargo(&self, target: &TestTarget) -> Command {
        // The cargo that runs this tool, if one does.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["test", "--quiet"])
            .args(target.arguments())
            .current_dir(self.workspace)
            .env("CARGO_TARGET_DIR", &self.target_dir)
            // Nobody looks at a backtrace of a leak.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_TEST_DEBUG", "0")
            .env("RUST_BACKTRACE", "0")
            .env_remove(switches::VARIABLE)
            // What a leak leaves unused is no error here.
            .env_remove("RUSTFLAGS");
        command
    }

    fn output(&self, command: &mut Command) -> Result<Output, String> {
        command.output().map_err(|cause| format!("cargo cannot be started: {cause}"))
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

impl fmt::Display for DoesNotCompile {
    /// As many lines as are worth showing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.errors.lines().take(30).collect();
        f.write_str(&lines.join("\n"))
    }
}
