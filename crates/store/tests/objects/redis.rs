//! Tests of the engine on a Redis cluster, with real servers.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use oblivio_core::StoreErrorKind;
use oblivio_store::objects::{
    Answer, ObjectName, Objects, Prefix, RedisObjects, RedisOptions, Synced,
};
use oblivio_store::{OpenErrorKind, RedisLocation};

use crate::contract;
use crate::redis_cluster::{RedisCluster, SharedCluster, SingleServer, eventually};

/// The bytes of a chunk on Redis.
const CHUNK_BYTES: usize = 256 << 10;

/// A replica that is stopped still receives what fits into the buffers of its socket. These many
/// chunks are more.
const CHUNKS_BEYOND_BUFFERS: usize = 80;

fn options() -> RedisOptions {
    let long = Duration::from_secs(30);
    RedisOptions::default().with_retry_for(long).with_retry_opening_for(long)
}

fn open(location: &RedisLocation) -> RedisObjects {
    RedisObjects::open(location, options()).unwrap()
}

fn chunk(number: usize) -> ObjectName {
    ObjectName::Chunk { session: 1, stream: 0, number: number as u64 }
}

/// The contents of an object, different for each.
fn contents(number: usize, bytes: usize) -> Bytes {
    (0..bytes).map(|i| (i * 7 + number * 31 + (i >> 8)) as u8).collect()
}

/// Creates objects, 16 at a time. Creates those whose answer is lost again.
fn create_all(objects: &mut RedisObjects, numbers: &[usize], bytes: usize) -> Vec<Answer> {
    let mut answers = Vec::new();
    for numbers in numbers.chunks(16) {
        let tickets = numbers.iter().map(|number| {
            let contents = vec![contents(*number, bytes)];
            objects.begin_create(chunk(*number), contents)
        });
        let tickets: Vec<_> = tickets.collect();
        for (number, ticket) in numbers.iter().zip(tickets) {
            let mut answer = objects.wait(ticket).unwrap();
            while answer == Answer::Unknown {
                let contents = contents(*number, bytes);
                answer = contract::create(objects, chunk(*number), &[&contents]);
            }
            answers.push(answer);
        }
    }
    answers
}

/// The numbers of the objects that are absent. All others have their contents.
fn absent(objects: &mut RedisObjects, numbers: &[usize], bytes: usize) -> Vec<usize> {
    let mut is_absent =
        |number: &usize| match contract::get(objects, chunk(*number), 0..bytes as u64) {
            Answer::Absent => true,
            answer => {
                assert!(answer == Answer::Bytes(contents(*number, bytes)), "chunk {number}");
                false
            }
        };
    numbers.iter().copied().filter(|number| is_absent(number)).collect()
}

/// The numbers of the first objects that one master has.
fn on_one_master(cluster: &RedisCluster, volume: &str, count: usize) -> (usize, Vec<usize>) {
    let key = |number| format!("{volume}:{}", chunk(number));
    let master = cluster.master_of(&key(0));
    let is_there = |number: &usize| cluster.master_of(&key(*number)) == master;
    (master, (0..).filter(is_there).take(count).collect())
}

#[test]
fn the_engine_keeps_the_contract() {
    let cluster = SharedCluster::get();
    let location = cluster.location("contract");
    contract::check(|| open(&location));
}

#[test]
fn the_engine_keeps_the_contract_without_tls() {
    let cluster = SharedCluster::get();
    let location = cluster.location_with("plain", "plain&password=PASSWORD");
    contract::check(|| open(&location));
}

#[test]
fn a_single_server_keeps_the_contract_except_durability() {
    let server = SingleServer::start();
    let refused = RedisObjects::open(&server.location, options()).map(drop).unwrap_err();
    assert_eq!(refused.kind(), OpenErrorKind::NotDurable);
    assert!(refused.to_string().contains("cluster mode is off"), "{refused}");
    contract::check(|| {
        RedisObjects::open(&server.location, options().with_weak_flush(true)).unwrap()
    });
}

#[test]
fn nothing_synced_is_lost_when_a_master_is_killed() {
    let mut cluster = SharedCluster::get();
    let location = cluster.location("killed");
    let (bytes, mut objects) = (20 << 10, open(&location));
    let (master, _) = on_one_master(&cluster, "killed", 1);
    let replica = cluster.replica_of(master);
    let (mut synced, mut unsynced) = (Vec::new(), Vec::new());
    let mut losses = 0;
    for round in 0..30 {
        let numbers: Vec<_> = (20 * round..20 * (round + 1)).collect();
        if round == 10 {
            // Some writes are acknowledged and not synced, others are in flight.
            let tickets: Vec<_> = numbers
                .iter()
                .map(|number| objects.begin_create(chunk(*number), vec![contents(*number, bytes)]))
                .collect();
            for (number, ticket) in numbers.iter().zip(tickets) {
                objects.wait(ticket).unwrap();
                if *number == numbers[9] {
                    cluster.kill(master);
                }
            }
        }
        create_all(&mut objects, &numbers, bytes);
        unsynced.extend(numbers);
        if round == 10 {
            // The new master has a replica only after this.
            cluster.wait_for_master(replica);
            cluster.start_again(master);
        }
        while objects.sync().unwrap() == Synced::MayHaveLost {
            losses += 1;
            create_all(&mut objects, &unsynced, bytes);
        }
        synced.append(&mut unsynced);
    }
    assert!(losses > 0, "a master was killed, but no sync said so");
    assert_eq!(absent(&mut open(&location), &synced, bytes), [0_usize; 0]);
}

