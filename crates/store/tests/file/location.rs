//! Tests that locations are parsed correctly, and that storage is created and opened there.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use oblivio_core::RawConfig;
use oblivio_core::store::{TreeId, TreeShape};
use oblivio_store::{Location, OpenErrorKind, StoreKind, StoreOptions};
use proptest::prelude::*;

fn file(path: impl AsRef<Path>) -> Location {
    Location::File(path.as_ref().to_owned())
}

fn shape() -> TreeShape {
    RawConfig::new(1000, 64).unwrap().tree.shape().unwrap()
}

/// Whether text looks like a URL: a scheme, then `://`. Written independently of the code under
/// test.
fn looks_like_a_url(written: &[u8]) -> bool {
    let end =
        written.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte));
    let (scheme, rest) = written.split_at(end.unwrap_or(written.len()));
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && rest.starts_with(b"://")
}

/// Generates names of any bytes except NUL, often with parts of URLs.
fn any_name() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(b"://".to_vec()),
        Just(b"file".to_vec()),
        Just(b"s3".to_vec()),
        Just(b":".to_vec()),
        Just(b"%2e".to_vec()),
        prop::collection::vec(1u8.., 0..6),
    ];
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn text_that_does_not_look_like_a_url_is_a_literal_path(name in any_name()) {
        prop_assume!(!name.is_empty() && !looks_like_a_url(&name) && !name.starts_with(b"file:"));
        prop_assume!(!name.starts_with(b"stripe:"));
        let name = OsString::from_vec(name);
        prop_assert_eq!(Location::parse(&name), Ok(file(&name)));
    }

    #[test]
    fn text_that_looks_like_a_url_is_never_a_file_of_that_name(
        scheme in "[a-zA-Z][a-zA-Z0-9+.-]{0,5}|file|FILE",
        rest in any_name(),
    ) {
        let name = [scheme.as_bytes(), b"://", &rest[..]].concat();
        prop_assert!(looks_like_a_url(&name));
        let name = OsString::from_vec(name);
        prop_assert_ne!(Location::parse(&name), Ok(file(&name)));
    }

    #[test]
    fn every_path_can_be_written(name in any_name()) {
        prop_assume!(!name.is_empty());
        let written = OsString::from_vec([b"file:", &name[..]].concat());
        let name = OsString::from_vec(name);
        // `file:` followed by `//` is a URL.
        if !looks_like_a_url(written.as_encoded_bytes()) {
            prop_assert_eq!(Location::parse(&written), Ok(file(&name)));
        }
        let below = Path::new(".").join(&name);
        prop_assert_eq!(Location::parse(below.as_os_str()), Ok(file(&below)));
    }

    #[test]
    fn shown_locations_round_trip(name in any_name()) {
        prop_assume!(!name.is_empty());
        let Ok(name) = String::from_utf8(name) else { return Ok(()) };
        let location = file(name);
        prop_assert_eq!(location.to_string().parse(), Ok(location));
    }
}

#[test]
fn a_file_url_is_an_absolute_path_on_this_machine() {
    for (written, path) in [
        ("file:///srv/disk.obl", "/srv/disk.obl"),
        ("FILE:///srv/disk.obl", "/srv/disk.obl"),
        ("file://localhost/srv/disk.obl", "/srv/disk.obl"),
        ("file:///srv/my%20disk", "/srv/my disk"),
        ("file:/srv/my%20disk", "/srv/my%20disk"),
        ("file:disk.obl", "disk.obl"),
        ("file:s3://disk", "s3://disk"),
        ("s3:disk", "s3:disk"),
    ] {
        assert_eq!(written.parse(), Ok(file(path)), "{written}");
    }
    for refused in
        ["file://disk.obl", "file://host/disk.obl", "file://localhost", "file://", "file:", ""]
    {
        assert!(refused.parse::<Location>().is_err(), "{refused}");
    }
}

#[test]
fn the_error_for_an_unknown_scheme_lists_known_ones_and_repeats_no_secret() {
    for scheme in ["ftp", "http", "oblivio", "foo", "FTP", "a+b-c.d"] {
        let url = format!("{scheme}://user:password@host/disk");
        let message = url.parse::<Location>().unwrap_err().to_string();
        assert!(message.contains(&format!("{scheme}://")), "{message}");
        assert!(StoreKind::ALL.iter().all(|kind| message.contains(kind.scheme())), "{message}");
        assert!(!message.contains("user") && !message.contains("password"), "{message}");
    }
}

