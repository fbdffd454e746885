//! Tests of `oblivio-lab trace` from the command line.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{command, fails_with, succeeds};

/// A directory with small traces.
struct Traces(TempDir);

impl Traces {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for (name, text) in [
            ("ramulator", "3 640\n0 140736594543744 64\n7 0\n"),
            ("usimm", "3 R 0x280\n0 R 0x7fffc9a0c880 0x400a12\n0 W 0x40\n7 R 0x0\n"),
            ("writes", "3 W 0x280\n"),
            ("bad", "3 R 0x280\n3 X 0x280\n"),
            ("nothing", ""),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn succeeds(&self, command_line: &str) -> String {
        succeeds(&self.0, &format!("trace {command_line}"))
    }

    fn fails_with(&self, command_line: &str, code: i32, advice: &str) {
        let message = fails_with(&self.0, &format!("trace {command_line}"), code);
        assert!(message.contains(advice), "{command_line}: {message:?} does not say {advice:?}");
    }

    fn json(&self, command_line: &str) -> Value {
        serde_json::from_str(&self.succeeds(&format!("{command_line} --json"))).unwrap()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names of all files in the directory.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }
}

#[test]
fn statistics_of_traces_are_printed_as_table_and_json() {
    let traces = Traces::new();
    let table = traces.succeeds("info ramulator usimm");
    let rows: Vec<Vec<&str>> =
        table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let figures = ["4", "3", "1", "13", "230.77", "76.92", "4", "2"];
    assert_eq!((rows[0][0], &rows[0][1..9]), ("ramulator", &figures[..]));
    assert_eq!((rows[1][0], &rows[1][1..9]), ("usimm", &figures[..]));

    let json = traces.json("info usimm");
    let entry = &json[0];
    for (key, value) in [("records", 4), ("reads", 3), ("writes", 1), ("instructions", 13)] {
        assert_eq!(entry[key], value, "{key}");
    }
    assert_eq!((&entry["name"], &entry["footprint_bytes"]), (&"usimm".into(), &256.into()));
    assert_eq!(entry["reuse"][0]["share"], 0.0);
    let writes = traces.json("info writes");
    assert_eq!(writes[0]["reads_per_1000_instructions"], 0.0);
}

#[test]
fn a_trace_is_the_same_in_every_format() {
    let traces = Traces::new();
    traces.succeeds("convert usimm own");
    traces.succeeds("convert own own.gz --compress gzip");
    traces.succeeds("convert own.gz back.gz --to usimm --compress gzip");
    traces.succeeds("convert back.gz back --to ramulator --from usimm");
    assert_eq!(traces.text("back"), "3 640\n0 140736576145536 64\n7 0\n");
    traces.succeeds("convert back back.usimm --to usimm");
    assert_eq!(traces.text("back.usimm"), traces.text("usimm").replace(" 0x400a12", ""));
    assert_eq!(traces.json("info own")[0]["name"], "usimm", "the binary format keeps the name");
    assert!(fs::read(traces.path("own.gz")).unwrap().starts_with(&[0x1f, 0x8b]));
    let mode = |name| fs::metadata(traces.path(name)).unwrap().permissions().mode();
    assert_eq!(mode("own"), mode("usimm"), "as other files");
}

#[test]
fn a_trace_is_moved_into_a_smaller_memory() {
    let traces = Traces::new();
    traces.succeeds("convert usimm moved --to usimm --remap 128");
    assert_eq!(traces.text("moved"), "3 R 0x280\n0 R 0x1880\n0 W 0x40\n7 R 0x0\n");
    traces.succeeds("convert usimm far --to usimm --remap 1000000 --scatter 1");
    traces.succeeds("convert usimm again --to usimm --remap 1000000 --scatter 1");
    assert_eq!(traces.text("far"), traces.text("again"));
    assert_ne!(traces.text("far"), traces.text("moved"));
    traces.fails_with("convert usimm none --remap 127", 3, "give it at least 128 lines");
    traces.fails_with("convert usimm none --scatter 1", 2, "--remap");
}

#[test]
fn programs_are_mixed_turn_by_turn() {
    let traces = Traces::new();
    traces.succeeds("mix ramulator usimm --output mixed --to usimm --slice 5 --remap 4096");
    let gaps: Vec<_> = traces
        .text("mixed")
        .lines()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(gaps, ["3", "0", "3", "0", "0", "7", "0", "7"]);
    assert_eq!(traces.json("mix usimm usimm --output both --slice 1000")[0]["pages"], 4);
    assert_eq!(traces.json("info both")[0]["name"], "both");
    traces.fails_with("mix usimm --output never --slice 0", 2, "--slice");
}

#[test]
fn traces_of_all_kinds_are_generated() {
    let traces = Traces::new();
    for (kind, reads) in [
        ("scan", 1000),
        ("uniform", 1000),
        ("zipf", 1000),
        ("stride", 1000),
        ("pointer-chase", 1000),
        ("store-stream", 0),
        ("hash-updates", 500),
    ] {
        let make = format!("make {kind} --lines 100 --records 1000 --gap 9 --seed 7 --output");
        let made = &traces.json(&format!("{make} {kind}"))[0];
        assert_eq!((&made["name"], &made["reads"]), (&kind.into(), &reads.into()), "{made}");
        assert_eq!(
            (&made["records"], &traces.json(&format!("info {kind}"))[0]),
            (&1000.into(), made)
        );
        traces.succeeds(&format!("{make} again"));
        assert_eq!(fs::read(traces.path(kind)).unwrap(), fs::read(traces.path("again")).unwrap());
        fs::remove_file(traces.path("again")).unwrap();
    }
    traces.succeeds(
        "make stride --stride 3 --records 3 --writes 1 --gap 1 --to usimm --output strided",
    );
    assert_eq!(traces.text("strided"), "1 W 0x0\n1 W 0xc0\n1 W 0x180\n");
    let coins = &traces.json("make uniform --gap-mean 9 --output coins")[0];
    let rate = coins["reads_per_1000_instructions"].as_f64().unwrap();
    assert!((98.0..102.0).contains(&rate), "{rate}");
    traces.fails_with("make zipf --gap 1 --gap-mean 1 --output x", 2, "--gap");
}

#[test]
fn unusable_input_is_code_3_with_advice() {
    let traces = Traces::new();
    let before = traces.names();
    for (command_line, advice) in [
        ("info nowhere", "check the path"),
        ("info .", "cannot be read"),
        ("info nothing", "nothing, line 1: the trace is empty"),
        ("info usimm bad", "bad, line 2: not a trace record; a record is `<gap> R"),
        ("convert usimm out --from ramulator", "usimm, line 1: not a trace record"),
        ("convert usimm out --from binary", "not a binary trace"),
        ("convert writes out --to ramulator", "writes, record 1: Ramulator's format only has"),
        ("make scan --writes 2 --output out", "must be 0 to 1"),
        ("make scan --records 0 --output out", "from 1 to 67108864 records"),
        ("make store-stream --writes 0.5 --output out", "store-stream has no use for --writes"),
        ("make scan --stride 2 --output out", "scan has no use for --stride"),
        ("mix usimm bad --output out", "bad, line 2"),
    ] {
        traces.fails_with(command_line, 3, advice);
    }
    assert_eq!(traces.names(), before, "and nothing is left");
}

#[test]
fn an_error_in_a_trace_names_its_position() {
    let traces = Traces::new();
    traces.succeeds("convert usimm own");
    let own = fs::read(traces.path("own")).unwrap();
    let mut damaged = own.clone();
    damaged[20] ^= 1;
    fs::write(traces.path("damaged"), damaged).unwrap();
    traces.fails_with("info damaged", 3, "wrong checksum");
    fs::write(traces.path("cut"), &own[..20]).unwrap();
    traces.fails_with("info cut", 3, "cut, record 2, byte 20: the file ends too early");
}

#[test]
fn an_existing_file_is_not_replaced() {
    let traces = Traces::new();
    let before = traces.names();
    for command_line in
        ["convert usimm ramulator", "mix usimm --output ramulator", "make scan --output ramulator"]
    {
        traces.fails_with(command_line, 4, "ramulator already exists");
    }
    traces.fails_with("make scan --output nowhere/out", 4, "choose another place");
    traces.fails_with("make scan --output /dev/full", 4, "is a device, a pipe or a socket");
    assert_eq!(traces.names(), before);
    assert!(traces.text("ramulator").starts_with("3 640\n"));
}

/// Checks that an output path that is not UTF-8 causes no panic, and that the output is still JSON.
#[test]
fn paths_that_are_not_utf_8_are_urls_in_json() {
    let dir = TempDir::new().unwrap();
    let mut command = command(dir.path(), "trace make scan --records 10 --json --output");
    let made = command.arg(OsStr::from_bytes(b"n\xff")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    serde_json::from_slice::<Value>(&made.stdout).unwrap();
}
