//! Tests of storage and client directories that are damaged, old, or from another volume. Each
//! case has its own error, and nothing is lost once the good bytes are restored.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

use sha2::{Digest, Sha256};

use super::rescue::Rescue;
use super::store_file::{
    BUCKETS_AT, FRONT_AT, HEADER_BYTES, PAIR_BYTES, SUPERBLOCK_BYTES, back_at, superblocks,
};
use super::test_dir::{Bytes, MIB, TestDir, VOLUME, bytes};
use super::tools::try_run;
use crate::common::oblivio;

fn zeros(bytes: u64) -> Vec<u8> {
    vec![0; bytes as usize]
}

#[test]
fn a_flipped_bit_of_a_bucket_is_found_and_never_returned() {
    let test_dir = TestDir::with_data(4);
    let store = test_dir.store();
    let end = back_at(&store);
    let flip = |place| store.replace(place, &[store.read(place, 1)[0] ^ 0x10]);
    let check = || oblivio(test_dir.path(""), &format!("check {VOLUME} --after-tampering"));
    // The changed places are spread over all levels. Some hold copies of blocks that are no longer
    // used.
    let places = (1..20).map(|n| BUCKETS_AT + (end - BUCKETS_AT) / 20 * n);
    let mut found = Vec::new();
    for place in places.filter(|place| store.read(*place, 1) != [0]).collect::<Vec<_>>() {
        let good = flip(place);
        let (code, stdout, message) = check();
        store.replace(place, &good);
        match code {
            0 => {}
            7 => {
                assert!(message.contains("Restore the changed bytes"), "{message}");
                found.push(place);
            }
            _ => panic!("{code}: {stdout}{message}"),
        }
        if found.len() == 3 {
            break;
        }
    }
    assert_eq!(found.len(), 3, "three of the changed places must matter");
    assert_eq!(check().0, 0, "it is put right");
    test_dir.assert_nothing_is_lost();
    let place = found.into_iter().find(|place| {
        // Reads since then may have moved the blocks of this bucket.
        let good = flip(*place);
        let (code, ..) = check();
        store.replace(*place, &good);
        code == 7
    });
    assert_eq!(check().0, 0, "it is put right");
    let good = flip(place.unwrap());
    // A client that reads everything gets an error, too, and no wrong byte.
    let server = test_dir.serve("");
    let copied = try_run("nbdcopy", &[server.uri(), test_dir.path("back").to_str().unwrap()]);
    assert!(!copied.status.success());
    let data = fs::read(test_dir.path("data")).unwrap();
    let back = fs::read(test_dir.path("back")).unwrap();
    let is_empty = |block: &[u8]| block.iter().all(|byte| *byte == 0);
    let mut blocks = back.chunks(4096).zip(data.chunks(4096));
    assert!(blocks.all(|(copied, block)| copied == block || is_empty(copied)));
    let (code, message) = server.stop();
    assert_eq!(code, 7, "{message}");

    // A failed volume is not opened again, even if its storage is restored.
    test_dir.fails_with(&format!("check {VOLUME}"), 7, "--after-tampering");
    test_dir.fails_with(&format!("serve nbd {VOLUME} --run true"), 7, "oblivio rescue");
    let Rescue { lost, damage, .. } = Rescue::of(&test_dir, 7);
    assert!(lost <= 5 * 4096 && damage.len() == 1, "{damage:?}");
    store.replace(place.unwrap(), &good);
    test_dir.fails_with(&format!("check {VOLUME}"), 7, "--after-tampering");
    assert_eq!(check().0, 0, "it is put right");
    test_dir.assert_nothing_is_lost();
}

