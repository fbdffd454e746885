//! Plans an eviction: which block moves to which slot (Subroutine 3).

use oblivio_core::{BucketId, Leaf};
use zeroize::{Zeroize, Zeroizing};

use super::ClientError;
use super::positions::{Position, Positions};
use crate::field::Field;
use crate::tree::{Tree, Triplet};

/// A planned eviction. The matrices are secret until they are shared.
pub(crate) struct EvictionPlan<E: Zeroize> {
    /// The number of the eviction, counted from 0.
    pub(super) number: u64,
    /// The new positions of blocks. If the list has several positions of one block, the last one
    /// counts.
    pub(super) moves: Vec<(usize, Position)>,
    /// The secret matrices, before they are shared: see
    /// [`Evict::matrices`](crate::message::Evict::matrices).
    pub(super) matrices: Vec<Zeroizing<Vec<E>>>,
}

impl<E: Zeroize> EvictionPlan<E> {
    /// The matrices to share.
    pub(crate) fn matrices(&self) -> &[Zeroizing<Vec<E>>] {
        &self.matrices
    }
}

/// A block in a slot, with the leaf that it is mapped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occupant {
    /// The block's identity: its address, or a secret label if colluding servers could read the
    /// address.
    pub(crate) label: usize,
    pub(crate) leaf: Leaf,
}

impl Zeroize for Occupant {
    fn zeroize(&mut self) {
        self.label.zeroize();
        self.leaf.0.zeroize();
    }
}

/// The blocks in consecutive slots; `None` for an empty slot.
pub(crate) type Occupants = Zeroizing<Vec<Option<Occupant>>>;

/// Plans eviction `number` of the blocks in `contents`.
///
/// # Errors
/// [`ClientError::Overflow`] if a bucket has too few empty slots.
pub(crate) fn plan_eviction<F: Field>(
    tree: Tree,
    number: u64,
    contents: EvictionContents,
) -> Result<EvictionPlan<F::Element>, ClientError> {
    let EvictionContents { mut path, mut sibling } = contents;
    let mut plan = EvictionPlan { number, moves: Vec::new(), matrices: Vec::new() };
    // Subroutine 3, step 3: for each level of the path, from the root down.
    for triplet in tree.triplets(number) {
        let level = triplet.destination.level();
        let (above, below) = path.split_at_mut(usize::from(level));
        let source = &above[usize::from(level) - 1];
        let continues_down = |it: Occupant| triplet.destination.is_on_path(it.leaf);
        // Subroutine 3, steps 4 to 10, and 13: the matrix from the source to the destination.
        let to_destination = ChildFill { source, goes: &continues_down, to: triplet.destination };
        plan.matrices.push(to_destination.fill::<F>(&mut below[0], &mut plan.moves)?);
        let stays_behind = |it| !continues_down(it);
        if triplet.is_last {
            // Subroutine 3, step 14: at the leaves, also the matrix to the sibling.
            let to_sibling = ChildFill { source, goes: &stays_behind, to: triplet.sibling };
            plan.matrices.push(to_sibling.fill::<F>(&mut sibling, &mut plan.moves)?);
        } else {
            // Subroutine 3, step 12: the other blocks keep their slots, one level lower.
            plan.moves.extend(copied(&triplet, source, stays_behind));
        }
    }
    Ok(plan)
}

/// Returns the new positions of the blocks that stay in a sibling after the source was copied to
/// it. The paths of the other blocks do not go through the sibling, so their copies there are
/// stale.
fn copied(
    triplet: &Triplet,
    source: &Occupants,
    stays_behind: impl Fn(Occupant) -> bool,
) -> Vec<(usize, Position)> {
    let level = triplet.sibling.level();
    let blocks = source.iter().enumerate().filter_map(|(slot, it)| Some((slot, (*it)?)));
    let copied = blocks.filter(|(_, it)| stays_behind(*it));
    copied.map(|(slot, it)| (it.label, Position { leaf: it.leaf, level, slot })).collect()
}

/// Describes how one child bucket receives blocks of its parent.
struct ChildFill<'p> {
    source: &'p Occupants,
    goes: &'p dyn Fn(Occupant) -> bool,
    to: BucketId,
}

impl ChildFill<'_> {
    /// Moves the blocks to empty slots of the child, and returns the matrix that makes these moves.
    /// Blocks already in the child keep their slots.
    ///
    /// # Errors
    /// [`ClientError::Overflow`] if the child has too few empty slots.
    fn fill<F: Field>(
        &self,
        child: &mut Occupants,
        moves: &mut Vec<(usize, Position)>,
    ) -> Result<Zeroizing<Vec<F::Element>>, ClientError> {
        let slots = child.len();
        // Subroutine 3, step 4: a 2Z × Z matrix of zeros.
        let mut matrix = Zeroizing::new(vec![F::ZERO; 2 * slots * slots]);
        // Subroutine 3, steps 5 and 6: blocks of the child keep their slots.
        for (slot, _) in child.iter().enumerate().filter(|(_, occupant)| occupant.is_some()) {
            matrix[(slots + slot) * slots + slot] = F::ONE;
        }
        let mut next_empty = 0;
        // Subroutine 3, steps 7 to 9: each block of the source that goes to this child.
        for (from, occupant) in self.source.iter().enumerate() {
            let Some(occupant) = occupant.filter(|it| (self.goes)(*it)) else { continue };
            while next_empty < slots && child[next_empty].is_some() {
                next_empty += 1;
            }
            if next_empty == slots {
                return Err(ClientError::Overflow(self.to));
            }
            // Subroutine 3, step 10: the block moves to an empty slot, which the map will note.
            child[next_empty] = Some(occupant);
            matrix[from * slots + next_empty] = F::ONE;
            let Occupant { label: address, leaf } = occupant;
            moves.push((address, Position { leaf, level: self.to.level(), slot: next_empty }));
        }
        Ok(matrix)
    }
}

/// The blocks in the buckets that an eviction changes, before the eviction.
pub(crate) struct EvictionContents {
    /// The blocks in each bucket of the path, the root first.
    pub(crate) path: Vec<Occupants>,
    /// The blocks in the sibling of the path's leaf.
    pub(crate) sibling: Occupants,
}

impl EvictionContents {
    /// Finds the blocks in these buckets from the positions of all blocks. This takes some
    /// milliseconds for a million blocks, and happens once every *A* accesses.
    pub(crate) fn find(tree: Tree, number: u64, positions: &Positions) -> Self {
        let evicted = tree.evicted(number);
        let empty = Occupants::new(vec![None; tree.slots()]);
        let mut path = vec![empty.clone(); usize::from(tree.height()) + 1];
        let mut sibling = empty;
        let sibling_leaf = tree.sibling_leaf(evicted);
        for address in 0..positions.blocks() {
            let Some(Position { leaf, level, slot }) = positions.get(address) else { continue };
            let (bucket, occupant) =
                (BucketId::on_path(leaf, level), Occupant { label: address, leaf });
            if bucket.is_on_path(evicted) {
                path[usize::from(level)][slot] = Some(occupant);
            } else if level == tree.height() && bucket.is_on_path(sibling_leaf) {
                sibling[slot] = Some(occupant);
            }
        }
        Self { path, sibling }
    }
}
