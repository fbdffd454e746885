//! Rescues of damaged volumes. Lost data are always reported.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::own_file_system::{folder, on_a_file_system};
use super::store_file::{
    BUCKETS_AT, FRONT_AT, HEADER_BYTES, PAIR_BYTES, SUPERBLOCK_BYTES, back_at, superblocks,
};
use super::test_dir::{MIB, TestDir, VOLUME, bytes};
use crate::common::oblivio;

/// The report of a rescue. Every block that is not reported as lost or doubtful was correct.
pub(crate) struct Rescue {
    pub(crate) blocks: u64,
    /// Number of bytes in lost blocks.
    pub(crate) lost: u64,
    pub(crate) doubtful: u64,
    pub(crate) damage: Vec<String>,
    pub(crate) damage_left_out: u64,
}

impl Rescue {
    /// Rescues the volume of `test_dir`. The command must end with `code`.
    pub(crate) fn of(test_dir: &TestDir, code: i32) -> Self {
        Self::with(test_dir, "", code)
    }

    /// Like [`Self::of`], with additional options.
    fn with(test_dir: &TestDir, options: &str, code: i32) -> Self {
        let _ = fs::remove_file(test_dir.path("saved"));
        let printed =
            oblivio(test_dir.path(""), &format!("rescue {VOLUME} saved --json {options}"));
        assert_eq!(printed.0, code, "{}", printed.2);
        let report: Value = serde_json::from_str(&printed.1).unwrap();
        let number = |value: &Value, field: &str| value[field].as_u64().unwrap();
        let files = ["data", "saved"].map(|name| fs::read(test_dir.path(name)).unwrap());
        let [mut data, mut saved] = files;
        let [lost, doubtful] = ["lost", "doubtful"].map(|kind| {
            let mut sum = 0;
            for range in report[kind].as_array().unwrap() {
                let (offset, bytes) = (number(range, "offset"), number(range, "bytes"));
                sum += bytes;
                let range = offset as usize..(offset + bytes) as usize;
                data[range.clone()].fill(0);
                saved[range].fill(0);
            }
            sum
        });
        assert!(data == saved, "every block that is not lost must be saved");
        assert_eq!(number(&report, "blocks_lost") * 4096, lost);
        let damage = report["damage"].as_array().unwrap().iter();
        Self {
            blocks: number(&report, "blocks"),
            lost,
            doubtful,
            damage: damage.map(|what| what.as_str().unwrap().to_owned()).collect(),
            damage_left_out: number(&report, "damage_left_out"),
        }
    }
}

#[test]
fn a_rescue_of_a_sound_volume_is_a_copy() {
    let test_dir = TestDir::with_data(16);
    let message = test_dir.succeeds(&format!("rescue {VOLUME} saved"));
    test_dir.fails_with(&format!("rescue {VOLUME} saved"), 4, "already exists");
    assert!(message.contains("4096 blocks are in saved"), "{message}");
    assert!(fs::read(test_dir.path("saved")).unwrap() == fs::read(test_dir.path("data")).unwrap());
    test_dir.assert_nothing_is_lost();
}

/// A rescue with an old copy of the client's directory reports that every block may be old (exit
/// code 12).
#[test]
fn a_rescue_with_an_old_directory_is_code_12() {
    let test_dir = TestDir::with_data(4);
    let state = test_dir.state();
    test_dir.copy(&state, "old");
    test_dir.fill();
    let command_line = format!("rescue {VOLUME} saved --state old");
    test_dir.fails_with(&command_line, 12, "every block may be older than the latest");
    // Nothing is left that hinders the next attempt.
    fs::remove_file(test_dir.path("saved")).unwrap();
    test_dir.fails_with(&format!("rescue {VOLUME} saved --state nowhere"), 11, "nowhere");
    test_dir.succeeds(&format!("rescue {VOLUME} saved"));
}

