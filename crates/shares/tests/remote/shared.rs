//! Tests of a store over several servers, some of which lie or are missing.

use std::cell::RefCell;
use std::thread;
use std::time::Duration;

use oblivio_conformance::{check_durable_store, check_store};
use oblivio_core::geometry::BucketId;
use oblivio_core::store::{BucketStore, Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape};
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_shares::message::Request as ShareRequest;
use oblivio_shares::remote::{ShareServer, SharedStore};
use oblivio_shares::servers::{Patience, ShareServers};
use oblivio_store::{OpenErrorKind, RemoteMode, RemoteOptions};
use oblivio_wire::keys::PublicKey;
use oblivio_wire::link::MonotonicTime;
use oblivio_wire::{FailureKind, Opened, Request};

use crate::bench::options;
use crate::server::{Server, ServerAction};

const BYTES: usize = 200;

fn shapes() -> Vec<TreeShape> {
    vec![TreeShape::new(vec![LevelShape {
        buckets: 1,
        slots: 0,
        header_bytes: 8,
        slots_offset: 8,
        slot_bytes: 0,
        bucket_bytes: BYTES as u64,
    }])]
}

fn record() -> Piece {
    Piece { tree: TreeId(0), bucket: BucketId::new(0, 0), part: Part::Whole }
}

fn servers<const COUNT: usize>() -> [Server; COUNT] {
    [(); COUNT].map(|()| Server::new())
}

fn reached(servers: &[Server]) -> Vec<ShareServer> {
    let reach = |(server, number): (&Server, u8)| {
        let server = server.clone();
        ShareServer {
            address: format!("host{number}:1"),
            key: PublicKey::from_bytes([number; 32]),
            make_connector: Box::new(move || server.connector()),
        }
    };
    servers.iter().zip(1..).map(reach).collect()
}

fn quick() -> RemoteOptions {
    options().with_retry_for(Duration::from_millis(50))
}

fn create(servers: &[Server], colluding: usize) -> SharedStore {
    SharedStore::create(reached(servers), &shapes(), colluding, quick()).unwrap()
}

fn open(servers: &[Server], colluding: usize) -> SharedStore {
    SharedStore::open(reached(servers), RemoteMode::Write, colluding, quick()).unwrap().0
}

fn write(store: &mut SharedStore, byte: u8) -> Result<(), StoreErrorKind> {
    try_write(store, byte).map_err(|error| error.kind())
}

fn try_write(store: &mut SharedStore, byte: u8) -> Result<(), StoreError> {
    let (bytes, span) = (vec![byte; BYTES], [Span { start: 0, bytes: BYTES }]);
    let written = store.write(&[record()], &mut |blanks| blanks.relay(Frames::new(&bytes, &span)));
    written.and_then(|()| store.flush())
}

fn read(store: &mut SharedStore) -> Result<u8, StoreErrorKind> {
    let frames = store.read(&[record()]).map_err(|error| error.kind())?;
    assert_eq!(frames.get(0), [frames.get(0)[0]; BYTES]);
    Ok(frames.get(0)[0])
}

/// The candidates for the value of the record, sorted. A value is one repeated byte, and is
/// returned as this byte.
fn candidates(store: &mut SharedStore) -> Vec<u8> {
    let mut found = Vec::new();
    store.read_candidates(&[record()], &mut |_, value| found.push(value[0])).unwrap();
    found.sort_unstable();
    found
}

/// Makes servers reachable or unreachable.
fn be_there(servers: &[&Server], is_there: bool) {
    for server in servers {
        server.world().is_unreachable = !is_there;
        server.plan(move |_, _| if is_there { ServerAction::Serve } else { ServerAction::Cut });
    }
}

/// Waits until `count` servers are missing.
fn wait_until_missing(store: &mut SharedStore, count: usize) {
    let until = MonotonicTime::now().after(Duration::from_secs(30));
    while store.missing() != count && until.left().is_some() {
        let servers = &mut *store;
        servers.begin_retries();
        servers.wait_for_missing();
    }
    assert_eq!(store.missing(), count);
}

