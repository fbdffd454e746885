//! The estimate of one volume in objects.

use oblivio_models::objects::{Prices, Requests, VolumeOnObjects};
use oblivio_volume::VolumeError;
use serde_json::{Value, json};

use super::super::links::three_digits;
use super::super::plan::{VolumePlan, size};
use super::Setting;
use crate::error::CliError;

pub(super) const HEAD: [&str; 9] = [
    "blocks",
    "levels far",
    "accesses",
    "GETs",
    "down",
    "$ for 1,000",
    "$ for a GiB",
    "blocks/s",
    "client memory",
];

/// The estimate of one volume.
pub(super) struct Row {
    pub(super) block_bytes: u64,
    client_bytes: u64,
    pub(super) volume: VolumeOnObjects,
}

impl Row {
    /// The estimate of a volume; `None` if there is no model of its scheme.
    pub(super) fn of(plan: &VolumePlan, setting: &Setting) -> Result<Option<Self>, CliError> {
        let config = plan.params.config()?;
        let volume = VolumeOnObjects::from_config(&*config, setting.service);
        let Some(volume) = volume.map_err(VolumeError::from)? else { return Ok(None) };
        let near_levels = volume.near_levels_within(setting.near_bytes_max.unwrap_or(0));
        Ok(Some(Self {
            block_bytes: plan.params.block_bytes.into(),
            client_bytes: plan.cost.client_bytes(),
            volume: volume.with_near_levels(near_levels),
        }))
    }

    /// Average requests for a block, with the accesses for its position.
    fn block(&self) -> Requests {
        self.volume.access_with_checkpoints() * self.volume.accesses_per_block()
    }

    pub(super) fn cells(&self, setting: &Setting) -> [String; HEAD.len()] {
        let (volume, block) = (&self.volume, self.block());
        let money = |dollars: &dyn Fn(&Prices) -> f64| {
            setting.prices.as_ref().map_or_else(|| "-".into(), |prices| plain(dollars(prices)))
        };
        let per_second = setting
            .connection()
            .map(|connection| connection.accesses_per_second(volume) / volume.accesses_per_block());
        [
            size(self.block_bytes as f64),
            (volume.levels() - volume.near_levels()).to_string(),
            format!("{:.0}", volume.accesses_per_block()),
            three_digits(block.gets),
            size(block.down_bytes),
            money(&|prices| 1e3 * prices.of_requests(&block)),
            money(&|prices| prices.of_requests(&volume.gibibyte_read())),
            per_second.map_or_else(|| "-".into(), three_digits),
            size(self.client_bytes as f64),
        ]
    }

    pub(super) fn json(&self, setting: &Setting) -> Value {
        let volume = &self.volume;
        let (access, checkpoint) = (volume.access(), volume.checkpoint());
        let average = volume.access_with_checkpoints();
        let gibibyte = volume.gibibyte_read();
        let mut json = json!({
            "block_bytes": self.block_bytes,
            "access_bytes": volume.access_bytes(),
            "client_bytes": self.client_bytes,
            "accesses_per_block": volume.accesses_per_block(),
            "levels": volume.levels(),
            "near_levels": volume.near_levels(),
            "near_bytes": volume.near_bytes(),
            "gets_per_access": access.gets,
            "puts_per_access": access.puts,
            "lists_per_access": average.lists,
            "down_bytes_per_access": access.down_bytes,
            "up_bytes_per_access": access.up_bytes,
            "puts_per_checkpoint": checkpoint.puts,
            "lists_per_checkpoint": checkpoint.lists,
            "up_bytes_per_checkpoint": checkpoint.up_bytes,
            "trips_per_read": volume.trips_per_read(),
            "trips_per_checkpoint": volume.checkpoint_trips(),
            "gets_per_gib_read": gibibyte.gets,
            "objects_max": volume.chunks(),
            "stored_bytes_max": volume.stored_bytes(),
            "unneeded_bytes_max": volume.unneeded_bytes_max(),
            "reads_evictions_ahead": volume.reads_evictions_ahead(),
        });
        if let Some(prices) = &setting.prices {
            json["money"] = json!({
                "requests_per_1000_accesses": 1e3 * prices.of_requests(&average),
                "egress_per_1000_accesses": 1e3 * prices.of_egress(&average),
                "requests_per_gib_read": prices.of_requests(&gibibyte),
                "egress_per_gib_read": prices.of_egress(&gibibyte),
                "storage_per_month": prices.of_storage_month(volume.stored_bytes()),
            });
        }
        if let Some(connection) = setting.connection() {
            json["accesses_per_second"] = json!(connection.accesses_per_second(volume));
            json["read_seconds"] = json!(connection.read_seconds(volume));
        }
        json
    }
}

/// A number of dollars as text.
pub(super) fn dollars(number: f64) -> String {
    format!("{} $", plain(number))
}

/// A number of dollars without a unit, with at least two significant digits.
fn plain(number: f64) -> String {
    let digits = match number {
        number if number >= 100.0 || number <= 0.0 => 0,
        number if number >= 1.0 => 2,
        // Cents have two digits, and smaller numbers as many as they need.
        number => (1.0 - number.log10().floor()).clamp(2.0, 12.0) as usize,
    };
    format!("{number:.digits$}")
}
