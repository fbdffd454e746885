//! Tests of a store with a near file, and of locations of stores over objects.

use std::cell::{Cell, RefCell};
use std::path::Path;

use oblivio_conformance::check_durable_store;
use oblivio_core::store::{BucketStore, TreeShape};
use oblivio_store::near::NearStore;
use oblivio_store::objects::memory::{MemoryService, Request};
use oblivio_store::{
    BoxedStore, EngineLocation, Location, NearFile, ObjectsLocation, OpenErrorKind, PackedMode,
    PackedOptions, PackedStore, StoreKind, StoreOptions,
};

use crate::world::{World, piece};

fn options() -> PackedOptions {
    PackedOptions::default().with_chunk_bytes(300).with_small_bytes_max(40)
}

fn open(service: &MemoryService, near: &Path, bytes_max: Option<u64>) -> NearStore {
    let client = Box::new(service.client());
    let far = PackedStore::open(client, PackedMode::Write, &options()).unwrap().0;
    NearStore::open(far, near, bytes_max).unwrap()
}

#[test]
fn conforms_with_any_number_of_near_levels() {
    for bytes_max in [200, 1 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let (made, service) = (Cell::new(0), RefCell::new(MemoryService::new(0)));
        let path = || folder.path().join(made.get().to_string());
        check_durable_store(
            |shapes| {
                made.set(made.get() + 1);
                let next = MemoryService::new(made.get());
                let far = PackedStore::create(Box::new(next.client()), shapes, &options());
                *service.borrow_mut() = next;
                NearStore::open(far.unwrap(), &path(), Some(bytes_max)).unwrap()
            },
            |store| {
                drop(store);
                open(&service.borrow(), &path(), Some(bytes_max))
            },
        );
    }
}

/// The number of bytes that a read of `pieces` gets from the service.
fn got(service: &MemoryService, store: &mut NearStore) -> u64 {
    service.take_log();
    let pieces: Vec<_> =
        (3..6).flat_map(|level| [piece(1, level, 0), piece(2, level, 0)]).collect();
    store.read(&pieces).unwrap();
    let gets = service.take_log().into_iter().map(|request| match request {
        Request::Get(_, range) => range.end - range.start,
        _ => 0,
    });
    gets.sum()
}

#[test]
fn near_levels_are_read_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let near = folder.path().join("near");
    let mut world = World::new(1, Default::default());
    let mut store = world.open(world.service.client()).unwrap();
    world.fill(&mut store, 40);
    drop(store);
    // Levels 3 and 4 have 5 and 6 buckets of 24 and 8 bytes.
    let bytes = |bytes_max| {
        let mut store = open(&world.service, &near, bytes_max);
        got(&world.service, &mut store)
    };
    assert_eq!(bytes(Some(5 * 32 - 1)), 3 * 32, "no level fits");
    assert_eq!(bytes(Some(5 * 32)), 2 * 32);
    assert_eq!(bytes(Some(11 * 32)), 32);
    assert_eq!(bytes(Some(1 << 20)), 0);
    assert_eq!(bytes(None), 3 * 32, "a fifth of 19 buckets is less than a level");
}

#[test]
fn a_near_file_is_filled_again_only_after_another_writer() {
    let folder = tempfile::tempdir().unwrap();
    let near = folder.path().join("near");
    let mut world = World::new(1, Default::default());
    let mut store = world.open(world.service.client()).unwrap();
    world.fill(&mut store, 40);
    drop(store);
    let opening_gets = |world: &World| {
        world.service.take_log();
        let store = open(&world.service, &near, Some(1 << 20));
        let log = world.service.take_log();
        let chunks = log.iter().filter(|it| {
            matches!(it, Request::Get(oblivio_store::objects::ObjectName::Chunk { .. }, _))
        });
        (chunks.count(), store)
    };
    let (gets, store) = opening_gets(&world);
    assert!(gets > 0, "the file is new");
    drop(store);
    let (gets, mut store) = opening_gets(&world);
    assert_eq!(gets, 0, "the last session wrote the file");
    world.fill(&mut store, 9);
    drop(store);
    let (gets, store) = opening_gets(&world);
    assert_eq!(gets, 0, "that session flushed");
    drop(store);
    // Another client opens the store without the file.
    let mut other = world.open(world.service.client()).unwrap();
    world.fill(&mut other, 9);
    drop(other);
    let (gets, mut store) = opening_gets(&world);
    assert!(gets > 0, "another session wrote the store");
    assert!(world.adopt(&mut store), "the file has its writes");
    drop(store);
    // A session that dies before it flushes.
    let (_, mut store) = opening_gets(&world);
    world.write_evictions(&mut store, 30);
    drop(store);
    let (gets, mut store) = opening_gets(&world);
    assert!(gets > 0, "chunks were adopted");
    assert!(world.adopt(&mut store));
    drop(store);
}

