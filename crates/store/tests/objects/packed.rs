//! Tests of the store over objects, on engines that need no service.

use oblivio_conformance::check_durable_store;
use oblivio_core::StoreErrorKind;
use oblivio_core::store::{BucketStore, TreeShape};
use oblivio_store::objects::folder::FolderObjects;
use oblivio_store::objects::memory::{Faults, MemoryService};
use oblivio_store::{OpenErrorKind, PackedMode, PackedOptions, PackedStore};

use crate::world::World;

/// Sizes of chunks, from one entry to many, and with and without small trees.
fn options() -> impl Iterator<Item = PackedOptions> {
    let sizes = [(1, 0), (300, 0), (1000, 400), (1 << 20, 0), (1 << 20, 1 << 20)];
    sizes.into_iter().map(|(chunk_bytes, small_bytes_max)| {
        PackedOptions::default().with_chunk_bytes(chunk_bytes).with_small_bytes_max(small_bytes_max)
    })
}

fn create(service: &MemoryService, shapes: &[TreeShape], options: &PackedOptions) -> PackedStore {
    PackedStore::create(Box::new(service.client()), shapes, options).unwrap()
}

fn reopen(service: &MemoryService, options: &PackedOptions) -> PackedStore {
    PackedStore::open(Box::new(service.client()), PackedMode::Write, options).unwrap().0
}

/// Runs the conformance suite on stores over services in memory.
fn check(options: &PackedOptions, faults: Faults) {
    let service = std::cell::RefCell::new(MemoryService::new(0));
    let mut seed = 0;
    check_durable_store(
        |shapes| {
            seed += 1;
            let next = MemoryService::new(seed);
            next.set_faults(faults);
            let store = create(&next, shapes, options);
            *service.borrow_mut() = next;
            store
        },
        |store| {
            drop(store);
            reopen(&service.borrow(), options)
        },
    );
}

#[test]
fn conforms_on_a_service_without_faults() {
    options().for_each(|options| check(&options, Faults::default()));
}

#[test]
fn conforms_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let options = PackedOptions::default().with_chunk_bytes(500).with_small_bytes_max(0);
    let made = std::cell::Cell::new(0);
    let open =
        |number: u32| FolderObjects::create(&folder.path().join(number.to_string())).unwrap();
    check_durable_store(
        |shapes| {
            made.set(made.get() + 1);
            PackedStore::create(Box::new(open(made.get())), shapes, &options).unwrap()
        },
        |store| {
            drop(store);
            let objects = Box::new(open(made.get()));
            PackedStore::open(objects, PackedMode::Write, &options).unwrap().0
        },
    );
}

#[test]
fn a_service_that_creates_an_object_twice_is_refused() {
    for seed in 0..20 {
        let service = MemoryService::new(seed);
        let mut faults = Faults::default();
        // s3s-fs lets 5 to 13 of 16 succeed.
        faults.overwrites = 30 + 3 * seed as u32;
        service.set_faults(faults);
        let created = PackedStore::create(
            Box::new(service.client()),
            &crate::world::shapes(),
            &PackedOptions::default(),
        );
        let error = created.err().unwrap();
        assert_eq!(error.kind(), OpenErrorKind::Unsuitable, "seed {seed}: {error}");
        assert!(error.to_string().contains("cannot hold a volume"), "{error}");
        assert!(service.objects().is_empty(), "something was left behind");
    }
}

#[test]
fn a_prefix_in_use_is_refused_and_nothing_is_changed() {
    let service = MemoryService::new(1);
    let shapes = crate::world::shapes();
    let create =
        || PackedStore::create(Box::new(service.client()), &shapes, &PackedOptions::default());
    drop(create().unwrap());
    let before = service.objects();
    assert_eq!(create().err().unwrap().kind(), OpenErrorKind::Exists);
    assert_eq!(service.objects(), before);
    PackedStore::remove(Box::new(service.client())).unwrap();
    assert_eq!(service.objects().len(), 1, "only a fence is left");
    let missing = PackedStore::remove(Box::new(service.client())).err().unwrap();
    assert_eq!(missing.kind(), OpenErrorKind::Missing);
    let open = |mode| {
        PackedStore::open(Box::new(service.client()), mode, &PackedOptions::default())
            .err()
            .unwrap()
    };
    for mode in [PackedMode::Read, PackedMode::Write] {
        assert_eq!(open(mode).kind(), OpenErrorKind::Missing);
    }
    drop(create().unwrap());
    // A head of a newer version, and then no whole head.
    service.tamper(|objects| {
        let head = objects.values_mut().next_back().unwrap();
        let mut bytes = head.to_vec();
        bytes[16] = 2;
        *head = bytes.into();
    });
    let before = service.objects();
    for mode in [PackedMode::Read, PackedMode::Write] {
        assert_eq!(open(mode).kind(), OpenErrorKind::UnknownVersion);
    }
    assert_eq!(service.objects(), before);
    service.tamper(|objects| {
        let head = objects.values_mut().next_back().unwrap();
        *head = head.slice(..head.len() / 2);
        let bytes = [&b"OBLIVIO OBJECTS\n\x01"[..], &[0; 30]].concat();
        *head = bytes.into();
    });
    let before = service.objects();
    for mode in [PackedMode::Read, PackedMode::Write] {
        assert_eq!(open(mode).kind(), OpenErrorKind::Damaged);
    }
    assert_eq!(service.objects(), before);
}

/// A client that has a store open fails after the store was removed, and cannot harm the next store
/// in the same place.
#[test]
fn a_removed_store_does_not_come_back() {
    let mut world = World::new(1, Faults::default());
    let mut first = world.open(world.service.client()).unwrap();
    world.fill(&mut first, 30);
    world.write_evictions(&mut first, 30);
    PackedStore::remove(Box::new(world.service.client())).unwrap();
    let mut second = create(&world.service, &crate::world::shapes(), &crate::world::options(false));
    let mut other = World::new(2, Faults::default());
    other.fill(&mut second, 30);
    assert_eq!(first.flush().unwrap_err().kind(), StoreErrorKind::Fenced);
    drop(first);
    assert!(other.read_all(&mut second));
    other.fill(&mut second, 30);
    drop(second);
    let mut second = world.open(world.service.client()).unwrap();
    assert!(other.read_all(&mut second));
}
