//! S3 objects on a server in this process: the contract, and what faults lead to.

#![allow(clippy::disallowed_methods, reason = "tests measure how long calls take")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use oblivio_core::StoreErrorKind;
use oblivio_store::objects::{Answer, ObjectName, Objects, Prefix, S3Objects, S3Options};
use oblivio_store::{CloudLocation, CloudService, OpenErrorKind};

use crate::contract;
use crate::s3_server::{Action, BUCKET, S3Server, Verb, private_file};

const HEAD: ObjectName = ObjectName::Head(1);
const BODY: usize = 300_000;

fn key(name: ObjectName) -> String {
    format!("some/prefix/{name}")
}

fn body() -> Vec<u8> {
    (0..BODY).map(|i| (i / 7) as u8).collect()
}

fn create(objects: &mut S3Objects) -> Answer {
    contract::create(objects, HEAD, &[&body()])
}

/// Waits for a creation that fails, and returns its error.
fn failed_creation(objects: &mut S3Objects) -> oblivio_core::StoreError {
    let ticket = objects.begin_create(HEAD, vec![Bytes::from_static(b"head")]);
    objects.wait(ticket).unwrap_err()
}

#[test]
fn the_engine_keeps_the_contract() {
    let server = S3Server::start();
    contract::check(|| server.open());
}

#[test]
fn the_engine_keeps_the_contract_without_bulk_deletions_and_with_short_pages() {
    let server = S3Server::start();
    server.world().deletes_many = false;
    server.world().page = 7;
    contract::check(|| server.open());
}

#[test]
fn the_engine_keeps_the_contract_as_a_client_of_google() {
    let server = S3Server::start();
    let key = "{\"private_key\": \"\", \"private_key_id\": \"\", \"client_email\": \"\", \
               \"disable_oauth\": true}";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.json");
    private_file(path.clone(), key);
    let rest = format!(
        "{BUCKET}/p?endpoint=http://{}&plain&credentials={}",
        server.address,
        path.display()
    );
    let location = CloudLocation::parse(CloudService::Gcs, rest.as_bytes()).unwrap();
    contract::check(|| S3Objects::open(&location, &S3Options::default()).unwrap());
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn a_server_that_checks_before_it_writes_breaks_the_contract() {
    let server = S3Server::start();
    server.world().race = Some(Duration::from_millis(20));
    contract::check(|| server.open());
}

#[test]
fn a_creation_whose_answer_is_lost_is_unknown_and_sent_once() {
    let server = S3Server::start();
    let mut objects = server.open();
    server.first(1, Action::LoseAnswer);
    assert_eq!(create(&mut objects), Answer::Unknown);
    assert_eq!(server.world().received.len(), 1);
    assert_eq!(contract::get(&mut objects, HEAD, 0..4), Answer::Bytes(body()[..4].to_vec().into()));
    assert_eq!(create(&mut objects), Answer::Exists);
}

#[test]
fn a_creation_is_unknown_if_the_connection_is_lost_within_its_body() {
    // What SeaweedFS leaves after no byte, what versitygw leaves of unsigned payloads after half of
    // the bytes, and what both leave otherwise.
    for (read, leaves) in
        [(0, Some(0)), (0, None), (BODY / 2, Some(BODY / 2)), (BODY / 2, None), (BODY - 1, None)]
    {
        let server = S3Server::start();
        let mut objects = server.open();
        server.first(1, Action::CutBody { read, leaves });
        assert_eq!(create(&mut objects), Answer::Unknown, "{read} {leaves:?}");
        assert_eq!(server.world().received.len(), 1, "{read} {leaves:?}");
        let found = contract::get(&mut objects, HEAD, 0..BODY as u64);
        let expected =
            leaves.map_or(Answer::Absent, |bytes| Answer::Bytes(body()[..bytes].to_vec().into()));
        assert_eq!(found, expected, "{read} {leaves:?}");
        let again = if leaves.is_some() { Answer::Exists } else { Answer::Created };
        assert_eq!(create(&mut objects), again, "{read} {leaves:?}");
    }
}

#[test]
fn a_creation_without_an_answer_in_time_is_unknown() {
    let server = S3Server::start();
    let mut objects =
        server.open_with(|options| options.answer_within = Duration::from_millis(200));
    server.first(1, Action::Stall);
    assert_eq!(create(&mut objects), Answer::Unknown);
    assert_eq!(create(&mut objects), Answer::Created);
}

#[test]
fn a_creation_is_repeated_only_if_the_service_did_nothing() {
    for (action, expected, requests) in [
        (Action::Refuse(503, "SlowDown"), Answer::Created, 3),
        (Action::Refuse(429, ""), Answer::Created, 3),
        (Action::Refuse(409, "ConditionalRequestConflict"), Answer::Created, 3),
        // The service did what it says that it did not. The caller reads back what exists.
        (Action::ServeAndRefuse(503, "SlowDown"), Answer::Exists, 3),
        (Action::Refuse(409, "BlobAlreadyExists"), Answer::Exists, 1),
        (Action::Refuse(412, "PreconditionFailed"), Answer::Exists, 1),
        (Action::Refuse(500, "InternalError"), Answer::Unknown, 1),
        (Action::Refuse(504, ""), Answer::Unknown, 1),
        (Action::Refuse(400, "RequestTimeout"), Answer::Unknown, 1),
        (Action::Say(200, &[], Bytes::new()), Answer::Unknown, 1),
    ] {
        let server = S3Server::start();
        let mut objects = server.open();
        server.first(2, action.clone());
        assert_eq!(create(&mut objects), expected, "{action:?}");
        assert_eq!(server.world().received.len(), requests, "{action:?}");
        assert_eq!(objects.counts().totals().puts, requests as u64);
    }
}

#[test]
fn a_creation_fails_if_the_service_stays_overloaded() {
    let server = S3Server::start();
    let mut objects = server.open_with(|options| options.retry_for = Duration::from_millis(400));
    server.plan(|_, _| Action::Refuse(503, "SlowDown"));
    let error = failed_creation(&mut objects);
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("s3://bucket/some/prefix/head/0000000000000001"), "{error}");
    assert!(error.to_string().contains("SlowDown"), "{error}");
}

