//! The processor time that a get costs the client.
//!
//! ```sh
//! cargo test --release -p oblivio-store --test objects -- --ignored --nocapture cost
//! ```

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "it measures time")]

use std::collections::VecDeque;
use std::fs;
use std::time::{Duration, Instant};

use oblivio_store::objects::{Answer, ObjectName, Objects, S3Objects, S3Options};
use oblivio_store::{CloudLocation, CloudService};

use crate::contract;
use crate::s3_server::{Action, BUCKET, S3Server};
use crate::s3_tls::server_with_tls;

const GETS: usize = 20_000;
const IN_FLIGHT: usize = 100;
const BYTES: u64 = 20_480;
const DELAY: Duration = Duration::from_millis(30);

/// Prints gets per second with and without TLS, and the processor time of the client's two threads
/// per get. The server runs in other threads of this process.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_get() {
    let folder = tempfile::tempdir().unwrap();
    for (tls, round) in [(false, 1), (true, 1), (false, 2), (true, 2), (false, 3), (true, 3)] {
        let (server, location) = if tls {
            let (server, certificate) = server_with_tls();
            let ca = folder.path().join("ca.pem");
            fs::write(&ca, certificate).unwrap();
            let rest = format!(
                "{BUCKET}/some/prefix?endpoint=https://localhost:{}&credentials={}&ca={}",
                server.address.port(),
                server.credentials().display(),
                ca.display()
            );
            let location = CloudLocation::parse(CloudService::S3, rest.as_bytes()).unwrap();
            (server, location)
        } else {
            let server = S3Server::start();
            let location = server.location();
            (server, location)
        };
        let mut objects = S3Objects::open(&location, &S3Options::default()).unwrap();
        let name = ObjectName::Chunk { session: 1, stream: 1, number: 1 };
        let chunk = vec![7; 1 << 20];
        assert_eq!(contract::create(&mut objects, name, &[&chunk]), Answer::Created);
        server.plan(|_, _| Action::Delay(DELAY));

        let mut waiting = VecDeque::new();
        let places = chunk.len() as u64 / BYTES;
        let (begun, before) = (Instant::now(), processor_time());
        for get in 0..GETS as u64 + IN_FLIGHT as u64 {
            if get < GETS as u64 {
                let start = get % places * BYTES;
                waiting.push_back(objects.begin_get(name, start..start + BYTES));
            }
            if get >= IN_FLIGHT as u64 {
                let answer = objects.wait(waiting.pop_front().unwrap()).unwrap();
                assert!(matches!(answer, Answer::Bytes(bytes) if bytes.len() as u64 == BYTES));
            }
        }
        let (took, used) = (begun.elapsed(), processor_time() - before);
        let counted = objects.counts().totals();
        println!(
            "TLS {tls}, round {round}: {:.0} gets/s, {:.1} us of processor a get, {} hedges",
            GETS as f64 / took.as_secs_f64(),
            used.as_secs_f64() * 1e6 / GETS as f64,
            counted.hedges
        );
    }
}

/// The processor time of this thread and of the thread `objects`.
fn processor_time() -> Duration {
    let of_task = |folder: &std::path::Path| {
        let times = fs::read_to_string(folder.join("schedstat")).unwrap();
        times.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let mut nanoseconds = of_task(std::path::Path::new("/proc/thread-self"));
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let folder = task.unwrap().path();
        if fs::read_to_string(folder.join("comm")).unwrap().trim() == "objects" {
            nanoseconds += of_task(&folder);
        }
    }
    Duration::from_nanos(nanoseconds)
}