/// While tampering is known, the keys cannot be changed: a new superblock would be newer than the
/// storage that the owner restores. `info` reports the tampering.
#[test]
fn found_tampering_is_reported_by_info_and_prevents_changes_of_keys() {
    let test_dir = TestDir::with_data(4);
    fs::write(test_dir.path("other"), bytes(3, 32)).unwrap();
    let found = || {
        let printed = test_dir
            .succeeds(&format!("info {VOLUME}"))
            .contains("storage was found to be changed");
        assert_eq!(test_dir.json(&format!("info {VOLUME} --json"))["tampering_found"], printed);
        printed
    };
    assert!(!found());
    let store = test_dir.store();
    let good = store.replace(BUCKETS_AT, &bytes(4, back_at(&store) - BUCKETS_AT));
    test_dir.fails_with(&format!("check {VOLUME}"), 7, "--after-tampering");
    assert!(found());
    assert!(test_dir.json("info disk.obl --public --json")["tampering_found"].is_null());
    for change in ["add", "remove"] {
        let what = if change == "add" { "--new-key-file other" } else { "0" };
        test_dir.fails_with(
            &format!("key {change} {VOLUME} {what}"),
            7,
            "before you change its keys",
        );
    }
    store.replace(BUCKETS_AT, &good);
    test_dir.succeeds(&format!("check {VOLUME} --after-tampering"));
    assert!(!found());
    test_dir.succeeds(&format!("key add {VOLUME} --new-key-file other"));
    test_dir.assert_nothing_is_lost();
}

#[test]
fn a_store_cut_short_is_code_7() {
    let test_dir = TestDir::with_data(4);
    let store = test_dir.store();
    let whole = store.len();
    for cut in [1, HEADER_BYTES, whole / 2, whole - HEADER_BYTES] {
        let rest = store.read(whole - cut, cut);
        store.set_len(whole - cut);
        for command in ["info", "check"] {
            test_dir.fails_with(&format!("{command} {VOLUME}"), 7, "backup");
        }
        store.set_len(whole);
        store.replace(whole - cut, &rest);
    }
    test_dir.assert_nothing_is_lost();
    // What is left of the file does not show that it was a volume.
    for left in [1, 0] {
        store.set_len(left);
        test_dir.fails_with(&format!("check {VOLUME}"), 3, "check the path");
    }
}

#[test]
fn damaged_headers_and_superblocks_are_repaired_from_the_other_end() {
    let test_dir = TestDir::with_data(4);
    let store = test_dir.store();
    let back = back_at(&store);
    let garbage = bytes(4, HEADER_BYTES);
    for (at, bytes) in [
        (0, HEADER_BYTES),
        (FRONT_AT, PAIR_BYTES),
        (back, PAIR_BYTES),
        (0, FRONT_AT + PAIR_BYTES),
        (store.len() - HEADER_BYTES, HEADER_BYTES),
    ] {
        for damage in [zeros(bytes), garbage.iter().copied().cycle().take(bytes as usize).collect()]
        {
            let good = store.replace(at, &damage);
            let (code, _, remark) = oblivio(test_dir.path(""), &format!("check {VOLUME}"));
            assert_eq!(code, 0, "{at}: {remark}");
            assert!(remark.contains("were repaired"), "{at}: {remark}");
            assert!(store.read(at, bytes) == good, "{at}: all as it was");
        }
    }
    test_dir.assert_nothing_is_lost();
}

#[test]
fn a_volume_without_any_superblock_is_code_7() {
    let test_dir = TestDir::with_data(4);
    let store = test_dir.store();
    let places = superblocks(&store);
    for damage in [zeros(SUPERBLOCK_BYTES), bytes(5, SUPERBLOCK_BYTES)] {
        let good = places.map(|at| store.replace(at, &damage));
        for command_line in [
            format!("info {VOLUME}"),
            "info disk.obl --public".into(),
            "key list disk.obl".into(),
            format!("check {VOLUME}"),
        ] {
            test_dir.fails_with(&command_line, 7, "backup");
        }
        for (at, good) in places.into_iter().zip(good) {
            store.replace(at, &good);
        }
        test_dir.assert_nothing_is_lost();
    }
    // One flipped bit in each copy leaves most of each readable.
    for at in places {
        store.replace(at + 100, &[store.read(at + 100, 1)[0] ^ 1]);
    }
    test_dir.fails_with(&format!("info {VOLUME}"), 7, "backup");
}

#[test]
fn a_store_from_a_backup_is_code_8() {
    let test_dir = TestDir::with_data(8);
    test_dir.copy("disk.obl", "backup.obl");
    fs::write(test_dir.path("data"), bytes(6, 8 * MIB)).unwrap();
    test_dir.fill();
    test_dir.copy("disk.obl", "latest.obl");
    test_dir.copy("backup.obl", "disk.obl");
    for command_line in [format!("check {VOLUME}"), format!("serve nbd {VOLUME} --run true")] {
        test_dir.fails_with(&command_line, 8, "Bring the latest back");
    }
    test_dir.copy("latest.obl", "disk.obl");
    test_dir.assert_nothing_is_lost();
}

