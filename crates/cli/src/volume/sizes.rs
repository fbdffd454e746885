//! `oblivio plan --sizes`: shows how costs grow with the size of the disk.

use oblivio_store::StoreKind;
use serde_json::Value;

use super::plan::{VolumePlan, size};
use crate::advice::with_cli_advice;
use crate::args::VolumeRequirementsArgs;
use crate::error::CliError;
use crate::{output, table};

/// Bytes of the compared disks, from 1 GiB to 16 TiB.
const SIZES: [u64; 8] = [1 << 30, 1 << 32, 1 << 34, 1 << 36, 1 << 38, 1 << 40, 1 << 42, 1 << 44];

const HEAD: [&str; 9] = [
    "disk",
    "storage",
    "levels",
    "of the map",
    "map memory",
    "block memory",
    "together",
    "reads",
    "writes",
];

/// Plans a disk of each size with the same requirements. Stops at the first size that is too large
/// for them, and reports the reason.
pub(super) fn compare(
    requirements: &VolumeRequirementsArgs,
    as_json: bool,
) -> Result<(), CliError> {
    let (mut plans, mut refused) = (Vec::new(), None);
    for bytes in SIZES {
        match VolumePlan::new(bytes, requirements, StoreKind::default()) {
            Ok(plan) => plans.push(plan),
            Err(error) if plans.is_empty() => return Err(error),
            Err(error) => {
                let why = with_cli_advice(&error.to_string());
                refused = Some(format!("\nfrom {} on: {why}", size(bytes as f64)));
                break;
            }
        }
    }
    if as_json {
        let plans: Value = plans.iter().map(VolumePlan::json).collect();
        return output::print(&format!("{plans:#}"));
    }
    let rows = plans.iter().map(row);
    let table =
        table::aligned(&[HEAD.map(str::to_owned)].into_iter().chain(rows).collect::<Vec<_>>());
    output::print(&format!(
        "{table}\nof the map: levels of the position map that are kept in the tree, each of which \
         may cost one more access for a distant request; memory: of the client, without the cache; \
         reads, writes: per access, on average{}",
        refused.unwrap_or_default()
    ))
}

fn row(plan: &VolumePlan) -> [String; HEAD.len()] {
    let VolumePlan { params, cost, store_bytes, .. } = plan;
    [
        size(params.capacity_bytes() as f64),
        size(*store_bytes as f64),
        plan.number("levels").map_or_else(|| "-".into(), |levels| levels.to_string()),
        cost.position_map_depth.to_string(),
        size(cost.position_map_bytes as f64),
        size(cost.blocks_on_client_bytes as f64),
        size(cost.client_bytes() as f64),
        size(cost.read_bytes_per_access),
        size(cost.written_bytes_per_access),
    ]
}
