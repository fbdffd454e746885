//! A volume on a bucket server, on this machine and behind links, compared with the capacity of
//! each link.
//!
//! | subjects | compared with |
//! |---|---|
//! | a volume over TLS, on this machine | a volume of the same size on a file; TLS alone |
//! | a volume behind a link | nbdkit's memory disk behind the link; the bandwidth of the link |

use std::process::Stdio;

use crate::growth::Model;
use crate::load::{FLUSHED_WRITE, Load, RANDOM_READ, RANDOM_WRITE, SINGLE_READ};
use crate::rounds::{self, BenchPlan, Rounds, SubjectTurn};
use crate::subjects::link::Link;
use crate::subjects::oblivio::Volume;
use crate::subjects::remote::{Peer, Remote};
use crate::subjects::{Subject, Testbed};
use crate::tools::End;
use crate::wire::Wire;

/// Programs that this part needs in addition to `oblivio`.
pub const PROGRAMS: [&str; 1] = ["nbdkit"];

/// The name of the volume on a file, to which the volume over TLS is compared.
pub const ON_FILE: &str = "oblivio nbd, file";

pub const OVER_TLS: &str = "oblivio nbd, server on this machine";

/// The links, and the sizes of the disks behind them in MiB.
pub const LINKS: [(Link, u64); 2] = [
    (Link { name: "lan", down: 1000.0, up: 1000.0, delay: 1.0 }, 256),
    (Link { name: "home", down: 29.0, up: 5.0, delay: 15.0 }, 64),
];

const NEAR_LOADS: [Load; 4] = [RANDOM_READ, RANDOM_WRITE, SINGLE_READ, FLUSHED_WRITE];

/// Loads for volumes behind a link. None has flushes, because each takes a round trip.
const FAR_LOADS: [Load; 3] = [RANDOM_READ, RANDOM_WRITE, SINGLE_READ];

/// Options for a small cache, because a large one would answer most requests to a small disk.
const FAR_CACHE: [&str; 2] = ["--cache", "1M"];

/// The results of one subject.
pub struct Linked {
    pub name: String,
    pub disk_bytes: u64,
    pub loads: Vec<Rounds>,
    /// The numbers of accesses per second that TLS or the link can carry, in the order of the
    /// loads. `None` if no limit is known.
    pub floors: Vec<Option<f64>>,
    pub model: Option<Model>,
}

/// Returns the name of a volume behind a link.
pub fn link_name(link: &Link) -> String {
    format!("oblivio nbd, behind {}", link.name)
}

/// A running subject, and its results so far.
struct Started {
    subject: Box<dyn Subject>,
    linked: Linked,
    carries: Carries,
}

/// The part of the connection that limits the speed of a subject.
enum Carries {
    /// No limit is known.
    Unknown,
    Tls,
    /// A link with this number of accesses per second.
    Link(f64),
}

/// Starts all subjects, with filled volumes, and measures them under their loads in turns.
pub fn measure(plan: &BenchPlan, testbed: &Testbed, end: &End) -> Result<Vec<Linked>, String> {
    let (mut started, mut wire) = start_local(plan.disk_bytes, testbed, end)?;
    for (link, mebibytes) in &LINKS {
        started.extend(start_behind(link, mebibytes << 20, testbed, end)?);
    }
    let turns: usize = started.iter().map(|one| one.linked.loads.len()).sum();
    let progress = rounds::progress(u64::from(plan.rounds) * turns as u64);
    let turns = started.iter_mut().map(|Started { subject, linked, .. }| SubjectTurn {
        name: &linked.name,
        subject: &mut **subject,
        is_fuse: false,
        loads: &mut linked.loads,
    });
    rounds::in_turns(turns.collect(), &mut || wire.round(), plan, end, &progress)?;
    progress.finish_and_clear();
    let stopped = started.into_iter().map(|Started { mut subject, mut linked, carries }| {
        let floor = |rounds: &Rounds| match carries {
            Carries::Unknown => None,
            Carries::Tls => wire.accesses_per_second(&rounds.load),
            Carries::Link(rate) => Some(rate),
        };
        linked.floors = linked.loads.iter().map(floor).collect();
        subject.stop().map(|()| linked)
    });
    stopped.collect()
}

/// Starts the volume over TLS on this machine, and the volume on a file.
fn start_local(bytes: u64, testbed: &Testbed, end: &End) -> Result<(Vec<Started>, Wire), String> {
    let volume = Volume::create(bytes, &[], testbed, end)?.filled(testbed, end)?;
    let model = volume.model(end)?;
    let file = volume.serve_nbd(&[], Stdio::inherit(), testbed, end)?;
    let server = Remote::start(bytes, None, &[], testbed, end)?;
    let wire = Wire::prepare(&server.model)?;
    let over_tls = Some(server.model);
    let started = vec![
        Started::new(ON_FILE.into(), file, &NEAR_LOADS, Some(model), Carries::Unknown),
        Started::new(OVER_TLS.into(), server, &NEAR_LOADS, over_tls, Carries::Tls),
    ];
    Ok((started, wire))
}

/// Starts a volume behind `link`, and nbdkit's memory disk behind the same kind of link, as its
/// peer.
fn start_behind(
    link: &Link,
    bytes: u64,
    testbed: &Testbed,
    end: &End,
) -> Result<[Started; 2], String> {
    let peer = Peer::start(bytes, link, testbed, end)?;
    let options = FAR_CACHE.map(str::to_owned);
    let volume = Remote::start(bytes, Some(link), &options, testbed, end)?;
    let (model, carries) = (volume.model, Carries::Link(link.accesses_per_second(&volume.model)));
    let of_peer = format!("nbdkit memory, behind {}", link.name);
    Ok([
        Started::new(of_peer, peer, &FAR_LOADS, None, Carries::Unknown),
        Started::new(link_name(link), volume, &FAR_LOADS, Some(model), carries),
    ])
}

impl Started {
    fn new(
        name: String,
        subject: impl Subject + 'static,
        loads: &[Load],
        model: Option<Model>,
        carries: Carries,
    ) -> Self {
        let loads = loads.iter().map(|load| Rounds { load: *load, rounds: Vec::new() }).collect();
        let (disk_bytes, floors) = (subject.bytes(), Vec::new());
        let linked = Linked { name, disk_bytes, loads, floors, model };
        Self { subject: Box::new(subject), linked, carries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_direction_bounds_a_link() {
        let model = Model {
            read_bytes: 1000.0,
            written_bytes: 500.0,
            map_depth: 0,
            position_map_bytes: 0.0,
            client_bytes: 0.0,
            client_bytes_in_use_max: 0.0,
        };
        let rate = |down, up| Link { name: "", down, up, delay: 0.0 }.accesses_per_second(&model);
        assert_eq!(rate(8.0, 8.0), 1000.0);
        assert_eq!(rate(8.0, 2.0), 500.0);
    }
}