#[test]
fn a_sync_says_that_a_replica_which_took_over_may_lack_objects() {
    let mut cluster = SharedCluster::get();
    let location = cluster.location("slow");
    let quick = options().with_retry_for(Duration::from_secs(1));
    let mut objects = RedisObjects::open(&location, quick).unwrap();
    let (master, numbers) = on_one_master(&cluster, "slow", CHUNKS_BEYOND_BUFFERS);
    let replica = cluster.replica_of(master);
    // A replica that has just joined may still write its log.
    let synced = eventually("a sync", || objects.sync().ok());
    assert_eq!(synced, Synced::Durable);
    cluster.stop(replica);
    let created = create_all(&mut objects, &numbers, CHUNK_BYTES);
    assert!(created.iter().all(|answer| *answer == Answer::Created));
    let refused = objects.sync().unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unreachable, "{refused}");
    assert!(refused.to_string().contains("0 of 1 replicas confirmed"), "{refused}");
    cluster.kill(master);
    cluster.resume(replica);
    cluster.wait_for_master(replica);
    assert_eq!(objects.sync().unwrap(), Synced::MayHaveLost);
    let lost = absent(&mut open_weakly(&location), &numbers, CHUNK_BYTES);
    assert!(!lost.is_empty(), "the replica had everything, so this test shows nothing");
    // Without a replica of the new master, nothing is durable.
    create_all(&mut objects, &numbers, CHUNK_BYTES);
    assert_eq!(objects.sync().unwrap_err().kind(), StoreErrorKind::Unreachable);
    cluster.start_again(master);
    cluster.wait_until_healthy();
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
    assert_eq!(absent(&mut open(&location), &numbers, CHUNK_BYTES), [0_usize; 0]);
}

/// Opens a cluster that has a master without a replica.
fn open_weakly(location: &RedisLocation) -> RedisObjects {
    RedisObjects::open(location, options().with_weak_flush(true)).unwrap()
}

#[test]
fn a_master_that_became_a_replica_redirects_and_may_have_lost() {
    let cluster = SharedCluster::get();
    let mut objects = open(&cluster.location("moved"));
    let (master, numbers) = on_one_master(&cluster, "moved", 40);
    let (before, after) = numbers.split_at(20);
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
    create_all(&mut objects, before, 5000);
    // The processes go on, and no link breaks.
    cluster.swap_roles(cluster.replica_of(master));
    assert_eq!(absent(&mut objects, before, 5000), [0_usize; 0]);
    assert_eq!(objects.sync().unwrap(), Synced::MayHaveLost);
    let again = create_all(&mut objects, before, 5000);
    assert!(again.iter().all(|answer| *answer == Answer::Exists));
    create_all(&mut objects, after, 5000);
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
    assert_eq!(absent(&mut objects, &numbers, 5000), [0_usize; 0]);
}

#[test]
fn a_master_that_was_a_replica_meanwhile_may_have_lost() {
    let cluster = SharedCluster::get();
    let mut objects = open(&cluster.location("back"));
    // Not the master of the test above: its peers do not replace one twice in four seconds.
    let (avoided, _) = on_one_master(&cluster, "moved", 1);
    let master_of = |number| cluster.master_of(&format!("back:{}", chunk(number)));
    let master = (0..).map(master_of).find(|master| *master != avoided).unwrap();
    let numbers: Vec<_> = (0..).filter(|it| master_of(*it) == master).take(10).collect();
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
    create_all(&mut objects, &numbers, 5000);
    // The same process with the same slots and the same links: only its history tells.
    cluster.swap_roles(cluster.replica_of(master));
    cluster.swap_roles(master);
    assert_eq!(objects.sync().unwrap(), Synced::MayHaveLost);
    create_all(&mut objects, &numbers, 5000);
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
}

