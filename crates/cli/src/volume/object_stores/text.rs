//! An estimate for a volume in objects, as text.

use oblivio_models::objects::{CLOUD_MEGABITS, IN_FLIGHT_MAX, Prices, Requests, ServiceKind};

use super::super::links::three_digits;
use super::super::media::milliseconds;
use super::super::plan::size;
use super::super::room::EXT4_FILE_BYTES_MAX;
use super::ObjectsEstimate;
use super::row::{HEAD, Row, dollars};
use crate::args::{BLOCK_BYTES, PlannedStore};
use crate::table;

/// Bytes of memory of a Redis cluster per byte of objects: two copies, and 15 % on top, as measured
/// with Redis 7.0 and one replica.
const REDIS_BYTES_PER_BYTE: f64 = 2.0 * 1.15;

/// Above this number of bytes of memory of a Redis cluster, another store is advised: the cluster
/// of a disk of 50 GiB.
const REDIS_BYTES_MAX: f64 = 50.0 * 12.5 * (1u64 << 30) as f64;

/// The use, in accesses per second, for which money per month is stated.
const STEADY_ACCESSES_PER_SECOND: f64 = 100.0;
const SECONDS_PER_MONTH: f64 = 365.25 / 12.0 * 86_400.0;

impl ObjectsEstimate {
    /// The estimates as text.
    pub(in super::super) fn text(&self) -> String {
        let mut lines = vec![self.store_line()];
        lines.extend([self.requests_line(), self.trips_line(), self.objects_line()]);
        lines.extend(self.near_line());
        lines.extend(self.money_lines());
        lines.push(self.speed_line());
        lines.extend(self.memory_lines());
        lines.push(self.server_line());
        lines.extend(self.warnings().into_iter().map(|text| format!("warning           {text}")));
        let rows = self.rows.iter().map(|row| row.cells(&self.setting));
        let table = [HEAD.map(str::to_owned)].into_iter().chain(rows).collect::<Vec<_>>();
        lines.push(format!(
            "\na request for a block, with the accesses for its position, evictions and \
             checkpoints; levels far: read by GETs; $: for requests\n{}",
            table::aligned(&table).trim_end()
        ));
        lines.extend(self.left_out.iter().map(|why| format!("left out  {why}")));
        lines.join("\n")
    }

    fn store_line(&self) -> String {
        let block_bytes = self.rows[0].block_bytes;
        let block = match self.is_block_chosen && block_bytes != BLOCK_BYTES {
            true => format!(
                "; blocks of {} suit it: create the volume with --block {}K",
                size(block_bytes as f64),
                block_bytes >> 10
            ),
            false => String::new(),
        };
        format!(
            "on {:<15}by a model: buckets lie in objects of {}, which are written once{block}",
            self.setting.store.name(),
            size(self.setting.service.chunk_bytes() as f64)
        )
    }

    fn requests_line(&self) -> String {
        let (access, checkpoint) = (self.planned().access(), self.planned().checkpoint());
        format!(
            "requests          an access makes {} GETs and {} PUTs, and moves {} down and {} up; a \
             checkpoint makes {:.1} PUTs and {:.0} LISTs",
            three_digits(access.gets),
            three_digits(access.puts),
            size(access.down_bytes),
            size(access.up_bytes),
            checkpoint.puts,
            checkpoint.lists
        )
    }

    fn trips_line(&self) -> String {
        let map = match self.planned().accesses_per_block() {
            accesses if accesses > 1.0 => ", one after the other: the position map is in the tree",
            _ => "",
        };
        format!(
            "round trips       {:.0} for a read{map}; {:.0} for a checkpoint. A flushed write \
             waits for the client's log, not for the store",
            self.planned().trips_per_read(),
            self.planned().checkpoint_trips()
        )
    }

