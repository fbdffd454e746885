//! Measures the costs of real servers apart from computing and files: a request without work, and
//! bytes between sockets.

use std::thread;

use oblivio_core::BucketId;
use oblivio_shares::message::{Answer, HostEpoch, Request, Slots};
use oblivio_shares::servers::{Patience, ShareServers};
use oblivio_shares::tree::Tree;
use serde::{Deserialize, Serialize};

use super::Clocks;
use super::files::Files;
use super::metered::Metered;
use super::place::{Deployment, Disk};
use super::rates::Rates;
use super::spread::Spread;
use super::work::Work;
use crate::LabError;
use oblivio_models::link::Link;

/// The measured costs of the servers and their connections. They are measured with the servers of
/// the first tree, before the points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Testbed {
    /// The median seconds of a request to all servers that needs no computing.
    pub question_seconds: f64,
    /// Processor seconds of a request that needs no computing, over all participants.
    #[serde(default)]
    pub question_worked: f64,
    /// Bytes per second in the answers of all servers together, through TLS and sockets.
    pub bytes_per_second: f64,
    /// Processor seconds per byte of an answer, over client and server.
    #[serde(default)]
    pub byte_worked: f64,
    /// Number of processors that the client and all servers share.
    pub processors: f64,
}

const QUESTIONS: usize = 60;
const FETCHES: usize = 40;

impl Testbed {
    /// Measures the servers of a new tree.
    pub(super) fn measure(
        servers: &mut Metered,
        (tree, slot_bytes): (Tree, usize),
        clocks: &Clocks,
    ) -> Result<Self, LabError> {
        let count = servers.count();
        // Returns the median seconds and the mean processor seconds of a request, and the last
        // answer.
        let mut asked = |request: &Request, times: usize| {
            servers.take();
            let mut last = None;
            let start = (clocks.processors)();
            for _ in 0..times {
                let requests = vec![Some(request.clone()); count];
                let answered = servers.ask(0, requests, Patience::Short);
                for answered in answered.into_iter().flatten() {
                    last = Some(answered.map_err(oblivio_core::Error::from)?);
                }
            }
            let worked = (clocks.processors)().saturating_sub(start).as_secs_f64();
            let seconds =
                Spread::from_values(servers.take().iter().map(|asked| asked.seconds)).median;
            let last = last.and_then(|answered| Answer::decode(&answered).ok());
            Ok::<_, LabError>(([seconds, worked / times as f64], last))
        };
        let ([question_seconds, question_worked], answered) = asked(&Request::Epoch, QUESTIONS)?;
        let Some(Answer::Epoch(HostEpoch { at, .. })) = answered else {
            return Err(unexpected(answered));
        };
        let leaf = BucketId::new(tree.height(), 0);
        let slots = Slots { bucket: leaf, first: 0, count: 1 };
        let ([fetched_seconds, fetched_worked], answered) =
            asked(&Request::Fetch { at, slots }, FETCHES)?;
        match answered {
            Some(Answer::Share(share)) if share.len() == slot_bytes => (),
            other => return Err(unexpected(other)),
        }
        let bytes = (count * slot_bytes) as f64;
        Ok(Self {
            question_seconds,
            question_worked,
            bytes_per_second: bytes / (fetched_seconds - question_seconds).max(1e-6),
            byte_worked: (fetched_worked - question_worked).max(0.0) / bytes,
            processors: thread::available_parallelism().map_or(1.0, |count| count.get() as f64),
        })
    }

    /// A deployment of `servers` servers on this machine, with the measured times of `files`. The
    /// client connects to them directly, or over the link `behind`.
    pub(super) fn place(&self, behind: Option<Link>, servers: u8, files: &Files) -> Deployment {
        let processors = self.processors / f64::from(servers);
        let megabits = self.bytes_per_second * 8.0 / 1e6;
        let question_millis = self.question_seconds * 1e3;
        let link = match behind {
            None => Link::new(megabits, megabits, question_millis),
            Some(link) => {
                Link { round_trip_millis: link.round_trip_millis + question_millis, ..link }
            }
        };
        // All servers send at the same time, and share the processors.
        let each = processors / self.byte_worked.max(1e-12) * 8.0 / 1e6;
        let waited = files.written_byte_waited * f64::from(servers) / crate::links::SERVERS;
        Deployment {
            link,
            between: Link::new(each, each, question_millis),
            disk: Disk {
                name: "files here".to_owned(),
                read_byte_seconds: files.read_byte_worked / processors,
                written_byte_seconds: files.written_byte_worked / processors + waited,
                sync_seconds: files.sync_seconds,
            },
            processors,
        }
    }

    /// Processor seconds of the client and all servers together. Divided by the number of
    /// processors, they are a lower bound on the time.
    pub(super) fn worked(&self, work: &Work, rates: &Rates, servers: u8, files: &Files) -> f64 {
        let [client, server] = work.computed(rates);
        let servers = f64::from(servers);
        let of_files = work.disk_read_bytes * files.read_byte_worked
            + work.disk_written_bytes * files.written_byte_worked;
        let sent_bytes = work.down_bytes + work.up_bytes + servers * work.between_bytes;
        client
            + servers * (server + of_files)
            + sent_bytes * self.byte_worked
            + work.trips * self.question_worked
    }
}

/// The error for an unexpected answer, which would make the measurement meaningless.
fn unexpected(answered: Option<Answer>) -> LabError {
    let reason = match answered {
        Some(Answer::Refused(refusal)) => refusal.why,
        _ => "it gave another answer".to_owned(),
    };
    LabError::Plan(format!("a server of the new tree did not list its blocks: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::machine;
    use super::*;

    fn ground() -> Testbed {
        Testbed {
            question_seconds: 1e-3,
            question_worked: 2e-3,
            bytes_per_second: 1e9,
            byte_worked: 1e-9,
            processors: 2.0,
        }
    }

    /// For work that only needs processors, the modelled time is the processor time divided by the
    /// number of processors.
    #[test]
    fn work_without_waiting_takes_its_processor_time() {
        let files = Files {
            piece_bytes: 1000,
            read_byte_worked: 2e-10,
            written_byte_worked: 1e-9,
            written_byte_waited: 0.0,
            sync_seconds: 0.0,
        };
        let work = Work {
            between_bytes: 1e8,
            disk_read_bytes: 3e8,
            disk_written_bytes: 2e8,
            multiplied: 3e9,
            dealt: 1e8,
            reduced: 1e8,
            drawn: 1e8,
            ..Work::default()
        };
        let rates = machine().bytes;
        for servers in [3, 5, 7] {
            let seconds = ground().place(None, servers, &files).parts(&work, &rates).seconds();
            let worked = ground().worked(&work, &rates, servers, &files);
            assert!((worked / 2.0 - seconds).abs() < 1e-9, "{worked} {seconds}");
            // One processor instead of two.
            let one = Testbed { processors: 1.0, ..ground() };
            let alone = one.place(None, servers, &files).parts(&work, &rates).seconds();
            assert!((alone / seconds - 2.0).abs() < 1e-9, "{alone} {seconds}");
        }
        // More servers wait for the same disk.
        let waiting = Files { written_byte_waited: 1e-9, ..files };
        let waited =
            |servers, files| ground().place(None, servers, files).parts(&work, &rates).disk;
        assert!((waited(3, &waiting) - waited(3, &files) - 0.2).abs() < 1e-9);
        assert!((waited(6, &waiting) - waited(6, &files) - 0.4).abs() < 1e-9);
    }
}
