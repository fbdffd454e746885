//! The creation time, speed and memory of volumes as functions of their size.

use std::time::Duration;

use serde_json::Value;

use crate::load::{RANDOM_READ, RANDOM_WRITE};
use crate::rounds::{self, BenchPlan, Rounds, SubjectTurn};
use crate::subjects::oblivio::{self, Served, Volume};
use crate::subjects::{Subject, Testbed};
use crate::tools::End;

const GIB: u64 = 1 << 30;

/// Sizes of the disks whose creation is timed.
const CREATED_BYTES: [u64; 2] = [GIB, 1024 * GIB];

/// Sizes of the disks whose speed is measured. None is filled, because that would take days. Paths
/// have their full length even in an empty volume. An empty file only saves reads of the medium,
/// and here the page cache serves reads.
const MEASURED_BYTES: [u64; 6] = [GIB / 4, GIB, 4 * GIB, 16 * GIB, 64 * GIB, 1024 * GIB];

/// Sizes of disks that are only modelled.
const MODELLED_BYTES: [u64; 2] = [256 * GIB, 16 * 1024 * GIB];

/// The disk size at which modelled requests per second equal the measured ones by definition.
const RULER_BYTES: u64 = GIB;

/// Maximum number of rounds.
const ROUNDS_MAX: u32 = 3;

/// The time of creating one volume.
pub struct Creation {
    pub disk_bytes: u64,
    pub time: Duration,
    pub allocated_bytes: u64,
}

/// Creates a volume of each size in `CREATED_BYTES`, times its creation, and removes it.
pub fn creation(testbed: &Testbed, end: &End) -> Result<Vec<Creation>, String> {
    let create = |disk_bytes| {
        let volume = Volume::create(disk_bytes, &[], testbed, end)?;
        let allocated_bytes = volume.allocated_bytes()?;
        Ok(Creation { disk_bytes, time: volume.creation, allocated_bytes })
    };
    CREATED_BYTES.into_iter().map(create).collect()
}

/// The results for one size.
pub struct Grown {
    pub disk_bytes: u64,
    /// The results under random reads and under random writes. Empty if the size is only modelled.
    pub loads: Vec<Rounds>,
    /// Peak memory of the server in bytes.
    pub peak_memory: Option<u64>,
    pub model: Model,
    /// Modelled requests per second under each load: inversely proportional to the bytes moved,
    /// scaled at the reference size.
    pub modelled: [Option<f64>; 2],
}

/// The costs that `oblivio plan` reports.
#[derive(Clone, Copy)]
pub struct Model {
    /// Bytes read per access.
    pub read_bytes: f64,
    pub written_bytes: f64,
    /// Number of levels of the position map in the tree.
    pub map_depth: u64,
    /// Bytes of the position map on the client.
    pub position_map_bytes: f64,
    /// Bytes of the client's memory without the cache.
    pub client_bytes: f64,
    /// Maximum bytes of the client's memory while the volume is served.
    pub client_bytes_in_use_max: f64,
}

impl Model {
    /// The costs of a volume of `bytes` bytes that is created with `options`.
    pub fn for_options(
        bytes: u64,
        options: &[String],
        testbed: &Testbed,
        end: &End,
    ) -> Result<Self, String> {
        let plan = oblivio::plan(bytes, options, testbed, end)?;
        Self::from_plan(&plan).ok_or_else(|| format!("cannot parse the plan: {plan}"))
    }

    /// Parses the output of `oblivio plan` or `oblivio info`.
    pub fn from_plan(plan: &Value) -> Option<Self> {
        Some(Self {
            read_bytes: plan["read_bytes_per_access"].as_f64()?,
            written_bytes: plan["written_bytes_per_access"].as_f64()?,
            map_depth: plan["position_map_depth"].as_u64()?,
            position_map_bytes: plan["position_map_bytes"].as_f64()?,
            client_bytes: plan["client_bytes"].as_f64()?,
            client_bytes_in_use_max: plan["client_bytes_in_use_max"].as_f64()?,
        })
    }