#[test]
fn refusals_say_what_to_do() {
    for (status, code, expected) in [
        (403, "AccessDenied", "s3:ListBucket"),
        (403, "RequestTimeTooSkewed", "set the clock"),
        (403, "InvalidAccessKeyId", "check the keys"),
        (403, "SignatureDoesNotMatch", "check the keys"),
        (400, "ExpiredToken", "have expired"),
        (404, "NoSuchBucket", "create the bucket"),
        (301, "PermanentRedirect", "&region=REGION"),
        (400, "AuthorizationHeaderMalformed", "&region=REGION"),
    ] {
        let server = S3Server::start();
        let mut objects = server.open();
        server.plan(move |_, _| Action::Refuse(status, code));
        let ticket = objects.begin_get(HEAD, 0..9);
        let errors = [
            failed_creation(&mut objects),
            objects.wait(ticket).unwrap_err(),
            objects.list(Prefix::Heads, None).unwrap_err(),
            objects.delete(&[HEAD]).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
            let message = error.to_string();
            assert!(message.contains(expected) && message.contains(code), "{message}");
            assert!(!message.contains("testsecret"), "{message}");
        }
        assert_eq!(server.world().received.len(), 4, "nothing is repeated: {code}");
    }
}

#[test]
fn a_full_bucket_is_reported_as_full() {
    let server = S3Server::start();
    let mut objects = server.open();
    server.first(1, Action::Refuse(403, "QuotaExceeded"));
    assert_eq!(failed_creation(&mut objects).kind(), StoreErrorKind::Full);
}

#[test]
fn gets_listings_and_deletions_are_repeated() {
    let server = S3Server::start();
    let mut objects =
        server.open_with(|options| options.answer_within = Duration::from_millis(500));
    assert_eq!(create(&mut objects), Answer::Created);
    for action in [
        Action::LoseAnswer,
        Action::Close,
        Action::Refuse(503, "SlowDown"),
        Action::Refuse(500, "InternalError"),
        Action::Refuse(429, ""),
        Action::CutAnswer(0),
        Action::CutAnswer(5),
        Action::Stall,
    ] {
        server.first(1, action.clone());
        let found = contract::get(&mut objects, HEAD, 10..1010);
        assert_eq!(found, Answer::Bytes(body()[10..1010].to_vec().into()), "{action:?}");
        assert_eq!(server.world().received.len(), 2, "{action:?}");
        server.first(1, action.clone());
        let found = contract::list(&mut objects, Prefix::Heads, None);
        assert_eq!(found, [(HEAD, BODY as u64)], "{action:?}");
        assert_eq!(server.world().received.len(), 3, "{action:?}: a repetition, and the last page");
        server.first(1, action.clone());
        objects.delete(&[ObjectName::Head(7)]).unwrap();
        assert_eq!(server.world().received.len(), 2, "{action:?}");
    }
    assert_eq!(objects.counts().totals().retries, 24, "the engine itself repeats all of them");
}

