//! The performance of a volume on a link, computed from its parameters alone.

use oblivio_core::Error;
use oblivio_core::durable::{DurableConfig, Fact, FactValue, find_number};

use super::{Link, Traffic};

/// Bytes of a small request, typical of databases and file systems.
const SMALL_BYTES: u64 = 4096;

/// Bytes of a long request.
const LONG_BYTES: u64 = 1 << 20;

/// A volume on any link: the size of its disk, and the traffic of its accesses.
#[derive(Clone, Debug)]
pub struct VolumeOnLink {
    disk_bytes: u64,
    unit_bytes: u64,
    unit: Traffic,
    /// The size in bytes of the largest range within a long request, and the traffic of an access
    /// to it. `None` if the volume has no ranges.
    range: Option<(u64, Traffic)>,
}

impl VolumeOnLink {
    /// Computes the traffic of a volume with these parameters.
    ///
    /// # Errors
    /// Any error of the parameters.
    pub fn from_config(config: &dyn DurableConfig) -> Result<Self, Error> {
        let cost = config.cost()?;
        let block_bytes = u64::from(config.block_bytes());
        let facts = config.facts();
        // Each share server receives one message and sends one.
        let servers = find_number(&facts, "servers").map(|servers| servers as f64);
        let piece_bytes = match servers {
            Some(servers) => cost.read_bytes_per_access / servers,
            None => piece_bytes(config)?,
        };
        let has_evictions = servers.is_none()
            && facts.iter().any(|fact| matches!(fact, Fact::Value("evict_period", _)));
        let traffic = |read_bytes: f64, written_bytes: f64, trips: f64| {
            // Evictions write back as many bytes as they read. The other bytes read belong to the
            // access.
            let answer_bytes = if has_evictions { read_bytes - written_bytes } else { read_bytes };
            Traffic {
                answer_bytes,
                answer_pieces: answer_bytes / piece_bytes,
                read_bytes,
                written_bytes,
                pieces: (read_bytes + written_bytes) / piece_bytes,
                trips,
                accesses: (1 + cost.position_map_depth) as f64,
            }
        };
        let unit = traffic(
            cost.read_bytes_per_access,
            cost.written_bytes_per_access,
            cost.trips_per_access,
        );
        let [sizes, read, written] = ["range_bytes", "range_read_bytes", "range_written_bytes"]
            .map(|name| numbers(&facts, name));
        let mut ranges = sizes.iter().zip(read).zip(written);
        let range = ranges.rfind(|((bytes, _), _)| **bytes <= LONG_BYTES).map(
            |((bytes, read), written)| (*bytes, traffic(*read as f64, *written as f64, unit.trips)),
        );
        Ok(Self {
            disk_bytes: config.blocks() * block_bytes,
            unit_bytes: cost.blocks_per_access * block_bytes,
            unit,
            range,
        })
    }

    /// Traffic of an access to one block, or to one range if all accesses are to ranges.
    pub fn traffic(&self) -> &Traffic {
        &self.unit
    }

    /// Number of bytes that one access covers.
    pub fn unit_bytes(&self) -> u64 {
        self.unit_bytes
    }

    /// Latency of a 4 KiB read in seconds, if nothing else is in flight and no eviction is due.
    pub fn read_seconds(&self, link: Link) -> f64 {
        let units = SMALL_BYTES.div_ceil(self.unit_bytes);
        // The accesses of one request are announced together.
        let more = (units - 1) as f64 * self.unit.pipelined_seconds(link);
        self.unit.answer_seconds(link) + more
    }

    /// Latency of a 4 KiB read in seconds, including the read's share of evictions, if nothing
    /// overlaps.
    pub fn read_with_evictions_seconds(&self, link: Link) -> f64 {
        SMALL_BYTES.div_ceil(self.unit_bytes) as f64 * self.unit.serial_seconds(link)
    }

    /// Number of random 4 KiB reads per second, with enough reads in flight to hide round trips.
    pub fn reads_per_second(&self, link: Link) -> f64 {
        let units = SMALL_BYTES.div_ceil(self.unit_bytes) as f64;
        1.0 / (units * self.unit.pipelined_seconds(link))
    }

    /// Number of random 4 KiB writes per second. A partly written block is read first.
    pub fn writes_per_second(&self, link: Link) -> f64 {
        let accesses = if SMALL_BYTES < self.unit_bytes { 2.0 } else { 1.0 };
        self.reads_per_second(link) / accesses
    }

    /// Latency of an aligned 1 MiB read in seconds.
    pub fn long_read_seconds(&self, link: Link) -> f64 {
        link.round_trip_seconds() + self.moving_seconds(link, LONG_BYTES)
    }

    /// Throughput of consecutive 1 MiB reads, in bytes per second.
    pub fn long_reads_bytes_per_second(&self, link: Link) -> f64 {
        LONG_BYTES as f64 / self.moving_seconds(link, LONG_BYTES)
    }

    /// Seconds that writing the whole disk once takes.
    pub fn fill_seconds(&self, link: Link) -> f64 {
        self.moving_seconds(link, self.disk_bytes)
    }

