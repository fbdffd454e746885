//! Finds the emulator, its plugin, and the program to run; errors say how to install them.

use std::env;
use std::env::consts::ARCH;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use oblivio_cli::error::CliError;
use oblivio_cli::files;

use crate::args::RecordingArgs;
use crate::error::ProgramError;

const PLUGIN: &str = "liboblivio_trace_plugin.so";

/// An emulator with the recording plugin.
pub(super) struct Emulator {
    path: PathBuf,
    plugin: PathBuf,
}

impl Emulator {
    pub(super) fn find(how: &RecordingArgs) -> Result<Self, ProgramError> {
        let name = how.qemu.clone().unwrap_or_else(|| format!("qemu-{ARCH}").into());
        let path = on_path(name.as_os_str()).ok_or_else(|| {
            CliError::Engine(format!(
                "this needs QEMU's user-mode emulator, {}: install it (Debian: apt install \
                 qemu-user), or give its path with --qemu",
                name.display()
            ))
        })?;
        let plugin = how.plugin.clone().map_or_else(|| beside_us(PLUGIN), Ok)?;
        if !plugin.is_file() {
            return Err(CliError::Engine(format!(
                "the emulator's plugin {} is missing: build it with cargo build --release -p \
                 oblivio-trace-plugin or make trace-plugin, or give its path with --plugin",
                plugin.display()
            ))
            .into());
        }
        Ok(Self { path, plugin })
    }

    /// Makes a command that runs the emulator with its plugin. The caller adds the program.
    pub(super) fn command(&self, plugin_arguments: &[(&str, &OsStr)]) -> Command {
        let mut plugin = doubled_commas(self.plugin.as_os_str());
        for (name, value) in plugin_arguments {
            plugin.push(format!(",{name}="));
            plugin.push(doubled_commas(value));
        }
        let mut command = Command::new(&self.path);
        command.arg("-plugin").arg(plugin);
        command
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Finds the path of the program `name`. Refuses a file that is not ELF, such as a script, since
/// the emulator cannot run it.
pub(super) fn program(name: &OsStr) -> Result<PathBuf, ProgramError> {
    let path = on_path(name).ok_or_else(|| {
        let name = name.display();
        CliError::Input(format!("{name} cannot be run: there is no such program; check the path"))
    })?;
    let mut start = [0; 4];
    let read = File::open(&path).and_then(|mut file| file.read_exact(&mut start));
    match read {
        Ok(()) if start == *b"\x7fELF" => Ok(path),
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            Err(files::cannot_read(&path, &error).into())
        }
        _ => Err(CliError::Input(format!(
            "{} is not an executable for a processor: for a script, give the interpreter, such as \
             /usr/bin/python3 SCRIPT",
            path.display()
        ))
        .into()),
    }
}

/// The path of a file in this program's directory.
pub(super) fn beside_us(name: &str) -> Result<PathBuf, CliError> {
    env::current_exe().map(|path| path.with_file_name(name)).map_err(|error| {
        CliError::Engine(format!("cannot find this program's path ({error}): start it by its path"))
    })
}

/// Finds the file of a program as shells do: a name with a slash is a path, and any other name is
/// searched for in `PATH`.
pub(super) fn on_path(name: &OsStr) -> Option<PathBuf> {
    let candidates = if name.as_encoded_bytes().contains(&b'/') {
        vec![PathBuf::from(name)]
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).map(|directory| directory.join(name)).collect()
    };
    candidates.into_iter().find(|candidate| candidate.is_file())
}

/// Doubles the commas in `value`. The emulator splits its plugin's arguments at commas, and reads a
/// double comma as one.
fn doubled_commas(value: &OsStr) -> OsString {
    if let Some(text) = value.to_str() {
        return text.replace(',', ",,").into();
    }
    // The plugin rejects arguments that are not UTF-8.
    value.to_owned()
}
