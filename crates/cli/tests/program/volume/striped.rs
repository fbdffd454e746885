//! A volume over several files: every command handles it as one volume.

use std::fs::{self, OpenOptions};

use super::store_file::HEADER_BYTES;
use super::test_dir::{MIB, TestDir, bytes};

/// The arguments that open the volume of a striped test directory.
const STRIPED: &str = "stripe:a.obl,b.obl,c.obl --key-file key";

/// A test directory with random data in the file `data`, and a striped volume that holds it.
fn striped_test_dir(requirements: &str) -> TestDir {
    let test_dir = TestDir::new();
    test_dir.succeeds(&format!("create {STRIPED} --size 4M {requirements}"));
    fs::write(test_dir.path("data"), bytes(2, 4 * MIB)).unwrap();
    test_dir.succeeds(&format!("serve nbd {STRIPED} --run 'nbdcopy --flush data \"$uri\"'"));
    test_dir
}

#[test]
fn a_striped_volume_is_a_volume() {
    for requirements in ["", "--scheme range --range-classes 4K,32K", "--scheme scan --block 64K"] {
        let test_dir = striped_test_dir(requirements);
        test_dir.succeeds(&format!("check {STRIPED}"));
        test_dir.succeeds(&format!(
            "serve nbd {STRIPED} --run 'nbdcopy \"$uri\" back && cmp data back'"
        ));
        let info = test_dir.json(&format!("info {STRIPED} --json"));
        let sizes =
            ["a.obl", "b.obl", "c.obl"].map(|name| test_dir.path(name).metadata().unwrap().len());
        assert_eq!(info["storage_bytes"], sizes.iter().sum::<u64>());
        test_dir.succeeds(&format!("rescue {STRIPED} saved"));
        assert!(
            fs::read(test_dir.path("saved")).unwrap() == fs::read(test_dir.path("data")).unwrap()
        );
    }
}

#[test]
fn keys_of_a_striped_volume_change() {
    let test_dir = striped_test_dir("");
    fs::write(test_dir.path("second"), bytes(9, 32)).unwrap();
    test_dir.succeeds(&format!("key add {STRIPED} --new-key-file second"));
    assert!(test_dir.succeeds("key list stripe:a.obl,b.obl,c.obl").contains("key slot 1"));
    test_dir.succeeds("check stripe:a.obl,b.obl,c.obl --key-file second");
    test_dir.succeeds("key remove stripe:a.obl,b.obl,c.obl 0 --key-file second");
    test_dir.fails_with(&format!("check {STRIPED}"), 6, "key list");
}

#[test]
fn wrong_members_of_a_stripe_are_code_3_with_advice() {
    let test_dir = striped_test_dir("");
    test_dir.succeeds("create disk.obl --size 4M --key-file key");
    for (location, advice) in [
        ("stripe:a.obl,b.obl", "name member 3 as well"),
        ("stripe:b.obl,a.obl,c.obl", "use stripe:a.obl,b.obl,c.obl"),
        ("stripe:a.obl,b.obl,c.obl,disk.obl", "disk.obl is not a member of a stripe"),
        ("stripe:a.obl,b.obl,none.obl", "check the path"),
        ("b.obl", "this is member 2 of a stripe of 3"),
    ] {
        for command in ["check", "info", "rescue"] {
            let output = if command == "rescue" { "saved" } else { "" };
            test_dir.fails_with(
                &format!("{command} {location} {output} --key-file key"),
                3,
                advice,
            );
        }
        test_dir.fails_with(&format!("key list {location}"), 3, advice);
    }
    for location in
        ["stripe:a.obl", "stripe:a.obl,a.obl", "stripe:a.obl,stripe:b.obl,c.obl", "stripe:"]
    {
        test_dir.fails_with(&format!("info {location} --public"), 2, "--help");
    }
    test_dir.succeeds(&format!("check {STRIPED}"));
}

#[test]
fn a_creation_reports_the_possible_number_of_members_and_leaves_nothing() {
    let test_dir = TestDir::new();
    let many = (1..=16).map(|name| name.to_string()).collect::<Vec<_>>().join(",");
    test_dir.fails_with(
        &format!("create stripe:{many} --size 1M --scheme scan --key-file key"),
        3,
        "holds whole levels; name ",
    );
    fs::write(test_dir.path("b.obl"), "something else").unwrap();
    test_dir.fails_with("create stripe:a.obl,b.obl --size 4M --key-file key", 3, "b.obl exists");
    assert_eq!(fs::read(test_dir.path("b.obl")).unwrap(), b"something else");
    assert!(!test_dir.path("a.obl").exists() && !test_dir.path("1").exists());
}

/// A member of another stripe with equal parameters is refused. Its header names the other stripe.
/// If the header is forged, the seals of the buckets do not match.
#[test]
fn a_member_of_another_volume_that_was_made_alike_is_found_out() {
    let test_dir = striped_test_dir("");
    fs::create_dir(test_dir.path("other")).unwrap();
    test_dir.succeeds("create stripe:other/a.obl,other/b.obl,other/c.obl --size 4M --key-file key");
    for (member, members) in [("c", "a.obl,b.obl,other/c.obl"), ("b", "a.obl,other/b.obl,c.obl")] {
        let check = format!("check stripe:{members} --key-file key");
        test_dir.fails_with(&check, 3, "is a member of another stripe than a.obl");
        let [right, mut forged] = ["", "other/"]
            .map(|folder| fs::read(test_dir.path(format!("{folder}{member}.obl"))).unwrap());
        let header_bytes = HEADER_BYTES as usize;
        let behind = forged.len() - header_bytes;
        for header in [0..2 * header_bytes, behind..forged.len()] {
            forged[header.clone()].copy_from_slice(&right[header]);
        }
        fs::write(test_dir.path(format!("other/{member}.obl")), forged).unwrap();
        test_dir.fails_with(&check, 7, "");
    }
}

#[test]
fn a_volume_with_a_truncated_member_can_be_rescued() {
    let test_dir = striped_test_dir("");
    let file = OpenOptions::new().write(true).open(test_dir.path("b.obl")).unwrap();
    let whole = file.metadata().unwrap().len();
    file.set_len(whole - whole / 8).unwrap();
    test_dir.fails_with(&format!("check {STRIPED}"), 7, "b.obl: the file has");
    test_dir.fails_with(&format!("rescue {STRIPED} saved"), 7, "");
    let saved = fs::read(test_dir.path("saved")).unwrap();
    let data = fs::read(test_dir.path("data")).unwrap();
    let blocks = data.chunks(4096).zip(saved.chunks(4096));
    let (right, wrong): (Vec<_>, Vec<_>) = blocks.partition(|(data, saved)| data == saved);
    assert!(
        !right.is_empty() && wrong.iter().all(|(_, saved)| saved.iter().all(|byte| *byte == 0))
    );
}