    fn objects_line(&self) -> String {
        format!(
            "objects           up to {}, {}; up to {} more that are no longer needed, until the \
             next checkpoint deletes them",
            self.planned().chunks(),
            size(self.planned().stored_bytes() as f64),
            size(self.planned().unneeded_bytes_max() as f64)
        )
    }

    /// A line about the local file with levels of the tree, if there may be one.
    fn near_line(&self) -> Option<String> {
        let bytes_max = self.setting.near_bytes_max?;
        let volume = self.planned();
        if volume.near_levels() == 0 {
            let least = volume.clone().with_near_levels(1).near_bytes();
            return Some(format!(
                "near file         none: the highest of {} levels needs {}, more than the {} of \
                 --near",
                volume.levels(),
                size(least as f64),
                size(bytes_max as f64)
            ));
        }
        let (without, with) = (volume.clone().with_near_levels(0).access(), volume.access());
        let money = self.setting.prices.as_ref().map(|prices| {
            let of = |requests| dollars(1e3 * prices.of_requests(requests));
            format!(", {} instead of {} per 1,000 accesses", of(&with), of(&without))
        });
        Some(format!(
            "near file         {} of {} levels in {}: {} GETs instead of {}{}: name it with \
             the store, as near:FILE?bytes={bytes_max},URL",
            volume.near_levels(),
            volume.levels(),
            size(volume.near_bytes() as f64),
            three_digits(with.gets),
            three_digits(without.gets),
            money.unwrap_or_default()
        ))
    }

    fn money_lines(&self) -> Vec<String> {
        let Some(prices) = &self.setting.prices else { return Vec::new() };
        let volume = self.planned();
        let gibibyte = volume.gibibyte_read();
        let (requests, egress) = (self.request_dollars(prices), self.egress_dollars(prices));
        let where_charged = match self.setting.link {
            Some(_) => "",
            None => ", if the client were outside the provider's network",
        };
        let per_gibibyte = |money: fn(&Prices, &Requests) -> f64| dollars(money(prices, &gibibyte));
        vec![
            format!(
                "money             {} per 1,000 accesses and {} per GiB read for requests; {} a \
                 month for storage once it is full",
                dollars(requests),
                per_gibibyte(Prices::of_requests),
                dollars(prices.of_storage_month(volume.stored_bytes()))
            ),
            format!(
                "egress            {} per 1,000 accesses and {} per GiB read{where_charged}",
                dollars(egress),
                per_gibibyte(Prices::of_egress)
            ),
            format!(
                "prices            {}: {} per 1,000 PUTs, {} per 1,000 GETs, {} per 1,000 LISTs, \
                 {} per GiB and month, {} per GB of egress (--prices replaces them)",
                prices.about,
                dollars(prices.put_per_1000),
                dollars(prices.get_per_1000),
                dollars(prices.list_per_1000),
                dollars(prices.storage_per_gib_month),
                dollars(prices.egress_per_gb)
            ),
        ]
    }

    /// Dollars for the requests of 1,000 accesses.
    fn request_dollars(&self, prices: &Prices) -> f64 {
        1e3 * prices.of_requests(&self.planned().access_with_checkpoints())
    }

    /// Dollars for the egress of 1,000 accesses, if the client is outside the provider's network.
    fn egress_dollars(&self, prices: &Prices) -> f64 {
        1e3 * prices.of_egress(&self.planned().access_with_checkpoints())
    }

    fn speed_line(&self) -> String {
        let Some(connection) = self.setting.connection() else {
            return "speed             not estimated: --latency states how long a request takes"
                .into();
        };
        let volume = self.planned();
        let per_second = connection.accesses_per_second(volume);
        let by = match self.setting.link {
            Some(link) => format!("over {link}"),
            None => format!("at {} Gbit/s", CLOUD_MEGABITS / 1e3),
        };
        let data = per_second / volume.accesses_per_block() * volume.access_bytes() as f64;
        format!(
            "speed             {} accesses/s, {} MB/s of data, with {IN_FLIGHT_MAX} requests in \
             flight that take {} each, {by}; one read at a time takes {}. Processor time is left \
             out",
            three_digits(per_second),
            three_digits(data / 1e6),
            milliseconds(connection.latency_seconds),
            milliseconds(connection.read_seconds(volume))
        )
    }

