//! Volumes of clients: separation, creation and removal, quotas, pieces, and a full disk.

use std::fs;
use std::path::Path;
use std::process::Command;

use oblivio_bucket_server::BucketLimits;
use oblivio_core::geometry::BucketId;
use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_wire::{Answer, Failure, FailureKind, OpenMode, Request};

use super::party::{
    BUCKET_BYTES, Party, READ, Server, create, leaf, look, open_request, shapes, shapes_of,
};
use oblivio_testkit::machine::can_mount;
use oblivio_testkit::memory_disk::wait_until;

#[test]
fn a_client_sees_only_its_own_volumes_and_unknown_keys_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, bob, eve) = (Party::named("alice"), Party::named("bob"), Party::named("alice"));
    let server = Server::start(folder.path(), &[&alice, &bob]);
    let (mut hers, _) = server.open(&alice, "disk", create());
    hers.write(3, 0xaa);
    let mut his = server.greet(&bob);
    assert_eq!(his.ask(&look("disk")), Answer::Looked { is_there: false });
    assert_eq!(his.failure(&open_request("disk", OpenMode::Write)), FailureKind::NoVolume);
    let (mut his, opened) = server.open(&bob, "disk", create());
    assert_eq!((his.read(3), opened.shapes), (0, shapes()));
    his.write(3, 0xbb);
    assert_eq!(hers.read(3), 0xaa);
    for (client, volume) in [("alice", "disk"), ("bob", "disk")] {
        for file in ["buckets", "session"] {
            assert!(folder.path().join(client).join(volume).join(file).is_file());
        }
    }
    assert!(server.try_greet(&eve).is_none());
    wait_until(|| server.metric("refused_total{reason=\"unknown\"}") == 1);
    assert_eq!(server.metric("connections_total"), 3);
}

#[test]
fn volumes_are_created_once_found_and_removed_when_unused() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let (mut owner, first) = server.open(&alice, "disk", create());
    let mut other = server.greet(&alice);
    assert_eq!(other.ask(&look("disk")), Answer::Looked { is_there: true });
    assert_eq!(other.ask(&look("other")), Answer::Looked { is_there: false });
    assert_eq!(other.last_failure(&open_request("disk", create())), FailureKind::Exists);
    let remove = Request::Remove { name: "disk".into() };
    assert_eq!(server.greet(&alice).last_failure(&remove), FailureKind::InUse);
    owner.link.writer.close();
    owner.expect_end();
    wait_until(|| server.metric("connections") == 0);
    let mut other = server.greet(&alice);
    assert_eq!(other.ask(&remove), Answer::Done { number: 0 });
    assert_eq!(other.ask(&look("disk")), Answer::Looked { is_there: false });
    assert!(!folder.path().join("alice/disk").exists());
    assert_eq!(other.last_failure(&remove), FailureKind::NoVolume);
    // A client of the removed volume cannot resume the new one.
    let (_owner, second) = server.open(&alice, "disk", create());
    assert_ne!(first.session, second.session);
    let resume = Request::Resume { name: "disk".into(), session: first.session };
    assert_eq!(server.greet(&alice).last_failure(&resume), FailureKind::Fenced);
}

#[test]
fn exceeding_the_quota_is_an_error_that_names_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let quota_bytes = Some(3 << 19);
    let alice = Party { quota_bytes, ..Party::named("alice") };
    let bob = Party::named("bob");
    let limits = BucketLimits { volumes_per_client_max: 2, ..BucketLimits::default() };
    let server = Server::start_with(folder.path(), &[&alice, &bob], limits);
    let large = || OpenMode::Create(shapes_of(6 << 10));
    let (mut first, _) = server.open(&alice, "one", large());
    let used = fs::metadata(folder.path().join("alice/one/buckets")).unwrap().len();
    let mut refused = server.greet(&alice);
    let Answer::Failed(Failure { kind, message, .. }) = refused.ask(&open_request("two", large()))
    else {
        panic!("the quota was not enforced")
    };
    assert_eq!(kind, FailureKind::Full);
    assert!(message.contains(&((3 << 19) - used).to_string()), "{message}");
    assert!(!folder.path().join("alice/two").exists());
    first.write_whole_bucket(6 << 10);
    drop(server.open(&alice, "small", create()));
    // Without a quota, the number of volumes is bounded.
    ["one", "two"].into_iter().for_each(|name| drop(server.open(&bob, name, large())));
    let three = open_request("three", create());
    assert_eq!(server.greet(&bob).last_failure(&three), FailureKind::Full);
}

