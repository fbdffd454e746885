//! The evaluation of S³ORAM (section 5 of its paper and Table 1): what it states, beside what comes out here.
//!
//! The paper ran 40 GB on servers at Amazon, behind a home connection. That takes 480 GB here, so large trees are for a model: what an access does is counted, and divided by rates of
//! links, disks and of this machine, with nothing done at the same time. Small trees on real servers say how far the model can be trusted.
//!
//! | module | what it holds |
//! |---|---|
//! | `work` | the schemes, and what an access takes of everybody |
//! | `place` | links, disks and processors, and what counts take there |
//! | `rates` | how fast this machine computes on shares |
//! | `model` | seconds of a scheme at a place |
//! | `claim`, `claims` | the numbers of the paper |
//! | `figures` | the points of its figures |
//! | `points` | trees on real servers, timed |
//! | `ground` | what questions and bytes take between real servers |
//! | `files` | what files of servers take |
//! | `metered` | a store that times questions |
//! | `beside` | Path ORAM and a volume without share servers, timed |
//! | `targets` | what is wanted of the points |

mod beside;
mod claim;
mod claims;
mod figures;
mod files;
mod ground;
mod metered;
mod model;
mod place;
mod points;
mod rates;
mod recursion;
mod results;
mod spread;
mod table;
mod targets;
mod work;

use std::sync::Arc;
use std::time::Duration;

pub use beside::{Beside, Other};
pub use claim::{Claim, Says};
pub use figures::Cell;
pub use files::Files;
pub use ground::Ground;
pub use place::{Disk, Parts, Place};
pub use points::{Measured, Servers, Shape, Timed};
pub use rates::{Effort, Machine, Rates};
pub use results::Results;
pub use spread::Spread;
pub use work::{Scheme, Work, Works};

use crate::LabError;
use model::{HOME, Model};

/// How the command line calls this experiment.
pub const NAME: &str = "s3oram";

/// The time since some moment. It never goes back.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// What is read while something is measured.
#[derive(Clone)]
pub struct Clocks {
    /// The time since some moment.
    pub wall: Clock,
    /// What the calling thread has used of a processor.
    pub thread: Clock,
    /// What all threads of client and servers have used of processors since some moment.
    pub processors: Clock,
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How long rates of this machine are measured.
    pub effort: Effort,
    /// What is measured on real servers.
    pub shapes: Vec<Shape>,
    /// What is measured beside the first of them, behind the same link, on a bucket server.
    pub beside: Vec<Other>,
}

impl Plan {
    /// All of it: some minutes.
    pub fn full() -> Self {
        Self { effort: Effort::FULL, shapes: Shape::FULL.into(), beside: Vec::new() }
    }

    /// One large tree in the place of the small ones, and what it is compared with: half an hour.
    pub fn large() -> Self {
        Self { effort: Effort::FULL, shapes: vec![Shape::LARGE], beside: Other::ALL.into() }
    }

    /// The model alone, at rates that were measured in no time.
    pub fn quick() -> Self {
        Self { effort: Effort::QUICK, shapes: Vec::new(), beside: Vec::new() }
    }

    /// Servers that it takes to measure all of it.
    pub fn servers(&self) -> usize {
        self.shapes.iter().map(|shape| shape.servers.into()).max().unwrap_or_default()
    }

    /// Accesses to real servers.
    pub fn total_accesses(&self) -> u64 {
        self.shapes.iter().map(|shape| shape.total_accesses()).sum()
    }
}

/// Measures this machine, computes what the paper states, and times `shapes` on real servers, if there are any. `progress` is told of accesses to these.
///
/// # Errors
/// Those of the servers, and when something cannot be measured.
pub fn run(
    plan: &Plan,
    clocks: &Clocks,
    servers: Option<&mut dyn Servers>,
    progress: &dyn Fn(u64),
) -> Result<Results, LabError> {
    let machine = Machine::measure(plan.effort, &clocks.thread)?;
    let model = Model::new(machine)?;
    let mut results = Results::new(machine, claims::claims(&model)?, figures::cells(&model)?);
    let Some(servers) = servers else { return Ok(results) };
    let points = points::measure(
        &plan.shapes,
        HOME,
        servers,
        (&machine.bytes, plan.effort),
        clocks,
        progress,
    )?;
    if let Some(points) = points {
        results.ground = Some(points.ground);
        results.measured = points.measured;
    }
    if let Some(shape) = plan.shapes.first() {
        let beside = plan.beside.iter();
        let measured = beside.map(|other| beside::measure(*other, *shape, HOME, servers, clocks));
        results.beside = measured.collect::<Result<_, _>>()?;
    }
    results.targets = targets::targets(&results.measured, &results.beside);
    Ok(results)
}