#[test]
fn a_get_fails_after_the_time_limit() {
    let server = S3Server::start();
    let mut objects = server.open_with(|options| options.retry_for = Duration::from_millis(500));
    server.plan(|_, _| Action::Close);
    let begun = Instant::now();
    let ticket = objects.begin_get(HEAD, 0..9);
    let error = objects.wait(ticket).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert!(server.world().received.len() >= 3);
    // Nothing listens there any more.
    let location = server.location();
    drop(server);
    let error = S3Objects::open(&location, &S3Options::default()).map(drop).unwrap_err();
    assert_eq!(error.kind(), OpenErrorKind::NoCredential, "its folder is gone: {error}");
    let ticket = objects.begin_get(HEAD, 0..9);
    let error = objects.wait(ticket).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("cannot connect"), "{error}");
}

#[test]
fn lies_are_errors() {
    let longer: &[(&str, &str)] = &[("content-range", "bytes 0-8/99")];
    let other: &[(&str, &str)] = &[("content-range", "bytes 1-9/99")];
    let huge: &[(&str, &str)] = &[("content-range", "bytes 0-18446744073709551615/9")];
    let long = Bytes::from(vec![0; 1 << 20]);
    for action in [
        Action::Say(206, longer, long.clone()),
        Action::Say(206, other, Bytes::from_static(b"123456789")),
        Action::Say(206, huge, Bytes::from_static(b"123456789")),
        Action::Say(206, &[], Bytes::from_static(b"123456789")),
        Action::Say(200, &[], Bytes::from_static(b"123456789")),
        Action::Say(200, &[], Bytes::from_static(b"<html>a proxy</html>")),
    ] {
        let server = S3Server::start();
        let mut objects = server.open();
        server.plan(move |_, _| action.clone());
        let ticket = objects.begin_get(HEAD, 0..9);
        let error = objects.wait(ticket).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Failed, "{error}");
        assert!(objects.counts().totals().bytes_down < 1 << 20);
    }
    let server = S3Server::start();
    let mut objects = server.open();
    for listing in [
        "",
        "<ListBucketResult><Contents><Key>a//b</Key><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>99999999999999999999</Size></Contents>\
         </ListBucketResult>",
    ] {
        server.plan(move |_, _| Action::Say(200, &[], listing.into()));
        let error = objects.list(Prefix::All, None).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Failed, "{error}");
    }
    let endless = Bytes::from(vec![b' '; 5 << 20]);
    server.plan(move |_, _| Action::Say(200, &[], endless.clone()));
    let error = objects.list(Prefix::All, None).unwrap_err();
    assert!(error.to_string().contains("more bytes than"), "{error}");
    // An error about an object that was not in the request.
    let deleted = "<DeleteResult><Error><Key>other</Key><Code>AccessDenied</Code></Error>\
                   </DeleteResult>";
    server.plan(move |_, _| Action::Say(200, &[], deleted.into()));
    let error = objects.delete(&[HEAD]).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
}

#[test]
fn a_listing_out_of_order_is_refused_and_foreign_objects_are_left_out() {
    let server = S3Server::start();
    let mut objects = server.open();
    assert_eq!(contract::create(&mut objects, HEAD, &[b"x"]), Answer::Created);
    {
        let mut world = server.world();
        world.page = 2;
        for foreign in ["some/prefix/a", "some/prefix/b", "some/prefix/c", "some/prefix/z"] {
            world.objects.insert(foreign.into(), Bytes::new());
        }
        world.objects.insert("some/prefix2/head/0000000000000009".into(), Bytes::new());
    }
    assert_eq!(contract::list(&mut objects, Prefix::All, None), [(HEAD, 1)]);
    let entry = |name| {
        let key = key(name);
        format!(
            "<Contents><Key>{key}</Key><LastModified>2026-11-28T00:00:00.000Z</LastModified>\
             <Size>1</Size></Contents>"
        )
    };
    let page = entry(ObjectName::Head(2)) + &entry(HEAD);
    let page = Bytes::from(format!("<ListBucketResult>{page}</ListBucketResult>"));
    server.plan(move |_, _| Action::Say(200, &[], page.clone()));
    let error = objects.list(Prefix::All, None).unwrap_err();
    assert!(error.to_string().contains("order"), "{error}");
}

#[test]
fn expired_credentials_are_read_again() {
    let server = S3Server::start();
    let mut objects = server.open();
    assert_eq!(create(&mut objects), Answer::Created);
    server.world().key = Some(("newkey".into(), "ExpiredToken"));
    server.write_key("newkey");
    assert_eq!(contract::get(&mut objects, HEAD, 0..1), Answer::Bytes(body()[..1].to_vec().into()));
    server.world().key = Some(("newest".into(), "ExpiredToken"));
    let ticket = objects.begin_get(HEAD, 0..1);
    assert_eq!(objects.wait(ticket).unwrap_err().kind(), StoreErrorKind::Refused);
    server.write_key("newest");
    assert_eq!(contract::create(&mut objects, ObjectName::Head(2), &[]), Answer::Created);
}

