//! Recording, showing, drawing and exporting views.

use std::fs;

use serde_json::Value;

use super::own_file_system::{folder, on_a_file_system};
use super::test_dir::{MIB, TestDir, VOLUME};
use crate::common::command;
use crate::common::terminal::Terminal;

/// Records what storage sees, in `disk.view`, while nbdcopy reads the whole disk.
fn record(test_dir: &TestDir, volume: &str) {
    let copy = "nbdcopy \"$uri\" back && cmp data back";
    test_dir.succeeds(&format!("view record {volume} --output disk.view --run '{copy}'"));
}

/// The figures of a tree.
fn tree(shown: &Value, id: u64) -> &Value {
    shown["trees"].as_array().unwrap().iter().find(|tree| tree["tree"] == id).unwrap()
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect()
}

#[test]
fn a_view_shows_totals_levels_leaves_and_rates() {
    let test_dir = TestDir::with_data(4);
    let (_, _, printed) = crate::common::oblivio(
        test_dir.path(""),
        &format!("view record {VOLUME} --output disk.view --run 'nbdcopy \"$uri\" back'"),
    );
    assert!(printed.contains("oblivio view show disk.view"), "{printed}");
    let shown = test_dir.json("view show disk.view --json");
    assert_eq!(shown["capabilities"], serde_json::json!(["parts"]));
    for operation in ["read", "write", "flush"] {
        assert!(shown[operation]["trips"].as_u64().unwrap() > 0, "{operation}");
    }
    assert!(shown["read"]["bytes"].as_u64().unwrap() > 8 * MIB);

    // Each access reads one bucket of each level. Each eviction reads and writes one bucket of each
    // level. Before them, the opening may read one bucket of the deepest level.
    let data = tree(&shown, 2);
    let levels = data["levels"].as_array().unwrap();
    assert!(levels.len() >= 3, "{data}");
    let deepest = levels.last().unwrap();
    let count = |level: &Value, name| level[name].as_u64().unwrap();
    for level in levels {
        assert_eq!(count(level, "written"), count(deepest, "written"), "{data}");
        assert!(count(deepest, "read") - count(level, "read") <= 1, "{data}");
    }
    let leaves = &data["leaves"];
    let accesses = leaves["accesses"].as_u64().unwrap();
    assert!(accesses > 900, "{data}");
    assert_eq!(
        accesses + leaves["evictions"].as_u64().unwrap(),
        count(deepest, "read"),
        "every read belongs to an access or an eviction"
    );
    let counted: f64 = numbers(&leaves["bins"]).iter().sum();
    let unknown = leaves["accesses_to_unknown_leaves"].as_u64().unwrap();
    assert!(unknown < 10, "{data}");
    assert_eq!(counted as u64 + unknown, accesses);
    let p = leaves["uniformity"]["p"].as_f64().unwrap();
    assert!(p > 1e-6 && leaves["uniformity"]["verdict"] != "too_uneven", "{leaves}");

    let (rates, reads) = (&shown["rates"], numbers(&shown["rates"]["trips_per_second"]["read"]));
    let trips: f64 = reads.iter().sum::<f64>() * rates["span_seconds"].as_f64().unwrap();
    assert_eq!(trips.round() as u64, shown["read"]["trips"].as_u64().unwrap());
    assert!(rates["seconds"].as_f64().unwrap() > 0.001, "{rates}");

    let text = test_dir.succeeds("view show disk.view");
    for part in ["storage saw", "trips per second", "tree 2", "chi-square", "p = ", "uniform", "█"]
    {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(text.contains("tree 4: as tree 2"), "headers are in the same places as slots: {text}");
}

#[test]
fn a_view_of_ranges_shows_leaves_of_each_class() {
    let test_dir = TestDir::new();
    let volume = "disk.obl --key-file key";
    test_dir.succeeds(&format!("create {volume} --size 4M --scheme range"));
    fs::write(test_dir.path("data"), vec![7; 4 << 20]).unwrap();
    test_dir.succeeds(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    record(&test_dir, volume);
    let shown = test_dir.json("view show disk.view --json");
    let classes = shown["trees"].as_array().unwrap().iter();
    let classes: Vec<_> = classes.filter(|tree| !tree["leaves"].is_null()).collect();
    assert!(classes.len() >= 2, "{shown}");
    for class in classes {
        let verdict = &class["leaves"]["uniformity"]["verdict"];
        assert!(*verdict != "too_uneven" && *verdict != "too_even", "{class}");
    }
}

#[test]
fn a_view_is_drawn_and_exported() {
    let test_dir = TestDir::with_data(4);
    record(&test_dir, VOLUME);
    let text = test_dir.succeeds("view show disk.view --svg disk.svg");
    assert!(text.ends_with("picture    disk.svg\n"), "{text}");
    test_dir.assert_private("disk.svg");
    let picture = fs::read_to_string(test_dir.path("disk.svg")).unwrap();
    for part in ["What storage saw of tree 2", "Each level", "Leaves: p =", "When"] {
        assert!(picture.contains(part), "no {part:?}");
    }
    test_dir.succeeds("view show disk.view --svg heads.svg --tree 4 --json");
    assert!(fs::read_to_string(test_dir.path("heads.svg")).unwrap().contains("of tree 4"));
    let named = "there is no tree 77 in the view: choose another with --tree, of 0, 1, 2";
    test_dir.fails_with("view show disk.view --svg none.svg --tree 77", 3, named);
    test_dir.fails_with("view show disk.view --svg nowhere/disk.svg", 4, "choose another place");

    let shown = test_dir.json("view show disk.view --json");
    test_dir.succeeds("view export disk.view --csv disk.csv");
    let lines = fs::read_to_string(test_dir.path("disk.csv")).unwrap();
    let pieces = |name| shown[name]["pieces"].as_u64().unwrap();
    let events: u64 = ["read", "write", "flush", "prefetch"].into_iter().map(pieces).sum();
    assert_eq!(lines.lines().count() as u64, events + 1);
    assert!(
        lines.starts_with("order,trip,operation,tree,level,index,bucket,part,bytes,micros,party,")
    );
    let times = lines.lines().skip(1).map(|line| line.split(',').nth(9).unwrap().parse().unwrap());
    let times: Vec<u64> = times.collect();
    assert!(times.is_sorted() && times[0] < times[times.len() - 1], "{times:?}");
    // A view can also be read from a pipe.
    let piped = std::process::Command::new("/bin/sh")
        .args(["-c", "cat disk.view | \"$0\" view show /dev/stdin --json"])
        .arg(env!("CARGO_BIN_EXE_oblivio"))
        .current_dir(test_dir.path(""))
        .output()
        .unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&piped.stdout).unwrap(), shown);
    test_dir.assert_nothing_is_lost();
}

