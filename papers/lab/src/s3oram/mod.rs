//! The evaluation of S³ORAM (section 5 of its paper and Table 1): the paper's numbers, compared
//! with our numbers.
//!
//! The paper ran 40 GB on servers at Amazon, behind a home connection. That takes 480 GB here, so
//! large trees are modelled: counts of the work of an access are divided by rates of links, disks
//! and this machine, without overlap. Small trees on real servers show the accuracy of the model.
//!
//! | module | contents |
//! |---|---|
//! | `work` | the schemes, and the work of an access for client and servers |
//! | `place` | links, disks and processors, and the time of work there |
//! | `rates` | rates of this machine's computations on shares |
//! | `model` | seconds of a scheme at a place |
//! | `claim`, `claims` | the numbers of the paper |
//! | `figures` | the points of its figures |
//! | `points` | trees on real servers, timed |
//! | `ground` | costs of requests and bytes between real servers |
//! | `files` | costs of servers' files |
//! | `metered` | a store of share servers that times requests |
//! | `beside` | Path ORAM and a volume without share servers, timed |
//! | `recursion` | claims about a position map in smaller trees |
//! | `targets` | targets for the points |
//! | `results`, `table`, `spread` | the results file, its tables, and statistics |

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

pub use beside::{ComparedOram, OramComparison};
pub use claim::{Claim, Statement};
pub use figures::Cell;
pub use files::Files;
pub use ground::Testbed;
pub use place::{DelayParts, Deployment, Disk};
pub use points::{Measured, MeasuredTree, Servers, Timed};
pub use rates::{Effort, Machine, Rates};
pub use results::Results;
pub use spread::Spread;
pub use work::{Scheme, Work, Works};

use crate::experiment::named_json;
use crate::{Experiment, Host, LabError};
use model::{HOME, Model};

/// The time since an arbitrary start. It is monotonic.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The clocks for measurements.
#[derive(Clone)]
pub struct Clocks {
    /// The clock of wall-clock time.
    pub wall: Clock,
    /// The clock of the calling thread's processor time.
    pub thread: Clock,
    /// The clock of the processor time of all threads of client and servers.
    pub processors: Clock,
}

/// The parameters of the evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3oramPlan {
    /// The effort of measuring this machine's rates.
    pub effort: Effort,
    /// The trees to measure on real servers.
    pub shapes: Vec<MeasuredTree>,
    /// ORAMs to measure on a bucket server behind the same link. Their times are compared with
    /// those of the first tree.
    pub beside: Vec<ComparedOram>,
}

impl S3oramPlan {
    /// A plan for the model and for small trees on real servers. It takes some minutes.
    pub fn full() -> Self {
        Self { effort: Effort::FULL, shapes: MeasuredTree::FULL.into(), beside: Vec::new() }
    }

    /// A plan for one large tree instead of the small ones, and for the ORAMs that are compared
    /// with it. It takes half an hour.
    pub fn large() -> Self {
        Self {
            effort: Effort::FULL,
            shapes: vec![MeasuredTree::LARGE],
            beside: ComparedOram::ALL.into(),
        }
    }

    /// A plan for the model only, with roughly measured rates.
    pub fn quick() -> Self {
        Self { effort: Effort::QUICK, shapes: Vec::new(), beside: Vec::new() }
    }

    /// The number of servers that the measurements need.
    pub fn servers(&self) -> usize {
        self.shapes.iter().map(|shape| shape.servers.into()).max().unwrap_or_default()
    }
}

/// The evaluation, with its servers and clocks.
pub struct Evaluation {
    /// The parameters of the evaluation.
    pub plan: S3oramPlan,
    /// The clocks for the measurements.
    pub clocks: Clocks,
    /// The servers. Without them, only the model is computed.
    pub servers: Option<Box<dyn Servers>>,
    /// A function that returns the load of the machine over the last minute, if it is known.
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
                let mut beside = |other: &ComparedOram| {
                    beside::measure(*other, *shape, HOME, &mut *servers, &clocks)
                };
                results.beside = plan.beside.iter().map(&mut beside).collect::<Result<_, _>>()?;
            }
            results.targets = targets::targets(&results.measured, &results.beside);
        }
        results.meanwhile = load_before.zip(load()).map(|(before, after)| {
            format!("load of the machine in the minute before {before}, in the last minute {after}")
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
