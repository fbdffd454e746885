//! Measures the engine on a Redis cluster. Run it with
//! `cargo test --release -p oblivio-store --test objects redis_speed -- --ignored --nocapture`.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use oblivio_store::objects::{Answer, ObjectName, Objects, RedisObjects, RedisOptions, Synced};
use oblivio_wire::link::MonotonicTime;
use rustix::time::{ClockId, clock_gettime};

use crate::redis_cluster::SharedCluster;

/// The bytes of a chunk, and of a bucket in it.
const CHUNK_BYTES: usize = 256 << 10;
const BUCKET_BYTES: u64 = 20_566;

const CHUNKS: u64 = 200;
const GETS: u64 = 20_000;

fn chunk(stream: u16, number: u64) -> ObjectName {
    ObjectName::Chunk { session: 1, stream, number }
}

/// Times that have passed: of the clock, and of the processor in this process.
fn measure(work: impl FnOnce()) -> (Duration, Duration) {
    let processor = || {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
    };
    let before = (MonotonicTime::now().since_the_beginning(), processor());
    work();
    (MonotonicTime::now().since_the_beginning() - before.0, processor() - before.1)
}

/// Runs `count` requests with `in_flight` of them at once.
fn run(
    objects: &mut RedisObjects,
    count: u64,
    in_flight: usize,
    begin: impl Fn(&mut RedisObjects, u64) -> oblivio_store::objects::Ticket,
    check: impl Fn(&Answer) -> bool,
) {
    let mut tickets = VecDeque::new();
    for number in 0..count {
        if tickets.len() == in_flight {
            assert!(check(&objects.wait(tickets.pop_front().unwrap()).unwrap()));
        }
        tickets.push_back(begin(objects, number));
    }
    for ticket in tickets {
        assert!(check(&objects.wait(ticket).unwrap()));
    }
}

#[test]
#[ignore = "it measures, and shows nothing about correctness"]
fn requests_per_second() {
    let cluster = SharedCluster::get();
    let contents = Bytes::from(vec![7; CHUNK_BYTES]);
    for (name, location) in [
        (if cluster.has_tls() { "TLS" } else { "no TLS" }, cluster.location("speed")),
        ("plain", cluster.location_with("plain-speed", "plain&password=PASSWORD")),
    ] {
        let mut objects = RedisObjects::open(&location, RedisOptions::default()).unwrap();
        for (stream, in_flight) in (0..).zip([1, 16, 64, 128]) {
            let (time, processor) = measure(|| {
                let begin = |objects: &mut RedisObjects, number| {
                    objects.begin_create(chunk(stream, number), vec![contents.clone()])
                };
                run(&mut objects, CHUNKS, in_flight, begin, |it| *it == Answer::Created);
            });
            let (sync, _) = measure(|| assert_eq!(objects.sync().unwrap(), Synced::Durable));
            eprintln!(
                "{name}: creates of 256 KiB, {in_flight} in flight: {:.0}/s, processor {:.0} us, \
                 sync after that {sync:.1?}",
                CHUNKS as f64 / time.as_secs_f64(),
                processor.as_secs_f64() * 1e6 / CHUNKS as f64,
            );
        }
        for in_flight in [1, 16, 64, 128] {
            let (time, processor) = measure(|| {
                let begin = |objects: &mut RedisObjects, number: u64| {
                    let start = number % 12 * BUCKET_BYTES;
                    let name = chunk((number % 4) as u16, number * 31 % CHUNKS);
                    objects.begin_get(name, start..start + BUCKET_BYTES)
                };
                let is_whole = |answer: &Answer| match answer {
                    Answer::Bytes(bytes) => bytes.len() as u64 == BUCKET_BYTES,
                    _ => false,
                };
                run(&mut objects, GETS, in_flight, begin, is_whole);
            });
            eprintln!(
                "{name}: gets of 20 KiB, {in_flight} in flight: {:.0}/s, processor {:.0} us",
                GETS as f64 / time.as_secs_f64(),
                processor.as_secs_f64() * 1e6 / GETS as f64,
            );
        }
        let (sync, _) = measure(|| assert_eq!(objects.sync().unwrap(), Synced::Durable));
        eprintln!("{name}: sync without anything new: {sync:.1?}");
    }
}
