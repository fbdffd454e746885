//! How volumes change with their size: making them, and asking them.

use std::time::Duration;

use serde_json::Value;

use crate::load::{RANDOM_READ, RANDOM_WRITE};
use crate::rounds::{self, Plan, Rounds, Turn};
use crate::subjects::oblivio::{self, Served, Volume};
use crate::subjects::{Ground, Subject};
use crate::tools::End;

const GIB: u64 = 1 << 30;

/// Disks that are made, and not used.
const CREATED_BYTES: [u64; 2] = [GIB, 1024 * GIB];

/// Disks that are measured. None is filled: that would take days, and a path has its length from the
/// beginning. What an emptier file saves are reads of the medium; here they are the page cache's.
const MEASURED_BYTES: [u64; 5] = [GIB / 4, GIB, 4 * GIB, 16 * GIB, 64 * GIB];

/// Disks for which only the model is asked.
const MODELLED_BYTES: [u64; 3] = [256 * GIB, 1024 * GIB, 16 * 1024 * GIB];

/// The model is tied to the measurement at this size.
const RULER_BYTES: u64 = GIB;

/// As many rounds are enough here.
const ROUNDS_MAX: u32 = 3;

/// How long it took to make a volume.
pub struct Creation {
    pub disk_bytes: u64,
    pub time: Duration,
    pub allocated_bytes: u64,
}

/// Makes volumes, and removes them.
pub fn creation(ground: &Ground, end: &End) -> Result<Vec<Creation>, String> {
    let create = |disk_bytes| {
        let volume = Volume::create(disk_bytes, ground, end)?;
        let allocated_bytes = volume.allocated_bytes()?;
        Ok(Creation { disk_bytes, time: volume.creation, allocated_bytes })
    };
    CREATED_BYTES.into_iter().map(create).collect()
}

/// A volume of one size.
pub struct Grown {
    pub disk_bytes: u64,
    /// Random reads and random writes, where they were measured.
    pub loads: Vec<Rounds>,
    pub model: Model,
    /// Accesses a second if their cost is that of the bytes they move, and as at the ruler.
    pub modelled: [Option<f64>; 2],
}

/// What `oblivio plan` says of an access.
#[derive(Clone, Copy)]
pub struct Model {
    pub read_bytes: f64,
    pub written_bytes: f64,
    pub position_map_bytes: f64,
}

impl Model {
    fn of(plan: &Value) -> Option<Self> {
        Some(Self {
            read_bytes: plan["read_bytes_per_access"].as_f64()?,
            written_bytes: plan["written_bytes_per_access"].as_f64()?,
            position_map_bytes: plan["position_map_bytes"].as_f64()?,
        })
    }

    fn moved_bytes(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }
}

/// Puts volumes of all sizes under random loads, in turns, and asks the model beyond.
pub fn measure(plan: &Plan, ground: &Ground, end: &End) -> Result<Vec<Grown>, String> {
    let plan = Plan { rounds: plan.rounds.min(ROUNDS_MAX), ..*plan };
    let mut running: Vec<(Served, Vec<Rounds>)> = Vec::new();
    for bytes in MEASURED_BYTES {
        let loads = [RANDOM_READ, RANDOM_WRITE].map(|load| Rounds { load, rounds: Vec::new() });
        running.push((oblivio::serve_nbd(bytes, ground, end)?, loads.into()));
    }
    let progress = rounds::progress(u64::from(plan.rounds) * 2 * running.len() as u64);
    let names = MEASURED_BYTES.map(|bytes| format!("{} MiB", bytes >> 20));
    let subjects = names.iter().zip(&mut running).map(|(name, (served, loads))| Turn {
        name,
        subject: served,
        is_fuse: false,
        loads,
    });
    rounds::in_turns(subjects.collect(), &plan, end, &progress)?;
    progress.finish_and_clear();

    let mut grown = Vec::new();
    for (mut served, loads) in running {
        served.stop()?;
        grown.push(Grown { loads, ..unmeasured(served.bytes(), ground, end)? });
    }
    for bytes in MODELLED_BYTES {
        grown.push(unmeasured(bytes, ground, end)?);
    }
    tie_to_ruler(&mut grown);
    Ok(grown)
}

fn unmeasured(disk_bytes: u64, ground: &Ground, end: &End) -> Result<Grown, String> {
    let plan = oblivio::plan(disk_bytes, ground, end)?;
    let model = Model::of(&plan).ok_or_else(|| format!("the plan is not understood: {plan}"))?;
    Ok(Grown { disk_bytes, loads: Vec::new(), model, modelled: [None; 2] })
}

fn tie_to_ruler(grown: &mut [Grown]) {
    let Some(ruler) = grown.iter().find(|grown| grown.disk_bytes == RULER_BYTES) else { return };
    let at_ruler: Vec<_> =
        ruler.loads.iter().map(|load| load.requests_per_second().median).collect();
    let bytes_at_ruler = ruler.model.moved_bytes();
    for one in grown {
        let factor = bytes_at_ruler / one.model.moved_bytes();
        one.modelled = std::array::from_fn(|i| at_ruler.get(i).map(|rate| rate * factor));
    }
}
