//! Counts of the tested points, and the losses that the points showed.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use oblivio_testkit::crash::{FailedOperation, Loss, Survival, TrialOutcome};
use serde_json::{Value, json};

use crate::plan::PointKind;
use crate::point::{Point, fault_name, survival_name};

/// The definition of distinct points, as the results file states it.
pub(crate) const DISTINCT: &str = "two points are distinct if they differ in the setup, in the \
     seed of the workload, in the number of lives, or in any life: in the kind of fault (with the \
     machine or link that it strikes), in the number or kind of the first operation that it \
     struck, or in what survives on either side; a point counts only if a fault struck in each of \
     its lives";

#[derive(Default)]
pub(crate) struct Tally {
    kinds: BTreeMap<PointKind, KindCounts>,
    /// Number of distinct points for each kind of operation that the first fault struck.
    operations: BTreeMap<String, u64>,
    /// Numbers of distinct points, by the survival modes of store and directory in the first life.
    survivals: BTreeMap<String, u64>,
    seen: HashSet<DistinctPoint>,
    lives: u64,
    operations_run: u64,
    /// The name of each point that lost data, and the loss, by the index of the point.
    losses: BTreeMap<usize, (String, Loss)>,
}

#[derive(Clone, Copy, Default)]
struct KindCounts {
    tried: u64,
    struck: u64,
    distinct: u64,
    lost: u64,
}

/// The properties of a point that make it distinct from others.
#[derive(PartialEq, Eq, Hash)]
struct DistinctPoint {
    setup: &'static str,
    seed: u64,
    lives: Vec<(String, FailedOperation, Survival, Survival)>,
}

impl DistinctPoint {
    /// Returns the identity of a point. `None` unless a fault struck in each life.
    fn new(point: &Point, ran: &TrialOutcome) -> Option<Self> {
        let lives = point.lives.iter().zip(&ran.failures).map(|(life, strike)| {
            let (fault, _) = life.faults.first().map(fault_name)?;
            Some((fault, (*strike)?, life.store, life.dir))
        });
        let lives = lives.collect::<Option<_>>()?;
        Some(Self { setup: point.setup.name, seed: point.seed, lives })
    }
}

impl Tally {
    pub(crate) fn add(
        &mut self,
        number: usize,
        kind: PointKind,
        point: &Point,
        outcome: Result<TrialOutcome, Loss>,
    ) {
        let counts = self.kinds.entry(kind).or_default();
        counts.tried += 1;
        let ran = match outcome {
            Ok(ran) => ran,
            Err(loss) => {
                counts.lost += 1;
                self.losses.insert(number, (point.to_string(), loss));
                return;
            }
        };
        self.lives += ran.operations.len() as u64;
        self.operations_run += ran.operations.iter().map(|counts| counts.total()).sum::<u64>();
        let Some(struck) = DistinctPoint::new(point, &ran) else { return };
        counts.struck += 1;
        let (_, FailedOperation { kind, .. }, store, dir) = struck.lives[0];
        if self.seen.insert(struck) {
            counts.distinct += 1;
            *self.operations.entry(format!("{kind:?}")).or_default() += 1;
            let survival = format!("store {}, client {}", survival_name(store), survival_name(dir));
            *self.survivals.entry(survival).or_default() += 1;
        }
    }

    pub(crate) fn distinct(&self) -> usize {
        self.seen.len()
    }

    pub(crate) fn bytes_lost(&self) -> u64 {
        self.losses.values().map(|(_, loss)| loss.bytes).sum()
    }

    /// The name of each point that lost data, and the loss.
    pub(crate) fn losses(&self) -> impl ExactSizeIterator<Item = &(String, Loss)> {
        self.losses.values()
    }

    pub(crate) fn to_json(&self) -> Value {
        let by_kind: BTreeMap<_, _> = self
            .kinds
            .iter()
            .map(|(kind, KindCounts { tried, struck, distinct, lost })| {
                let counts = json!({
                    "tried": tried, "struck": struck, "distinct": distinct, "lost": lost,
                });
                (kind.name(), counts)
            })
            .collect();
        let losses = self.losses().map(|(point, loss)| {
            let replay = replay(point);
            json!({ "point": point, "bytes": loss.bytes, "what": loss.message, "replay": replay })
        });
        json!({
            "bytes_lost": self.bytes_lost(),
            "losses": losses.collect::<Vec<_>>(),
            "points": {
                "tried": self.kinds.values().map(|counts| counts.tried).sum::<u64>(),
                "struck": self.kinds.values().map(|counts| counts.struck).sum::<u64>(),
                "distinct": self.distinct(),
                "what_is_distinct": DISTINCT,
                "by_kind": by_kind,
                "distinct_by_operation_struck_first": self.operations,
                "distinct_by_what_survived_the_first_life": self.survivals,
            },
            "lives": self.lives,
            "operations": self.operations_run,
        })
    }

    /// The setups with at least one distinct point.
    pub(crate) fn setups(&self) -> BTreeSet<&'static str> {
        self.seen.iter().map(|struck| struck.setup).collect()
    }
}

/// Returns the command that repeats a point.
pub(crate) fn replay(point: &str) -> String {
    format!("cargo run --release --package oblivio-crash-suite -- --replay '{point}'")
}
