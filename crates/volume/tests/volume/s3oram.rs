//! Tests of a volume on share servers: the servers' records, wrong answers, lost data, and recovery
//! after a crash.

use std::cell::RefCell;

use oblivio_core::durable::{ArrayRequirements, find_number};
use oblivio_shares::field::{Field, Gf256};
use oblivio_shares::servers::AnyServers;
use oblivio_shares::sharing::recover;
use oblivio_testkit::crash::{Survival, World};
use oblivio_volume::key_change::change_slots;
use oblivio_volume::keys::{Cost, NewSlot, Secret, UnlockLimits, VolumeKey};
use oblivio_volume::rescue::{Damage, rescue};
use oblivio_volume::state_dir::StateDir;
use oblivio_volume::superblock::copies::{COPIES, read_copies};
use oblivio_volume::superblock::{Superblock, SuperblockErrorKind, Unlocked, VolumeParams};
use oblivio_volume::unlock::{NewerCopies, UnlockError, unlock};
use oblivio_volume::volume::shapes;
use oblivio_volume::{
    SyncMoves, Volume, VolumeError, VolumeErrorKind, VolumeOptions, authentic_records,
    wrong_servers,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use zeroize::Zeroizing;

use crate::support::rescued::Target;
use crate::support::share_servers::{self, Hosts};

const BLOCKS: u64 = 60;
const BLOCK_BYTES: usize = 64;

struct Setup {
    world: World,
    hosts: Hosts,
    owner: Unlocked,
}

impl Setup {
    fn new() -> Self {
        Self::of(VolumeParams::plan(&Self::requirements()).unwrap())
    }

    /// A volume with the position map in a tree, because the map does not fit on the client.
    fn in_trees() -> Self {
        let on_client = VolumeParams::plan(&Self::requirements()).unwrap().config().unwrap();
        let client_bytes_max = on_client.cost().unwrap().client_bytes() - 1;
        Self::of(
            VolumeParams::plan(&ArrayRequirements { client_bytes_max, ..Self::requirements() })
                .unwrap(),
        )
    }

    fn requirements() -> ArrayRequirements {
        ArrayRequirements {
            block_bytes: BLOCK_BYTES as u32,
            slots: Some(oblivio_core::durable::Slots::Same(32)),
            evict_period: Some(4),
            ..ArrayRequirements::new(BLOCKS * BLOCK_BYTES as u64, "s3oram")
        }
    }

    fn of(params: VolumeParams) -> Self {
        let world = World::new(&shapes(&params).unwrap());
        let mut coins = StdRng::seed_from_u64(1);
        let volume_key = VolumeKey::draw(&mut coins);
        let secret = Secret::KeyFile(Zeroizing::new(vec![5; 32]));
        let slot = NewSlot { secret: &secret, cost: Cost::weak_for_tests(), label: "" };
        let facts = params.config().unwrap().facts();
        let servers = find_number(&facts, "servers").unwrap() as u8;
        let superblock = Superblock::create(params, &volume_key, &slot, &mut coins).unwrap();
        Self {
            world,
            hosts: Hosts::new(servers),
            owner: Unlocked { superblock, volume_key, slot: 0 },
        }
    }

    fn store(&self) -> AnyServers {
        self.store_with(None)
    }

    fn store_with(&self, other: Option<(Vec<u8>, bool)>) -> AnyServers {
        share_servers::store(self.hosts.clone(), self.world.store(), other)
    }

    fn create(&self, options: VolumeOptions) -> Result<Volume, VolumeError> {
        let coins = StdRng::seed_from_u64(2);
        Volume::create(self.store(), Box::new(self.world.dir()), &self.owner, options, coins)
    }

    fn open(&self) -> Result<Volume, VolumeError> {
        self.open_with(VolumeOptions::default())
    }

    fn open_with(&self, options: VolumeOptions) -> Result<Volume, VolumeError> {
        let (dir, coins) = (Box::new(self.world.dir()), StdRng::seed_from_u64(3));
        Volume::open(self.store(), dir, &self.owner, options, coins).map(|(volume, _)| volume)
    }
}

fn contents(volume: &mut Volume, address: u64) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES];
    let op = oblivio_core::Op::Read(&mut block);
    volume.access(&mut [oblivio_core::Access { address, op }]).unwrap();
    block
}

