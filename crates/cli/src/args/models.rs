//! Command-line values: workloads and links.

use clap::ValueEnum;
use oblivio_models::link::{LINKS, Link};
use oblivio_models::workload::Workload;

/// The distribution of accessed addresses.
#[derive(Clone, Copy, ValueEnum)]
pub enum WorkloadName {
    /// All addresses in turn: the worst case.
    Scan,
    /// Uniformly distributed random addresses.
    Uniform,
    /// A few addresses often, most of them rarely.
    Zipf,
}

impl From<WorkloadName> for Workload {
    fn from(name: WorkloadName) -> Self {
        match name {
            WorkloadName::Scan => Self::Scan,
            WorkloadName::Uniform => Self::Uniform,
            WorkloadName::Zipf => Self::Zipf,
        }
    }
}

/// Help for an option that names a link: the known links, and the form of others.
pub fn link_help() -> String {
    let links = LINKS.iter().map(|named| {
        let Link { down_megabits, up_megabits, round_trip_millis } = named.link;
        format!("`{}` ({down_megabits}/{up_megabits}/{round_trip_millis})", named.name)
    });
    format!(
        "{}, or DOWN/UP/DELAY: Mbit/s from the server, Mbit/s to it, and the round-trip time in \
         milliseconds",
        links.collect::<Vec<_>>().join(", ")
    )
}