#[test]
fn views_of_older_versions_lack_what_was_not_recorded() {
    let test_dir = TestDir::new();
    for (start, capabilities) in
        [(&b"OBLVIEW\x01"[..], Value::Null), (b"OBLVIEW\x02\x01", serde_json::json!(["parts"]))]
    {
        fs::write(test_dir.path("old.view"), [start, b"\x0F\x00\x00\x80\x01"].concat()).unwrap();
        let shown = test_dir.json("view show old.view --json");
        assert_eq!(shown["capabilities"], capabilities);
        assert_eq!((&shown["flush"]["trips"], &shown["rates"]), (&1.into(), &Value::Null));
        let text = test_dir.succeeds("view show old.view");
        assert!(text.contains("times of trips were not recorded"), "{text}");
        assert_eq!(text.contains("whole buckets: not recorded"), capabilities.is_null(), "{text}");
    }
}

#[test]
fn an_incomplete_view_file_is_refused_and_nothing_is_written() {
    let test_dir = TestDir::with_data(1);
    record(&test_dir, VOLUME);
    let whole = fs::read(test_dir.path("disk.view")).unwrap();
    fs::write(test_dir.path("kept.csv"), "kept").unwrap();
    for len in [0, 5, 8, whole.len() / 2, whole.len() - 1] {
        fs::write(test_dir.path("cut.view"), &whole[..len]).unwrap();
        test_dir.fails_with("view show cut.view", 3, "not a complete view file");
        test_dir.fails_with("view show cut.view --svg cut.svg", 3, "record the view again");
        test_dir.fails_with("view export cut.view --csv kept.csv", 3, "not a complete view file");
    }
    assert_eq!(fs::read_to_string(test_dir.path("kept.csv")).unwrap(), "kept");
    assert!(!test_dir.path("cut.svg").exists());
    test_dir.fails_with("view show .", 3, "it is a directory");
}

/// An output may only replace a file of its kind: never the volume, its key or the client's
/// directory.
#[test]
fn an_output_replaces_no_file_of_another_kind() {
    let test_dir = TestDir::with_data(1);
    let state = test_dir.state().join("superblock");
    std::os::unix::fs::symlink("disk.obl", test_dir.path("link")).unwrap();
    let held = || ["key", "data"].map(|name| fs::read(test_dir.path(name)).unwrap());
    let (before, state_before) = (held(), fs::read(&state).unwrap());
    record(&test_dir, VOLUME);
    let view = fs::read(test_dir.path("disk.view")).unwrap();
    for target in ["disk.obl", "./link", "key", "data", state.to_str().unwrap()] {
        for output in [
            format!("view record {VOLUME} --run true --output {target}"),
            format!("serve nbd {VOLUME} --run true --record-view {target}"),
            format!("view show disk.view --svg {target}"),
            format!("view export disk.view --csv {target}"),
            format!("serve nbd {VOLUME} --background --log {target}"),
            format!(
                "plan --size 64M --alloc --alloc-level 6 --alloc-accesses 2000 \
                 --alloc-output {target}"
            ),
        ] {
            test_dir.fails_with(&output, 4, "choose another name");
        }
    }
    test_dir.fails_with("view show disk.view --svg disk.view", 4, "is not a picture");
    assert!(held() == before && fs::read(test_dir.path("disk.view")).unwrap() == view);
    assert!(fs::read(&state).unwrap() == state_before);
    test_dir.assert_nothing_is_lost();
    // A file of its kind is replaced.
    for _ in 0..2 {
        test_dir.succeeds("view show disk.view --svg disk.svg");
        test_dir.succeeds("view export disk.view --csv disk.csv");
    }
    record(&test_dir, VOLUME);
}