/// The headers of buckets are stored behind all slots, the ones near the leaves last. A bucket
/// without its header is lost, unless the client holds it.
#[test]
fn a_rescue_of_a_truncated_store_gives_back_all_blocks_but_the_missing_ones() {
    let test_dir = TestDir::with_data(16);
    let store = test_dir.store();
    let (whole, back) = (store.len(), back_at(&store));
    let heads = back + PAIR_BYTES..whole - HEADER_BYTES;
    let all = store.read(0, whole);
    let mut lost_before = 0;
    for (left, loses) in [
        (whole - 1, false),
        (heads.end, false),
        (heads.end - (heads.end - heads.start) / 4, true),
        (heads.start + 1, true),
        (back + 1, true),
        (whole / 3, true),
        (BUCKETS_AT + 1, true),
        (FRONT_AT + SUPERBLOCK_BYTES, true),
    ] {
        store.set_len(left);
        let Rescue { blocks, lost, damage, .. } = Rescue::of(&test_dir, 7);
        assert!(blocks > 0, "{left} bytes: blocks of the client must be there");
        assert!(lost >= lost_before && (lost > 0) == loses, "{left} bytes: {lost} lost");
        assert!(damage[0].starts_with(&format!("{} of {whole} bytes", whole - left)));
        assert!(damage[1].starts_with("1 of 3 copies of the file's header"), "{damage:?}");
        assert!(damage.len() < 10, "missing buckets must not be listed one by one: {damage:?}");
        lost_before = lost;
    }
    for left in [FRONT_AT + SUPERBLOCK_BYTES - 1, FRONT_AT, HEADER_BYTES / 2, 20] {
        store.set_len(left);
        test_dir.fails_with(&format!("rescue {VOLUME} none"), 7, "estore it from a backup");
    }
    // A file with neither its header nor its length is not rescued, even with the client's
    // directory.
    let state = test_dir.state();
    for contents in [&b""[..], b"something else"] {
        let (there, rescue) = (contents.len(), format!("rescue {VOLUME} none"));
        store.set_len(0);
        store.write(0, contents);
        test_dir.fails_with(&rescue, 3, "check the path");
        let sizes = format!("the file has {there} bytes and should have at least {whole}");
        test_dir.fails_with(&format!("{rescue} --state {}", state.display()), 3, &sizes);
    }
    test_dir.fails_with(&format!("check {VOLUME}"), 3, "not a container file");
    store.set_len(whole);
    store.replace(0, &all);
    test_dir.assert_nothing_is_lost();
}

#[test]
fn damage_to_headers_and_superblocks_is_damage() {
    let test_dir = TestDir::with_data(4);
    let store = test_dir.store();
    let header_copies = [0, HEADER_BYTES, store.len() - HEADER_BYTES];
    for (at, what) in header_copies
        .map(|at| (at, "copies of the file's header"))
        .into_iter()
        .chain(superblocks(&store).map(|at| (at, "copies of the superblock")))
    {
        let good = store.replace(at + 300, &[store.read(at + 300, 1)[0] ^ 1]);
        let Rescue { lost, doubtful, damage, .. } = Rescue::of(&test_dir, 7);
        assert_eq!((lost, doubtful, damage.len()), (0, 0, 1), "{damage:?}");
        assert!(damage[0].contains(what), "{damage:?}");
        store.replace(at + 300, &good);
    }
    Rescue::of(&test_dir, 0);
}

/// A rescue recomputes the lost header of the file from the copy of the superblock in the client's
/// directory.
#[test]
fn a_file_without_its_first_and_last_mebibyte_is_rescued_with_the_named_directory() {
    let test_dir = TestDir::with_data(64);
    fs::write(test_dir.path("other"), bytes(5, 32)).unwrap();
    test_dir.succeeds(&format!("key add {VOLUME} --new-key-file other"));
    test_dir.copy(test_dir.state(), "old");
    test_dir.succeeds(&format!("key remove {VOLUME} 1"));
    let store = test_dir.store();
    let (back, zeros) = (back_at(&store), vec![0; MIB as usize]);
    store.replace(0, &zeros);
    store.replace(store.len() - MIB, &zeros);
    for command in [format!("check {VOLUME}"), format!("rescue {VOLUME} saved")] {
        test_dir.fails_with(&command, 3, "with --state");
    }
    let state = test_dir.state();
    let options = format!("--state {}", state.display());
    let Rescue { blocks, lost, damage, .. } = Rescue::with(&test_dir, &options, 7);
    let block_bytes = 4096;
    assert!(lost > 0 && blocks * block_bytes > 32 * MIB, "{blocks} blocks, {lost} bytes lost");
    assert_eq!(damage[0], "3 of 3 copies of the file's header are damaged");
    assert!(damage[1].starts_with("2 of 4 copies of the superblock"), "{}", damage[1]);
    // Also without any superblock in storage.
    store.replace(back, &zeros[..PAIR_BYTES as usize]);
    let without = Rescue::with(&test_dir, &options, 7);
    assert!(
        without.damage[1].starts_with("4 of 4 copies of the superblock"),
        "{}",
        without.damage[1]
    );
    assert_eq!((without.blocks, without.lost), (blocks, lost));

    // Another file is not mistaken for the volume.
    test_dir.fails_with(&format!("rescue data none --key-file key {options}"), 3, "check the path");

    // The removed key opens nothing, even with an old copy of the superblock.
    let removed = format!("rescue disk.obl none --key-file other {options}");
    test_dir.fails_with(&removed, 6, "the key file is wrong");
    test_dir.copy("old/superblock-copy", state.join("superblock-copy"));
    test_dir.fails_with(&removed, 8, "key slots were rolled back");
    fs::remove_file(state.join("superblock-copy")).unwrap();
    test_dir.fails_with(&format!("rescue {VOLUME} none {options}"), 3, "check the path");
    assert!(!test_dir.path("none").exists());
}