#[test]
fn a_restarted_master_may_have_lost() {
    let mut cluster = SharedCluster::get();
    let mut objects = open(&cluster.location("restarted"));
    let (master, numbers) = on_one_master(&cluster, "restarted", 10);
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
    create_all(&mut objects, &numbers, 5000);
    cluster.kill(master);
    cluster.start_again(master);
    cluster.wait_until_healthy();
    assert_eq!(absent(&mut objects, &numbers, 5000), [0_usize; 0]);
    assert_eq!(objects.sync().unwrap(), Synced::MayHaveLost);
    create_all(&mut objects, &numbers, 5000);
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
}

#[test]
fn a_master_that_was_stopped_for_a_moment_has_lost_nothing() {
    let mut cluster = SharedCluster::get();
    let brief = options().with_answer_within(Duration::from_millis(300));
    let mut objects = RedisObjects::open(&cluster.location("paused"), brief).unwrap();
    let (master, numbers) = on_one_master(&cluster, "paused", 10);
    create_all(&mut objects, &numbers[..9], 5000);
    cluster.stop(master);
    let lost = objects.begin_create(chunk(numbers[9]), vec![contents(numbers[9], 5000)]);
    assert_eq!(objects.wait(lost).unwrap(), Answer::Unknown);
    cluster.resume(master);
    // Another link, but the same process with the same history.
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
    assert_eq!(absent(&mut objects, &numbers[..9], 5000), [0_usize; 0]);
}

#[test]
fn a_slot_that_moves_is_followed() {
    let cluster = SharedCluster::get();
    let mut objects = open(&cluster.location("slots"));
    let (master, numbers) = on_one_master(&cluster, "slots", 1);
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
    let key = format!("slots:{}", chunk(numbers[0]));
    let other = (0..).map(|i| format!("slots:{i}")).find(|key| cluster.master_of(key) != master);
    let target = cluster.master_of(&other.unwrap());
    let (mut from, mut to) = (cluster.nodes()[master].client(), cluster.nodes()[target].client());
    let slot = from.number(&format!("CLUSTER KEYSLOT {key}"));
    let ids = [from.text("CLUSTER MYID"), to.text("CLUSTER MYID")];
    to.ok(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[0]));
    from.ok(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[1]));
    // The object does not exist, so its master sends the client to the other one.
    assert_eq!(create_all(&mut objects, &numbers, 5000), [Answer::Created]);
    assert_eq!(absent(&mut objects, &numbers, 5000), [0_usize; 0]);
    assert_eq!(from.number(&format!("CLUSTER COUNTKEYSINSLOT {slot}")), 0);
    let mut brief = RedisObjects::open(
        &cluster.location("slots"),
        options().with_retry_for(Duration::from_millis(200)),
    )
    .unwrap();
    let refused = brief.list(Prefix::All, None).unwrap_err();
    assert!(refused.to_string().contains("slots are changing"), "{refused}");
    for client in [&mut to, &mut from] {
        client.ok(&format!("CLUSTER SETSLOT {slot} NODE {}", ids[1]));
    }
    cluster.wait_until_healthy();
    let listed = eventually("a listing", || objects.list(Prefix::All, None).ok());
    assert_eq!(listed.len(), 1);
    while objects.sync().unwrap() == Synced::MayHaveLost {
        assert_eq!(create_all(&mut objects, &numbers, 5000), [Answer::Exists]);
    }
    assert_eq!(absent(&mut open(&cluster.location("slots")), &numbers, 5000), [0_usize; 0]);
}

/// Why opening is refused.
fn refusal(location: &RedisLocation) -> (OpenErrorKind, String) {
    let brief = options().with_retry_opening_for(Duration::from_secs(1));
    let refused = RedisObjects::open(location, brief).map(drop).unwrap_err();
    (refused.kind(), refused.to_string())
}

#[test]
fn nodes_that_lose_writes_are_refused() {
    let mut cluster = SharedCluster::get();
    let location = cluster.location("refused");
    let (master, _) = on_one_master(&cluster, "refused", 1);
    let replica = cluster.replica_of(master);
    for (node, setting, expected) in [
        (master, "appendonly no", "it has appendonly no"),
        (replica, "appendfsync everysec", "it has appendfsync everysec"),
        (replica, "maxmemory-policy allkeys-lru", "it has maxmemory-policy allkeys-lru"),
    ] {
        cluster.nodes()[node].client().ok(&format!("CONFIG SET {setting}"));
        let (kind, message) = refusal(&location);
        assert_eq!(kind, OpenErrorKind::NotDurable, "{message}");
        assert!(message.contains(expected) && message.contains("&weak-flush"), "{message}");
        open_weakly(&location);
        cluster.restore();
    }
    cluster.kill(replica);
    eventually("a master without replicas", || {
        let replication = cluster.nodes()[master].client().text("INFO replication");
        replication.contains("connected_slaves:0").then_some(())
    });
    let (kind, message) = refusal(&location);
    assert_eq!(kind, OpenErrorKind::NotDurable, "{message}");
    assert!(message.contains("no connected replica"), "{message}");
}