#[test]
fn what_was_acknowledged_is_there_after_crashes() {
    for setup in [Setup::new(), Setup::in_trees()] {
        what_was_acknowledged_is_there_after_crashes_of(&setup);
    }
}

fn what_was_acknowledged_is_there_after_crashes_of(setup: &Setup) {
    let mut volume = setup.create(VolumeOptions::default()).unwrap();
    let mut expected = vec![0; BLOCKS as usize];
    let mut choices = StdRng::seed_from_u64(4);
    for round in 0..20 {
        for _ in 0..choices.random_range(0..60) {
            let address = choices.random_range(0..BLOCKS);
            match choices.random_range(0..10) {
                0 => {
                    volume.forget(address..address + 1).unwrap();
                    // Without a flush, a trim is durable only with the next access.
                    volume.flush().unwrap();
                    expected[address as usize] = 0;
                }
                1..5 => {
                    let fill = choices.random();
                    let data = [fill; BLOCK_BYTES];
                    let op = oblivio_core::Op::Write(&data);
                    volume.access(&mut [oblivio_core::Access { address, op }]).unwrap();
                    expected[address as usize] = fill;
                }
                _ => {
                    let fill = expected[address as usize];
                    assert_eq!(contents(&mut volume, address), [fill; BLOCK_BYTES]);
                }
            }
        }
        if round % 3 == 0 {
            volume.close().unwrap();
        } else {
            drop(volume);
        }
        setup.world.crash(&mut choices, Survival::Random { torn: true });
        volume = setup.open().unwrap();
        for address in 0..BLOCKS {
            let fill = expected[address as usize];
            assert_eq!(contents(&mut volume, address), [fill; BLOCK_BYTES], "round {round}");
        }
    }
    volume.check(&mut |_| ()).unwrap();
}

#[test]
fn a_directory_from_before_is_refused_and_what_it_knows_of_is_rescued() {
    for setup in [Setup::new(), Setup::in_trees()] {
        a_directory_from_before_is_refused_and_what_it_knows_of_is_rescued_of(&setup);
    }
}

fn a_directory_from_before_is_refused_and_what_it_knows_of_is_rescued_of(setup: &Setup) {
    let mut volume = setup.create(VolumeOptions::default()).unwrap();
    let data = [7; BLOCK_BYTES];
    let op = oblivio_core::Op::Write(&data);
    volume.access(&mut [oblivio_core::Access { address: 3, op }]).unwrap();
    volume.flush().unwrap();
    let before = setup.world.snapshot();
    for _ in 0..9 {
        contents(&mut volume, 1);
    }
    drop(volume);
    setup.world.crash(&mut StdRng::seed_from_u64(5), Survival::All);
    setup.world.restore_dir(&before);
    let error = setup.open().map(drop).unwrap_err();
    assert_eq!(error.kind(), VolumeErrorKind::StateRolledBack, "{error}");
    let mut target = Target(vec![None; BLOCKS as usize]);
    let (dir, damage) = (setup.world.dir(), Damage::default());
    let rescued =
        rescue(setup.store(), &dir, &setup.owner, damage, &mut target, &mut |_, _| ()).unwrap();
    assert!(rescued.state_is_behind);
    assert_eq!(target.0[3].as_deref(), Some(&data[..]));
}

/// An opening finds that a server has lost its data, and names the server, before it writes
/// anything to the records or the directory.
#[test]
fn a_server_that_has_lost_its_shares_is_named_before_anything_is_written() {
    let setup = Setup::new();
    let mut volume = setup.create(VolumeOptions::default()).unwrap();
    let data = [7; BLOCK_BYTES];
    let op = oblivio_core::Op::Write(&data);
    volume.access(&mut [oblivio_core::Access { address: 3, op }]).unwrap();
    volume.flush().unwrap();
    // The client dies, so the opening must repeat an access.
    drop(volume);
    setup.world.crash(&mut StdRng::seed_from_u64(5), Survival::All);
    setup.hosts.lose(1);
    let before = setup.world.snapshot();
    let error = setup.open().map(drop).unwrap_err().to_string();
    assert!(error.contains("server 2: it holds nothing of this volume"), "{error}");
    let after = setup.world.snapshot();
    assert!(after.store() == before.store() && after.files() == before.files());
}

