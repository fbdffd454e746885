//! `oblivio plan --store`: requests, money and speed of a volume in objects, by a model.

mod row;
mod text;

use std::path::Path;

use oblivio_models::link::Link;
use oblivio_models::objects::{
    Connection, IN_FLIGHT_MAX, Prices, S3_PRICES, ServiceKind, VolumeOnObjects,
};
use serde_json::{Value, json};

use self::row::Row;
use super::plan::{VolumePlan, size};
use crate::args::{PlanArgs, PlannedStore, VolumeRequirementsArgs};
use crate::error::CliError;
use crate::files;

/// Block sizes in bytes that are compared with the planned one.
const BLOCKS: [u64; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];

/// Sizes of client memory in MiB of which the smallest one that holds the position map is advised.
const MEMORY_MIB: [u64; 12] = [64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096];

/// A warning says that other blocks are better if a disk has more bytes than this, and blocks of
/// fewer than [`SMALL_BLOCK_BYTES`].
const SMALL_BLOCKS_DISK_BYTES_MAX: u64 = 16 << 30;
const SMALL_BLOCK_BYTES: u64 = 16 << 10;

/// Maximum bytes of a price file.
const PRICE_FILE_BYTES_MAX: u64 = 64 << 10;

/// What an estimate is for, apart from the volume.
struct Setting {
    store: PlannedStore,
    service: ServiceKind,
    /// `None` if the client is in the same cloud as the store.
    link: Option<Link>,
    /// `None` if the latency of the store is not known.
    latency_seconds: Option<f64>,
    /// `None` if the store does not bill requests.
    prices: Option<Prices>,
    /// Whether the prices are the built-in ones.
    are_prices_of_s3: bool,
    near_bytes_max: Option<u64>,
}

/// Estimates for a volume in objects.
pub(super) struct ObjectsEstimate {
    setting: Setting,
    /// The planned volume, then others with other block sizes.
    rows: Vec<Row>,
    /// Volumes that cannot exist, with the reasons.
    left_out: Vec<String>,
    /// Whether the block size was chosen for the store.
    is_block_chosen: bool,
    /// Index in `rows` of the block size that suits the store, if the planned blocks are too small.
    better_blocks: Option<usize>,
    /// Client memory in MiB with which the position map fits on the client, if it does not now.
    memory_for_map_mib: Option<u64>,
    /// Requests of an access to the same volume on a bucket server.
    server_requests: f64,
}

/// The requirements of `args` on a volume, with a block size that suits the store.
pub(super) fn requirements(args: &PlanArgs, disk_bytes: u64) -> VolumeRequirementsArgs {
    let service = args.store.and_then(PlannedStore::service);
    let chosen = service.map(|service| service.block_bytes(disk_bytes, args.link.is_some()).into());
    VolumeRequirementsArgs {
        block: args.requirements.block.or(chosen),
        ..args.requirements.clone()
    }
}

/// Checks options that need a store over objects. Returns the setting of an estimate, or `None` for
/// another store.
fn setting(args: &PlanArgs) -> Result<Option<Setting>, CliError> {
    let Some(store) = args.store else { return Ok(None) };
    let Some(service) = store.service() else {
        let options = [
            ("--prices", args.prices.is_some()),
            ("--near", args.near.is_some()),
            ("--latency", args.latency.is_some()),
        ];
        return match options.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(CliError::Usage(format!(
                "{option} needs a store over objects: use --store s3, gs, az, redis or folder, or \
                 leave {option} out"
            ))),
            None => Ok(None),
        };
    };
    let prices = match (&args.prices, service) {
        (Some(path), _) => Some(read_prices(path)?),
        (None, ServiceKind::Cloud) => Some(Prices::from_toml(S3_PRICES)?),
        (None, ServiceKind::Redis | ServiceKind::Folder) => None,
    };
    Ok(Some(Setting {
        store,
        service,
        link: args.link,
        latency_seconds: args
            .latency
            .map(|latency| latency.as_secs_f64())
            .or(service.latency_seconds()),
        prices,
        are_prices_of_s3: args.prices.is_none(),
        near_bytes_max: args.near,
    }))
}

