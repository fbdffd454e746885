//! A view, looked at twice: what is counted, and then which leaves accesses went to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use oblivio_core::store::TreeId;
use oblivio_core::view::Observed;

use super::inputs::Inputs;
use super::leaves::LeafCounts;
use super::seen::{Sample, Seen};
use super::survey::Survey;
use crate::error::CliError;

/// All that is shown of a view.
pub(crate) struct Look {
    pub(super) survey: Survey,
    /// Of each tree that shows leaves.
    pub(super) leaves: BTreeMap<u16, LeafCounts>,
    /// Of the tree that is drawn, if there is any to draw.
    pub(super) seen: Option<Seen>,
}

impl Look {
    /// Looks at the view in a file, or at those of several servers of one volume; of servers, at these, or at all if none is named. The tree is the one that is drawn; if none is named, the one with the most reads.
    pub(crate) fn at(
        paths: &[PathBuf],
        parties: &[u8],
        drawn: Option<TreeId>,
    ) -> Result<Self, CliError> {
        let mut inputs = Inputs::open(paths, parties)?;
        let survey = Survey::of(&mut inputs)?;
        let maps = survey.trees.iter().filter_map(|(id, tree)| Some((*id, tree.leaf_map()?)));
        let mut leaves: BTreeMap<_, _> = maps.map(|(id, map)| (id, LeafCounts::new(map))).collect();
        let drawn = match drawn {
            Some(TreeId(named)) => Some(named),
            // Of those that are used alike, the first.
            None => leaves.keys().rev().copied().max_by_key(|id| survey.trees[id].reads()),
        };

        let [mut accesses, mut evictions] = [Sample::default(), Sample::default()];
        let mut keep = |is_drawn: bool, visit| match visit {
            _ if !is_drawn => (),
            super::Visit { is_eviction: true, .. } => evictions.offer(visit),
            super::Visit { is_eviction: false, .. } => accesses.offer(visit),
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

        let seen = drawn.and_then(|id| Some((id, survey.trees.get(&id)?))).map(|(id, tree)| Seen {
            tree: TreeId(id),
            visits: [accesses.kept(), evictions.kept()].concat(),
            accesses: leaves.get(&id).map_or(0, LeafCounts::accesses),
            leaf_buckets: tree.leaf_buckets(),
            tally: survey.tally,
        });
        Ok(Self { survey, leaves, seen })
    }

    /// What was seen of the tree that is drawn.
    pub(crate) fn into_seen(self) -> Option<Seen> {
        self.seen
    }
}
