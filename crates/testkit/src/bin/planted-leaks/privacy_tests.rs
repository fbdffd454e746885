//! Runs the privacy tests of a copy of the workspace.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// As many lines of the compiler's errors as are worth showing.
const ERROR_LINES_MAX: usize = 30;

/// The privacy tests of one workspace, always built in the same place.
pub(crate) struct PrivacyTests<'w> {
    pub(crate) workspace: &'w Path,
    pub(crate) target: PathBuf,
}

/// What came of a run.
pub(crate) enum Outcome {
    /// They were built and run; the names of those that failed.
    Ran { failed: Vec<String> },
    /// They could not be built.
    DoesNotCompile { errors: String },
}

impl PrivacyTests<'_> {
    /// Builds them, and runs those that are named, or all if none is.
    ///
    /// # Errors
    /// When cargo cannot be started, or the tests ended without a result.
    pub(crate) fn run(&self, names: &[&str]) -> Result<Outcome, String> {
        let build = self.cargo(&["--no-run"])?;
        if !build.status.success() {
            let errors = String::from_utf8_lossy(&build.stderr);
            let errors: Vec<_> = errors.lines().take(ERROR_LINES_MAX).collect();
            return Ok(Outcome::DoesNotCompile { errors: errors.join("\n") });
        }
        let exact = if names.is_empty() { &[][..] } else { &["--exact"][..] };
        let harness = [&["--no-fail-fast", "--", "--format", "pretty"], exact, names].concat();
        let run = self.cargo(&harness)?;
        let text = String::from_utf8_lossy(&run.stdout);
        let failed = text.lines().filter_map(|line| {
            let result = line.strip_prefix("test ")?;
            Some(result.strip_suffix(" ... FAILED")?.to_owned())
        });
        let mut failed: Vec<_> = failed.collect();
        failed.sort_unstable();
        if run.status.success() == failed.is_empty() && text.contains("test result:") {
            Ok(Outcome::Ran { failed })
        } else {
            Err(format!("the tests ended without a result ({}):\n{text}", run.status))
        }
    }

    fn cargo(&self, more: &[&str]) -> Result<Output, String> {
        // The cargo that runs this tool, if one does.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Command::new(cargo)
            .args(["test", "--quiet", "--package", "oblivio-core", "--test", "privacy"])
            .args(more)
            .current_dir(self.workspace)
            .env("CARGO_TARGET_DIR", &self.target)
            // What a leak leaves unused is no error here.
            .env("RUSTFLAGS", "--cap-lints allow")
            .env("RUST_BACKTRACE", "0")
            .output()
            .map_err(|cause| format!("cargo cannot be started: {cause}"))
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