/// Storage is rolled back to a superblock that still has the removed slot. The client refuses it as
/// older.
#[test]
fn a_superblock_from_before_a_key_was_removed_is_code_8() {
    let test_dir = TestDir::with_data(4);
    fs::write(test_dir.path("other"), bytes(3, 32)).unwrap();
    test_dir.succeeds(&format!("key add {VOLUME} --new-key-file other"));
    let store = test_dir.store();
    let places = superblocks(&store);
    let old = places.map(|at| store.read(at, SUPERBLOCK_BYTES));
    test_dir.succeeds(&format!("key remove {VOLUME} 1"));
    let new = places.map(|at| store.read(at, SUPERBLOCK_BYTES));
    let show = |all: &[Vec<u8>; 4]| {
        places.iter().zip(all).for_each(|(at, bytes)| drop(store.replace(*at, bytes)));
    };
    show(&old);
    for command_line in [
        format!("check {VOLUME}"),
        "check disk.obl --key-file other".into(),
        format!("info {VOLUME}"),
        format!("key add {VOLUME} --new-key-file other"),
        format!("key remove {VOLUME} 1"),
    ] {
        test_dir.fails_with(&command_line, 8, "Restore the latest copy of the volume");
        assert!(places.map(|at| store.read(at, SUPERBLOCK_BYTES)) == old, "{command_line}");
    }
    show(&new);
    test_dir.fails_with("check disk.obl --key-file other", 6, "key list");
    test_dir.assert_nothing_is_lost();
}

#[test]
fn a_clients_directory_from_a_backup_is_code_12() {
    let test_dir = TestDir::with_data(8);
    let state = test_dir.state();
    test_dir.copy(&state, "backup");
    fs::write(test_dir.path("data"), bytes(7, 8 * MIB)).unwrap();
    test_dir.fill();
    test_dir.copy(&state, "latest");
    test_dir.copy("backup", &state);
    for command_line in [format!("check {VOLUME}"), format!("serve nbd {VOLUME} --run true")] {
        test_dir.fails_with(&command_line, 12, "the volume was last used with");
    }
    test_dir.copy("latest", &state);
    test_dir.assert_nothing_is_lost();
}

#[test]
fn a_clients_directory_that_is_missing_damaged_or_foreign_is_code_11() {
    let test_dir = TestDir::with_data(4);
    let state = test_dir.state();
    let commands = ["info", "check", "key remove"].map(|command| {
        let slot = if command == "key remove" { "0" } else { "" };
        format!("{command} {VOLUME} {slot}")
    });
    let all_are_bad = |advice: &str| {
        commands.iter().for_each(|line| test_dir.fails_with(line, 11, advice));
    };

    fs::rename(&state, test_dir.path("away")).unwrap();
    all_are_bad("name the directory that the volume was last used with");
    assert!(!state.exists(), "a failed opening must not create it");
    for line in &commands {
        test_dir.fails_with(&format!("{line} --state key"), 11, "name the directory");
    }
    fs::DirBuilder::new().mode(0o700).create(&state).unwrap();
    all_are_bad("last used with");
    fs::remove_dir_all(&state).unwrap();
    test_dir.succeeds(&format!("check {VOLUME} --state away"));
    fs::rename(test_dir.path("away"), &state).unwrap();

    test_dir.succeeds("create other.obl --key-file key --size 16M --state others");
    for line in &commands {
        test_dir.fails_with(&format!("{line} --state others"), 11, "another volume");
    }

    fs::rename(state.join("superblock"), test_dir.path("away")).unwrap();
    all_are_bad("does not say which superblock is the newest");
    fs::rename(test_dir.path("away"), state.join("superblock")).unwrap();

    let file = Bytes::of(&test_dir.state_file());
    for (place, bit) in [(0, 1), (20, 1), (40, 1), (80, 0x80), (file.appended() / 2, 4)] {
        let good = file.replace(place, &[file.read(place, 1)[0] ^ bit]);
        for line in &commands {
            let (code, stdout, message) = oblivio(test_dir.path(""), line);
            assert_eq!(code, 11, "bit {bit} of byte {place}: {stdout}{message}");
        }
        file.replace(place, &good);
    }
    test_dir.assert_nothing_is_lost();
}