#[test]
fn slow_gets_are_sent_a_second_time() {
    const GETS: u64 = 400;
    // The number of gets whose latencies are known before the first second attempt.
    const KNOWN: u64 = 100;
    let server = S3Server::start();
    let mut objects = server.open_with(|options| options.answer_within = Duration::from_secs(20));
    assert_eq!(create(&mut objects), Answer::Created);
    server.plan(|number, _| {
        let is_slow = number as u64 > KNOWN && number % 40 == 39;
        if is_slow { Action::Stall } else { Action::Serve }
    });
    let begun = Instant::now();
    for i in 0..GETS {
        let found = contract::get(&mut objects, HEAD, i..i + 1);
        assert_eq!(found, Answer::Bytes(body()[i as usize..][..1].to_vec().into()));
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "it waited for an answer that never came");
    let counted = objects.counts().totals();
    assert!((7..=GETS / 10).contains(&counted.hedges), "{counted:?}");
    assert_eq!((counted.gets, counted.retries), (GETS + counted.hedges, 0));
}

#[test]
fn gets_are_sent_once_if_hedges_are_off() {
    const GETS: u64 = 200;
    let server = S3Server::start();
    let mut objects = server.open_with(|options| options.hedges = false);
    server.plan(|number, _| Action::Delay(Duration::from_millis(number as u64 / 190 * 50)));
    for _ in 0..GETS {
        assert_eq!(contract::get(&mut objects, HEAD, 0..1), Answer::Absent);
    }
    assert_eq!(objects.counts().totals().gets, GETS);
}

#[test]
fn at_most_the_permitted_number_of_requests_is_in_flight() {
    let server = S3Server::start();
    let mut objects = server.open_with(|options| options.parallel = 5);
    server.plan(|_, _| Action::Delay(Duration::from_millis(20)));
    let tickets: Vec<_> = (0..50).map(|i| objects.begin_get(ObjectName::Head(i), 0..1)).collect();
    for ticket in tickets {
        assert_eq!(objects.wait(ticket).unwrap(), Answer::Absent);
    }
    assert!(server.world().connections <= 5);
}

#[test]
fn requests_are_counted() {
    let server = S3Server::start();
    let mut objects = server.open();
    let before = objects.counts().totals();
    assert_eq!(create(&mut objects), Answer::Created);
    contract::get(&mut objects, HEAD, 0..1000);
    contract::get(&mut objects, ObjectName::Head(7), 0..1000);
    objects.list(Prefix::Heads, None).unwrap();
    objects.delete(&[HEAD]).unwrap();
    let counted = objects.counts().totals().since(before);
    assert_eq!((counted.gets, counted.puts, counted.lists, counted.deletes), (2, 1, 1, 1));
    assert!((BODY as u64..BODY as u64 + 1000).contains(&counted.bytes_up), "{counted:?}");
    assert!((1000..3000).contains(&counted.bytes_down), "{counted:?}");
    let verbs: Vec<_> = server.world().received.iter().map(|it| it.verb).collect();
    assert_eq!(verbs, [Verb::Put, Verb::Get, Verb::Get, Verb::List, Verb::DeleteMany]);
}

#[test]
fn a_dropped_client_leaves_requests_alone() {
    let server = S3Server::start();
    let mut objects = server.open();
    server.plan(|_, _| Action::Stall);
    objects.begin_get(HEAD, 0..1);
    let begun = Instant::now();
    drop(objects);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn credentials_that_others_can_read_are_refused() {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    let server = S3Server::start();
    let open = || S3Objects::open(&server.location(), &S3Options::default()).map(drop).unwrap_err();
    let path = server.credentials();
    std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let error = open();
    assert_eq!(error.kind(), OpenErrorKind::NoCredential);
    let shown = path.display();
    let expected = format!("credentials file {shown} is readable by others; run chmod 600 {shown}");
    assert_eq!(error.to_string(), expected);
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    for (text, expected) in [
        ("access_key_id = a", "secret_access_key = …"),
        ("secret_access_key = b", "access_key_id = …"),
        ("access_key_id = a\nhunter2 = b", "line 2"),
        ("access_key_id = a\naccess_key_id = hunter2", "occurs again in line 2"),
        ("access_key_id =", "has no valid value"),
    ] {
        private_file(path.clone(), text);
        let error = open();
        assert_eq!(error.kind(), OpenErrorKind::NoCredential);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
