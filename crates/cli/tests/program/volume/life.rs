//! The commands that a volume's owner uses from its creation on, and their output.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use super::test_dir::{MIB, TestDir, VOLUME, bytes};
use crate::common;

/// Checks that `report` has exactly these fields.
fn assert_fields(report: &Value, names: &[&str]) {
    let mut found: Vec<_> = report.as_object().unwrap().keys().map(String::as_str).collect();
    let mut wanted = names.to_vec();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

const PLAN: [&str; 25] = [
    "accesses_per_checkpoint",
    "block_bytes",
    "blocks",
    "blocks_on_client_bytes",
    "blocks_per_access",
    "client_bytes",
    "client_bytes_in_use_max",
    "disk_bytes",
    "evict_period",
    "expansion",
    "levels",
    "long_reply_bytes_max",
    "position_map_bytes",
    "position_map_depth",
    "read_bytes_per_access",
    "scheme",
    "slots",
    "stash_blocks_max",
    "state_bytes_closed_max",
    "state_bytes_in_use_max",
    "storage_bytes",
    "tree_top_levels",
    "tree_top_ways",
    "trips_per_access",
    "written_bytes_per_access",
];

#[test]
fn files_of_a_volume_are_their_owners_alone_whatever_the_umask_is() {
    let test_dir = TestDir::new();
    let striped = "stripe:a.obl,b.obl --key-file key --state state";
    for (command, made) in [
        (format!("create {striped} --size 1M"), &["a.obl", "b.obl", "state"][..]),
        ("copy stripe:a.obl,b.obl stripe:c.obl,d.obl".into(), &["c.obl", "d.obl"]),
        (format!("rescue {striped} image"), &["image"]),
    ] {
        let (code, printed) = common::after(test_dir.path(""), "umask 0;", &command);
        assert_eq!(code, 0, "{command}: {printed}");
        made.iter().for_each(|made| test_dir.assert_private(made));
    }
}

#[test]
fn a_volume_is_planned_created_used_checked_and_described() {
    let test_dir = TestDir::new();
    let text = test_dir.succeeds("plan --size 16M");
    for part in ["16.0 MiB", "4096 of 4.0 KiB", "an access", "checkpoint", "2^-80"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let text = test_dir.succeeds(&format!("create {VOLUME} --size 16M --label 'my key'"));
    assert!(text.contains("Back it up with the volume"), "{text}");
    assert!(text.contains(test_dir.state().to_str().unwrap()), "{text}");
    let text = test_dir.succeeds(&format!("info {VOLUME}"));
    for part in ["16.0 MiB", "closed            yes", "key file", "my key"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let text = test_dir.succeeds(&format!("check {VOLUME}"));
    assert!(text.contains("0 blocks hold data"), "{text}");

    fs::write(test_dir.path("data"), bytes(2, 16 * MIB)).unwrap();
    test_dir.fill();
    let text = test_dir.succeeds(&format!("check {VOLUME}"));
    assert!(text.contains("4096 blocks hold data"), "{text}");
    test_dir.assert_nothing_is_lost();
    assert!(!test_dir.state().join("nbd.sock").exists(), "the socket file is removed");
}

#[test]
fn a_plan_and_a_creation_report_the_same_json() {
    let test_dir = TestDir::new();
    let requirements = "--size 16M --block 8K --slots 4 --evict-period 3 --stash 100 --tree-top 1M";
    let plan = test_dir.json(&format!("plan {requirements} --json"));
    assert_fields(&plan, &PLAN);
    assert_eq!(plan["disk_bytes"], 16 * MIB);
    assert_eq!((&plan["blocks"], &plan["block_bytes"]), (&2048.into(), &8192.into()));
    assert_eq!((&plan["slots"], &plan["evict_period"]), (&4.into(), &3.into()));
    assert_eq!(plan["stash_blocks_max"], 100);

    let mut made = test_dir.json(&format!("create {VOLUME} {requirements} --json"));
    assert_fields(&made, &[&PLAN[..], &["state", "volume"]].concat());
    let object = made.as_object_mut().unwrap();
    assert_eq!(object.remove("volume").unwrap(), "disk.obl");
    assert_eq!(object.remove("state").unwrap(), test_dir.state().to_str().unwrap());
    assert_eq!(made, plan);
    assert_eq!(plan["storage_bytes"], test_dir.store().len());
}

#[test]
fn sizes_are_compared_as_they_would_be_planned() {
    let test_dir = TestDir::new();
    let requirements = "--block 8K --slots 4 --client-memory 50M --tree-top 1M";
    let plans = test_dir.json(&format!("plan --sizes {requirements} --json"));
    let plans = plans.as_array().unwrap();
    assert_eq!(plans.len(), 8);
    for (plan, size) in plans.iter().zip(["1G", "4G", "16G", "64G", "256G", "1T", "4T", "16T"]) {
        assert_eq!(*plan, test_dir.json(&format!("plan --size {size} {requirements} --json")));
    }
    let text = test_dir.succeeds(&format!("plan --sizes {requirements}"));
    for part in ["of the map", "1.0 GiB", "256.0 GiB", "16.0 TiB"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert_eq!(text.lines().count(), 1 + 8 + 2, "{text}");
    test_dir.fails_with("plan --sizes --size 1G", 2, "cannot be used with");
    test_dir.fails_with("plan", 2, "--size");
    test_dir.fails_with("plan --sizes --block 1T", 3, "16 to 1048576 bytes");
}

#[test]
fn a_description_as_json_with_a_key_and_without() {
    let test_dir = TestDir::with_data(8);
    let fields = [
        &PLAN[..],
        &["allocated_bytes", "authenticated", "id", "key_slots", "machine", "needs_recovery"],
    ]
    .concat();
    let fields = [&fields[..], &["tampering_found", "wrong_servers"]].concat();
    let with_key = test_dir.json(&format!("info {VOLUME} --require-clean --json"));
    assert_fields(&with_key, &fields);
    assert_eq!(with_key["authenticated"], true);
    assert_eq!(with_key["needs_recovery"], false);
    assert_eq!(with_key["id"], test_dir.state().file_name().unwrap().to_str().unwrap());
    assert!(with_key["allocated_bytes"].as_u64().unwrap() > 8 * MIB);
    let public = test_dir.json("info disk.obl --public --json");
    assert_fields(&public, &fields);
    assert_eq!(public["authenticated"], false);
    assert_eq!(public["needs_recovery"], Value::Null);
    for field in [&PLAN[..], &["id", "key_slots"]].concat() {
        assert_eq!(public[field], with_key[field], "{field}");
    }
    assert!(test_dir.succeeds("info disk.obl --public").contains("not authenticated"));
}

#[test]
fn a_check_counts() {
    let test_dir = TestDir::with_data(8);
    let report = test_dir.json(&format!("check {VOLUME} --json"));
    assert_fields(&report, &["blocks", "buckets", "buckets_written", "recovered"]);
    assert_eq!(report["blocks"], 2048);
    assert!(report["buckets"].as_u64().unwrap() > 500);
    assert_eq!(report["recovered"], false);
}

#[test]
fn keys_are_added_listed_and_removed() {
    let test_dir = TestDir::with_data(8);
    fs::write(test_dir.path("other"), bytes(3, 32)).unwrap();
    fs::write(test_dir.path("words"), "correct horse\n").unwrap();
    let printed =
        test_dir.succeeds(&format!("key add {VOLUME} --new-key-file other --label spare"));
    assert!(printed.contains("slot 1"), "{printed}");
    test_dir.succeeds(&format!(
        "key add {VOLUME} --new-passphrase-file words --unlock-millis 1 --label words"
    ));

    let slots = test_dir.json("key list disk.obl --json");
    let slots = slots.as_array().unwrap();
    assert_eq!(slots.len(), 3);
    for slot in slots {
        assert_fields(slot, &["argon2id", "kind", "label", "slot"]);
    }
    let (spare, words) = (&slots[1], &slots[2]);
    assert_eq!((&spare["kind"], &spare["label"]), (&"key file".into(), &"spare".into()));
    assert_eq!(spare["argon2id"], Value::Null);
    assert_eq!((&words["kind"], &words["slot"]), (&"passphrase".into(), &2.into()));
    assert_fields(&words["argon2id"], &["lanes", "memory_kib", "passes"]);
    let text = test_dir.succeeds("key list disk.obl");
    assert!(text.contains("Argon2id") && text.lines().count() == 3, "{text}");

    for way in ["--passphrase-file words", "--passphrase-command 'printf \"correct horse\"'"] {
        let report = test_dir.json(&format!("check disk.obl {way} --json"));
        assert_eq!(report["blocks"], 2048);
    }
    let printed = test_dir.succeeds("key remove disk.obl --key-file other 0");
    assert!(printed.contains("slot 0 is empty"), "{printed}");
    test_dir.fails_with(&format!("info {VOLUME}"), 6, "key list");
    test_dir.fails_with("key remove disk.obl --key-file other 0", 3, "slot");
    let printed = test_dir.json("key remove disk.obl --passphrase-file words 2 --json");
    assert_eq!(printed["slot"], 2);
    test_dir.fails_with("key remove disk.obl --key-file other 1", 3, "add another first");
    // The freed slot is used again.
    let printed = test_dir.json("key add disk.obl --key-file other --new-key-file key --json");
    assert_eq!(printed["slot"], 0);
    test_dir.assert_nothing_is_lost();
}

#[test]
fn a_server_reports_its_address_and_ends_on_a_signal() {
    let test_dir = TestDir::with_data(4);
    let server = test_dir.serve("--export-name disk --read-only");
    assert!(server.uri().contains("nbd.sock") && server.uri().contains("disk"), "{}", server.uri());
    assert!(server.contents() == fs::read(test_dir.path("data")).unwrap());
    assert_eq!(server.stop(), (0, String::new()));
    let report = test_dir.json(&format!("info {VOLUME} --require-clean --json"));
    assert_eq!(report["needs_recovery"], false);
}

#[test]
fn a_volume_in_use_shows_what_is_in_its_superblock() {
    let test_dir = TestDir::with_data(4);
    let server = test_dir.serve("");
    let (code, shown, remarks) =
        crate::common::oblivio(test_dir.path(""), &format!("info {VOLUME} --json"));
    assert_eq!(
        (code, remarks.contains("Facts that need the key and the client's directory")),
        (0, true),
        "{remarks}"
    );
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let public = test_dir.json("info disk.obl --public --json");
    assert_eq!((&shown["disk_bytes"], &shown["slots"]), (&public["disk_bytes"], &public["slots"]));
    assert!(shown.get("needs_recovery").is_none_or(serde_json::Value::is_null), "{shown}");
    test_dir.succeeds("key list disk.obl");
    fs::write(test_dir.path("wrong"), [9; 32]).unwrap();
    test_dir.fails_with("info disk.obl --key-file wrong", 6, "the key file is wrong");
    // `--require-clean` must open the volume, so it fails while the volume is in use.
    test_dir.fails_with(&format!("info {VOLUME} --require-clean"), 9, "close it there first");
    assert!(server.contents() == fs::read(test_dir.path("data")).unwrap());
    assert_eq!(server.stop(), (0, String::new()));
}

#[test]
fn the_exit_code_of_a_command_is_passed_on() {
    let test_dir = TestDir::with_volume(4);
    let line = format!("serve nbd {VOLUME} --run 'test -S \"$unixsocket\" && exit 42'");
    test_dir.fails_with(&line, 42, "exit code 42");
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
}

#[test]
fn options_of_a_run_change_nothing_that_is_stored() {
    let test_dir = TestDir::with_data(8);
    for options in ["--cache 64K --sync-moves flush", "--direct", "--cache 0 --record-view view"] {
        fs::write(test_dir.path("data"), bytes(options.len() as u64, 8 * MIB)).unwrap();
        let (code, _, error) = crate::common::oblivio(
            test_dir.path(""),
            &format!("serve nbd {VOLUME} {options} --run 'nbdcopy --flush data \"$uri\"'"),
        );
        // A file system without direct I/O is reported.
        if options == "--direct" && code == 3 {
            assert!(error.contains("leave --direct out"), "{error}");
            test_dir.fill();
        } else {
            assert_eq!(code, 0, "{options}: {error}");
        }
        test_dir.assert_nothing_is_lost();
    }
    assert!(test_dir.succeeds("view show view").contains("write"));
}

#[test]
fn manuals_and_completions_know_every_command() {
    let test_dir = TestDir::new();
    test_dir.succeeds("man pages");
    for page in ["oblivio", "oblivio-create", "oblivio-serve-nbd", "oblivio-key-remove"] {
        let page = fs::read_to_string(test_dir.path(format!("pages/{page}.1"))).unwrap();
        assert!(page.contains(".TH"), "{page}");
    }
    let page = fs::read_to_string(test_dir.path("pages/oblivio.1")).unwrap();
    assert!(page.contains("Exit codes"), "{page}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = test_dir.succeeds(&format!("completions {shell}"));
        for word in ["umount", "record", "require-clean"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
        assert!(!script.contains("in-background"), "{shell}: this is not an option");
    }
}

/// A path that is not UTF-8 is a `file://` URL in JSON, and does not cause a panic.
#[test]
fn paths_that_are_not_utf_8_are_urls_in_json() {
    let test_dir = TestDir::new();
    let folder = test_dir.path(OsStr::from_bytes(b"n\xff"));
    fs::create_dir(&folder).unwrap();
    fs::write(test_dir.path("data"), bytes(3, 1 << 16)).unwrap();
    let file = |name: &str| folder.join(name).into_os_string();
    let run = |words: &str, paths: &[OsString]| -> Value {
        let mut command = common::command(&test_dir.path(""), words);
        let output = command.args(paths).output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let at = || [file("v"), "--state".into(), file("s"), "--key-file".into(), "key".into()];
    let made = run("create --size 64K --json", &at());
    for (field, name) in [("volume", "v"), ("state", "s")] {
        let url = made[field].as_str().unwrap();
        assert!(url.starts_with("file:///") && url.ends_with(&format!("/n%FF/{name}")), "{made}");
    }
    let url = made["volume"].as_str().unwrap();
    assert_eq!(test_dir.json(&format!("info {url} --public --json"))["authenticated"], false);
    run("info --json", &at());
    run("check --json", &at());
    run("serve nbd --json --run true", &at());
    run("copy --json", &[file("v"), file("copy")]);
    run("rescue --json", &[&at()[..], &[file("image")]].concat());
    let mut record = common::command(&test_dir.path(""), "view record --run true --output");
    assert!(record.arg(file("view")).args(at()).output().unwrap().status.success());
    run("view show --json", &[file("view")]);
    run("remove --yes --json", &[file("copy")]);
}