#[test]
fn a_clients_directory_that_is_open_to_others_or_a_link_is_code_3() {
    let test_dir = TestDir::with_data(4);
    let state = test_dir.state();
    let mode = |mode| fs::set_permissions(&state, fs::Permissions::from_mode(mode)).unwrap();
    for command in ["info", "check", "key add --new-key-file key"] {
        mode(0o755);
        test_dir.fails_with(&format!("{command} {VOLUME}"), 3, "chmod 700");
        mode(0o700);
        std::os::unix::fs::symlink(&state, test_dir.path("link")).unwrap();
        test_dir.fails_with(
            &format!("{command} {VOLUME} --state link"),
            3,
            "name the directory itself",
        );
        fs::remove_file(test_dir.path("link")).unwrap();
    }
    fs::create_dir(test_dir.path("open")).unwrap();
    fs::set_permissions(test_dir.path("open"), fs::Permissions::from_mode(0o755)).unwrap();
    test_dir.fails_with("create new.obl --key-file key --size 16M --state open", 3, "with --state");
    assert!(!test_dir.path("new.obl").exists());
    test_dir.assert_nothing_is_lost();
}

/// A log that lost its end equals the log of an earlier time. The client refuses the directory as
/// older than storage.
#[test]
fn a_clients_directory_that_lost_its_end_is_code_12() {
    let test_dir = TestDir::with_data(4);
    let file = Bytes::of(&test_dir.state_file());
    // The end is restored together with the filler: the records may end in the filler's byte.
    let (cut, whole) = (file.appended() - 10, file.len());
    let end = file.read(cut, whole - cut);
    file.set_len(cut);
    test_dir.fails_with(&format!("check {VOLUME}"), 12, "older than storage");
    file.set_len(whole);
    file.replace(cut, &end);
    test_dir.assert_nothing_is_lost();
}

#[test]
fn formats_of_newer_programs_are_code_13() {
    let test_dir = TestDir::with_data(4);
    let store = test_dir.store();
    let newer = 4u32.to_le_bytes();
    let headers = [0, HEADER_BYTES, store.len() - HEADER_BYTES].map(|at| at + 16);
    for at in headers {
        assert_eq!(store.replace(at, &newer), 1u32.to_le_bytes());
    }
    let commands = ["info", "check"].map(|command| format!("{command} {VOLUME}"));
    for line in &commands {
        test_dir.fails_with(line, 13, "use a newer program");
    }
    for at in headers {
        store.replace(at, &1u32.to_le_bytes());
    }

    // One superblock of a newer version is enough to show that a newer program was here.
    let at = superblocks(&store)[2];
    let good = store.read(at, SUPERBLOCK_BYTES);
    let mut changed = good.clone();
    changed[8..12].copy_from_slice(&newer);
    let (content, checksum) = changed.split_at_mut(good.len() - 32);
    checksum.copy_from_slice(&Sha256::digest(content));
    store.replace(at, &changed);
    for line in &commands {
        test_dir.fails_with(line, 13, "upgrade");
    }
    test_dir.fails_with("key list disk.obl", 13, "upgrade");
    // But this superblock may be forged, so commands that change nothing still read the data.
    test_dir.fails_with(&format!("rescue {VOLUME} saved"), 7, "damage");
    let saved = fs::read(test_dir.path("saved")).unwrap();
    assert!(saved == fs::read(test_dir.path("data")).unwrap());
    // If all superblocks have a newer version, the volume belongs to a newer program.
    let others = superblocks(&store).map(|at| (at, store.replace(at, &changed)));
    test_dir.fails_with(&format!("rescue {VOLUME} none"), 13, "upgrade");
    others.iter().for_each(|(at, bytes)| drop(store.replace(*at, bytes)));
    store.replace(at, &good);

    let state = Bytes::of(&test_dir.state_file());
    let current = 3u32.to_le_bytes();
    assert_eq!(state.replace(8, &newer), current);
    for line in &commands {
        test_dir.fails_with(line, 13, "newer");
    }
    state.replace(8, &current);
    test_dir.assert_nothing_is_lost();
}