    /// Seconds that the transfer of `bytes` of consecutive blocks takes, fully pipelined.
    fn moving_seconds(&self, link: Link, bytes: u64) -> f64 {
        let (each, traffic) = self
            .range
            .as_ref()
            .map_or((self.unit_bytes, &self.unit), |(bytes, range)| (*bytes, range));
        bytes.div_ceil(each) as f64 * traffic.pipelined_seconds(link)
    }
}

fn numbers<'a>(facts: &'a [Fact], name: &str) -> &'a [u64] {
    let numbers = facts.iter().find_map(|fact| match fact {
        Fact::Value(its, FactValue::Numbers(numbers)) if *its == name => Some(&numbers[..]),
        _ => None,
    });
    numbers.unwrap_or_default()
}

/// Average size of a bucket on a path, in bytes.
fn piece_bytes(config: &dyn DurableConfig) -> Result<f64, Error> {
    let shapes = config.shapes()?;
    let levels = shapes.iter().flat_map(|shape| shape.levels()).filter(|level| level.buckets > 0);
    let (count, bytes) =
        levels.fold((0u64, 0), |(count, bytes), level| (count + 1, bytes + level.bucket_bytes));
    Ok(bytes as f64 / count as f64)
}

#[cfg(test)]
mod tests {
    use oblivio_core::durable::range::DurableRange;
    use oblivio_core::durable::rotating::DurableRaw;
    use oblivio_core::durable::scan::DurableScan;
    use oblivio_core::durable::{ArrayRequirements, DurableScheme, RangePolicy};
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;
    use crate::medium::VolumeModel;

    fn requirements(scheme: &dyn DurableScheme, bytes: u64) -> ArrayRequirements {
        ArrayRequirements {
            client_bytes_max: 48 << 20,
            ..ArrayRequirements::new(bytes, scheme.name())
        }
    }

    fn near(ours: f64, theirs: f64, part: f64) {
        assert!((ours - theirs).abs() <= part * theirs, "{ours}, not {theirs}");
    }

    /// Compares the model with a thousand accesses of a volume, piece by piece.
    #[test]
    fn bytes_and_pieces_match_the_requests_of_a_volume() {
        let schemes: [&dyn DurableScheme; 2] = [&DurableRaw, &DurableRange];
        for scheme in schemes {
            let config = scheme.plan(&requirements(scheme, 1 << 30)).unwrap();
            let mut model = VolumeModel::from_config(&*config).unwrap().unwrap();
            let (mut pieces, mut bytes, mut coins) = (0, 0, StdRng::seed_from_u64(1));
            for access in 0..1000 {
                model.read(access, 1, &mut coins, &mut |request| {
                    pieces += 1;
                    bytes += request.bytes;
                });
            }
            let traffic = *VolumeOnLink::from_config(&*config).unwrap().traffic();
            near(traffic.pieces * 1e3, f64::from(pieces), 0.1);
            near((traffic.read_bytes + traffic.written_bytes) * 1e3, bytes as f64, 0.05);
        }
    }

    #[test]
    fn a_range_is_read_at_once_and_blocks_one_after_the_other() {
        let link = Link::new(100.0, 100.0, 20.0);
        let of = |scheme: &dyn DurableScheme, policy| {
            let requirements =
                ArrayRequirements { range_policy: policy, ..requirements(scheme, 1 << 30) };
            VolumeOnLink::from_config(&*scheme.plan(&requirements).unwrap()).unwrap()
        };
        let (raw, range) = (of(&DurableRaw, None), of(&DurableRange, None));
        // 256 blocks, the first of which arrives after a round trip.
        let blocks = 256.0 * raw.unit.pipelined_seconds(link);
        near(raw.long_read_seconds(link), 0.02 + blocks, 1e-9);
        near(raw.fill_seconds(link), 1024.0 * blocks, 1e-9);
        // A range saves seeks but no bytes: each of its evictions evicts in every tree.
        assert!(range.long_read_seconds(link) > raw.long_read_seconds(link));
        assert!(range.read_with_evictions_seconds(link) > raw.read_with_evictions_seconds(link));
        near(raw.read_seconds(link), 0.02 + raw.unit.answer_bytes / 12.5e6, 0.02);
        // If every access is to 64 KiB, 4 KiB cost the same, and a write reads first.
        let fixed = of(&DurableRange, Some(RangePolicy::Fixed(64 << 10)));
        near(fixed.long_reads_bytes_per_second(link), fixed.reads_per_second(link) * 65536.0, 0.01);
        near(fixed.writes_per_second(link), fixed.reads_per_second(link) / 2.0, 1e-9);
        near(raw.writes_per_second(link), raw.reads_per_second(link), 1e-9);
    }

    #[test]
    fn a_scan_reads_the_whole_disk() {
        let config = DurableScan.plan(&requirements(&DurableScan, 1 << 20)).unwrap();
        let scan = VolumeOnLink::from_config(&*config).unwrap();
        // 256 buckets of two blocks each, at one byte per microsecond.
        near(scan.read_seconds(Link::new(8.0, 8.0, 0.0)), 2.1, 0.02);
        // The same with one bucket of one block.
        let requirements =
            ArrayRequirements { block_bytes: 1 << 20, ..requirements(&DurableScan, 1 << 20) };
        let scan = VolumeOnLink::from_config(&*DurableScan.plan(&requirements).unwrap()).unwrap();
        near(scan.read_seconds(Link::new(8.0, 8.0, 0.0)), 2.1, 0.02);
    }
}