#[test]
fn created_storage_can_be_opened_and_has_the_predicted_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let location = Location::parse(path.as_os_str()).unwrap();
    let options = StoreOptions::default();
    location.check_vacant().unwrap();
    let store = location.create(&[shape()], &options).unwrap();
    assert_eq!(store.shape(TreeId(0)), Some(&shape()));
    drop(store);
    assert_eq!(location.kind().bytes_needed(&[shape()]).unwrap(), path.metadata().unwrap().len());
    for refused in [location.check_vacant().err(), location.create(&[shape()], &options).err()] {
        assert_eq!(refused.unwrap().kind(), OpenErrorKind::Exists);
    }
    let opened = location.open(&options).unwrap();
    assert_eq!(opened.store.shape(TreeId(0)), Some(&shape()));
    assert!(opened.condition.allocated_bytes < path.metadata().unwrap().len(), "not sparse");
    drop(opened);
    location.remove().unwrap();
    assert!(!path.exists());
    let missing = location.open(&options).err().unwrap();
    assert_eq!(missing.kind(), OpenErrorKind::Missing);
}

#[test]
fn opening_reports_damage_and_repairs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let location = file(&path);
    drop(location.create(&[shape()], &StoreOptions::default()).unwrap());
    let sound = std::fs::read(&path).unwrap();
    let to_read = StoreOptions::default().with_read_only(true).with_allow_incomplete(true);
    let condition = |options: &StoreOptions| location.open(options).unwrap().condition;
    assert_eq!((condition(&to_read).damage, condition(&to_read).is_cut_off), (vec![], false));

    let mut damaged = sound.clone();
    damaged[50] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let found = condition(&to_read);
    assert!(found.damage[0].starts_with("1 of 3 copies"), "{found:?}");
    assert!(found.mended.is_empty() && !found.is_cut_off);
    let found = condition(&StoreOptions::default());
    assert!(found.mended.len() == 1 && found.damage.is_empty(), "{found:?}");
    assert!(std::fs::read(&path).unwrap() == sound);

    std::fs::write(&path, &sound[..sound.len() - 7]).unwrap();
    let found = condition(&to_read);
    assert!(found.is_cut_off && found.damage[0].starts_with("7 of "), "{found:?}");
}

#[test]
fn a_path_that_is_not_utf_8_can_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(OsStr::from_bytes(b"no text: \xff"));
    let location = Location::parse(path.as_os_str()).unwrap();
    drop(location.create(&[shape()], &StoreOptions::default()).unwrap());
    assert!(path.is_file());
}

#[test]
fn a_common_file_is_found_under_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("there"), "").unwrap();
    std::os::unix::fs::symlink(path("there"), path("link")).unwrap();
    std::fs::hard_link(path("there"), path("hard")).unwrap();
    std::fs::create_dir(path("deeper")).unwrap();
    let stripe = |names: [&str; 2]| {
        let members = names.map(|name| file(path(name))).to_vec();
        Location::Stripe(oblivio_store::Members::new(members).unwrap())
    };
    for (one, other, common) in [
        (file(path("there")), file(path("link")), Some("there")),
        (file(path("hard")), stripe(["new", "link"]), Some("hard")),
        (stripe(["a", "deeper/../new"]), stripe(["new", "b"]), Some("deeper/../new")),
        (file(path("there")), stripe(["new", "b"]), None),
        (file(path("nowhere/new")), file(path("nowhere/new")), None),
        (file(path("new")), file(path("deeper/new")), None),
    ] {
        assert_eq!(one.shared_file(&other), common.map(path).as_deref(), "{one} and {other}");
        assert_eq!(other.shared_file(&one).is_some(), common.is_some());
    }
}

#[test]
fn leftovers_of_an_interrupted_creation_are_recognized() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let whole = Location::File(path("a")).kind().bytes_needed(&[shape()]).unwrap();
    let is_incomplete = || file(path("a")).is_incomplete(&[shape()]).unwrap();
    assert!(is_incomplete(), "before the creation");
    let there = std::fs::File::create(path("a")).unwrap();
    assert!(is_incomplete(), "after the file was created");
    there.set_len(whole).unwrap();
    assert!(is_incomplete(), "after its length was set");
    there.set_len(whole + 1).unwrap();
    assert!(!is_incomplete(), "an unrelated file");
    std::fs::write(path("a"), "something").unwrap();
    assert!(!is_incomplete(), "an unrelated file");
    let large = RawConfig::new(1 << 16, 4096).unwrap().tree.shape().unwrap();
    let bytes = StoreKind::File.bytes_needed(std::slice::from_ref(&large)).unwrap();
    let there = std::fs::File::create(path("b")).unwrap();
    there.set_len(bytes).unwrap();
    let of_b = || file(path("b")).is_incomplete(std::slice::from_ref(&large)).unwrap();
    assert!(of_b());
    std::os::unix::fs::FileExt::write_all_at(&there, &vec![1; 2 << 20], 0).unwrap();
    there.sync_all().unwrap();
    assert!(!of_b(), "a file with more data than headers");
    std::fs::create_dir(path("c")).unwrap();
    assert!(!file(path("c")).is_incomplete(&[shape()]).unwrap());
}
