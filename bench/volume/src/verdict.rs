//! The targets of the measurement, and which of them are met.

use crate::growth::Creation;
use crate::links::{LINKS, Linked, ON_FILE, OVER_TLS, link_name};
use crate::load::{FLUSHED_WRITE, Load, RANDOM_READ, RANDOM_WRITE, SEQUENTIAL_READ};
use crate::rounds::{BenchPlan, Measured};

/// Minimum requests per second of a volume of 1 GiB under each load. For sequential reads, the
/// minimum equals 80 MB/s.
const REQUESTS_PER_SECOND_MIN: [(Load, f64); 4] = [
    (RANDOM_READ, 16_000.0),
    (RANDOM_WRITE, 14_000.0),
    (FLUSHED_WRITE, 2500.0),
    (SEQUENTIAL_READ, 76.3),
];

/// Minimum requests per second of a volume, as a multiple of those of oramfs under the same load.
const TIMES_ORAMFS_MIN: f64 = 20.0;

/// Minimum speed of a volume with ranges as a multiple of the speed of a volume without ranges,
/// under each load. The bounds are for a medium without seeks.
const TIMES_OF_BLOCKS_MIN: [(Load, f64); 2] = [(SEQUENTIAL_READ, 1.0), (RANDOM_READ, 0.5)];

/// Maximum time to create a volume of any size.
const CREATION_SECONDS_MAX: f64 = 1.0;

/// One target and its measured value.
pub struct Target {
    pub name: String,
    pub value: f64,
    pub wanted: String,
    pub is_met: bool,
}

/// Minimum speed of a volume on a server over TLS relative to one on a file.
const TIMES_OF_FILE_MIN: f64 = 0.5;

/// Minimum fraction of a link's capacity that a volume uses with 16 requests in flight.
const PART_OF_LINK_MIN: f64 = 0.8;

/// Compares the measured figures with the targets. Leaves out targets whose figures were not
/// measured.
pub fn judge(
    measured: &[Measured],
    created: &[Creation],
    links: &[Linked],
    plan: &BenchPlan,
) -> Vec<Target> {
    let median = |name: &str, load: &Load| {
        let subject = measured.iter().find(|subject| subject.description.name == name)?;
        let rounds = subject.loads.iter().find(|rounds| rounds.load == *load)?;
        Some(rounds.requests_per_second().median)
    };
    let mut targets = Vec::new();
    for (load, min) in REQUESTS_PER_SECOND_MIN {
        let Some(ours) = median("oblivio nbd", &load) else { continue };
        targets.push(at_least(
            format!("{}, requests/s on {} MiB", load.name, plan.disk_bytes >> 20),
            ours,
            min,
        ));
        // Flushes of oramfs do not make data durable.
        if let Some(theirs) = median("oramfs", &load).filter(|_| !load.flushes) {
            targets.push(at_least(
                format!("{}, times oramfs", load.name),
                ours / theirs,
                TIMES_ORAMFS_MIN,
            ));
        }
    }
    for (load, min) in TIMES_OF_BLOCKS_MIN {
        let of = |name| median(name, &load);
        if let (Some(blocks), Some(ranges)) = (of("oblivio nbd"), of("oblivio nbd, ranges")) {
            let name = format!("{}, ranges, times a volume of blocks", load.name);
            targets.push(at_least(name, ranges / blocks, min));
        }
    }
    targets.extend(of_links(links));
    targets.extend(created.iter().map(|creation| {
        let seconds = creation.time.as_secs_f64();
        Target {
            name: format!("making a volume of {} GiB, seconds", creation.disk_bytes >> 30),
            value: seconds,
            wanted: format!("at most {CREATION_SECONDS_MAX}"),
            is_met: seconds <= CREATION_SECONDS_MAX,
        }
    }));
    targets
}

fn of_links(links: &[Linked]) -> Vec<Target> {
    let find = |name: &str| links.iter().find(|linked| linked.name == name);
    let mut targets = Vec::new();
    if let (Some(file), Some(server)) = (find(ON_FILE), find(OVER_TLS)) {
        for (on_file, over_tls) in file.loads.iter().zip(&server.loads) {
            let [file, tls] = [on_file, over_tls].map(|it| it.requests_per_second().median);
            let name = format!("{}, over TLS, times a file", over_tls.load.name);
            targets.push(at_least(name, tls / file, TIMES_OF_FILE_MIN));
        }
    }
    for (link, _) in &LINKS {
        let Some(linked) = find(&link_name(link)) else { continue };
        for (rounds, floor) in linked.loads.iter().zip(&linked.floors) {
            let Some(floor) = floor.filter(|_| rounds.load.depth > 1) else { continue };
            let name =
                format!("{}, behind {}, part of what it carries", rounds.load.name, link.name);
            let part = rounds.requests_per_second().median / floor;
            targets.push(at_least(name, part, PART_OF_LINK_MIN));
        }
    }
    targets
}

fn at_least(name: String, value: f64, min: f64) -> Target {
    Target { name, value, wanted: format!("at least {min}"), is_met: value >= min }
}
