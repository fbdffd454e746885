//! Sends requests to a disk, many at once.

use std::sync::mpsc;
use std::time::Duration;

use oblivio_volume::device::{BlockDevice, DiskError, DiskOp, Request, WipedBytes, call};

use super::latency::Latencies;
use super::load::Load;
use crate::clock::Stopwatch;

/// The number of requests served under a load, and their times.
pub(super) struct Outcome {
    pub(super) requests: u64,
    pub(super) latencies: Latencies,
}

/// Sends requests, at most `queue_depth` at once, until the load is over, or `should_continue`
/// returns false for the finished fraction of the load. A flush at the end belongs to the load,
/// because it writes back what the load left in the cache.
pub(super) fn drive(
    disk: &dyn BlockDevice,
    load: &Load,
    queue_depth: usize,
    should_continue: &mut dyn FnMut(f64) -> bool,
) -> Result<Outcome, DiskError> {
    let clock = Stopwatch::start();
    let (sender, answers) = mpsc::sync_channel(queue_depth);
    let mut requests = load.requests();
    let mut latencies = Latencies::new();
    let mut in_flight = 0;
    let mut is_over = false;
    loop {
        while !is_over && in_flight < queue_depth {
            let Some(op) = requests.next() else { break };
            disk.submit(timed(op, sender.clone()));
            in_flight += 1;
        }
        if in_flight == 0 {
            break;
        }
        // The channel stays open: this function holds a sender.
        let Ok(answer) = answers.recv() else { break };
        latencies.add(answer?);
        in_flight -= 1;
        let part = part_done(load, latencies.count(), clock.elapsed());
        is_over = is_over || part >= 1.0 || !should_continue(part);
    }
    call(disk, DiskOp::Flush)?;
    Ok(Outcome { requests: latencies.count(), latencies })
}

/// Creates a request that sends its latency, or its error, to `sender` when it is answered.
fn timed(op: DiskOp, sender: mpsc::SyncSender<Result<Duration, DiskError>>) -> Request {
    let clock = Stopwatch::start();
    let done = Box::new(move |answer: Result<WipedBytes, DiskError>| {
        // The channel has room for every answer, unless an error has ended the loop.
        let _ = sender.try_send(answer.map(|_| clock.elapsed()));
    });
    Request { op, done }
}

fn part_done(load: &Load, requests: u64, elapsed: Duration) -> f64 {
    let of_time = load.time_max.map_or(0.0, |max| elapsed.as_secs_f64() / max.as_secs_f64());
    let of_requests = load.requests_max.map_or(0.0, |max| requests as f64 / max as f64);
    f64::max(of_time, of_requests)
}