/// Changes the record on one server to another value.
fn damage(server: &Server, byte: u8) {
    let mut alone =
        oblivio_store::RemoteStore::open(server.connector(), RemoteMode::Write, quick());
    let store = &mut alone.as_mut().unwrap().0;
    let (bytes, span) = (vec![byte; BYTES], [Span { start: 0, bytes: BYTES }]);
    store.write(&[record()], &mut |blanks| blanks.relay(Frames::new(&bytes, &span))).unwrap();
    store.flush().unwrap();
}

#[test]
fn conforms() {
    let of_volume = RefCell::new(servers::<3>());
    check_durable_store(
        |shapes| {
            of_volume.replace(servers());
            SharedStore::create(reached(&*of_volume.borrow()), shapes, 1, options()).unwrap()
        },
        |store| {
            drop(store);
            let servers = of_volume.borrow();
            servers.iter().for_each(|server| server.world().restart(0));
            SharedStore::open(reached(&*servers), RemoteMode::Write, 1, options()).unwrap().0
        },
    );
}

#[test]
fn conforms_while_lines_break() {
    check_store(|shapes| {
        let servers = servers::<3>();
        let store = SharedStore::create(reached(&servers), shapes, 1, options()).unwrap();
        servers[1].plan(|n, _| if n % 7 == 6 { ServerAction::Cut } else { ServerAction::Serve });
        store
    });
}

#[test]
fn a_record_is_what_enough_servers_say_and_nothing_if_they_do_not() {
    let servers = servers::<3>();
    write(&mut create(&servers, 1), 7).unwrap();
    damage(&servers[1], 9);
    assert_eq!(read(&mut open(&servers, 1)), Ok(7));
    damage(&servers[0], 8);
    assert_eq!(read(&mut open(&servers, 1)), Ok(0));
    // Another write restores the record.
    write(&mut open(&servers, 1), 6).unwrap();
    assert_eq!(read(&mut open(&servers, 1)), Ok(6));
}

/// Every value that at least *t* + 1 servers return is a candidate, because one of them is honest.
/// The number of votes does not decide which value is the newest. A value that only a liar returns
/// is not a candidate.
#[test]
fn every_value_with_an_honest_witness_is_a_candidate() {
    let servers = servers::<5>();
    write(&mut create(&servers, 1), 1).unwrap();
    let [one, two, .., five] = &servers;
    be_there(&[one, two], false);
    write(&mut open(&servers, 1), 2).unwrap();
    be_there(&[one, two], true);
    be_there(&[five], false);
    assert_eq!(candidates(&mut open(&servers, 1)), [1, 2]);
    // A liar votes for the older value. The newest one still has enough votes.
    be_there(&[five], true);
    damage(five, 1);
    assert_eq!(candidates(&mut open(&servers, 1)), [1, 2]);
    damage(five, 9);
    assert_eq!(candidates(&mut open(&servers, 1)), [1, 2]);
    // The next write goes to all servers.
    write(&mut open(&servers, 1), 3).unwrap();
    assert_eq!(candidates(&mut open(&servers, 1)), [3]);
}

#[test]
fn a_server_that_comes_back_gets_what_it_has_missed_before_it_counts() {
    let servers = servers::<5>();
    let mut store = create(&servers, 1);
    write(&mut store, 1).unwrap();
    let [one, two, _, four, five] = &servers;
    be_there(&[one, two], false);
    write(&mut store, 2).unwrap();
    be_there(&[one, two], true);
    wait_until_missing(&mut store, 0);
    store.flush().unwrap();
    drop(store);
    // Servers 1 and 2 have the value even without the servers that had it first.
    be_there(&[four, five], false);
    assert_eq!(candidates(&mut open(&servers, 1)), [2]);
    be_there(&[four, five], true);
    let mut store = open(&servers, 1);
    be_there(&[one], false);
    write(&mut store, 3).unwrap();
    // A server that refuses the writes it missed stays missing.
    let dials = one.world().dials;
    one.world().is_unreachable = false;
    one.plan(|_, request| match request {
        Request::Write { .. } => ServerAction::Refuse(FailureKind::Full),
        _ => ServerAction::Serve,
    });
    let until = MonotonicTime::now().after(Duration::from_secs(30));
    while one.world().dials < dials + 2 && until.left().is_some() {
        let servers = &mut store;
        servers.wait_for_missing();
        servers.begin_retries();
    }
    assert_eq!((one.world().dials >= dials + 2, store.missing()), (true, 1));
    one.plan(|_, _| ServerAction::Serve);
    wait_until_missing(&mut store, 0);
}