/// A near file that is not current is created again. A file that is no near file stays.
#[test]
fn only_near_files_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let near = folder.path().join("near");
    let mut world = World::new(1, Default::default());
    let far = |world: &World| {
        let client = Box::new(world.service.client());
        PackedStore::open(client, PackedMode::Write, &options()).unwrap().0
    };
    // A volume of its own, of the same shapes.
    std::fs::write(&near, b"something else").unwrap();
    let error = NearStore::open(far(&world), &near, None).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::Exists, "{error}");
    assert_eq!(std::fs::read(&near).unwrap(), b"something else");
    std::fs::remove_file(&near).unwrap();
    let mut store = NearStore::open(far(&world), &near, Some(1 << 20)).unwrap();
    world.fill(&mut store, 40);
    drop(store);
    // A new store with the same shapes has no buckets, whatever the file holds.
    let other = MemoryService::new(2);
    let client = Box::new(other.client());
    let created = PackedStore::create(client, &crate::world::shapes(), &options()).unwrap();
    let mut store = NearStore::open(created, &near, Some(1 << 20)).unwrap();
    let mut empty = World::new(3, Default::default());
    assert!(empty.read_all(&mut store), "buckets that were never written are zeros");
    drop(store);
    // Back at the first store, the file is filled again.
    let mut store = NearStore::open(far(&world), &near, Some(1 << 20)).unwrap();
    assert!(world.read_all(&mut store));
}

#[test]
fn locations_name_folders_and_near_files() {
    let folder = |path: &str| EngineLocation::Folder(path.into());
    let near = |path: &str, bytes_max| Some(NearFile { path: path.into(), bytes_max });
    for (written, engine, near, shown) in [
        ("folder:a/b", folder("a/b"), None, "folder:a/b"),
        ("folder:///a%20b", folder("/a b"), None, "folder:/a b"),
        ("near:n,folder:a,b", folder("a,b"), near("n", None), "near:n,folder:a,b"),
        (
            "near:n%2Cx?bytes=77,folder:a",
            folder("a"),
            near("n,x", Some(77)),
            "near:n%2Cx?bytes=77,folder:a",
        ),
    ] {
        let location: Location = written.parse().unwrap();
        assert_eq!(location, Location::Objects(Box::new(ObjectsLocation { engine, near })));
        assert_eq!(location.to_string(), shown);
        assert_eq!(shown.parse(), Ok(location), "{shown}");
    }
    for wrong in [
        "folder:",
        "folder://a/b",
        "near:n",
        "near:,folder:a",
        "near:n,a",
        "near:n,near:m,folder:a",
        "near:n?bytes=x,folder:a",
        "near:n?size=1,folder:a",
        "stripe:near:n,folder:a",
    ] {
        assert!(wrong.parse::<Location>().is_err(), "{wrong}");
    }
    let stripe: Location = "stripe:folder:a,b".parse().unwrap();
    assert_eq!(stripe.kind(), StoreKind::Stripe { members: 2 });
    assert_eq!(stripe.to_string(), "stripe:folder:a,b");
}

#[test]
fn a_location_creates_opens_looks_and_removes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let location: Location =
        format!("near:{},folder:{}", at("near"), at("objects")).parse().unwrap();
    let shapes: Vec<TreeShape> = crate::world::shapes();
    let options = StoreOptions::default();
    location.check_vacant().unwrap();
    let mut store: BoxedStore = location.create(&shapes, &options).unwrap();
    let mut world = World::new(3, Default::default());
    world.fill(&mut store, 30);
    assert!(location.check_vacant().is_err() && location.create(&shapes, &options).is_err());
    let mut looked = location.look(&options).unwrap().unwrap().store;
    assert!(world.read_all(&mut looked), "another client may look");
    drop(looked);
    drop(store);
    let opened = location.open(&options).unwrap();
    assert!(opened.condition.allocated_bytes > 0);
    let mut store = opened.store;
    assert!(world.read_all(&mut store));
    drop(store);
    location.remove().unwrap();
    let left = std::fs::read_dir(folder.path().join("objects/head")).unwrap();
    assert_eq!(left.count(), 1, "a fence is left");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(location.remove().is_err(), "there is nothing left");
}