#[test]
fn clients_that_are_not_admitted_are_told_why() {
    let cluster = SharedCluster::get();
    let wrong = cluster.write_file("wrong", "battery staple\n");
    let wrong = format!("plain&password={}", wrong.display());
    let (kind, message) = refusal(&cluster.location_with("v", &wrong));
    assert_eq!(kind, OpenErrorKind::NotAdmitted, "{message}");
    assert!(message.contains("password file"), "{message}");
    assert!(!message.contains("staple"), "{message}");
    let (kind, message) = refusal(&cluster.location_with("v", "plain"));
    assert_eq!(kind, OpenErrorKind::NotAdmitted, "{message}");
    assert!(message.contains("add &password=FILE"), "{message}");

    let user_password = cluster.write_file("user", "battery");
    for node in cluster.nodes() {
        let rule = "ACL SETUSER someone on >battery ~v:* +@all -config";
        node.client().ok(rule);
    }
    let user = format!("plain&user=someone&password={}", user_password.display());
    let (kind, message) = refusal(&cluster.location_with("v", &user));
    assert_eq!(kind, OpenErrorKind::NotDurable, "{message}");
    assert!(message.contains("does not allow CONFIG GET"), "{message}");
    assert!(message.contains("&weak-flush"), "{message}");
    let mut objects = open_weakly(&cluster.location_with("v", &user));
    assert_eq!(create_all(&mut objects, &[1, 2, 3], 10), [const { Answer::Created }; 3]);
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
    let mut other = open_weakly(&cluster.location_with("w", &user));
    let ticket = other.begin_create(chunk(1), vec![]);
    let refused = other.wait(ticket).unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Refused, "{refused}");
    assert!(refused.to_string().contains("ACL SETUSER"), "{refused}");
}

#[test]
fn certificates_are_checked() {
    let cluster = SharedCluster::get();
    if !cluster.has_tls() {
        return;
    }
    let other = cluster.write_file("x", "").with_file_name("other.pem");
    let other = format!("ca={}&password=PASSWORD", other.display());
    for parameters in [other.as_str(), "password=PASSWORD"] {
        let (kind, message) = refusal(&cluster.location_with("v", parameters));
        let expected = [OpenErrorKind::NotAdmitted, OpenErrorKind::NoCredential];
        assert!(expected.contains(&kind), "{message}");
        assert!(message.contains("certificate"), "{message}");
    }
}

#[test]
fn a_full_and_a_careful_server_say_so() {
    let cluster = SharedCluster::get();
    let (master, numbers) = on_one_master(&cluster, "full", 3);
    let brief = options().with_retry_for(Duration::from_millis(300));
    let mut objects = RedisObjects::open(&cluster.location("full"), brief).unwrap();
    create_all(&mut objects, &numbers[..1], 10);
    let mut client = cluster.nodes()[master].client();
    for (setting, kind, advice) in [
        ("maxmemory 1", StoreErrorKind::Full, "raise maxmemory"),
        ("min-replicas-to-write 2", StoreErrorKind::Unreachable, "state of the cluster"),
    ] {
        client.ok(&format!("CONFIG SET {setting}"));
        let ticket = objects.begin_create(chunk(numbers[1]), vec![contents(1, 10)]);
        let refused = objects.wait(ticket).unwrap_err();
        assert_eq!(refused.kind(), kind, "{refused}");
        assert!(refused.to_string().contains(advice), "{refused}");
        let name = chunk(numbers[1]).to_string();
        assert!(refused.to_string().contains(&name), "{refused}");
        client.ok("CONFIG SET maxmemory 0 min-replicas-to-write 0");
    }
    assert_eq!(absent(&mut objects, &numbers[..2], 10), numbers[1..2]);
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
}

#[test]
fn two_clients_share_a_cluster_under_two_names() {
    let cluster = SharedCluster::get();
    let mut volumes: BTreeMap<_, _> =
        ["one", "one.two"].into_iter().map(|name| (name, open(&cluster.location(name)))).collect();
    for (index, objects) in volumes.values_mut().enumerate() {
        let answers = create_all(objects, &[index, 7], 10);
        assert_eq!(answers, [const { Answer::Created }; 2]);
        assert_eq!(contract::create(objects, ObjectName::Head(1), &[b"x"]), Answer::Created);
        let listed = contract::list(objects, Prefix::All, None);
        let expected = [(chunk(index), 10), (chunk(7), 10), (ObjectName::Head(1), 1)];
        assert_eq!(listed, expected);
    }
    // A sync leaves marks, which are no objects.
    for objects in volumes.values_mut() {
        assert_eq!(objects.sync().unwrap(), Synced::Durable);
        assert_eq!(contract::list(objects, Prefix::All, None).len(), 3);
    }
}
