//! Which block goes where when a path is evicted (Subroutine 3).

use oblivio_core::{BucketId, Leaf};
use zeroize::{Zeroize, Zeroizing};

use super::ClientError;
use super::positions::{Position, Positions};
use crate::field::Field;
use crate::tree::{Tree, Triplet};

/// An eviction. The matrices are secret until they are shared.
pub(crate) struct Plan<E: Zeroize> {
    /// Its number.
    pub(super) number: u64,
    /// Where blocks are afterwards. Of several of one block the last is true.
    pub(super) moves: Vec<(usize, Position)>,
    /// See [`Evict::matrices`](crate::message::Evict::matrices).
    pub(super) matrices: Vec<Zeroizing<Vec<E>>>,
}

/// The blocks in the slots of a bucket.
type Occupants = Vec<Option<usize>>;

/// Plans an eviction. It looks at all positions: that takes some milliseconds for a million blocks, once for *A* accesses.
pub(super) fn plan<F: Field>(
    tree: Tree,
    number: u64,
    positions: &Positions,
) -> Result<Plan<F::Element>, ClientError> {
    let Occupied { mut path, mut beside } = Occupied::find(tree, number, positions);
    let mut plan = Plan { number, moves: Vec::new(), matrices: Vec::new() };
    let leaf_of = |address| positions.get(address).map_or(Leaf(0), |position| position.leaf);
    for triplet in tree.triplets(number) {
        let level = triplet.destination.level();
        let (above, below) = path.split_at_mut(usize::from(level));
        let source = &above[usize::from(level) - 1];
        let goes_on = |address| triplet.destination.is_on_path(leaf_of(address));
        let to_destination = Push { source, goes: &goes_on, to: triplet.destination };
        plan.matrices.push(to_destination.fill::<F>(&mut below[0], &leaf_of, &mut plan.moves)?);
        let stays_behind = |address| !goes_on(address);
        if triplet.is_last {
            let to_sibling = Push { source, goes: &stays_behind, to: triplet.sibling };
            plan.matrices.push(to_sibling.fill::<F>(&mut beside, &leaf_of, &mut plan.moves)?);
        } else {
            plan.moves.extend(copied(&triplet, source, stays_behind, leaf_of));
        }
    }
    Ok(plan)
}

/// The sibling gets a copy of the source, and of that the blocks that belong there count.
fn copied(
    triplet: &Triplet,
    source: &Occupants,
    stays_behind: impl Fn(usize) -> bool,
    leaf_of: impl Fn(usize) -> Leaf,
) -> Vec<(usize, Position)> {
    let level = triplet.sibling.level();
    let blocks = source.iter().enumerate().filter_map(|(slot, address)| Some((slot, (*address)?)));
    let copied = blocks.filter(|(_, address)| stays_behind(*address));
    copied
        .map(|(slot, address)| (address, Position { leaf: leaf_of(address), level, slot }))
        .collect()
}

/// Some blocks of a bucket go to a child.
struct Push<'p> {
    source: &'p Occupants,
    goes: &'p dyn Fn(usize) -> bool,
    to: BucketId,
}

impl Push<'_> {
    /// The matrix. What is in the child already stays where it is.
    fn fill<F: Field>(
        &self,
        child: &mut Occupants,
        leaf_of: &dyn Fn(usize) -> Leaf,
        moves: &mut Vec<(usize, Position)>,
    ) -> Result<Zeroizing<Vec<F::Element>>, ClientError> {
        let slots = child.len();
        let mut matrix = Zeroizing::new(vec![F::ZERO; 2 * slots * slots]);
        for (slot, _) in child.iter().enumerate().filter(|(_, address)| address.is_some()) {
            matrix[(slots + slot) * slots + slot] = F::ONE;
        }
        let mut next_empty = 0;
        for (from, address) in self.source.iter().enumerate() {
            let Some(address) = address.filter(|address| (self.goes)(*address)) else { continue };
            while next_empty < slots && child[next_empty].is_some() {
                next_empty += 1;
            }
            if next_empty == slots {
                return Err(ClientError::Overflow(self.to));
            }
            child[next_empty] = Some(address);
            matrix[from * slots + next_empty] = F::ONE;
            let level = self.to.level();
            moves.push((address, Position { leaf: leaf_of(address), level, slot: next_empty }));
        }
        Ok(matrix)
    }
}

/// What is in the buckets of an eviction before it.
struct Occupied {
    /// Of the path, the root first.
    path: Vec<Occupants>,
    /// The leaf beside it.
    beside: Occupants,
}

impl Occupied {
    fn find(tree: Tree, number: u64, positions: &Positions) -> Self {
        let evicted = tree.evicted(number);
        let empty = vec![None; tree.slots()];
        let mut path = vec![empty.clone(); usize::from(tree.height()) + 1];
        let mut beside = empty;
        let leaf_beside = Leaf(evicted.0 ^ 1 << (tree.height() - 1));
        for address in 0..positions.blocks() {
            let Some(Position { leaf, level, slot }) = positions.get(address) else { continue };
            let bucket = BucketId::on_path(leaf, level);
            if bucket.is_on_path(evicted) {
                path[usize::from(level)][slot] = Some(address);
            } else if level == tree.height() && bucket.is_on_path(leaf_beside) {
                beside[slot] = Some(address);
            }
        }
        Self { path, beside }
    }
}
