//! Sessions: which connection may write, and which writes survive.

use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use oblivio_bucket_server::BucketLimits;
use oblivio_wire::{Answer, FailureKind, OpenMode, Request};

use super::party::{Party, READ, Server, create, open_request, write_of};
use oblivio_testkit::memory_disk::wait_until;

#[test]
fn opening_to_write_fences_the_previous_writer() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let (mut old, first) = server.open(&alice, "disk", create());
    old.write(0, 1);
    let (mut new, second) = server.open(&alice, "disk", OpenMode::Write);
    assert!(second.session > first.session);
    assert_eq!(second.incarnation, first.incarnation);
    assert_eq!(new.read(0), 1);
    new.write(0, 2);
    // Requests of the old writer are refused: the first with an error, the others silently.
    (0..20).for_each(|number| old.say(&write_of(number, 0, 9)));
    assert_eq!(old.hear_failure(), FailureKind::Fenced);
    old.expect_end();
    let resume = Request::Resume { name: "disk".into(), session: first.session };
    assert_eq!(server.greet(&alice).last_failure(&resume), FailureKind::Fenced);
    assert_eq!(new.read(0), 2);
    assert!(server.metric("fenced_total") >= 1);
}

/// A fenced connection cannot write, however its requests interleave with those of the new
/// connection. The rounds delay the new connection by 0 to 4 ms.
#[test]
fn late_writes_of_a_fenced_connection_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let (mut old, mut opened) = server.open(&alice, "disk", create());
    for round in 0..20u8 {
        // Alternately, another client takes over or the same one resumes.
        let (mut new, again) = thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..100 {
                    // Writes may fail once the connection is fenced.
                    let _ = old.try_say(&write_of(number, 5, 0xee));
                }
            });
            thread::sleep(Duration::from_millis(u64::from(round) / 4));
            let (mut new, again) = if round % 2 == 0 {
                server.open(&alice, "disk", OpenMode::Write)
            } else {
                server.resume(&alice, "disk", opened.session)
            };
            new.write(5, round);
            (new, again)
        });
        // If all of these writes came before the takeover, this one is refused.
        let _ = old.try_say(&write_of(100, 5, 0xee));
        let mut number = 0;
        let refused = loop {
            match old.hear() {
                Answer::Done { number: done } if done == number => number += 1,
                Answer::Failed(failure) => break failure,
                other => panic!("no answer to write {number}: {other:?}"),
            }
        };
        assert_eq!((refused.number, refused.kind), (number, FailureKind::Fenced));
        assert_eq!(new.read(5), round);
        (old, opened) = (new, again);
    }
}

#[test]
fn unflushed_writes_survive_a_lost_link_and_the_old_connection_is_fenced() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let (mut client, opened) = server.open(&alice, "disk", create());
    client.write(1, 0x11);
    client.cut.shutdown(Shutdown::Both).unwrap();
    let (mut second, again) = server.resume(&alice, "disk", opened.session);
    assert_eq!((again.session, again.incarnation), (opened.session, opened.incarnation));
    assert_eq!(second.read(1), 0x11);
    // Now the server does not know that the previous connection was lost.
    let (mut third, _) = server.resume(&alice, "disk", opened.session);
    third.write(1, 0x33);
    assert_eq!(second.last_failure(&write_of(1, 1, 0x22)), FailureKind::Fenced);
    assert_eq!(third.read(1), 0x33);
    // A session that never existed.
    let resume = Request::Resume { name: "disk".into(), session: opened.session + 1 };
    assert_eq!(server.greet(&alice).last_failure(&resume), FailureKind::Fenced);
    let resume = Request::Resume { name: "other".into(), session: 0 };
    assert_eq!(server.greet(&alice).last_failure(&resume), FailureKind::NoVolume);
}

#[test]
fn sessions_and_flushed_writes_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let (mut client, opened) = server.open(&alice, "disk", create());
    client.write(1, 0x11);
    client.flush();
    client.write(2, 0x22);
    server.stop();
    client.expect_end();
    let server = Server::start(folder.path(), &[&alice]);
    let (mut client, again) = server.resume(&alice, "disk", opened.session);
    assert_eq!(again.session, opened.session);
    assert_ne!(again.incarnation, opened.incarnation);
    assert_eq!(client.read(1), 0x11);
    assert!([0, 0x22].contains(&client.read(2)));
    let (_other, third) = server.open(&alice, "disk", OpenMode::Write);
    assert!(third.session > again.session);
    assert_eq!(third.incarnation, again.incarnation);
}

