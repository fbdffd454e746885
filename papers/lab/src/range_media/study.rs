//! The comparison of the model with arrays.

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use oblivio_core::durable::range::DurableRange;
use oblivio_core::durable::rotating::DurableRaw;
use oblivio_core::durable::{ArrayRequirements, Durable, DurableConfig, DurableScheme, Want};
use oblivio_core::store::{MemoryStore, TreeId};
use oblivio_core::view::Recorder;
use oblivio_core::{MasterKey, Op};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::metered::MediumSink;
use crate::experiment::named_json;
use crate::{Experiment, Host, LabError};
use oblivio_models::medium::{Medium, Tally, VolumeModel};

/// Bytes of a block.
const BLOCK_BYTES: usize = 4096;
const RANGE_BYTES: u64 = 1 << 20;

/// The parameters of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeMediaPlan {
    /// The number of blocks of 4 KiB, at least 256.
    pub blocks: u64,
    /// Bytes read per comparison, at random addresses.
    pub read_bytes: u64,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The mean cost of a read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Requests per read that do not start where the previous one ended.
    pub seeks: f64,
    /// Bytes transferred per read.
    pub bytes: f64,
    /// Seconds per read on the medium.
    pub seconds: f64,
}

impl Costs {
    fn per_read(tally: &Tally, reads: u64) -> Self {
        let each = |sum: f64| sum / reads as f64;
        Self {
            seeks: each(tally.seeks as f64),
            bytes: each(tally.bytes as f64),
            seconds: each(tally.seconds),
        }
    }
}

/// The costs of reads of one length, as counted and as the model computes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The name of the scheme: `raw` or `range`.
    pub scheme: String,
    /// Bytes of a read.
    pub read_bytes: u64,
    /// The medium of the array.
    pub medium: Medium,
    /// Costs counted by the store of an array with data.
    pub counted: Costs,
    /// Costs that the model computes.
    pub modelled: Costs,
}

impl Comparison {
    /// The maximum relative error of the model's costs.
    pub fn off_by(&self) -> f64 {
        let Self { counted, modelled, .. } = self;
        let pairs = [
            (counted.seeks, modelled.seeks),
            (counted.bytes, modelled.bytes),
            (counted.seconds, modelled.seconds),
        ];
        pairs
            .map(|(counted, modelled)| (modelled / counted - 1.0).abs())
            .into_iter()
            .fold(0.0, f64::max)
    }
}

/// The result of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeMediaStudy {
    /// The parameters of the comparison.
    pub plan: RangeMediaPlan,
    /// The comparisons, one per scheme, length of reads and medium.
    pub comparisons: Vec<Comparison>,
}

/// The schemes that have a model.
const SCHEMES: [&dyn DurableScheme; 2] = [&DurableRaw, &DurableRange];

/// Compares the model with arrays, for reads of blocks and of whole ranges, in schemes with and
/// without ranges, on each medium.
impl Experiment for RangeMediaPlan {
    const NAME: &'static str = "range-media";
    const RESULTS: &'static str = "range-media.json";
    const STEPS: &'static str = "figures";
    type Record = ();
    type Results = RangeMediaStudy;

    fn run(
        self,
        _: &[()],
        _: NonZeroUsize,
        host: &impl Host<()>,
    ) -> Result<RangeMediaStudy, LabError> {
        if self.blocks < RANGE_BYTES / BLOCK_BYTES as u64 {
            let message = "there are fewer blocks than in a range: use more --blocks";
            return Err(LabError::Plan(message.to_owned()));
        }
        host.planned((Medium::ALL.len() * SCHEMES.len() * 2) as u64);
        let mut comparisons = Vec::new();
        for scheme in SCHEMES {
            for read_bytes in [BLOCK_BYTES as u64, RANGE_BYTES] {
                for medium in Medium::ALL {
                    comparisons.push(compare(&self, scheme, read_bytes, medium)?);
                    host.made(1);
                }
            }
        }
        Ok(RangeMediaStudy { plan: self, comparisons })
    }

    fn to_json(study: &RangeMediaStudy) -> Result<String, LabError> {
        named_json::<Self>(study)
    }

    fn text(study: &RangeMediaStudy) -> String {
        study.table()
    }
}