    fn memory_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(mib) = self.memory_for_map_mib {
            let accesses = self.planned().accesses_per_block();
            lines.push(format!(
                "more memory       with --client-memory {mib}M, the position map fits on the \
                 client: a distant read takes 1 access instead of {accesses:.0}"
            ));
        }
        if matches!(self.setting.service, ServiceKind::Redis) {
            lines.push(format!(
                "cluster memory    up to {}: all objects, with one replica and 15 % on top",
                size(self.redis_bytes())
            ));
        }
        lines
    }

    /// Bytes of memory of all nodes of a Redis cluster.
    pub(super) fn redis_bytes(&self) -> f64 {
        REDIS_BYTES_PER_BYTE * self.planned().stored_bytes() as f64
    }

    /// A line that compares the store with a bucket server.
    fn server_line(&self) -> String {
        let here = self.planned().access().count();
        let stored = self.planned().stored_bytes();
        let needs = format!(
            "bucket server     needs {:.1} requests per access where this store needs {}",
            self.server_requests,
            three_digits(here)
        );
        if here <= self.server_requests {
            return match self.planned().near_levels() {
                0 => format!("{needs}: most of so small a disk is in the client's memory"),
                _ => format!("{needs}: the near file answers most of them"),
            };
        }
        let verdict = match stored <= EXT4_FILE_BYTES_MAX {
            true => format!(
                "it is the better choice where one machine can hold {}",
                size(stored as f64)
            ),
            false => format!(
                "but {} are more than a file of one server holds: stripe the volume over several \
                 servers, or use objects",
                size(stored as f64)
            ),
        };
        let money = self.setting.prices.as_ref().map(|prices| {
            let per_month = STEADY_ACCESSES_PER_SECOND * SECONDS_PER_MONTH / 1e3;
            format!(
                ". Here, {STEADY_ACCESSES_PER_SECOND} accesses/s all month cost {} for requests",
                dollars(per_month * self.request_dollars(prices))
            )
        });
        format!("{needs}; {verdict}{}", money.unwrap_or_default())
    }

    /// Warnings about the planned volume.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(prices) = &self.setting.prices {
            let factor = self.egress_dollars(prices) / self.request_dollars(prices);
            if factor > 1.0 {
                let factor = three_digits(factor);
                warnings.push(match self.setting.link {
                    Some(_) => format!(
                        "egress costs {factor} times as much as requests: run the client in the \
                         provider's network, keep levels near (--near), or use a bucket server"
                    ),
                    None => format!(
                        "outside the provider's network, egress would cost {factor} times as much \
                         as requests (plan that with --link)"
                    ),
                });
            }
            if self.setting.are_prices_of_s3 && self.setting.store != PlannedStore::S3 {
                warnings.push(format!(
                    "prices are those of S3, not of {}: state yours with --prices",
                    self.setting.store.name()
                ));
            }
        }
        if let Some(better) = self.better_blocks.and_then(|better| self.rows.get(better)) {
            let gets = |row: &Row| row.volume.gibibyte_read().gets;
            warnings.push(format!(
                "blocks of {} take {} times as many GETs per GiB read as blocks of {}, which suit \
                 this store (--block {}K)",
                size(self.rows[0].block_bytes as f64),
                three_digits(gets(&self.rows[0]) / gets(better)),
                size(better.block_bytes as f64),
                better.block_bytes >> 10
            ));
        }
        if matches!(self.setting.service, ServiceKind::Redis)
            && self.redis_bytes() > REDIS_BYTES_MAX
        {
            warnings.push(
                "Redis keeps all objects in memory: for disks above some 50 GiB, use an object \
                 store or a bucket server"
                    .into(),
            );
        }
        warnings
    }
}