#[test]
fn moves_become_durable_first_or_there_is_no_volume() {
    let setup = Setup::new();
    let late = VolumeOptions::default().with_sync_moves(SyncMoves::AtFlush);
    let error = setup.create(late).map(drop).unwrap_err();
    assert!(error.to_string().contains("before reads"), "{error}");
}

#[test]
fn a_store_without_servers_is_refused() {
    let setup = Setup::new();
    let (dir, coins) = (Box::new(setup.world.dir()), StdRng::seed_from_u64(2));
    let options = VolumeOptions::default();
    let store = setup.world.store();
    let error = Volume::create(store, dir, &setup.owner, options, coins).map(drop).unwrap_err();
    assert!(error.to_string().contains("share servers"), "{error}");
}

thread_local! {
    /// The warnings to the owner.
    static WARNINGS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn take_warnings() -> Vec<String> {
    WARNINGS.take()
}

fn options_with_warnings() -> VolumeOptions {
    VolumeOptions::default()
        .with_warn(|warning| WARNINGS.with_borrow_mut(|warnings| warnings.push(warning.into())))
}

fn write(volume: &mut Volume, address: u64, fill: u8) {
    let data = [fill; BLOCK_BYTES];
    let op = oblivio_core::Op::Write(&data);
    volume.access(&mut [oblivio_core::Access { address, op }]).unwrap();
}

/// A server that has given wrong answers is reported once in a session, and again by each later
/// opening. The directory lists the server even after a crash of the client, until the server is
/// repaired.
#[test]
fn a_server_that_has_answered_wrong_is_reported_once_and_kept_in_the_directory() {
    let requirements =
        ArrayRequirements { servers: Some(5), colluding: Some(1), ..Setup::requirements() };
    let setup = Setup::of(VolumeParams::plan(&requirements).unwrap());
    let mut volume = setup.create(options_with_warnings()).unwrap();
    (0..9).for_each(|address| write(&mut volume, address, 7));
    assert!(take_warnings().is_empty());
    setup.hosts.adds(1, 1);
    (0..9).for_each(|address| assert_eq!(contents(&mut volume, address), [7; BLOCK_BYTES]));
    let warnings = take_warnings();
    assert!(
        warnings.len() == 1 && warnings[0].starts_with("server 2 has wrong shares"),
        "{warnings:?}"
    );
    drop(volume);
    setup.hosts.adds(1, 0);
    setup.world.crash(&mut StdRng::seed_from_u64(5), Survival::None);
    assert_eq!(wrong_servers::recorded(&setup.world.dir()).unwrap(), [1]);
    drop(setup.open_with(options_with_warnings()).unwrap());
    assert_eq!(take_warnings(), warnings);
    wrong_servers::clear(&mut setup.world.dir(), 1).unwrap();
    drop(setup.open_with(options_with_warnings()).unwrap());
    assert!(take_warnings().is_empty());
}

/// One server adds a value to the shares that it deals. Because it knows the value, it can undo the
/// change once an access has failed. The client must still report the server's lie.
#[test]
fn a_server_that_damages_a_block_and_undoes_it_is_reported() {
    let setup = Setup::new();
    let mut volume = setup.create(options_with_warnings()).unwrap();
    (0..40).for_each(|address| write(&mut volume, address, 7));
    let added = 0x1d;
    setup.hosts.spoil_leaves(added);
    let mut found = [0; BLOCK_BYTES];
    let failed = (0..3).find_map(|address| {
        let op = oblivio_core::Op::Read(&mut found);
        volume.access(&mut [oblivio_core::Access { address, op }]).err()
    });
    let error = failed.expect("some block is in a leaf");
    let names_suspects = |warning: &str| {
        [
            "written by eviction ",
            "deal are server 1, server 2, server 3",
            "`oblivio rescue`",
            "a new volume",
        ]
        .iter()
        .all(|part| warning.contains(part))
    };
    assert!(
        error.kind() == VolumeErrorKind::Tampered && names_suspects(&error.to_string()),
        "{error}"
    );
    assert!(!error.to_string().contains("a backup from before"), "{error}");
    drop(volume);
    // Whether or not the server undoes the change, the next opening names the suspects without
    // contacting a server.
    let weight = recover::<Gf256>(&[1, 2, 3], &[&[1], &[0], &[0]]).unwrap()[0];
    setup.hosts.adds(0, Gf256::multiply(added, Gf256::inverse(weight).unwrap()));
    let error = setup.open_with(options_with_warnings()).map(drop).unwrap_err();
    assert!(
        error.kind() == VolumeErrorKind::Tampered && names_suspects(&error.to_string()),
        "{error}"
    );
    assert!(take_warnings().is_empty());
    // The owner learns what it means that the access now succeeds.
    drop(setup.open_with(options_with_warnings().with_after_tampering(true)).unwrap());
    let warnings = take_warnings();
    assert!(
        warnings.len() == 1 && warnings[0].contains("passes now") && names_suspects(&warnings[0]),
        "{warnings:?}"
    );
}

/// Two superblocks with one number: a key change that reached some servers was lost, and was
/// repeated on the others. The one that the directory names counts.
#[test]
fn the_superblock_that_the_directory_names_counts_among_those_with_one_number() {
    let setup = Setup::new();
    setup.create(VolumeOptions::default()).unwrap().close().unwrap();
    let secret = |byte| Secret::KeyFile(Zeroizing::new(vec![byte; 32]));
    let owner = || read_copies(&mut setup.store()).unlock(&secret(5), UnlockLimits::default());
    let (mut lost, mut repeated) = (owner().unwrap(), owner().unwrap());
    let mut coins = StdRng::seed_from_u64(77);
    let mut add = |superblock: &mut Superblock, key: &VolumeKey, byte| {
        let secret = secret(byte);
        let slot = NewSlot { secret: &secret, cost: Cost::weak_for_tests(), label: "" };
        superblock.add_slot(key, &slot, &mut coins).map(drop).map_err(VolumeError::from)
    };
    add(&mut lost.superblock, &lost.volume_key, 6).unwrap();
    let mut dir = setup.world.dir();
    change_slots(setup.store(), &mut dir, &mut repeated, |superblock, key| add(superblock, key, 7))
        .unwrap();
    assert_eq!(lost.superblock.sequence(), repeated.superblock.sequence());
    for is_other_first in [true, false] {
        let other = lost.superblock.encode().to_vec();
        let store = || setup.store_with(Some((other.clone(), is_other_first)));
        let unlock_with = |byte, has_directory: bool| {
            let directory = |_| -> Option<Box<dyn StateDir>> {
                has_directory.then(|| Box::new(setup.world.dir()) as _)
            };
            let limits = UnlockLimits::default();
            let secret = || Ok::<_, VolumeError>(secret(byte));
            unlock(&mut store(), limits, NewerCopies::Refuse, None, directory, secret)
        };
        for byte in [5, 7] {
            let owner = unlock_with(byte, true).unwrap();
            assert_eq!(owner.superblock.encode(), repeated.superblock.encode());
            setup_opens(&setup, store(), &owner);
        }
        let refused = unlock_with(6, true).err();
        let Some(UnlockError::NotUnlocked(refused)) = refused else {
            panic!("the superblock was unlocked")
        };
        assert_eq!(refused.kind(), SuperblockErrorKind::WrongKey);
        // Without a directory, the first candidate counts, which has the most votes.
        let first = if is_other_first { &lost } else { &repeated };
        let owner = unlock_with(5, false).unwrap();
        assert_eq!(owner.superblock.encode(), first.superblock.encode());
        // A repair copies the unlocked superblock.
        for owner in [&lost, &repeated] {
            let records = authentic_records(&mut store(), owner).unwrap();
            let is_of_owner = |bytes: &Vec<u8>| bytes[..] == owner.superblock.encode()[..];
            assert_eq!(records.iter().filter(|(_, bytes)| is_of_owner(bytes)).count(), COPIES);
        }
    }
}

fn setup_opens(setup: &Setup, store: AnyServers, owner: &Unlocked) {
    let (dir, coins) = (Box::new(setup.world.dir()), StdRng::seed_from_u64(3));
    let opened = Volume::open(store, dir, owner, VolumeOptions::default(), coins);
    opened.unwrap().0.close().unwrap();
}
