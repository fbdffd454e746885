//! Checks that the simulator and the lab refuse files that are not regular. A pipe would block them
//! forever.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::common::{command, succeeds};

/// The time after which a command counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

const LOOKS: u32 = 3000;

/// Runs a command line. Returns its exit code and standard error. Panics if it runs longer than
/// [`PATIENCE`].
fn ended(dir: &TempDir, command_line: &str) -> (i32, String) {
    let mut command = command(dir.path(), command_line);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut looks = 0..LOOKS;
    while child.try_wait().unwrap().is_none() {
        if looks.next().is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command_line} waits for a pipe");
        }
        std::thread::sleep(PATIENCE / LOOKS);
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

const FIGURE: &str = r#"
id = "mine"
title = "A machine from a pipe"
paper = "none"
variants = ["own"]
workloads = ["uniform"]

[machines.own]
title = "From a pipe"
spec = "pipe"

[plot]
labels = "workloads"
value = "speed"
measures = [{ name = "speed", measure = { speed-over = "baseline" } }]
"#;

#[test]
fn a_pipe_is_neither_a_manifest_nor_a_machine_nor_a_trace_nor_a_result() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("traces")).unwrap();
    fs::create_dir(dir.path().join("out")).unwrap();
    for pipe in ["pipe", "traces/mcf.trace", "out/results.jsonl"] {
        make_pipe(&dir.path().join(pipe));
    }
    fs::write(dir.path().join("mine.toml"), FIGURE).unwrap();
    for command_line in [
        "simulate --made scan --spec pipe",
        "simulate pipe --levels 12",
        "trace info pipe",
        "trace convert pipe other.trace",
        "run evaluation --quick --manifest pipe",
        "run evaluation --quick --manifest mine.toml",
        "run evaluation --quick --figure fig11 --traces traces",
        "report pipe --output page.html",
        "draw pipe",
    ] {
        let (code, stderr) = ended(&dir, command_line);
        assert_eq!(code, 3, "{command_line}: {stderr}");
        assert!(stderr.contains("not a regular file; give a file"), "{command_line}: {stderr}");
    }
    let (code, stderr) = ended(&dir, "run evaluation --quick --figure made --output out");
    assert!(code == 4 && stderr.contains("choose another --output"), "{code}: {stderr}");
    // A device never ends, and a directory cannot be replaced by a file: both are found before the
    // first run.
    fs::remove_file(dir.path().join("out/results.jsonl")).unwrap();
    std::os::unix::fs::symlink("/dev/full", dir.path().join("out/results.jsonl")).unwrap();
    let (code, stderr) = ended(&dir, "run evaluation --quick --figure made --output out");
    assert!(code == 4 && stderr.contains("is no regular file"), "{code}: {stderr}");
    fs::create_dir_all(dir.path().join("there/figures.json")).unwrap();
    let (code, stderr) = ended(&dir, "run evaluation --quick --figure made --output there");
    assert!(code == 4 && stderr.contains("figures.json is a directory"), "{code}: {stderr}");
    let (code, stderr) = ended(&dir, "simulate traces --levels 12");
    assert!(code == 3 && stderr.contains("is a directory"), "{code}: {stderr}");
}

#[test]
fn a_pipe_with_the_name_of_a_tree_is_replaced() {
    const RUN: &str =
        "run evaluation --quick --records 100 --levels 12 --figure tree-top-size --trees trees";
    let dir = TempDir::new().unwrap();
    succeeds(&dir, &format!("{RUN} --output first"));
    let tree = fs::read_dir(dir.path().join("trees")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&tree).unwrap();
    make_pipe(&tree);
    let (code, stderr) = ended(&dir, &format!("{RUN} --output second"));
    assert!(code == 0 && stderr.contains("is unusable and is made again"), "{code}: {stderr}");
    assert!(fs::metadata(&tree).unwrap().is_file());
}
