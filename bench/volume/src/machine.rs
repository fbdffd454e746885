//! Facts about the machine and the code of a run.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

/// Describes processor, memory, load, versions and commit, as JSON.
pub fn describe() -> Value {
    json!({
        "processor": field("/proc/cpuinfo", "model name"),
        "processors": std::thread::available_parallelism().ok().map(std::num::NonZeroUsize::get),
        "memory": field("/proc/meminfo", "MemTotal"),
        "load": fs::read_to_string("/proc/loadavg").ok().map(|text| text.trim().to_owned()),
        "kernel": output("uname", &["-sr"]),
        "fio": output("fio", &["--version"]),
        "nbdkit": output("nbdkit", &["--version"]),
        "commit": output("git", &["describe", "--always", "--dirty"]),
    })
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches([':', ' ', '\t']).to_owned())
}

/// Returns the output of a program, or `None` if the program cannot run or fails.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
