//! Runs command lines of the program, and checks their results.

pub(crate) mod terminal;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Returns a command that runs the program in `dir`, with its own state directory there. Quotes
/// (`'…'`) keep words together.
pub(crate) fn command(dir: &Path, command_line: &str) -> Command {
    let mut command = Command::new(crate::PROGRAM);
    command
        .current_dir(dir)
        .env("XDG_STATE_HOME", dir.join("state-home"))
        .stdin(Stdio::null())
        .args(words(command_line));
    command
}

/// Exit code, standard output and standard error of one command line, run in `dir`.
pub(crate) fn oblivio(dir: impl AsRef<Path>, command_line: &str) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command(dir.as_ref(), command_line).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = status.code().unwrap_or_else(|| panic!("{command_line}: {status}"));
    (code, text(stdout), text(stderr))
}

/// Standard output of a command line that must succeed.
pub(crate) fn succeeds(dir: impl AsRef<Path>, command_line: &str) -> String {
    let (code, stdout, stderr) = oblivio(dir, command_line);
    assert_eq!(code, 0, "{command_line}: {stderr}");
    stdout
}

/// Standard error of a command line that must end with `code`.
pub(crate) fn fails_with(dir: impl AsRef<Path>, command_line: &str, code: i32) -> String {
    let (actual, stdout, stderr) = oblivio(dir, command_line);
    assert_eq!(actual, code, "{command_line}: {stdout}{stderr}");
    stderr
}

/// Exit code and standard error of a command line that a shell runs in `dir` after `first`, such as
/// `umask 0;`.
pub(crate) fn after(dir: impl AsRef<Path>, first: &str, command_line: &str) -> (i32, String) {
    let program = command(dir.as_ref(), command_line);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("{first} exec \"$0\" \"$@\"")]);
    shell.arg(program.get_program()).args(program.get_args());
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.current_dir(dir).stdin(Stdio::null()).output().unwrap();
    let code = output.status.code();
    let code = code.unwrap_or_else(|| panic!("{first} {command_line}: {}", output.status));
    (code, String::from_utf8(output.stderr).unwrap())
}

/// Splits a command line at spaces, except between a pair of quotes.
fn words(command_line: &str) -> Vec<&str> {
    let parts = command_line.split('\'').enumerate();
    parts
        .flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        })
        .collect()
}
