//! Deployments: links, disks and processors, and the time of an access in a deployment.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::rates::Rates;
use super::work::Work;
use oblivio_models::link::Link;

/// A disk of a server. A time of zero means that the operation is free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// The name of the disk.
    pub name: String,
    /// Seconds to read a byte.
    pub read_byte_seconds: f64,
    /// Seconds to write a byte.
    pub written_byte_seconds: f64,
    /// Seconds until written data is durable.
    pub sync_seconds: f64,
}

impl Disk {
    /// A disk that transfers `megabytes` megabytes per second.
    pub fn with_rate(name: &str, megabytes: f64) -> Self {
        let each = 1e-6 / megabytes;
        Self {
            name: name.to_owned(),
            read_byte_seconds: each,
            written_byte_seconds: each,
            sync_seconds: 0.0,
        }
    }

    /// The paper's disk, without a cache.
    pub fn ebs() -> Self {
        Self::with_rate("160 MB/s", 160.0)
    }

    /// The local storage that the paper mentions: 400 to 500 MB/s.
    pub fn local() -> Self {
        Self::with_rate("450 MB/s", 450.0)
    }

    /// A disk that holds all data in memory.
    pub fn memory() -> Self {
        Self {
            name: "memory".to_owned(),
            read_byte_seconds: 0.0,
            written_byte_seconds: 0.0,
            sync_seconds: 0.0,
        }
    }
}

/// The links, disks and processors of a deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// The link between the client and all servers.
    pub link: Link,
    /// The link between servers. Each server sends at the link's upload rate.
    pub between: Link,
    /// The disk of each server.
    pub disk: Disk,
    /// Number of processors per server. It is less than 1 if servers share a processor.
    pub processors: f64,
}

/// Seconds of an access, divided into parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayParts {
    /// Seconds of computing on the client.
    pub client: f64,
    /// Seconds of computing on the servers.
    pub servers: f64,
    /// Seconds of transfers between client and servers.
    pub client_server: f64,
    /// Seconds of transfers between servers.
    pub server_server: f64,
    /// Seconds of reads and writes of servers' files.
    pub disk: f64,
}

impl DelayParts {
    /// The sum of all parts, without overlap.
    pub fn seconds(&self) -> f64 {
        let Self { client, servers, client_server, server_server, disk } = self;
        client + servers + client_server + server_server + disk
    }
}

/// The links between servers in the paper: 250 Mbit/s, and 15 ms.
const PAPER_BETWEEN: Link = Link::new(250.0, 250.0, 15.0);

/// The number of processors of each of the paper's servers. Sixteen virtual processors count as
/// eight.
const PAPER_PROCESSORS: f64 = 8.0;

impl Deployment {
    /// The servers of the paper behind a link. Their processors are as fast as this machine's.
    pub fn paper(link: Link, disk: Disk) -> Self {
        Self { link, between: PAPER_BETWEEN, disk, processors: PAPER_PROCESSORS }
    }

    /// The time of `work` in this deployment, at these rates.
    pub fn parts(&self, work: &Work, rates: &Rates) -> DelayParts {
        let Self { link, between, disk, processors } = self;
        let [client, server] = work.computed(rates);
        DelayParts {
            client,
            servers: server / processors,
            client_server: work.trips * link.round_trip_seconds()
                + work.down_bytes / link.down_bytes_per_second()
                + work.up_bytes / link.up_bytes_per_second(),
            server_server: work.hops * between.one_way().as_secs_f64()
                + work.between_bytes / between.up_bytes_per_second(),
            disk: work.disk_read_bytes * disk.read_byte_seconds
                + work.disk_written_bytes * disk.written_byte_seconds
                + work.syncs * disk.sync_seconds,
        }
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counts_over_rates() {
        let work = Work {
            down_bytes: 1e6,
            up_bytes: 5e5,
            trips: 2.0,
            between_bytes: 3e6,
            hops: 4.0,
            disk_read_bytes: 8e6,
            disk_written_bytes: 8e6,
            syncs: 3.0,
            selected: 1e6,
            multiplied: 2e6,
            dealt: 1e5,
            reduced: 1e5,
            drawn: 3e5,
            shared: 1e4,
            recovered: 1e4,
        };
        let rates = Rates { inner: 1e6, matrix: 4e6, share: 1e5, recover: 2e5, draw: 1e6 };
        let place = Deployment {
            link: Link::new(8.0, 4.0, 100.0),
            between: Link::new(1.0, 24.0, 20.0),
            disk: Disk { sync_seconds: 0.1, ..Disk::with_rate("d", 16.0) },
            processors: 0.5,
        };
        let parts = place.parts(&work, &rates);
        let expected = DelayParts {
            client: 0.1 + 0.05,
            servers: (1.0 + 0.5 + 1.0 + 0.5 + 0.3) / 0.5,
            client_server: 0.2 + 1.0 + 1.0,
            server_server: 0.04 + 1.0,
            disk: 0.5 + 0.5 + 0.3,
        };
        assert!((parts.seconds() - expected.seconds()).abs() < 1e-9, "{parts:?}");
        assert!((parts.servers - expected.servers).abs() < 1e-9, "{parts:?}");
        let memory = Deployment { disk: Disk::memory(), ..place };
        assert!(memory.parts(&work, &rates).disk.abs() < 1e-12);
    }
}