/// A flush succeeds if at least 2 *t* + 1 servers have flushed, and fails otherwise. With fewer
/// servers a record would not be durable: *t* of them may lie, and *t* + 1 honest servers must keep
/// it.
#[test]
fn a_flush_is_done_by_enough_servers_that_have_all_or_not_at_all() {
    let servers = servers::<5>();
    let mut store = create(&servers, 1);
    write(&mut store, 1).unwrap();
    let [one, two, three, ..] = &servers;
    let put = |store: &mut SharedStore, byte: u8| {
        let (bytes, span) = (vec![byte; BYTES], [Span { start: 0, bytes: BYTES }]);
        store.write(&[record()], &mut |blanks| blanks.relay(Frames::new(&bytes, &span))).unwrap();
    };
    be_there(&[one, two], false);
    put(&mut store, 2);
    store.flush().unwrap();
    assert_eq!(store.missing(), 2);
    put(&mut store, 3);
    be_there(&[three], false);
    let error = store.flush().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable);
    assert!(error.to_string().starts_with("2 servers are available, and 3 are needed"), "{error}");
    // A server that comes back and gets the writes it missed makes three.
    be_there(&[one], true);
    wait_until_missing(&mut store, 2);
    store.flush().unwrap();
    assert_eq!(candidates(&mut open(&servers, 1)), [3]);
}

/// A request that differs for each `number`.
fn request(number: u64) -> ShareRequest {
    ShareRequest::RollBack { evictions: number }
}

/// The answer of the test servers to request `number`.
fn computed(number: u64) -> Vec<u8> {
    [&request(number).encode()[..], b" computed"].concat()
}

#[test]
fn all_are_asked_at_once_and_each_answer_is_in_its_place() {
    let servers = servers::<3>();
    let mut store = create(&servers, 1);
    let bytes = |answered: Option<_>| -> Vec<u8> { Result::unwrap(answered.unwrap()) };
    servers[1].plan(|n, _| if n == 0 { ServerAction::CutAnswer } else { ServerAction::Serve });
    let shared = &mut store;
    let mut answered =
        shared.ask(0, vec![Some(request(1)), Some(request(2)), None], Patience::Short);
    assert!(answered.pop().unwrap().is_none());
    assert_eq!(bytes(answered.pop().unwrap()), computed(2));
    assert_eq!(bytes(answered.pop().unwrap()), computed(1));
    // A server that refuses does not delay the others, and can be asked again.
    servers[0].plan(|n, request| match request {
        Request::Compute { .. } if n == 0 => ServerAction::Refuse(FailureKind::Refused),
        _ => ServerAction::Serve,
    });
    let mut answered =
        shared.ask(0, vec![Some(request(3)), None, Some(request(4))], Patience::Short);
    assert_eq!(bytes(answered.pop().unwrap()), computed(4));
    let refused = answered.swap_remove(0).unwrap().unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Refused);
    // The caller adds the name of the server to the error.
    assert!(!refused.to_string().contains("server 1 (host1:1)"), "{refused}");
    let mut answered = shared.ask(0, vec![Some(request(5)), None, None], Patience::Short);
    assert_eq!(bytes(answered.swap_remove(0)), computed(5));
    assert_eq!((shared.count(), shared.name(2)), (3, "server 3 (host3:1)".into()));
    assert_eq!(shared.key(2), [3; 32]);
}

