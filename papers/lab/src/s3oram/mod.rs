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

use std::num::NonZeroUsize;
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

use crate::experiment::named_json;
use crate::{Experiment, Host, LabError};
use model::{HOME, Model};

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
}

/// The evaluation, with the servers and clocks that it measures with.
pub struct Evaluation {
    /// What is measured.
    pub plan: Plan,
    /// The clocks.
    pub clocks: Clocks,
    /// The servers; without them, the model alone is computed.
    pub servers: Option<Box<dyn Servers>>,
    /// The load of the machine over the last minute.
    pub load: fn() -> Option<String>,
}

impl Experiment for Evaluation {
    const NAME: &'static str = "s3oram";
    const RESULTS: &'static str = "s3oram.json";
    const STEPS: &'static str = "accesses";
    type Record = ();
    type Results = Results;

    fn run(self, _: &[()], _: NonZeroUsize, host: &impl Host<()>) -> Result<Results, LabError> {
        let Self { plan, clocks, servers, load } = self;
        let load_before = load();
        let machine = Machine::measure(plan.effort, &clocks.thread)?;
        let model = Model::new(machine)?;
        let mut results = Results::new(machine, claims::claims(&model)?, figures::cells(&model)?);
        if let Some(mut servers) = servers {
            host.planned(plan.shapes.iter().map(|shape| shape.total_accesses()).sum());
            let (rates, progress) = ((&machine.bytes, plan.effort), |done| host.made(done));
            let points =
                points::measure(&plan.shapes, HOME, &mut *servers, rates, &clocks, &progress)?;
            if let Some(points) = points {
                results.ground = Some(points.ground);
                results.measured = points.measured;
            }
            if let Some(shape) = plan.shapes.first() {
                let mut beside =
                    |other: &Other| beside::measure(*other, *shape, HOME, &mut *servers, &clocks);
                results.beside = plan.beside.iter().map(&mut beside).collect::<Result<_, _>>()?;
            }
            results.targets = targets::targets(&results.measured, &results.beside);
        }
        results.meanwhile = load_before.zip(load()).map(|(before, after)| {
            format!("load of the machine in the minute before it {before}, in the last one {after}")
        });
        Ok(results)
    }

    fn to_json(results: &Results) -> Result<String, LabError> {
        named_json::<Self>(results)
    }

    fn text(results: &Results) -> String {
        format!("{}\n{}", results.text(), results.summary())
    }
}