#[test]
fn pieces_are_read_and_written_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let (mut client, _) = server.open(&alice, "disk", create());
    let part = |index, part| Piece { part, ..leaf(index) };
    let pieces = vec![part(1, Part::Slot(1)), part(0, Part::Header), part(1, Part::Slot(0))];
    let bytes: Vec<u8> = (0..216).collect();
    let written = Request::Write { number: 1, pieces: pieces.clone(), bytes: bytes.clone() };
    assert_eq!(client.ask(&written), Answer::Done { number: 1 });
    let read = Request::Read { number: 2, pieces };
    assert_eq!(client.ask(&read), Answer::Data { number: 2, bytes: bytes.clone().into() });
    let Answer::Data { bytes: whole, .. } =
        client.ask(&Request::Read { number: 3, pieces: vec![leaf(1)] })
    else {
        panic!("the piece was not read")
    };
    assert_eq!(whole.len(), BUCKET_BYTES);
    assert_eq!((&whole[24..124], &whole[124..224]), (&bytes[116..], &bytes[..100]));
    // An absent piece gets an error, nothing is done, and the connection continues.
    let absent = Piece { tree: TreeId(3), bucket: BucketId::new(0, 0), part: Part::Whole };
    let pieces = vec![part(0, Part::Header), absent];
    let write = Request::Write { number: 4, pieces: pieces.clone(), bytes: vec![9; 100] };
    assert_eq!(client.failure(&write), FailureKind::Absent);
    let read = Request::Read { number: 5, pieces };
    assert_eq!(client.failure(&read), FailureKind::Absent);
    let read = Request::Read { number: 6, pieces: vec![part(0, Part::Header)] };
    assert_eq!(
        client.ask(&read),
        Answer::Data { number: 6, bytes: bytes[100..116].to_vec().into() }
    );
    assert_eq!(client.ask(&Request::Read { number: 7, pieces: vec![] }), data(7, vec![]));
    // Many small pieces, almost the most that a message may have, arrive in order.
    let pieces: Vec<_> = (0..60_000).map(|i| part(i % 2, Part::Header)).collect();
    let Answer::Data { bytes: many, .. } = client.ask(&Request::Read { number: 8, pieces }) else {
        panic!("the pieces were not read")
    };
    assert_eq!(many.len(), 960_000);
    assert!(many.chunks(32).all(|two| two[..16] == bytes[100..116] && two[16..] == whole[..16]));
    // Bytes that do not match the pieces.
    let write = Request::Write { number: 9, pieces: vec![leaf(0)], bytes: vec![1; 1023] };
    assert_eq!(client.last_failure(&write), FailureKind::Invalid);
    let (mut client, _) = server.open(&alice, "disk", OpenMode::Write);
    let write = Request::Write { number: 9, pieces: vec![leaf(0)], bytes: vec![1; 1025] };
    assert_eq!(client.last_failure(&write), FailureKind::Invalid);
    let (mut client, _) = server.open(&alice, "disk", READ);
    assert_eq!(
        client.ask(&read),
        Answer::Data { number: 6, bytes: bytes[100..116].to_vec().into() }
    );
    // More than an answer may contain.
    let pieces = vec![leaf(0); 32 << 10];
    assert_eq!(client.last_failure(&Request::Read { number: 10, pieces }), FailureKind::Invalid);
}

fn data(number: u64, bytes: Vec<u8>) -> Answer {
    Answer::Data { number, bytes: bytes.into() }
}

#[test]
fn a_full_disk_is_an_error_and_flushed_writes_stay() {
    if !can_mount() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let _small_disk = SmallDisk::mount(path);
    let alice = Party::named("alice");
    let server = Server::start(path, &[&alice]);
    let (mut small, opened) = server.open(&alice, "small", create());
    small.write(1, 0x11);
    small.flush();
    let ballast = path.join("ballast");
    fs::write(&ballast, vec![1; 256 << 10]).unwrap();
    let (mut large, before) = server.open(&alice, "large", OpenMode::Create(shapes_of(64 << 10)));
    let large_write = |bucket| {
        let pieces = vec![Piece { bucket, ..leaf(0) }];
        Request::Write { number: 1, pieces, bytes: vec![7; 64 << 10] }
    };
    // `all` is more than a store buffers before it writes to its file, and `half` is less.
    let levels = [5, 6].map(|level| (0..1 << level).map(move |i| BucketId::new(level, i)));
    let (all, half) = (levels.clone().into_iter().flatten(), levels[0].clone());
    let mut answers = all.map(|bucket| large.ask(&large_write(bucket)));
    let failed = answers.find(|answer| *answer != Answer::Done { number: 1 });
    assert!(matches!(failed, Some(Answer::Failed(failed)) if failed.kind == FailureKind::Full));
    large.expect_end();
    let (mut large, second) = server.resume(&alice, "large", before.session);
    assert_ne!(second.incarnation, before.incarnation);
    half.for_each(|bucket| assert_eq!(large.ask(&large_write(bucket)), Answer::Done { number: 1 }));
    assert_eq!(large.last_failure(&Request::Flush { number: 2 }), FailureKind::Full);
    assert_eq!(small.read(1), 0x11);
    // Once there is space, the store is opened again, with a new incarnation.
    fs::remove_file(ballast).unwrap();
    let (mut large, after) = server.resume(&alice, "large", before.session);
    assert_ne!(after.incarnation, second.incarnation);
    assert_eq!(large.ask(&large_write(BucketId::new(0, 0))), Answer::Done { number: 1 });
    large.flush();
    drop(large);
    wait_until(|| server.metric("connections") == 1);
    let mut other = server.greet(&alice);
    let removed = other.ask(&Request::Remove { name: "large".into() });
    assert_eq!(removed, Answer::Done { number: 0 });
    small.write(2, 0x22);
    small.flush();
    drop(small);
    let (mut small, again) = server.resume(&alice, "small", opened.session);
    assert_eq!((small.read(1), small.read(2)), (0x11, 0x22));
    assert_eq!(again.session, opened.session);
    drop((small, other));
    server.stop();
}

/// A mounted disk (tmpfs) of 2 MiB.
struct SmallDisk<'p>(&'p Path);

impl<'p> SmallDisk<'p> {
    fn mount(path: &'p Path) -> Self {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(path);
        assert!(mount.status().unwrap().success());
        Self(path)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let unmount = Command::new("umount").arg("--lazy").arg(self.0).status();
        assert!(unmount.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

impl super::party::Client {
    fn write_whole_bucket(&mut self, bytes: usize) {
        let write = Request::Write { number: 1, pieces: vec![leaf(0)], bytes: vec![1; bytes] };
        assert_eq!(self.ask(&write), Answer::Done { number: 1 });
    }
}
