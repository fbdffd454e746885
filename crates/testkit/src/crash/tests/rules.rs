//! Properties of the simulation: without faults, store and directory behave as their traits demand;
//! synced data stays; no unwritten data appears; handles of an earlier run fail.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::io;

use oblivio_core::StoreError;
use oblivio_core::geometry::BucketId;
use oblivio_core::store::{BucketStore, Frames, Part, Piece, Span, TreeId};
use oblivio_core::view::{Event, Operation};
use oblivio_volume::state_dir::{StateDir, StateFile};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::toys::{BLOCK, shapes};
use crate::crash::{CrashStore, FailedSync, InjectedFault, OpKind, StoreEvent, Survival, World};
use oblivio_conformance::{check_durable_store, check_store};

fn coins(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

fn piece(bucket: u64) -> Piece {
    Piece { tree: TreeId(0), bucket: BucketId(bucket), part: Part::Whole }
}

fn write(store: &mut CrashStore, bucket: u64, bytes: &[u8]) -> Result<(), StoreError> {
    let spans = [Span { start: 0, bytes: BLOCK }];
    store.write(&[piece(bucket)], &mut |blanks| blanks.relay(Frames::new(bytes, &spans)))
}

fn read(store: &mut CrashStore, bucket: u64) -> Vec<u8> {
    store.read(&[piece(bucket)]).unwrap().get(0).to_vec()
}

fn error_kind(error: &StoreError) -> io::ErrorKind {
    error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).unwrap().kind()
}

#[test]
fn the_store_conforms() {
    for disks in 1..4 {
        check_store(|shapes| World::striped(shapes, disks).store());
    }
}

#[test]
fn the_store_conforms_after_crashes() {
    for survival in Survival::MODES {
        check_store(|shapes| {
            let world = World::new(shapes);
            world.crash(&mut coins(1), survival);
            world.store()
        });
    }
}

#[test]
fn the_store_keeps_what_was_flushed_through_crashes() {
    for survival in Survival::MODES {
        let world = RefCell::new(World::new(&shapes()));
        check_durable_store(
            |shapes| {
                world.replace(World::new(shapes));
                world.borrow().store()
            },
            |_| {
                world.borrow().crash(&mut coins(1), survival);
                world.borrow().store()
            },
        );
    }
}

#[test]
fn handles_die_with_their_run() {
    let world = World::new(&shapes());
    let (mut store, mut dir) = (world.store(), world.dir());
    let mut file = dir.create("a").unwrap();
    world.plan(&[InjectedFault::CrashAt(1)], &mut coins(1));
    file.append(b"1").unwrap();
    assert!(!world.is_off());
    assert!(file.append(b"2").is_err() && world.is_off());
    for _ in 0..2 {
        assert!(store.read(&[piece(0)]).is_err());
        assert!(store.write(&[piece(0)], &mut |_| unreachable!("the machine is off")).is_err());
        assert!(store.flush().is_err());
        assert!(file.append(b"3").is_err() && file.sync().is_err());
        assert!(dir.names().is_err() && dir.read("a").is_err() && dir.create("b").is_err());
        assert!(dir.rename("a", "b").is_err() && dir.remove("a").is_err());
        assert!(dir.sync_names().is_err());
        world.crash(&mut coins(2), Survival::All);
        assert!(!world.is_off());
    }
    assert_eq!(world.operations(), 0, "old handles do nothing");
    assert!(world.dir().read("a").unwrap().starts_with(b"1"));
}