/// The client waits for a server that reports that it is working. It treats a silent server as
/// lost, and a server that reports work without a computation as lying.
#[test]
fn a_working_server_reports_that_it_works() {
    let servers = servers::<3>();
    let within = Duration::from_millis(400);
    let options = options().with_answer_within(within);
    let mut store = SharedStore::create(reached(&servers), &shapes(), 1, options).unwrap();
    let mut dials_for = |server: &Server, action: fn() -> ServerAction| {
        let dials = server.world().dials;
        server.plan(move |n, _| if n == 0 { action() } else { ServerAction::Serve });
        let shared = &mut store;
        let answered =
            shared.ask(0, vec![Some(request(1)), None, None], Patience::Long).swap_remove(0);
        assert_eq!(answered.unwrap().unwrap(), computed(1));
        server.world().dials - dials
    };
    assert_eq!(dials_for(&servers[0], || ServerAction::Work(6, Duration::from_millis(200))), 0);
    assert_eq!(dials_for(&servers[0], || ServerAction::Wait(Duration::from_millis(1000))), 1);
    servers[0].plan(|_, _| ServerAction::Work(1, Duration::ZERO));
    assert!(write(&mut store, 1).is_err());
}

/// A server that reports work for ever does not block the client for longer than an honest server
/// would. The time limit is short for ordinary requests, and long for slow ones.
#[test]
fn a_server_that_works_forever_times_out() {
    let servers = servers::<3>();
    let options = options()
        .with_works_within(Duration::from_millis(100))
        .with_works_long_within(Duration::from_secs(60))
        // The client does not retry on another link.
        .with_retry_for(Duration::from_secs(60));
    let mut store = SharedStore::create(reached(&servers), &shapes(), 1, options).unwrap();
    let mut ask = |times, patience| {
        servers[0].plan(move |n, _| match n {
            0 => ServerAction::Work(times, Duration::from_millis(10)),
            _ => ServerAction::Serve,
        });
        let asked = vec![Some(request(1)), None, None];
        store.ask(0, asked, patience).swap_remove(0).unwrap()
    };
    assert_eq!(ask(30, Patience::Long).unwrap(), computed(1));
    // The time limit of a later request starts with that request.
    assert_eq!(ask(3, Patience::Short).unwrap(), computed(1));
    assert_eq!(ask(3, Patience::Short).unwrap(), computed(1));
    let in_time = MonotonicTime::now().after(Duration::from_secs(5));
    let error = ask(500, Patience::Short).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable);
    assert!(error.to_string().contains("has been working on its answer"), "{error}");
    assert!(in_time.left().is_some());
    assert_eq!((store.missing(), servers[0].world().dials), (1, 1));
}

