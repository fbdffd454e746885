//! Records real programs if the emulator is installed. The errors for missing programs are tested
//! in any case.

use std::env::{self, consts::ARCH};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{command, fails_with, oblivio, succeeds};

/// Lines of the first-level cache in these tests: 16 KiB.
const L1_LINES: usize = 256;

/// The maximum number of misses of a program while it is loaded and reads its arguments.
const OF_THE_START: usize = 8000;

/// The environment variable that says that the plugin and the kernels are already built, next to
/// the program.
const ARE_BUILT: &str = "OBLIVIO_RECORDING_IS_BUILT";

/// The folder of the plugin and the kernels. They are built here because cargo does not build them
/// for tests of this crate.
static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(crate::PROGRAM).parent().unwrap();
    if env::var_os(ARE_BUILT).is_none() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "oblivio-trace-plugin", "--package"])
            .args(["oblivio-kernels", "--target-dir"])
            .arg(folder.parent().unwrap())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.unwrap().success());
    }
    folder.to_owned()
});

fn emulator_is_missing() -> bool {
    let missing = Command::new(format!("qemu-{ARCH}"))
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err();
    if missing {
        eprintln!("no qemu-{ARCH}: not tested");
    }
    missing
}

fn with_plugin() -> String {
    format!("--plugin {}", BUILT.join("liboblivio_trace_plugin.so").display())
}

fn kernels() -> String {
    BUILT.join("oblivio-kernels").display().to_string()
}

/// Records a kernel. Returns each record as its gap, whether it is a write, and its line.
fn records(dir: &TempDir, options: &str, kernel: &str) -> Vec<(u64, bool, u64)> {
    records_of(dir, options, &format!("{} {kernel}", kernels()))
}

fn records_of(dir: &TempDir, options: &str, command: &str) -> Vec<(u64, bool, u64)> {
    let record = format!("trace record {} --output t --l1-kib 16 {options}", with_plugin());
    succeeds(dir, &format!("{record} -- {command}"));
    let text = fs::read_to_string(dir.path().join("t")).unwrap();
    let record = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let address = u64::from_str_radix(words[2].strip_prefix("0x").unwrap(), 16).unwrap();
        assert_eq!(address % 64, 0, "{line}");
        match words[1..] {
            ["R", _] => (words[0].parse().unwrap(), false, address / 64),
            ["W", _] => (words[0].parse().unwrap(), true, address / 64),
            _ => panic!("{line}"),
        }
    };
    text.lines().map(record).collect()
}

/// Number of records whose line number is one more than that of the previous record.
fn steps_of_one(records: &[(u64, bool, u64)]) -> usize {
    records.windows(2).filter(|pair| pair[1].2 == pair[0].2 + 1).count()
}

#[test]
fn a_scan_reads_line_after_line() {
    if emulator_is_missing() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let scan = "scan --kib 1024 --rounds 2 --work 1";
    let recorded = records(&dir, "--warm-up 0", scan);
    let reads: Vec<_> = recorded.iter().copied().filter(|(_, writes, _)| !writes).collect();
    let lines = 2 * 1024 * 16;
    assert!((lines..lines + OF_THE_START).contains(&reads.len()), "{}", reads.len());
    assert!(steps_of_one(&reads) >= lines - 100, "{}", steps_of_one(&reads));
    // Every step from one line to the next takes the same instructions, for eight words.
    let gap = recorded[recorded.len() / 2].0;
    let same = recorded.iter().filter(|record| record.0 == gap).count();
    assert!(gap >= 8 && same > lines * 9 / 10, "{same} of {gap}");
    assert_eq!(records(&dir, "--warm-up 0", scan), recorded, "the same run gives the same trace");
}

/// A program with sixteen loads in one block of code. Each load reads a different cache line, and
/// ten other instructions follow it.
#[cfg(target_arch = "x86_64")]
const ONE_BLOCK: &str = r#"
    static char lines[16 * 64 + 4096];
    int main(void) {
        __asm__ volatile(
            ".set place, 0\n"
            ".rept 16\n movb place(%0), %%al\n .rept 10\n nop\n .endr\n"
            " .set place, place + 64\n .endr"
            : : "r"(lines) : "al");
        return 0;
    }"#;

#[cfg(target_arch = "x86_64")]
#[test]
fn gaps_are_right_within_a_block() {
    if emulator_is_missing() {
        return;
    }
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("block.c"), ONE_BLOCK).unwrap();
    let compiled =
        Command::new("cc").args(["-O0", "-o", "block", "block.c"]).current_dir(&dir).status();
    assert!(compiled.unwrap().success());
    let recorded = records_of(&dir, "--warm-up 0", "./block");
    let reads: Vec<_> = recorded.iter().filter(|(_, writes, _)| !writes).collect();
    let steps = reads.windows(2).filter(|pair| pair[1].2 == pair[0].2 + 1 && pair[1].0 == 10);
    // An eviction's record between two loads takes one of the ten instructions.
    assert!(steps.count() >= 8, "{reads:?}");
}