/// `view show` reports no leaves for the trivial ORAM, because each access reads the whole table.
#[test]
fn a_table_that_is_scanned_has_no_leaves() {
    let test_dir = TestDir::new();
    fs::write(test_dir.path("data"), super::test_dir::bytes(2, MIB)).unwrap();
    test_dir.succeeds(&format!("create {VOLUME} --size 1M --scheme scan"));
    test_dir.succeeds(&format!(
        "view record {VOLUME} --output scan.view --run 'nbdcopy data \"$uri\" && nbdcopy \
             \"$uri\" back'"
    ));
    let shown = test_dir.json("view show scan.view --json");
    for tree in shown["trees"].as_array().unwrap() {
        assert!(tree["leaves"].is_null(), "{tree}");
    }
}

#[test]
fn a_view_without_leaves_is_drawn_only_for_a_named_tree() {
    let test_dir = TestDir::new();
    // The only event is a read of an anchor, which has no leaves.
    let view = b"OBLVIEW\x03\x01\x01\x00\x01\x01\x00\x40\x80\x01";
    fs::write(test_dir.path("disk.view"), view).unwrap();
    let advice = "choose a tree to draw with --tree, of 1\n";
    test_dir.fails_with("view show disk.view --svg disk.svg", 3, advice);
    test_dir.succeeds("view show disk.view --svg disk.svg --tree 1");
    // A view without events.
    fs::write(test_dir.path("empty.view"), b"OBLVIEW\x03\x01\x80\x00").unwrap();
    test_dir.fails_with("view show empty.view --svg disk.svg", 3, "there is nothing to draw");
}

#[test]
fn an_input_that_is_not_a_view_is_refused_before_its_end_is_read() {
    let test_dir = TestDir::new();
    test_dir.fails_with("view show /dev/zero", 3, "/dev/zero is not a complete view file");
    // An endless input that begins like a view.
    let endless = "{ printf 'OBLVIEW\\003\\001'; yes; } | \"$0\" view show /dev/stdin";
    let shown = std::process::Command::new("/bin/sh")
        .args(["-c", endless])
        .arg(env!("CARGO_BIN_EXE_oblivio"))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&shown.stderr);
    assert_eq!(shown.status.code(), Some(3), "{printed}");
    assert!(printed.contains("is not a complete view file: view file, byte 9"), "{printed}");
}

/// If the file system of an output is full, no partial file is left that could be mistaken for a
/// complete one.
#[test]
fn an_output_that_finds_no_room_leaves_nothing() {
    on_a_file_system(
        "-t tmpfs -o size=300k",
        &format!("{}::writes_no_partial_files", module_path!()),
    );
}

#[test]
#[ignore = "run by a test above, on a file system of its own"]
fn writes_no_partial_files() {
    let (test_dir, folder) = (TestDir::with_data(4), folder());
    record(&test_dir, VOLUME);
    std::os::unix::fs::symlink(&folder, test_dir.path("full")).unwrap();
    let names = || fs::read_dir(&folder).unwrap().count();
    let advice = "No space left on device";
    test_dir.fails_with("view export disk.view --csv full/disk.csv", 10, advice);
    assert_eq!(names(), 0, "an export");
    let copy = "for i in 1 2 3 4 5 6; do nbdcopy \"$uri\" back; done";
    test_dir.fails_with(
        &format!("view record {VOLUME} --cache 0 --output full/disk.view --run '{copy}'"),
        10,
        advice,
    );
    assert_eq!(names(), 0, "a recording");
    // An existing file stays.
    fs::write(folder.join("disk.csv"), "order,of before").unwrap();
    test_dir.fails_with("view export disk.view --csv full/disk.csv", 10, advice);
    assert_eq!(fs::read_to_string(folder.join("disk.csv")).unwrap(), "order,of before");
    test_dir.fails_with("view export disk.view --csv /dev/full", 10, advice);
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
}

#[test]
fn a_recording_at_a_terminal_shows_its_progress() {
    let test_dir = TestDir::with_data(1);
    let terminal = Terminal::new();
    let line =
        format!("view record {VOLUME} --output disk.view --run 'nbdcopy \"$uri\" back; sleep 1'");
    let mut session = terminal.run(&command(&test_dir.path(""), &line)).spawn().unwrap();
    let shown = terminal.type_secrets(|_| None);
    assert!(session.wait().unwrap().success(), "{shown}");
    assert!(shown.contains("trips to storage recorded"), "{shown}");
    assert!(shown.contains("oblivio view show disk.view"), "{shown}");
}
