//! IR-Alloc: the slots of each level are searched, saved, and used by a volume.

use std::fs;

use serde_json::{Value, json};

use super::test_dir::{MIB, TestDir, VOLUME, bytes};

/// A tree of ten levels, all in storage.
const REQUIREMENTS: &str = "--size 4M --tree-top 0";

const SEARCH: &str = "--alloc --alloc-accesses 2000";

/// Searches for slots. Returns a test directory with the result in `slots.json`, and the printed
/// plan as JSON.
fn searched() -> (TestDir, Value) {
    let test_dir = TestDir::new();
    let plan =
        test_dir.json(&format!("plan {REQUIREMENTS} {SEARCH} --alloc-output slots.json --json"));
    (test_dir, plan)
}

#[test]
fn searched_slots_are_shown_beside_the_plan_without_them() {
    let (test_dir, plan) = searched();
    let without = test_dir.json(&format!("plan {REQUIREMENTS} --json"));
    let alloc = &plan["alloc"];
    assert_eq!(alloc["uniform"], without);
    assert_eq!((&without["slots"], &alloc["path_slots_uniform"]), (&5.into(), &50.into()));
    let slots: Vec<u64> =
        plan["slots"].as_array().unwrap().iter().map(|z| z.as_u64().unwrap()).collect();
    assert_eq!((slots.len(), slots[9]), (10, 5));
    assert_eq!(alloc["path_slots"], slots.iter().sum::<u64>());
    assert!(slots.iter().sum::<u64>() < 45, "{slots:?}");
    assert!((0.0..0.01).contains(&alloc["space_loss"].as_f64().unwrap()), "{alloc}");
    for figure in ["storage_bytes", "read_bytes_per_access", "written_bytes_per_access"] {
        assert!(plan[figure].as_f64() < without[figure].as_f64(), "{figure}: {plan}");
    }

    let text = test_dir.succeeds(&format!("plan {REQUIREMENTS} --alloc-from slots.json"));
    for part in ["slots by level    0", "with Z = 5 on every level", "path              50 slots"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    // The seed determines the result exactly.
    let file = || fs::read(test_dir.path("slots.json")).unwrap();
    let first = file();
    test_dir.succeeds(&format!("plan {REQUIREMENTS} {SEARCH} --alloc-output slots.json"));
    assert!(first == file());
    test_dir.succeeds(&format!("plan {REQUIREMENTS} {SEARCH} --seed 2 --alloc-output slots.json"));
    assert!(first != file());
}

#[test]
fn a_volume_works_with_searched_slots() {
    let (test_dir, plan) = searched();
    let requirements = format!("{REQUIREMENTS} --alloc-from slots.json");
    assert_eq!(test_dir.json(&format!("plan {requirements} --json")), plan);
    let mut made = test_dir.json(&format!("create {VOLUME} {requirements} --json"));
    made.as_object_mut().unwrap().retain(|field, _| field != "volume" && field != "state");
    assert_eq!(made, plan);
    assert_eq!(test_dir.store().len(), plan["storage_bytes"]);

    for seed in [2, 3] {
        fs::write(test_dir.path("data"), bytes(seed, 4 * MIB)).unwrap();
        test_dir.fill();
        test_dir.assert_nothing_is_lost();
    }
    for options in ["disk.obl --key-file key", "disk.obl --public"] {
        let info = test_dir.json(&format!("info {options} --json"));
        assert_eq!(info["slots"], plan["slots"]);
    }
    let slots = plan["slots"].as_array().unwrap().iter().map(Value::to_string);
    let shown = format!("Z = {}, A = 5", slots.collect::<Vec<_>>().join(" "));
    assert!(test_dir.succeeds(&format!("info {VOLUME}")).contains(&shown), "no {shown:?}");
}

#[test]
fn the_built_in_profile_fits_volumes_with_default_parameters() {
    let test_dir = TestDir::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/results/alloc-volume.json");
    for (tree_top, uniform, found) in [("", 30, 29), ("--tree-top 12M", 40, 33)] {
        let plan =
            test_dir.json(&format!("plan --size 1G {tree_top} --alloc-from '{file}' --json"));
        assert_eq!(plan["alloc"]["path_slots_uniform"], uniform);
        assert_eq!(plan["alloc"]["path_slots"], found);
    }
    // A smaller volume has no searched levels in storage, so its slots stay uniform.
    let small = test_dir.json(&format!("plan --size 16M --alloc-from '{file}' --json"));
    assert_eq!(small["slots"], 5);
}

#[test]
fn an_unsuitable_slots_file_is_refused_and_nothing_is_made() {
    let (test_dir, _) = searched();
    let good: Value =
        serde_json::from_slice(&fs::read(test_dir.path("slots.json")).unwrap()).unwrap();
    let write = |name: &str, pointer: &str, value: Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        fs::write(test_dir.path(name), bad.to_string()).unwrap();
    };
    write("short.json", "/profile", json!([1, 2, 3]));
    write("large.json", "/profile/4", json!(6));
    write("newer.json", "/version", json!(9));
    write("path.json", "/plan/scheme", json!("Path"));
    fs::write(test_dir.path("text.json"), "slots").unwrap();
    for (options, advice) in [
        ("--alloc-from nowhere.json", "check the path"),
        ("--alloc-from .", "give a file"),
        ("--alloc-from key", ""),
        ("--alloc-from text.json", "text.json cannot be used: the file is not JSON"),
        ("--alloc-from short.json", "\"profile\" is invalid: it has 3 levels, but the plan's"),
        ("--alloc-from large.json", "level 4 has 6 slots"),
        ("--alloc-from newer.json", "\"version\" is invalid: version 9 is unknown"),
        ("--alloc-from path.json", "the scheme Path ORAM"),
        ("--alloc-from slots.json --slots 6", "Z = 5, but this volume has 6"),
        ("--alloc-from slots.json --evict-period 4", "run oblivio plan --alloc"),
        ("--alloc-from slots.json --stash 60", "C = 64, but this volume has 60"),
    ] {
        test_dir.fails_with(&format!("plan {REQUIREMENTS} {options}"), 3, advice);
        test_dir.fails_with(&format!("create {VOLUME} {REQUIREMENTS} {options}"), 3, advice);
    }
    assert!(!test_dir.path("disk.obl").exists());
    test_dir.fails_with(&format!("plan {REQUIREMENTS} {SEARCH} --slots 17"), 3, "2 to 16 slots");
    let nowhere = format!("plan {REQUIREMENTS} {SEARCH} --alloc-output nowhere/slots.json");
    test_dir.fails_with(&nowhere, 4, "choose another place");
}

#[test]
fn options_of_a_search_need_one() {
    let test_dir = TestDir::new();
    for options in [
        "--seed 2",
        "--alloc-output slots.json",
        "--evictions-max 0%",
        "--alloc --alloc-from slots.json",
        "--alloc --space-loss-max 1",
        "--alloc --space-loss-max 101%",
        "--alloc --evictions-max much%",
        "--alloc --alloc-level 0",
    ] {
        test_dir.fails_with(&format!("plan {REQUIREMENTS} {options}"), 2, "--help");
    }
}
