//! `oblivio plan --link`: estimates the speed of a volume behind a link, by a model.

use oblivio_models::link::{FRAME_BYTES, Link, REQUEST_BYTES, VolumeOnLink};
use oblivio_store::StoreKind;
use oblivio_volume::VolumeError;
use serde_json::{Value, json};

use super::media::{COMPARED_SCHEMES, milliseconds};
use super::plan::{VolumePlan, size};
use crate::args::VolumeRequirementsArgs;
use crate::error::CliError;
use crate::table;

/// Block sizes in bytes that are compared with the planned one.
const BLOCKS: [u64; 8] =
    [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10];

/// Bytes of a small request at a random position.
const SMALL_BYTES: f64 = 4096.0;

const HEAD: [&str; 10] = [
    "scheme",
    "blocks",
    "reads 4 KiB in",
    "with evictions",
    "reads/s",
    "random MB/s",
    "writes/s",
    "reads 1 MiB in",
    "streamed MB/s",
    "fills in",
];

/// Estimates for volumes on a link.
pub(super) struct LinkEstimate {
    link: Link,
    rows: Vec<Row>,
    /// Volumes that cannot exist, with the reasons.
    left_out: Vec<String>,
}

/// The estimate of one volume.
struct Row {
    scheme: String,
    block_bytes: u64,
    volume: VolumeOnLink,
}

impl LinkEstimate {
    /// Estimates the planned volume, other schemes with the same block size, and its scheme with
    /// other block sizes.
    pub(super) fn of(
        plan: &VolumePlan,
        requirements: &VolumeRequirementsArgs,
        link: Link,
    ) -> Result<Self, CliError> {
        let scheme = plan.params.scheme.as_str();
        let mut link_estimate = Self { link, rows: vec![Row::of(plan)?], left_out: Vec::new() };
        let schemes = COMPARED_SCHEMES.into_iter().filter(|beside| *beside != scheme);
        let planned = u64::from(plan.params.block_bytes);
        let blocks = BLOCKS.into_iter().filter(|block| *block != planned);
        let other_schemes = schemes.map(|scheme| requirements.with_scheme(scheme));
        let other_schemes = other_schemes.map(|requirements| {
            (VolumeRequirementsArgs { block: Some(planned), ..requirements }, StoreKind::default())
        });
        let other_blocks = blocks.map(|block| {
            let requirements = VolumeRequirementsArgs {
                block: Some(block),
                alloc_from: None,
                ..requirements.clone()
            };
            (requirements, plan.kind)
        });
        for (requirements, kind) in other_schemes.chain(other_blocks) {
            match VolumePlan::new(plan.params.capacity_bytes(), &requirements, kind) {
                Ok(plan) => link_estimate.rows.push(Row::of(&plan)?),
                Err(error) => link_estimate.left_out.push(format!(
                    "`{}` with blocks of {}: {error}",
                    requirements.scheme(kind),
                    size(requirements.block_bytes(kind) as f64)
                )),
            }
        }
        Ok(link_estimate)
    }

