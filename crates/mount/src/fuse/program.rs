//! Runs system programs as child processes.
//!
//! A process that serves a file system must not access it itself, or it could wait for its own
//! answer. A child can wait while the process keeps serving.

use std::env;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::MountError;

/// A system program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// The Debian package that contains the program.
    pub(crate) package: &'static str,
}

pub(crate) const UMOUNT: Program = Program { name: "umount", package: "mount" };
pub(crate) const FUSERMOUNT: Program = Program { name: "fusermount3", package: "fuse3" };

/// Directories of programs for root. The `PATH` of other users does not contain them.
const MORE_DIRECTORIES: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Maximum number of characters of a program's error output that are passed on.
const MESSAGE_CHARS_MAX: usize = 500;

impl Program {
    /// Returns the path of the program.
    pub(crate) fn find(&self) -> Result<PathBuf, MountError> {
        let path = env::var_os("PATH").unwrap_or_default();
        let directories = env::split_paths(&path).chain(MORE_DIRECTORIES.map(PathBuf::from));
        self.find_in(directories)
    }

    fn find_in(&self, directories: impl Iterator<Item = PathBuf>) -> Result<PathBuf, MountError> {
        let mut places = directories.map(|directory| directory.join(self.name));
        let missing = MountError::NoProgram { program: self.name, package: self.package };
        places.find(|place| place.is_file()).ok_or(missing)
    }

    /// Runs the program and returns its output.
    pub(crate) fn run(&self, arguments: &[&OsStr]) -> Result<String, MountError> {
        let path = self.find()?;
        let mut command = Command::new(&path);
        // Its own process group: an interrupt of this process does not stop it half-way.
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).process_group(0);
        let output = command.output().map_err(MountError::file(Path::new(&path)))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = match message.chars().take(MESSAGE_CHARS_MAX).collect::<String>() {
            nothing if nothing.is_empty() => output.status.to_string(),
            something => something,
        };
        Err(MountError::Program { program: self.name, said })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let empty = tempfile::tempdir().unwrap();
        let error = FUSERMOUNT.find_in([empty.path().to_path_buf()].into_iter()).unwrap_err();
        let message = error.to_string();
        let names_both = message.contains("fusermount3") && message.contains("apt install fuse3");
        assert!(names_both, "{message}");
    }

    #[test]
    fn the_error_output_of_a_failed_program_is_passed_on() {
        const LS: Program = Program { name: "ls", package: "coreutils" };
        let message = LS.run(&["/nowhere/at/all".as_ref()]).unwrap_err().to_string();
        assert!(message.contains("No such file"), "{message}");
    }
}