#[test]
fn planned_failures_occur_once_with_their_error_kind() {
    let world = World::new(&shapes());
    let (mut store, mut dir) = (world.store(), world.dir());
    world.plan(&[InjectedFault::FailAt(0), InjectedFault::DiskFullAt(1)], &mut coins(1));
    assert_eq!(error_kind(&store.flush().unwrap_err()), io::ErrorKind::Other);
    assert!(store.read(&[piece(0)]).is_ok(), "a read needs no space");
    let full = write(&mut store, 0, &[1; BLOCK]).unwrap_err();
    assert_eq!(error_kind(&full), io::ErrorKind::StorageFull);
    write(&mut store, 0, &[2; BLOCK]).unwrap();
    world.plan(&[InjectedFault::DiskFullFrom(1)], &mut coins(1));
    let mut file = dir.create("a").unwrap();
    for _ in 0..2 {
        assert_eq!(file.append(&[1; 100]).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(dir.create("b").err().unwrap().kind(), io::ErrorKind::StorageFull);
    }
    dir.remove("a").unwrap();
    assert_eq!(world.faults_fired(), 4);
    assert_eq!(world.counts().count(OpKind::FileAppend), 2);
}

#[test]
fn a_failed_write_is_partly_done() {
    let outcomes: BTreeSet<_> = (0..40)
        .map(|seed| {
            let world = World::new(&shapes());
            world.plan(&[InjectedFault::FailAt(0), InjectedFault::FailAt(2)], &mut coins(seed));
            let mut store = world.store();
            assert!(write(&mut store, 1, &[1; BLOCK]).is_err());
            let written = read(&mut store, 1).iter().filter(|byte| **byte == 1).count();
            (written > 0, written == BLOCK)
        })
        .collect();
    assert_eq!(outcomes, [(false, false), (true, false), (true, true)].into());
    let lengths: BTreeSet<_> = (0..40)
        .map(|seed| {
            let world = World::new(&shapes());
            let mut file = world.dir().create("a").unwrap();
            world.plan(&[InjectedFault::FailAt(0)], &mut coins(seed));
            assert!(file.append(&[1; 3]).is_err());
            world.dir().read("a").unwrap().len()
        })
        .collect();
    assert_eq!(lengths, [0, 1, 2, 3].into());
}

#[test]
fn names_are_plain_and_create_replaces_no_file() {
    let world = World::new(&[]);
    let mut dir = world.dir();
    for name in ["", ".", "..", "a/b", "a b", "ä"] {
        assert_eq!(dir.create(name).err().unwrap().kind(), io::ErrorKind::InvalidInput, "{name}");
    }
    dir.create("a").unwrap().append(b"a").unwrap();
    assert_eq!(dir.create("a").err().unwrap().kind(), io::ErrorKind::AlreadyExists);
    for absent in [dir.read("b").err(), dir.rename("b", "c").err(), dir.remove("b").err()] {
        assert_eq!(absent.unwrap().kind(), io::ErrorKind::NotFound);
    }
    dir.create("b").unwrap();
    dir.rename("a", "b").unwrap();
    assert_eq!((dir.names().unwrap(), dir.read("b").unwrap()), (vec!["b".into()], b"a".to_vec()));
}

#[test]
fn a_rename_shows_under_one_name() {
    let outcomes: BTreeSet<_> = (0..60)
        .map(|seed| {
            let world = World::new(&[]);
            let mut dir = world.dir();
            for name in ["new", "log"] {
                let mut file = dir.create(name).unwrap();
                file.append(name.as_bytes()).unwrap();
                file.sync().unwrap();
            }
            dir.sync_names().unwrap();
            dir.rename("new", "log").unwrap();
            world.crash(&mut coins(seed), Survival::Random { torn: true });
            world.snapshot().files().clone()
        })
        .collect();
    let file = |name: &str, held: &str| (name.to_string(), held.as_bytes().to_vec());
    let before = [file("new", "new"), file("log", "log")].into();
    let after = [file("log", "new")].into();
    assert_eq!(outcomes, [before, after].into());
}

#[test]
fn a_hole_may_show_a_file_removed_in_the_same_run() {
    let is_beneath = (0..60).any(|seed| {
        let world = World::new(&[]);
        let mut dir = world.dir();
        dir.create("old").unwrap().append(b"ancient").unwrap();
        dir.sync_names().unwrap();
        dir.remove("old").unwrap();
        let mut file = dir.create("new").unwrap();
        dir.sync_names().unwrap();
        file.append(b"1234").unwrap();
        file.append(b"567").unwrap();
        world.crash(&mut coins(seed), Survival::Random { torn: false });
        world.dir().read("new").unwrap() == b"anci567"
    });
    assert!(is_beneath);
}

#[test]
fn two_machines_crash_independently() {
    let world = World::new(&shapes());
    write(&mut world.store(), 0, &[1; BLOCK]).unwrap();
    let mut dir = world.dir();
    dir.create("a").unwrap();
    world.crash_apart(&mut coins(1), Survival::All, Survival::None);
    assert_eq!(read(&mut world.store(), 0), [1; BLOCK]);
    assert!(world.dir().names().unwrap().is_empty());
}

#[test]
fn the_adversary_rolls_back_and_tampers() {
    let world = World::new(&shapes());
    let mut store = world.store();
    let mut dir = world.dir();
    write(&mut store, 3, &[1; BLOCK]).unwrap();
    let mut file = dir.create("a").unwrap();
    file.append(b"old").unwrap();
    let old = world.snapshot();
    write(&mut store, 3, &[2; BLOCK]).unwrap();
    write(&mut store, 4, &[4; BLOCK]).unwrap();
    file.append(b"new").unwrap();

    world.flip_bit(TreeId(0), BucketId(3), 5, 0);
    assert_eq!(read(&mut store, 3)[4..7], [2, 3, 2]);
    world.swap_buckets((TreeId(0), BucketId(3)), (TreeId(0), BucketId(4)));
    assert_eq!((read(&mut store, 3)[5], read(&mut store, 4)[5]), (4, 3));
    world.replace_bucket(&old, TreeId(0), BucketId(3));
    assert_eq!((read(&mut store, 3)[5], read(&mut store, 4)[5]), (1, 3));
    world.restore_store(&old);
    assert_eq!(read(&mut store, 4), [0; BLOCK]);
    assert_eq!(dir.read("a").unwrap(), b"oldnew", "the directory is on the client");
    world.restore_dir(&old);
    assert_eq!(dir.read("a").unwrap(), b"old");
    assert!(file.append(b"x").is_err(), "its file was replaced");
    world.crash(&mut coins(1), Survival::None);
    assert_eq!(read(&mut world.store(), 3), [1; BLOCK], "a rollback is durable");
    assert_eq!(world.dir().read("a").unwrap(), b"old");
}

#[test]
fn the_view_continues_across_crashes() {
    let world = World::new(&shapes());
    let mut store = world.store();
    store.prefetch(&[piece(1)]);
    write(&mut store, 1, &[1; BLOCK]).unwrap();
    world.plan(&[InjectedFault::FailAt(0), InjectedFault::CrashAt(1)], &mut coins(1));
    assert!(store.read(&[piece(2)]).is_err());
    assert!(store.flush().is_err());
    store.prefetch(&[piece(1)]);
    assert!(store.flush().is_err());
    world.crash(&mut coins(1), Survival::All);
    read(&mut world.store(), 1);
    let seen = |trip, operation, bucket: Option<u64>, bytes: usize| {
        StoreEvent::Event(Event { trip, operation, piece: bucket.map(piece), bytes: bytes as u64 })
    };
    let expected = [
        seen(0, Operation::Prefetch, Some(1), 0),
        seen(1, Operation::Write, Some(1), BLOCK),
        seen(2, Operation::Read, Some(2), 0),
        seen(3, Operation::Flush, None, 0),
        StoreEvent::Crash,
        seen(4, Operation::Read, Some(1), BLOCK),
    ];
    assert_eq!(world.take_view(), expected);
    assert!(world.view().is_empty());
}

/// A model of the directory after the calls so far.
#[derive(Default)]
struct ExpectedDirectory {
    /// Number of synced bytes of each file ever created.
    synced: BTreeMap<u8, usize>,
    /// The names as of the last sync of names.
    durable: BTreeMap<String, u8>,
    cached: BTreeMap<String, u8>,
    is_changed: bool,
}

/// Returns the bytes `range` of file `id`. No two files share a byte at any position, and no byte
/// is zero.
fn content(id: u8, range: std::ops::Range<usize>) -> Vec<u8> {
    range.map(|at| (id.wrapping_mul(31).wrapping_add(at as u8) % 255) + 1).collect()
}

/// Makes one random call to the directory, without faults.
fn step(
    dir: &mut impl StateDir,
    files: &mut BTreeMap<u8, (Box<dyn StateFile>, usize)>,
    model: &mut ExpectedDirectory,
    coins: &mut StdRng,
) {
    let name = ["a", "b", "c"][coins.random_range(0..3)];
    let other = ["a", "b", "c"][coins.random_range(0..3)];
    let some_file = coins.random_range(0..=files.len().max(1) - 1);
    match coins.random_range(0..10) {
        0 | 1 if !model.cached.contains_key(name) => {
            let id = files.len() as u8 + 1;
            files.insert(id, (dir.create(name).unwrap(), 0));
            model.synced.insert(id, 0);
            model.cached.insert(name.into(), id);
            model.is_changed = true;
        }
        2 if model.cached.contains_key(name) => {
            dir.rename(name, other).unwrap();
            let id = model.cached.remove(name).unwrap();
            model.cached.insert(other.into(), id);
            model.is_changed = true;
        }
        3 if model.cached.contains_key(name) => {
            dir.remove(name).unwrap();
            model.cached.remove(name);
            model.is_changed = true;
        }
        4 => {
            dir.sync_names().unwrap();
            model.durable.clone_from(&model.cached);
            model.is_changed = false;
        }
        5 => {
            if let Some((id, (file, length))) = files.iter_mut().nth(some_file) {
                file.sync().unwrap();
                model.synced.insert(*id, *length);
            }
        }
        _ => {
            if let Some((id, (file, length))) = files.iter_mut().nth(some_file) {
                let end = *length + coins.random_range(0..1500);
                file.append(&content(*id, *length..end)).unwrap();
                *length = end;
            }
        }
    }
}

proptest! {
    #[test]
    fn synced_files_stay_and_nothing_unwritten_appears(
        seed in any::<u64>(),
        steps in 1..80usize,
        mode in 0..Survival::MODES.len(),
    ) {
        let mut coins = coins(seed);
        let survival = Survival::MODES[mode];
        let world = World::new(&[]);
        let mut dir = world.dir();
        let mut files = BTreeMap::new();
        let mut model = ExpectedDirectory::default();
        for _ in 0..steps {
            step(&mut dir, &mut files, &mut model, &mut coins);
        }
        world.crash(&mut coins, survival);
        let dir = world.dir();
        let names = dir.names().unwrap();
        let expected = match survival {
            Survival::All => Some(&model.cached),
            Survival::None => Some(&model.durable),
            Survival::Random { .. } if !model.is_changed => Some(&model.durable),
            Survival::Random { .. } => None,
        };
        if let Some(expected) = expected {
            prop_assert_eq!(&names, &expected.keys().cloned().collect::<Vec<_>>());
        }
        for name in names {
            let held = dir.read(&name).unwrap();
            // Holes show zeros, or bytes at the same position of a removed file.
            let is_of = |id: &u8| {
                let length = files[id].1;
                let synced = model.synced[id];
                let whole = content(*id, 0..length);
                held.len() <= length
                    && held.len() >= synced
                    && held[..synced] == whole[..synced]
                    && held.iter().enumerate().all(|(at, byte)| {
                        let of_others = files.keys().any(|id| content(*id, at..at + 1)[0] == *byte);
                        *byte == whole[at] || *byte == 0 || of_others
                    })
            };
            let candidates: Vec<_> = match expected {
                Some(expected) => vec![expected[&name]],
                None => files.keys().copied().filter(is_of).collect(),
            };
            prop_assert!(candidates.iter().any(is_of), "{} holds unwritten bytes", name);
            for id in candidates {
                let (length, synced) = (files[&id].1, model.synced[&id]);
                match survival {
                    Survival::All => prop_assert_eq!(&held, &content(id, 0..length)),
                    Survival::None => prop_assert_eq!(&held, &content(id, 0..synced)),
                    Survival::Random { .. } => {}
                }
            }
        }
    }

    #[test]
    fn flushed_buckets_stay_and_nothing_unwritten_appears(
        seed in any::<u64>(),
        steps in 1..60usize,
        mode in 0..Survival::MODES.len(),
        failing in any::<bool>(),
    ) {
        let mut coins = coins(seed);
        let survival = Survival::MODES[mode];
        let world = World::new(&shapes());
        world.set_failed_sync(if coins.random() { FailedSync::Drops } else { FailedSync::Retains });
        if failing {
            world.plan(&[InjectedFault::FailAt(steps as u64 / 2)], &mut coins);
        }
        let mut store = world.store();
        // The versions that each bucket may show, the flushed one first.
        let mut versions = vec![vec![0u8]; 7];
        let mut is_sound = true;
        for version in 1..=steps as u8 {
            if coins.random_range(0..5) == 0 {
                match store.flush() {
                    Ok(()) if is_sound => {
                        for versions in &mut versions {
                            versions.drain(..versions.len() - 1);
                        }
                    }
                    Ok(()) => {}
                    Err(_) => is_sound = false,
                }
            } else {
                let bucket = coins.random_range(0..7);
                is_sound &= write(&mut store, bucket, &[version; BLOCK]).is_ok();
                versions[bucket as usize].push(version);
            }
        }
        world.crash(&mut coins, survival);
        let mut store = world.store();
        for (bucket, versions) in (0..).zip(&versions) {
            let held = read(&mut store, bucket);
            prop_assert!(held.iter().all(|byte| versions.contains(byte)));
            match survival {
                Survival::All if is_sound => {
                    prop_assert_eq!(held, vec![*versions.last().unwrap(); BLOCK]);
                }
                Survival::None if is_sound => {
                    prop_assert_eq!(held, vec![versions[0]; BLOCK]);
                }
                Survival::Random { torn: false } if is_sound => {
                    prop_assert!(held.iter().all(|byte| *byte == held[0]));
                }
                _ => {}
            }
        }
    }
}
