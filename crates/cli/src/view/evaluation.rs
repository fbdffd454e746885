//! Evaluates a view in two passes: first counts, then the leaves that accesses used.

use std::collections::BTreeMap;
use std::path::PathBuf;

use oblivio_core::store::TreeId;
use oblivio_core::view::Observed;

use super::counts::ViewCounts;
use super::inputs::Inputs;
use super::leaves::LeafCounts;
use super::summary::{Sample, TreeSummary};
use crate::error::CliError;

/// The evaluation of a view.
pub(crate) struct ViewEvaluation {
    pub(super) counts: ViewCounts,
    /// Counts of leaves, for each tree that shows leaves.
    pub(super) leaves: BTreeMap<u16, LeafCounts>,
    /// Data for the picture of the drawn tree, if there is one.
    pub(super) summary: Option<TreeSummary>,
}

impl ViewEvaluation {
    /// Evaluates the view in a file, or the views of several share servers of one volume. With
    /// share servers, evaluates what the servers `parties` saw, or all servers if `parties` is
    /// empty. Collects the data to draw the tree `drawn`; by default, among the trees that show
    /// leaves, the tree with the most reads.
    pub(crate) fn read(
        paths: &[PathBuf],
        parties: &[u8],
        drawn: Option<TreeId>,
    ) -> Result<Self, CliError> {
        let mut inputs = Inputs::open(paths, parties)?;
        let counts = ViewCounts::read(&mut inputs)?;
        let maps = counts.trees.iter().filter_map(|(id, tree)| Some((*id, tree.leaf_map()?)));
        let mut leaves: BTreeMap<_, _> = maps.map(|(id, map)| (id, LeafCounts::new(map))).collect();
        let drawn = match drawn {
            Some(TreeId(named)) => Some(named),
            // Among trees with the same number of reads, the first.
            None => leaves.keys().rev().copied().max_by_key(|id| counts.trees[id].reads()),
        };

        let [mut accesses, mut evictions] = [Sample::default(), Sample::default()];
        let mut keep = |is_drawn: bool, visit| match visit {
            _ if !is_drawn => (),
            super::BucketVisit { is_eviction: true, .. } => evictions.offer(visit),
            super::BucketVisit { is_eviction: false, .. } => accesses.offer(visit),
        };
        inputs.each(&mut |observed, _| {
            let Observed::Event(event) = observed else { return };
            let Some(piece) = event.piece else { return };
            if let Some(tree) = leaves.get_mut(&piece.tree.0) {
                tree.record(&event, &mut |visit| keep(drawn == Some(piece.tree.0), visit));
            }
        })?;
        for (id, tree) in &mut leaves {
            tree.end_access(&mut |visit| keep(drawn == Some(*id), visit));
        }

        let summary =
            drawn.and_then(|id| Some((id, counts.trees.get(&id)?))).map(|(id, tree)| TreeSummary {
                tree: TreeId(id),
                visits: [accesses.into_visits(), evictions.into_visits()].concat(),
                accesses: leaves.get(&id).map_or(0, LeafCounts::accesses),
                leaf_buckets: tree.leaf_buckets(),
                tally: counts.tally,
            });
        Ok(Self { counts, leaves, summary })
    }

    /// The data for the picture of the drawn tree. `None` if there is no such tree.
    pub(crate) fn into_summary(self) -> Option<TreeSummary> {
        self.summary
    }
}