#[test]
fn an_idle_store_is_closed_and_reopened_with_a_new_incarnation() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let stores_kept_for = Duration::from_millis(100);
    let limits = BucketLimits { stores_kept_for, ..BucketLimits::default() };
    let server = Server::start_with(folder.path(), &[&alice], limits);
    let (mut client, opened) = server.open(&alice, "disk", create());
    client.write(1, 0x11);
    client.flush();
    // A silent client keeps the store open.
    thread::sleep(Duration::from_millis(300));
    assert_eq!(server.metric("stores_open"), 1);
    drop(client);
    wait_until(|| server.metric("stores_open") == 0);
    let (mut client, again) = server.resume(&alice, "disk", opened.session);
    assert_ne!(again.incarnation, opened.incarnation);
    assert_eq!(client.read(1), 0x11);
}

#[test]
fn idle_stores_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let limits = BucketLimits { idle_stores_per_client_max: 2, ..BucketLimits::default() };
    let server = Server::start_with(folder.path(), &[&alice], limits);
    for name in ["a", "b", "c", "d"] {
        let (mut client, _) = server.open(&alice, name, create());
        client.write(1, 0x11);
    }
    wait_until(|| server.metric("connections") == 0);
    wait_until(|| server.metric("stores_open") == 2);
}

#[test]
fn readers_are_admitted_without_a_writer_and_never_lock_out_an_owner() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let (mut owner, opened) = server.open(&alice, "disk", create());
    owner.write(1, 0x11);
    let reading = open_request("disk", READ);
    assert_eq!(server.greet(&alice).last_failure(&reading), FailureKind::InUse);
    drop(owner);
    wait_until(|| server.metric("connections") == 0);
    // Readers see all writes of the last writer, flushed or not.
    let mut readers = [(); 2].map(|()| server.open(&alice, "disk", READ));
    for (reader, seen) in &mut readers {
        assert_eq!((seen.session, reader.read(1)), (0, 0x11));
        reader.flush();
    }
    let [(mut first, _), (mut second, _)] = readers;
    assert_eq!(first.last_failure(&write_of(1, 1, 9)), FailureKind::Refused);
    let (mut owner, again) = server.resume(&alice, "disk", opened.session);
    assert_eq!((again.incarnation, owner.read(1)), (opened.incarnation, 0x11));
    let read = Request::Read { number: 1, pieces: vec![] };
    assert_eq!(second.last_failure(&read), FailureKind::InUse);
    // The same with a store that was opened to read.
    owner.flush();
    server.stop();
    let server = Server::start(folder.path(), &[&alice]);
    let (mut reader, seen) = server.open(&alice, "disk", READ);
    assert_eq!((seen.session, reader.read(1)), (0, 0x11));
    // A reader's session number cannot be resumed.
    let resumed = Request::Resume { name: "disk".into(), session: seen.session };
    assert_eq!(server.greet(&alice).last_failure(&resumed), FailureKind::Fenced);
    let (mut owner, last) = server.open(&alice, "disk", OpenMode::Write);
    assert!(last.session > opened.session && last.incarnation != seen.incarnation);
    assert_eq!(reader.last_failure(&read), FailureKind::InUse);
    owner.write(1, 0x22);
}

#[test]
fn a_cut_off_store_opens_only_if_that_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let (mut owner, _) = server.open(&alice, "disk", create());
    owner.write(0, 0x11);
    owner.flush();
    server.stop();
    let store = folder.path().join("alice/disk/buckets");
    let file = std::fs::OpenOptions::new().write(true).open(&store).unwrap();
    file.set_len(file.metadata().unwrap().len() - 5000).unwrap();
    let server = Server::start(folder.path(), &[&alice]);
    for mode in [READ, OpenMode::Write] {
        let open = open_request("disk", mode);
        assert_eq!(server.greet(&alice).last_failure(&open), FailureKind::Damaged);
    }
    let may_be = OpenMode::Read { allow_incomplete: true };
    let (mut reader, opened) = server.open(&alice, "disk", may_be);
    assert!(opened.is_cut_off && !opened.damage.is_empty());
    assert_eq!(reader.read(0), 0x11);
    assert_eq!(
        server.greet(&alice).last_failure(&open_request("disk", READ)),
        FailureKind::Damaged
    );
}