    /// Bytes read and written per access, in total.
    pub fn bytes_per_access(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }

    /// Bytes moved for a request without locality: one access per level of the map in the tree, and
    /// one for the block.
    fn moved_bytes_per_request(&self) -> f64 {
        (1 + self.map_depth) as f64 * self.bytes_per_access()
    }
}

/// Measures volumes of the sizes in `MEASURED_BYTES` under random loads, in turns. Models volumes
/// of these sizes and of those in `MODELLED_BYTES`.
pub fn measure(plan: &BenchPlan, testbed: &Testbed, end: &End) -> Result<Vec<Grown>, String> {
    let plan = BenchPlan { rounds: plan.rounds.min(ROUNDS_MAX), ..*plan };
    let mut running: Vec<(Served, Vec<Rounds>)> = Vec::new();
    for bytes in MEASURED_BYTES {
        let loads = [RANDOM_READ, RANDOM_WRITE].map(|load| Rounds { load, rounds: Vec::new() });
        running.push((oblivio::serve_nbd(bytes, testbed, end)?, loads.into()));
    }
    let progress = rounds::progress(u64::from(plan.rounds) * 2 * running.len() as u64);
    let names = MEASURED_BYTES.map(|bytes| format!("{} MiB", bytes >> 20));
    let subjects = names.iter().zip(&mut running).map(|(name, (served, loads))| SubjectTurn {
        name,
        subject: served,
        is_fuse: false,
        loads,
    });
    rounds::in_turns(subjects.collect(), &mut || Ok(()), &plan, end, &progress)?;
    progress.finish_and_clear();

    let mut grown = Vec::new();
    for (mut served, loads) in running {
        let peak_memory = loads.iter().filter_map(Rounds::server_peak).max();
        served.stop()?;
        grown.push(Grown { loads, peak_memory, ..unmeasured(served.bytes(), testbed, end)? });
    }
    for bytes in MODELLED_BYTES {
        grown.push(unmeasured(bytes, testbed, end)?);
    }
    grown.sort_by_key(|one| one.disk_bytes);
    tie_to_ruler(&mut grown);
    Ok(grown)
}

fn unmeasured(disk_bytes: u64, testbed: &Testbed, end: &End) -> Result<Grown, String> {
    let model = Model::for_options(disk_bytes, &[], testbed, end)?;
    Ok(Grown { disk_bytes, loads: Vec::new(), peak_memory: None, model, modelled: [None; 2] })
}

fn tie_to_ruler(grown: &mut [Grown]) {
    let Some(ruler) = grown.iter().find(|grown| grown.disk_bytes == RULER_BYTES) else { return };
    let at_ruler: Vec<_> =
        ruler.loads.iter().map(|load| load.requests_per_second().median).collect();
    let bytes_at_ruler = ruler.model.moved_bytes_per_request();
    for one in grown {
        let factor = bytes_at_ruler / one.model.moved_bytes_per_request();
        one.modelled = std::array::from_fn(|i| at_ruler.get(i).map(|rate| rate * factor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_map_in_the_tree_costs_accesses() {
        let mut plan = json!({
            "read_bytes_per_access": 300.0,
            "written_bytes_per_access": 100.0,
            "position_map_depth": 0,
            "position_map_bytes": 10,
            "client_bytes": 20,
            "client_bytes_in_use_max": 30,
        });
        assert_eq!(Model::from_plan(&plan).unwrap().moved_bytes_per_request(), 400.0);
        plan["position_map_depth"] = json!(2);
        assert_eq!(Model::from_plan(&plan).unwrap().moved_bytes_per_request(), 1200.0);
        plan["client_bytes"] = json!(null);
        assert!(Model::from_plan(&plan).is_none());
    }
}