#[test]
fn widespread_damage_is_listed_in_part_and_counted() {
    let test_dir = TestDir::with_data(16);
    let store = test_dir.store();
    let end = back_at(&store);
    for at in (BUCKETS_AT..end).step_by(5 * 4096) {
        store.replace(at, &[store.read(at, 1)[0] ^ 1]);
    }
    let Rescue { damage, damage_left_out, lost, .. } = Rescue::of(&test_dir, 7);
    assert!(lost > 0 && damage.len() == 1000 && damage_left_out > 0, "{damage_left_out}");
    fs::remove_file(test_dir.path("saved")).unwrap();
    let (code, printed, message) = oblivio(test_dir.path(""), &format!("rescue {VOLUME} saved"));
    assert_eq!(code, 7, "{message}");
    assert!(printed.lines().count() < 100, "{printed}");
    assert!(
        printed.contains(&format!("blocks are in saved, and {} are lost\n", lost / 4096)),
        "{printed}"
    );
    let left_out = damage_left_out + 1000 - 20;
    assert!(printed.contains(&format!("... and {left_out} more like this")), "{printed}");
}

#[test]
fn a_client_directory_in_use_cannot_be_used_for_a_rescue() {
    let test_dir = TestDir::with_data(4);
    let server = test_dir.serve("");
    test_dir.copy("disk.obl", "copy.obl");
    test_dir.fails_with(
        "rescue copy.obl saved --key-file key",
        9,
        "another process has the volume open",
    );
    assert_eq!(server.stop().0, 0);
    test_dir.succeeds(&format!("rescue {VOLUME} saved"));
}

#[test]
fn a_rescue_writes_neither_to_the_store_nor_to_the_directory() {
    on_a_file_system(
        "-t tmpfs -o size=300M",
        concat!(module_path!(), "::rescues_from_a_read_only_file_system"),
    );
}

#[test]
#[ignore = "runs on a file system of its own"]
fn rescues_from_a_read_only_file_system() {
    let test_dir = TestDir::with_data(4);
    let media = folder();
    let mount = |options: &str| {
        let status = Command::new("mount").args(["-o", options]).arg(&media).status().unwrap();
        assert!(status.success(), "{options}");
    };
    test_dir.copy("disk.obl", media.join("disk.obl"));
    test_dir.copy(test_dir.state(), media.join("state"));
    let place = media.display();
    let rescue = format!("rescue {place}/disk.obl saved --key-file key --state {place}/state");
    mount("remount,ro");
    test_dir.succeeds(&rescue);
    assert!(fs::read(test_dir.path("saved")).unwrap() == fs::read(test_dir.path("data")).unwrap());
    fs::remove_file(test_dir.path("saved")).unwrap();
    // The errors of commands that write name commands that only read. These work.
    let volume = format!("{place}/disk.obl --key-file key --state {place}/state");
    for command in [
        format!("check {volume}"),
        format!("serve nbd {volume} --read-only --run true"),
        format!("key remove {volume} 0"),
    ] {
        for works in ["oblivio rescue", "serve nbd --rescued", "`copy`", "`info`", "key list"] {
            test_dir.fails_with(&command, 1, works);
        }
    }
    let read = "nbdcopy \"$uri\" back && cmp data back";
    test_dir.succeeds(&format!("serve nbd {volume} --rescued --socket sock --run '{read}'"));
    test_dir.succeeds(&format!("info {volume} --require-clean"));
    test_dir.succeeds(&format!("key list {place}/disk.obl"));
    // Next, only the client's directory is on the read-only file system, and then only new files.
    for command in ["check", "serve nbd --run true"] {
        let command = format!("{command} disk.obl --key-file key --state {place}/state");
        for advice in [&format!("{place}/state"), "Read-only file system", "cp -a", "`copy`"] {
            test_dir.fails_with(&command, 1, advice);
        }
    }
    for new in [
        format!("{place}/new.obl --state new"),
        format!("new.obl --state {place}/new"),
        format!("stripe:new.obl,{place}/new.obl --state new"),
    ] {
        let command = format!("create {new} --key-file key --size 1M");
        test_dir.fails_with(&command, 1, &format!("{place}/new"));
        test_dir.fails_with(&command, 1, "choose another");
        assert!(!test_dir.path("new.obl").exists() && !test_dir.path("new").exists());
    }
    test_dir.fails_with(&format!("copy disk.obl {place}/copy.obl"), 4, "or choose another file");
    test_dir.succeeds(&format!("copy {place}/disk.obl copy.obl"));

    mount("remount,rw");
    fs::remove_file(media.join("state/lock")).unwrap();
    mount("remount,ro");
    test_dir.fails_with(&rescue, 1, "cp -a");
    test_dir.succeeds(&format!("rescue {VOLUME} saved"));
}