#[test]
fn stores_write_lines_back_and_fetch_them_only_on_request() {
    if emulator_is_missing() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let stream = "stream --kib 1024 --rounds 2";
    let lines = 2 * 1024 * 16;
    let writes = |recorded: &[(u64, bool, u64)]| -> Vec<_> {
        recorded.iter().copied().filter(|(_, writes, _)| *writes).collect()
    };
    let recorded = records(&dir, "--warm-up 0", stream);
    let given_back = writes(&recorded);
    // Lines in the cache at the end are not written back.
    assert!(
        (lines - L1_LINES..lines + OF_THE_START).contains(&given_back.len()),
        "{}",
        given_back.len()
    );
    // If the stack occupies one of two ways, lines of the stream are evicted out of order.
    assert!(steps_of_one(&given_back) > lines / 2, "{}", steps_of_one(&given_back));
    assert!(
        recorded.len() - given_back.len() < OF_THE_START,
        "{} reads",
        recorded.len() - given_back.len()
    );

    let fetched = records(&dir, "--warm-up 0 --store-misses fetch", stream);
    assert_eq!(writes(&fetched).len(), given_back.len());
    assert!(fetched.len() - given_back.len() >= lines, "each line is fetched");
}

#[test]
fn a_loop_in_the_cache_misses_nothing_once_warm() {
    if emulator_is_missing() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let (plugin, kernels) = (with_plugin(), kernels());
    let scan = "scan --kib 64 --rounds 1000";
    let output = dir.path().join("x.gz");
    let json = |warm_up| {
        let options = format!("--output x.gz --warm-up {warm_up} --json");
        let text = succeeds(&dir, &format!("trace record {plugin} {options} -- {kernels} {scan}"));
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let figures = json("5M");
    assert!(figures["reads"].as_u64().unwrap() < 100, "{figures}");
    assert!(figures["instructions_emulated"].as_u64().unwrap() > 8_000_000, "{figures}");
    assert!(fs::read(&output).unwrap().starts_with(&[0x1f, 0x8b]), "it is compressed");
    fs::remove_file(&output).unwrap();

    let nothing =
        format!("trace record {plugin} --output x.gz -- {kernels} scan --kib 1 --rounds 1");
    let message = fails_with(&dir, &nothing, 3);
    assert!(message.contains("no miss was recorded") && message.contains("--warm-up"), "{message}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_recording_stops_when_full_and_reports_short_ones() {
    if emulator_is_missing() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let long = "scan --kib 1024 --rounds 4000000000";
    assert_eq!(records(&dir, "--warm-up 1M --misses 5k", long).len(), 5000);
    let (plugin, kernels) = (with_plugin(), kernels());
    let record = format!("trace record {plugin} --warm-up 0");
    let (code, stdout, stderr) =
        oblivio(&dir, &format!("{record} -- {kernels} source --functions 1"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("static long cells") && !stdout.contains("records"), "{stdout}");
    assert!(stderr.contains("pages") && stderr.contains("give it more to do"), "{stderr}");
    assert!(dir.path().join("oblivio-kernels.trace.gz").is_file());

    // A program that fails: its trace is written, and its exit code is returned.
    let message = fails_with(&dir, &format!("{record} --output failed -- {kernels} no-kernel"), 2);
    assert!(message.contains("ended with exit code 2"), "{message}");
    assert!(dir.path().join("failed").is_file());
}

#[test]
fn a_stopped_recording_leaves_no_file() {
    if emulator_is_missing() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let (plugin, kernels) = (with_plugin(), kernels());
    let line = format!("trace record {plugin} --misses 1G -- {kernels} scan --rounds 4000000000");
    let mut child = command(dir.path(), &line).stderr(Stdio::piped()).spawn().unwrap();
    while fs::read_dir(&dir).unwrap().count() == 0 {
        sleep(Duration::from_millis(10));
    }
    let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let message = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(message.contains("stopped before the end"), "{message}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn missing_programs_are_named() {
    let dir = TempDir::new().unwrap();
    let message = fails_with(&dir, "trace record --qemu qemu-nothing -- true", 1);
    assert!(message.contains("apt install qemu-user"), "{message}");
    // Any existing file passes as the emulator until it is run.
    let exe = crate::PROGRAM;
    let message =
        fails_with(&dir, &format!("trace record --qemu {exe} --plugin nowhere.so -- true"), 1);
    assert!(message.contains("-p oblivio-trace-plugin"), "{message}");
    fs::write(dir.path().join("script"), "#!/bin/sh\n").unwrap();
    for (command, advice) in [
        ("no-such-program", "there is no such program"),
        ("./nowhere", "there is no such program"),
        ("./script", "give the interpreter"),
    ] {
        let line = format!("trace record --qemu {exe} --plugin {exe} -- {command}");
        let message = fails_with(&dir, &line, 3);
        assert!(message.contains(advice), "{message}");
    }
    let not_one = format!("trace record --output x --qemu {exe} --plugin {exe} -- {exe}");
    let message = fails_with(&dir, &not_one, 1);
    assert!(message.contains("before it recorded anything"), "{message}");
    let message = fails_with(&dir, "trace record-set --only doom", 3);
    assert!(message.contains("choose among gcc, mcf"), "{message}");
    for wrong in ["", "--misses 0 -- true", "--warm-up 1Q -- true", "--l1-kib 0 -- true"] {
        fails_with(&dir, &format!("trace record {wrong}"), 2);
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing was made but the script");
}
