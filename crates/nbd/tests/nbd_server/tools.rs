//! Runs programs of other projects.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::{Command, Output};

/// The Debian package that contains `program`.
fn package(program: &str) -> &'static str {
    match program {
        "nbdinfo" | "nbdcopy" => "libnbd-bin",
        "qemu-img" | "qemu-io" => "qemu-utils",
        "nbd-client" => "nbd-client",
        "nbdkit" => "nbdkit",
        "fio" => "fio",
        other => panic!("add the package of {other} here"),
    }
}

/// Runs `program` and returns its output, with any exit code. Gives up after a minute.
pub(crate) fn try_run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Output {
    // Debian installs some programs in directories that are not in a normal user's PATH.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    let limited = |limits: &[&str]| {
        Command::new("timeout")
            .args(limits)
            .arg(program)
            .args(arguments)
            .env("PATH", &path)
            .output()
    };
    let output = limited(&["60"]).unwrap();
    // The exit code of `timeout` if the program does not exist.
    if output.status.code() == Some(127) {
        let package = package(program);
        panic!("{program} is missing; run apt-get install {package}");
    }
    output
}

/// Runs `program`, which must succeed, and returns its output.
pub(crate) fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> String {
    let output = try_run(program, arguments);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {}\n{printed}\n{complaints}", output.status);
    printed
}

/// Starts `program` in the background.
pub(crate) fn start(program: &str, arguments: &[&str]) -> std::process::Child {
    Command::new(program).args(arguments).spawn().unwrap_or_else(|error| match error.kind() {
        ErrorKind::NotFound => {
            panic!("{program} is missing; run apt-get install {}", package(program))
        }
        _ => panic!("{program}: {error}"),
    })
}