fn read_prices(path: &Path) -> Result<Prices, CliError> {
    let text = files::read_text(path, PRICE_FILE_BYTES_MAX)?;
    Prices::from_toml(&text).map_err(|error| {
        CliError::Input(format!(
            "price file {}: {error}; `oblivio plan --help` shows a complete file",
            path.display()
        ))
    })
}

impl ObjectsEstimate {
    /// Estimates the planned volume, and its scheme with other block sizes. `None` if the store of
    /// the plan is not over objects. `requirements` are those of the plan.
    pub(super) fn of(
        plan: &VolumePlan,
        requirements: &VolumeRequirementsArgs,
        args: &PlanArgs,
    ) -> Result<Option<Self>, CliError> {
        let Some(setting) = setting(args)? else { return Ok(None) };
        let Some(row) = Row::of(plan, &setting)? else {
            return Err(CliError::Input(format!(
                "there is no model of the scheme `{}` in objects: leave --store out, or plan \
                 another scheme",
                plan.params.scheme.as_str()
            )));
        };
        let (bytes, planned) = (plan.params.capacity_bytes(), row.block_bytes);
        let (mut rows, mut left_out) = (vec![row], Vec::new());
        for block in BLOCKS.into_iter().filter(|block| *block != planned) {
            let requirements = VolumeRequirementsArgs {
                block: Some(block),
                alloc_from: None,
                ..requirements.clone()
            };
            match VolumePlan::new(bytes, &requirements, plan.kind) {
                Ok(plan) => rows.extend(Row::of(&plan, &setting)?),
                Err(error) => {
                    left_out.push(format!("blocks of {}: {error}", size(block as f64)));
                }
            }
        }
        let suitable = u64::from(setting.service.block_bytes(bytes, setting.link.is_some()));
        let is_small = bytes > SMALL_BLOCKS_DISK_BYTES_MAX && planned < SMALL_BLOCK_BYTES;
        let better_blocks = rows.iter().position(|row| is_small && row.block_bytes == suitable);
        let memory_for_map_mib = match plan.cost.position_map_depth {
            0 => None,
            _ => MEMORY_MIB.into_iter().find(|mib| {
                let requirements =
                    VolumeRequirementsArgs { client_memory: mib << 20, ..requirements.clone() };
                VolumePlan::new(bytes, &requirements, plan.kind)
                    .is_ok_and(|plan| plan.cost.position_map_depth == 0)
            }),
        };
        Ok(Some(Self {
            setting,
            rows,
            left_out,
            is_block_chosen: args.requirements.block.is_none(),
            better_blocks,
            memory_for_map_mib,
            server_requests: plan.cost.trips_per_access,
        }))
    }

    /// The planned volume.
    fn planned(&self) -> &VolumeOnObjects {
        &self.rows[0].volume
    }

    pub(super) fn json(&self) -> Value {
        let Setting { store, link, latency_seconds, prices, .. } = &self.setting;
        let rows = self.rows.iter().map(|row| row.json(&self.setting));
        json!({
            "store": store.name(),
            "is_block_chosen": self.is_block_chosen,
            "chunk_bytes": self.setting.service.chunk_bytes(),
            "link": link,
            "latency_seconds": latency_seconds,
            "requests_in_flight": IN_FLIGHT_MAX,
            "prices": prices,
            "is_egress_charged": prices.is_some() && link.is_some(),
            "volumes": rows.collect::<Vec<_>>(),
            "left_out": self.left_out,
            "client_memory_for_map": self.memory_for_map_mib.map(|mib| mib << 20),
            "cluster_memory_bytes": matches!(self.setting.service, ServiceKind::Redis)
                .then(|| self.redis_bytes()),
            "server_requests_per_access": self.server_requests,
            "warnings": self.warnings(),
        })
    }
}

impl Setting {
    /// The connection to the store, if its latency is known.
    fn connection(&self) -> Option<Connection> {
        let latency_seconds = self.latency_seconds?;
        Some(match self.link {
            Some(link) => Connection::over(link, latency_seconds),
            None => Connection::in_cloud(latency_seconds),
        })
    }
}

#[cfg(test)]
mod tests;