/// The client reconnects to a missing server rarely while other servers answer, and often while a
/// caller waits for the missing server.
#[test]
fn a_missing_server_is_called_rarely_unless_a_caller_waits_for_it() {
    let servers = servers::<5>();
    let mut store = create(&servers, 1);
    servers[3].world().is_unreachable = true;
    servers[3].plan(|_, _| ServerAction::Cut);
    write(&mut store, 1).unwrap();
    assert_eq!(store.missing(), 1);
    let dials = || servers[3].world().dials;
    let (before, until) = (dials(), MonotonicTime::now().after(Duration::from_millis(800)));
    while until.left().is_some() {
        assert_eq!(read(&mut store), Ok(1));
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(dials(), before);
    servers[3].world().is_unreachable = false;
    servers[3].plan(|_, _| ServerAction::Serve);
    let until = MonotonicTime::now().after(Duration::from_secs(2));
    while store.missing() > 0 && until.left().is_some() {
        store.begin_retries();
        store.wait_for_missing();
    }
    assert_eq!(store.missing(), 0);
}

#[test]
fn two_of_five_may_be_missing_and_come_back() {
    let servers = servers::<5>();
    write(&mut create(&servers, 1), 1).unwrap();
    let be_there = |which: &[usize], is_there: bool| {
        which.iter().for_each(|i| servers[*i].world().is_unreachable = !is_there);
    };
    be_there(&[1, 4], false);
    let (mut store, condition) =
        SharedStore::open(reached(&servers), RemoteMode::Write, 1, quick()).unwrap();
    assert_eq!(store.missing(), 2);
    // Requests to the missing servers report this; the condition of the volume does not.
    assert!(!condition.damage.iter().any(|it| it.contains("is missing")), "{condition:?}");
    assert_eq!(read(&mut store), Ok(1));
    write(&mut store, 2).unwrap();
    let mut answered = store.ask(0, vec![Some(ShareRequest::Epoch); 5], Patience::Short);
    let error = answered.swap_remove(1).unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable);
    assert!(error.to_string().starts_with("it is missing: "), "{error}");
    assert!(answered[0].as_ref().unwrap().is_ok());
    // A third missing server is too many. The client waits for it only once.
    be_there(&[0], false);
    servers[0].plan(|_, _| ServerAction::Cut);
    assert_eq!(write(&mut store, 3), Err(StoreErrorKind::Unreachable));
    assert_eq!(store.missing(), 3);
    let dials = servers[0].world().dials;
    (0..10).for_each(|_| drop(store.ask(0, vec![Some(ShareRequest::Epoch); 5], Patience::Short)));
    assert_eq!(servers[0].world().dials, dials);
    drop(store);
    be_there(&[0, 1, 4], true);
    servers[0].plan(|_, _| ServerAction::Serve);
    // Older records of servers that were missing are outvoted.
    be_there(&[2], false);
    let mut store = open(&servers, 1);
    write(&mut store, 4).unwrap();
    be_there(&[2], true);
    for _ in 0..1000 {
        assert_eq!(read(&mut store), Ok(4));
        if store.missing() == 0 {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the server is still missing");
}

#[test]
fn three_of_three_servers_are_needed() {
    let servers = servers::<3>();
    write(&mut create(&servers, 1), 1).unwrap();
    servers[2].world().is_unreachable = true;
    let error = SharedStore::open(reached(&servers), RemoteMode::Write, 1, quick()).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::Unreachable);
    assert!(error.to_string().starts_with("server 3 (host3:1): "), "{error}");
    assert!(error.to_string().ends_with("3 of 3 servers must be available"), "{error}");
}

#[test]
fn servers_that_are_missing_for_the_same_reason_share_it_in_messages() {
    let servers = servers::<5>();
    let mut store = create(&servers, 1);
    let [_, _, three, four, five] = &servers;
    be_there(&[three, four, five], false);
    let in_use = try_write(&mut store, 1).unwrap_err().to_string();
    drop(store);
    let open = SharedStore::open(reached(&servers), RemoteMode::Write, 1, quick());
    let repair = SharedStore::open_to_repair(reached(&servers), 0, RemoteMode::Write, 1, quick());
    let of_missing =
        SharedStore::open_to_repair(reached(&servers), 2, RemoteMode::Look, 1, quick());
    let name = crate::server::NAME;
    let new = [(); 5].map(|()| Server::new());
    be_there(&[&new[2], &new[3], &new[4]], false);
    let missing = "server 3 (host3:1), server 4 (host4:1), server 5 (host5:1): ";
    for (message, expected) in [
        (in_use, "2 servers are available, and 3 are needed. Missing: "),
        (open.err().unwrap().to_string(), ""),
        (repair.err().unwrap().to_string(), ""),
        (of_missing.err().unwrap().to_string(), ""),
        (SharedStore::look(&reached(&servers), name).unwrap_err().to_string(), ""),
        (SharedStore::remnants(&reached(&servers), &quick()).err().unwrap().to_string(), ""),
        (SharedStore::remove(&reached(&servers), name).unwrap_err().to_string(), ""),
        (
            SharedStore::create(reached(&servers), &shapes(), 1, quick())
                .err()
                .unwrap()
                .to_string(),
            "",
        ),
    ] {
        assert!(message.starts_with(&format!("{expected}{missing}")), "{message}");
        assert_eq!(message.matches("connection refused").count(), 1, "{message}");
    }
}

/// If several servers refuse, the reported error is the first one that others can verify. An
/// unknown version is known only from the server itself, so any other refusal is reported instead.
#[test]
fn the_first_refusal_with_a_verifiable_reason_counts() {
    use FailureKind::{Damaged, Refused, UnknownVersion};
    let servers = servers::<5>();
    write(&mut create(&servers, 2), 1).unwrap();
    let opened = |kinds: [Option<FailureKind>; 5]| {
        for (server, kind) in servers.iter().zip(kinds) {
            server.plan(move |_, request| match (request, kind) {
                (Request::Open { .. }, Some(kind)) => ServerAction::Refuse(kind),
                _ => ServerAction::Serve,
            });
        }
        let opened = SharedStore::open(reached(&servers), RemoteMode::Write, 2, quick());
        let error = opened.err().unwrap();
        (error.kind(), error.to_string()[..8].to_owned())
    };
    let (version, damaged, refused) = (Some(UnknownVersion), Some(Damaged), Some(Refused));
    for (kinds, kind, named) in [
        ([None, version, damaged, refused, None], OpenErrorKind::Damaged, "server 3"),
        ([None, damaged, version, refused, None], OpenErrorKind::Damaged, "server 2"),
        ([refused, version, damaged, None, None], OpenErrorKind::Io, "server 1"),
        ([None, version, None, None, None], OpenErrorKind::UnknownVersion, "server 2"),
    ] {
        assert_eq!(opened(kinds), (kind, named.to_owned()), "{kinds:?}");
    }
}

/// A damaged volume opens on *t* + 1 servers, because the other servers may be unreachable or may
/// have lost it. It does not open on fewer.
#[test]
fn what_is_left_on_enough_servers_is_opened() {
    let left = |servers: &[Server]| {
        SharedStore::open_damaged(reached(servers), RemoteMode::Write, 1, quick())
    };
    let servers = servers::<3>();
    write(&mut create(&servers, 1), 1).unwrap();
    servers[2].world().is_unreachable = true;
    let (mut store, _) = left(&servers).unwrap();
    assert_eq!((read(&mut store), store.missing()), (Ok(1), 1));
    let mut answered = store.ask(0, vec![Some(ShareRequest::Epoch); 3], Patience::Short);
    assert!(answered.pop().flatten().unwrap().is_err());
    assert!(answered.into_iter().all(|answered| answered.unwrap().is_ok()));
    drop(store);
    servers[2].world().is_unreachable = false;
    oblivio_store::RemoteStore::remove(servers[2].connector(), crate::server::NAME).unwrap();
    assert_eq!(read(&mut left(&servers).unwrap().0), Ok(1));
    let gone = SharedStore::open(reached(&servers), RemoteMode::Write, 1, quick()).err().unwrap();
    assert_eq!(gone.kind(), OpenErrorKind::Missing);
    assert!(gone.to_string().contains("oblivio shares repair"), "{gone}");
    let remnants = SharedStore::remnants(&reached(&servers), &quick()).unwrap();
    assert_eq!(
        (remnants.stores.len(), &remnants.absent[..]),
        (2, &["server 3 (host3:1)".to_owned()][..])
    );
    drop(remnants);
    servers[1].world().is_unreachable = true;
    let too_few = left(&servers).err().unwrap().to_string();
    assert!(too_few.ends_with("2 of 3 servers must be available"), "{too_few}");
}

/// The client waits for several lost servers at the same time: the time limits of reconnecting run
/// in parallel.
#[test]
fn lost_servers_are_waited_for_together() {
    let retry_for = Duration::from_millis(600);
    let acts: [fn(&mut SharedStore); 3] = [
        |store| assert_eq!(write(store, 1), Err(StoreErrorKind::Unreachable)),
        |store| assert_eq!(read(store), Err(StoreErrorKind::Unreachable)),
        |store| {
            let servers = &mut *store;
            let answered = servers.ask(0, vec![Some(ShareRequest::Epoch); 5], Patience::Short);
            assert!(answered.iter().all(|answered| answered.as_ref().unwrap().is_err()));
        },
    ];
    for act in acts {
        let servers = servers::<5>();
        let options = options().with_retry_for(retry_for);
        let mut store = SharedStore::create(reached(&servers), &shapes(), 2, options).unwrap();
        for server in &servers {
            server.world().is_unreachable = true;
            server.plan(|_, _| ServerAction::Cut);
        }
        let [least, most] = [1, 2].map(|times| MonotonicTime::now().after(times * retry_for));
        act(&mut store);
        assert!(least.left().is_none() && most.left().is_some());
        assert_eq!(store.missing(), 5);
    }
}

#[test]
fn the_wait_for_links_has_the_same_limit_as_for_servers() {
    let servers = servers::<3>();
    let options = options().with_retry_for(Duration::from_millis(200));
    let mut store = SharedStore::create(reached(&servers), &shapes(), 1, options).unwrap();
    let servers = &mut store;
    for _ in 0..2 {
        let until = MonotonicTime::now().after(Duration::from_millis(200));
        servers.begin_retries();
        let waited = (1..).take_while(|failed| servers.wait_for_links(*failed)).count();
        assert!((2..5).contains(&waited) && until.left().is_none());
    }
}

#[test]
fn opening_a_volume_fences_off_its_previous_client() {
    let servers = servers::<3>();
    let mut old = create(&servers, 1);
    write(&mut old, 1).unwrap();
    let mut new = open(&servers, 1);
    write(&mut new, 2).unwrap();
    assert_eq!(write(&mut old, 3), Err(StoreErrorKind::Fenced));
    assert_eq!(read(&mut old), Err(StoreErrorKind::Fenced));
    let answered = old.ask(0, vec![Some(ShareRequest::Epoch), None, None], Patience::Short);
    let error = answered.into_iter().next().flatten().unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Fenced);
    assert_eq!(read(&mut new), Ok(2));
}