    /// The estimates as text.
    pub(super) fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| row.cells(self.link));
        let table = [HEAD.map(str::to_owned)].into_iter().chain(rows).collect::<Vec<_>>();
        let left_out = self.left_out.iter().map(|why| format!("left out  {why}\n"));
        format!(
            "on {}, by a model of bytes and trips: a path is announced and read in one round trip. \
             With more requests in flight, no trip is waited for, and both directions are used at \
             once. A request for a piece takes {REQUEST_BYTES} bytes, and each message \
             {FRAME_BYTES} more. Not included: the cache, checkpoints, packet headers, loss, and \
             the time of server and client\n\
             {}\n\
             reads 4 KiB in: one at a time; with evictions: the mean, if nothing runs at the same \
             time. reads/s, writes/s: of 4 KiB at random positions, and random MB/s of such reads; \
             a part of a block is read before it is written. streamed MB/s: of consecutive reads \
             of 1 MiB. fills in: the whole disk is written once\n\
             {}\n\
             a flushed write waits for the client's log, and not for the link, until the cache is \
             full of data that the link has not taken yet\n{}",
            self.link,
            table::aligned(&table).trim_end(),
            self.bounds(),
            left_out.collect::<String>()
        )
        .trim_end()
        .to_owned()
    }

    /// A sentence that says whether the download or the upload rate of the link limits the planned
    /// volume.
    fn bounds(&self) -> String {
        let traffic = self.rows[0].volume.traffic();
        let (down, up) = (size(traffic.down_bytes()), size(traffic.up_bytes()));
        let bound = if traffic.is_bound_by_up(self.link) { "up" } else { "down" };
        let map = match traffic.accesses {
            1.0 => String::new(),
            accesses => format!(
                "; a request takes {accesses:.0} accesses one after the other, all but one for \
                 the position map"
            ),
        };
        format!(
            "an access of the planned volume moves {down} down and {up} up; the slower direction \
             is {bound}{map}"
        )
    }

    pub(super) fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| row.json(self.link));
        json!({
            "link": self.link,
            "request_bytes_per_piece": REQUEST_BYTES,
            "frame_bytes_per_message": FRAME_BYTES,
            "volumes": rows.collect::<Vec<_>>(),
            "left_out": self.left_out,
        })
    }
}

impl Row {
    fn of(plan: &VolumePlan) -> Result<Self, CliError> {
        let config = plan.params.config()?;
        Ok(Self {
            scheme: plan.params.scheme.as_str().to_owned(),
            block_bytes: plan.params.block_bytes.into(),
            volume: VolumeOnLink::from_config(&*config).map_err(VolumeError::from)?,
        })
    }

    fn cells(&self, link: Link) -> [String; HEAD.len()] {
        let volume = &self.volume;
        let reads = volume.reads_per_second(link);
        [
            self.scheme.clone(),
            size(self.block_bytes as f64),
            milliseconds(volume.read_seconds(link)),
            milliseconds(volume.read_with_evictions_seconds(link)),
            three_digits(reads),
            three_digits(reads * SMALL_BYTES / 1e6),
            three_digits(volume.writes_per_second(link)),
            milliseconds(volume.long_read_seconds(link)),
            three_digits(volume.long_reads_bytes_per_second(link) / 1e6),
            duration(volume.fill_seconds(link)),
        ]
    }

    fn json(&self, link: Link) -> Value {
        let volume = &self.volume;
        let traffic = volume.traffic();
        let reads = volume.reads_per_second(link);
        json!({
            "scheme": self.scheme,
            "block_bytes": self.block_bytes,
            "accesses_per_request": traffic.accesses,
            "down_bytes_per_access": traffic.down_bytes(),
            "up_bytes_per_access": traffic.up_bytes(),
            "bound": if traffic.is_bound_by_up(link) { "up" } else { "down" },
            "read_seconds": volume.read_seconds(link),
            "read_with_evictions_seconds": volume.read_with_evictions_seconds(link),
            "reads_per_second": reads,
            "read_bytes_per_second": reads * SMALL_BYTES,
            "writes_per_second": volume.writes_per_second(link),
            "written_bytes_per_second": volume.writes_per_second(link) * SMALL_BYTES,
            "long_read_seconds": volume.long_read_seconds(link),
            "long_reads_bytes_per_second": volume.long_reads_bytes_per_second(link),
            "fill_seconds": volume.fill_seconds(link),
        })
    }
}

/// A number as text, with about three significant digits.
pub(super) fn three_digits(number: f64) -> String {
    match number {
        number if number >= 100.0 => format!("{number:.0}"),
        number if number >= 10.0 => format!("{number:.1}"),
        0.0 => "0".into(),
        number if number >= 0.1 => format!("{number:.2}"),
        number => format!("{number:.4}"),
    }
}

/// A duration as text, with a suitable unit.
fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds if seconds < 2.0 * 3600.0 => format!("{:.1} min", seconds / 60.0),
        seconds if seconds < 2.0 * 86_400.0 => format!("{:.1} h", seconds / 3600.0),
        seconds => format!("{:.1} days", seconds / 86_400.0),
    }
}