fn compare(
    plan: &RangeMediaPlan,
    scheme: &dyn DurableScheme,
    read_bytes: u64,
    medium: Medium,
) -> Result<Comparison, LabError> {
    let requirements = ArrayRequirements::new(plan.blocks * BLOCK_BYTES as u64, scheme.name());
    let config = scheme.plan(&requirements)?;
    let reads = (plan.read_bytes / read_bytes).max(1);
    let blocks = read_bytes / BLOCK_BYTES as u64;
    let mut places = StdRng::seed_from_u64(plan.seed);
    let mut place = || places.random_range(0..plan.blocks / blocks) * blocks;
    let firsts: Vec<_> = (0..reads).map(|_| place()).collect();
    let counted = count(&*config, &firsts, blocks, Tally::new(medium), plan.seed)?;
    let missing = || LabError::Plan(format!("the scheme `{}` has no model", scheme.name()));
    let mut model = VolumeModel::from_config(&*config)?.ok_or_else(missing)?;
    let (mut modelled, mut coins) = (Tally::new(medium), StdRng::seed_from_u64(plan.seed));
    for first in firsts {
        model.read(first, blocks, &mut coins, &mut |request| modelled.add(&request));
    }
    Ok(Comparison {
        scheme: scheme.name().to_owned(),
        read_bytes,
        medium,
        counted: Costs::per_read(&counted, reads),
        modelled: Costs::per_read(&modelled, reads),
    })
}

/// Reads from an array with data, and counts the requests to its store.
fn count(
    config: &dyn DurableConfig,
    firsts: &[u64],
    blocks: u64,
    tally: Tally,
    seed: u64,
) -> Result<Tally, LabError> {
    let shapes = config.shapes()?;
    let trees: Vec<_> = (0..shapes.len() as u16).map(TreeId).collect();
    let memory = MemoryStore::new(&shapes, MemoryStore::default_layout())?;
    let tally = Arc::new(Mutex::new(tally));
    let sink = MediumSink::new(&memory, tally.clone());
    let store = Recorder::new(memory, sink);
    let mut coins = StdRng::seed_from_u64(seed);
    let key = MasterKey::from_bytes([0; 32]);
    let mut array = config.create(key, &trees, Box::new(store), &mut coins)?;
    for first in firsts {
        read(&mut *array, *first, blocks, &mut coins)?;
    }
    Ok(taken(&tally))
}

fn taken(tally: &Mutex<Tally>) -> Tally {
    tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Reads blocks as one range if the array has ranges of that length, else block by block.
fn read(
    array: &mut dyn Durable,
    first: u64,
    blocks: u64,
    coins: &mut StdRng,
) -> Result<(), LabError> {
    let class = blocks.ilog2() as u8;
    let wanted = match class {
        1.. if array.facts().range_classes.contains(&class) => vec![Want::Range { first, class }],
        _ => (first..first + blocks).map(Want::Block).collect(),
    };
    for want in wanted {
        let count = if matches!(want, Want::Range { .. }) { blocks } else { 1 };
        if array.headroom()?.accesses < count {
            array.mark_durable();
        }
        let mut data = vec![[0; BLOCK_BYTES]; count as usize];
        let mut ops: Vec<_> = data.iter_mut().map(|data| Op::Read(data)).collect();
        let plan = array.plan(&[want], &[], coins)?;
        array.carry_out(&plan, &mut ops)?;
    }
    Ok(())
}

impl RangeMediaStudy {
    /// The comparisons as a table.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "scheme   a read of   seeks, counted  and by model   MiB, counted  and by model   \
             seconds, counted  and by model   off by at most\n",
        );
        for comparison in &self.comparisons {
            let Comparison { scheme, read_bytes, medium, counted, modelled } = comparison;
            let mib = |costs: &Costs| costs.bytes / f64::from(1 << 20);
            let _ = writeln!(
                text,
                "{scheme:<9}{:>5} KiB {:>17.1} {:>13.1} {:>14.2} {:>13.2} {:>18.4} {:>13.4} \
                 {:>15.1} %  {medium}",
                read_bytes >> 10,
                counted.seeks,
                modelled.seeks,
                mib(counted),
                mib(modelled),
                counted.seconds,
                modelled.seconds,
                100.0 * comparison.off_by()
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::{assert_survive_their_file, results_of};

    #[test]
    fn the_model_is_within_5_percent_of_arrays_with_data() {
        let plan = RangeMediaPlan { blocks: 1 << 14, read_bytes: 4 << 20, seed: 1 };
        let study = results_of(plan, 1).unwrap();
        for comparison in &study.comparisons {
            assert!(comparison.off_by() < 0.05, "{comparison:?}");
        }
        assert_survive_their_file::<RangeMediaPlan>(&study);
        let too_few = results_of(RangeMediaPlan { blocks: 100, ..plan }, 1).unwrap_err();
        assert!(too_few.to_string().contains("use more --blocks"), "{too_few}");
    }
}