#[test]
fn a_failed_creation_leaves_nothing_on_any_server() {
    let servers = servers::<3>();
    drop(oblivio_store::RemoteStore::create(servers[1].connector(), &shapes(), quick()).unwrap());
    let error = SharedStore::create(reached(&servers), &shapes(), 1, quick()).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::Exists);
    assert!(error.to_string().starts_with("server 2 (host2:1): "), "{error}");
    let found = |servers: &[Server]| SharedStore::look(&reached(servers), crate::server::NAME);
    assert_eq!(found(&servers).unwrap().as_deref(), Some("server 2 (host2:1)"));
    assert_eq!(found(&servers[2..]).unwrap(), None);
    SharedStore::remove(&reached(&servers), crate::server::NAME).unwrap();
    assert_eq!(found(&servers).unwrap(), None);
    let none = SharedStore::remove(&reached(&servers), crate::server::NAME).unwrap_err();
    assert_eq!(none.kind(), OpenErrorKind::Missing);
    // One server reports other trees.
    drop(create(&servers, 1));
    servers[2].world().disguise = Some(|opened| {
        let shapes = [&opened.shapes[..], &opened.shapes].concat();
        Opened { shapes, ..opened }
    });
    let error = SharedStore::open(reached(&servers), RemoteMode::Write, 1, quick()).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::WrongMembers);
    assert!(error.to_string().starts_with("server 3 (host3:1) has other trees"), "{error}");
    for (count, colluding) in [(2, 0), (3, 2), (3, 3)] {
        let few = reached(&servers[..count]);
        let refused = SharedStore::open(few, RemoteMode::Write, colluding, quick()).err().unwrap();
        assert_eq!(refused.kind(), OpenErrorKind::WrongMembers);
    }
}

/// If too few servers answer a read, it fails, and does not return the value of servers that were
/// missing. Servers 1 and 2 were missing and have an old value. Links to the others are lost during
/// the read.
#[test]
fn a_record_that_too_few_servers_answer_is_not_the_value_of_those_that_were_away() {
    let servers = servers::<5>();
    write(&mut create(&servers, 1), 1).unwrap();
    let [one, two, three, four, five] = &servers;
    be_there(&[one, two], false);
    write(&mut open(&servers, 1), 2).unwrap();
    be_there(&[one, two], true);
    let mut store = open(&servers, 1);
    be_there(&[three, four, five], false);
    assert_eq!(read(&mut store), Err(StoreErrorKind::Unreachable));
    drop(store);
    be_there(&[three, four, five], true);
    assert_eq!(candidates(&mut open(&servers, 1)), [1, 2]);
}
