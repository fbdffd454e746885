//! Locations as users write them. All commands parse them by the same rules.

use std::fs;

use super::test_dir::TestDir;
use crate::common::fails_with;

#[test]
fn every_command_refuses_a_url_that_names_no_store_it_knows() {
    let test_dir = TestDir::new();
    for url in ["ftp://bucket/disk", "http://host:1/0", "oblivio://host/disk", "foo://x", "FTP://x"]
    {
        for command_line in [
            format!("create {url} --size 16M --key-file key"),
            format!("info {url} --key-file key"),
            format!("info {url} --public"),
            format!("check {url} --key-file key"),
            format!("rescue {url} disk.img --key-file key"),
            format!("serve nbd {url} --key-file key --run true"),
            format!("mount {url} . --key-file key"),
            format!("view record {url} --output disk.view --run true --key-file key"),
            format!("key list {url}"),
            format!("key add {url} --key-file key --new-key-file key"),
            format!("key remove {url} 0 --key-file key"),
        ] {
            let scheme = url.split_once(':').unwrap().0;
            test_dir.fails_with(&command_line, 2, &format!("{scheme}:// is unknown"));
            test_dir.fails_with(&command_line, 2, "use file://");
        }
    }
    assert!(fs::read_dir(test_dir.path("")).unwrap().count() == 1, "only the key may exist");
}

#[test]
fn what_a_refused_url_holds_is_not_repeated() {
    let test_dir = TestDir::new();
    for command in ["check", "key list", "create --size 16M"] {
        let message =
            fails_with(test_dir.path(""), &format!("{command} ftp://user:password@host/disk"), 2);
        assert!(!message.contains("user") && !message.contains("password"), "{message}");
    }
}

#[test]
fn a_url_of_a_file_is_of_this_machine_and_names_it_from_the_root() {
    let test_dir = TestDir::new();
    for location in ["file://disk.obl", "file://host/disk.obl", "file://", "file:", "''"] {
        test_dir.fails_with(&format!("info {location} --public"), 2, "--help");
    }
}

#[test]
fn a_volume_is_the_same_however_its_location_is_written() {
    let test_dir = TestDir::new();
    test_dir.succeeds("create 'file:my disk.obl' --size 16M --key-file key");
    assert!(test_dir.path("my disk.obl").is_file());
    let id = test_dir.json("info 'my disk.obl' --key-file key --json")["id"].clone();
    let folder = test_dir.path("");
    let folder = folder.to_str().unwrap();
    for location in [
        "./my disk.obl".to_owned(),
        "file:./my disk.obl".into(),
        format!("file:{folder}/my disk.obl"),
        format!("file://{folder}/my%20disk.obl"),
        format!("FILE://localhost{folder}/my disk.obl"),
    ] {
        let info = test_dir.json(&format!("info '{location}' --public --json"));
        assert_eq!(info["id"], id, "{location}");
    }
    test_dir.succeeds("check 'file:my disk.obl' --key-file key");
}

#[test]
fn a_colon_in_a_path_makes_no_url_of_it() {
    let test_dir = TestDir::new();
    fs::create_dir_all(test_dir.path("ftp:")).unwrap();
    for path in ["a:b", "ftp:x", "./ftp:y", "./ftp://z", r"C:\disk.obl", "://x"] {
        if let Some(folder) = test_dir.path(path).parent() {
            fs::create_dir_all(folder).unwrap();
        }
        test_dir.succeeds(&format!("create '{path}' --size 16M --key-file key"));
        assert!(test_dir.path(path).is_file(), "{path}");
        test_dir.succeeds(&format!("info '{path}' --public"));
    }
}
