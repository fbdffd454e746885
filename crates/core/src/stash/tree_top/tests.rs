//! Tests of both kinds of tree top against a model: a list of blocks with their buckets.

use proptest::prelude::*;

use super::*;

const BLOCK_BYTES: usize = 16;

/// A step of a test. It changes a tree top, its stash, and the model of the tree top.
#[derive(Clone, Debug)]
enum TreeTopStep {
    /// Inserts a new block into the stash, and evicts a path.
    Insert { leaf: u64, evicted: u64 },
    /// Removes block `nth` (modulo the number of blocks in the tree top) by its leaf or by its
    /// address. Does nothing if the tree top is empty.
    Take { nth: usize, by_address: bool },
    /// Restores a block to a bucket on its path.
    BringBack { leaf: u64, level: u8 },
    /// Drops the blocks whose address is a multiple of `of`.
    Drop { of: u64 },
}

fn step(leaf_level: u8) -> impl Strategy<Value = TreeTopStep> {
    let leaf = 0..1u64 << leaf_level;
    prop_oneof![
        8 => (leaf.clone(), leaf.clone())
            .prop_map(|(leaf, evicted)| TreeTopStep::Insert { leaf, evicted }),
        2 => (any::<usize>(), any::<bool>())
            .prop_map(|(nth, by_address)| TreeTopStep::Take { nth, by_address }),
        2 => (leaf, 0..=leaf_level)
            .prop_map(|(leaf, level)| TreeTopStep::BringBack { leaf, level }),
        1 => (2u64..7).prop_map(|of| TreeTopStep::Drop { of }),
    ]
}

/// The model: the bucket of each block, in order of arrival.
struct Model {
    kind: TreeTopKind,
    levels: u8,
    geometry: Geometry,
    held: Vec<(BucketId, u64, Leaf)>,
}

impl Model {
    fn has_room(&self, bucket: BucketId, address: u64) -> bool {
        let in_bucket = self.held.iter().filter(|(other, ..)| *other == bucket).count();
        bucket.level() < self.levels
            && in_bucket < self.geometry.slots(usize::from(bucket.level()))
            && self.set_has_room(address)
    }

    fn set_has_room(&self, address: u64) -> bool {
        let TreeTopKind::SetAssociative { ways } = self.kind else { return true };
        let sets = sets(self.levels, ways, &self.geometry);
        let set = set_of(address, sets);
        let of_set = self.held.iter().filter(|(_, other, _)| set_of(*other, sets) == set);
        of_set.count() < usize::from(ways)
    }

    fn in_order(&self) -> Vec<(BucketId, u64, Leaf)> {
        let mut blocks = self.held.clone();
        blocks.sort_by_key(|(bucket, ..)| *bucket);
        blocks
    }
}

fn run(kind: TreeTopKind, slots: &[u16], levels: u8, steps: &[TreeTopStep]) {
    let geometry = Geometry::profile(slots).unwrap();
    let in_top: usize = (0..usize::from(levels)).map(|level| geometry.slots(level) << level).sum();
    let room = steps.len() + geometry.path_slots();
    let mut blocks = BlockArena::new(room + in_top, geometry.path_slots(), BLOCK_BYTES).unwrap();
    let mut stash = Stash::new(room, blocks.zero());
    let mut plan = PathPlan::new(&geometry, blocks.zero());
    let mut top = TreeTop::new(kind, levels, &geometry);
    let mut model = Model { kind, levels, geometry: geometry.clone(), held: Vec::new() };

    for (address, step) in (0u64..).zip(steps) {
        let mut new_entry = |leaf| Entry { address, leaf: Leaf(leaf), place: blocks.take() };
        match *step {
            TreeTopStep::Insert { leaf, evicted } => {
                let entry = new_entry(leaf);
                stash.insert(entry);
                blocks.get_mut(entry.place).fill(address as u8);
                let (before, evicted) = (stash.len(), Leaf(evicted));

                top.load(evicted, &mut stash);
                let is_on_path = |bucket: BucketId| bucket.is_on_path(evicted);
                let (on_path, others) =
                    model.held.iter().copied().partition(|(bucket, ..)| is_on_path(*bucket));
                model.held = others;
                let loaded: Vec<(BucketId, u64, Leaf)> = on_path;
                assert_eq!(stash.len(), before + loaded.len());

                stash.push_to_leaf(evicted, &mut top, &mut plan);
                for level in 0..geometry.levels() {
                    for entry in plan.blocks(level) {
                        let bucket = BucketId::on_path(evicted, level as u8);
                        assert!(bucket.is_on_path(entry.leaf));
                        if level < usize::from(levels) {
                            assert!(model.has_room(bucket, entry.address), "no room in {bucket}");
                            model.held.push((bucket, entry.address, entry.leaf));
                        } else {
                            // The block goes to storage.
                            blocks.free(entry.place);
                        }
                    }
                }
                for left in stash.entries() {
                    let has_room = geometry.path(evicted).enumerate().any(|(level, bucket)| {
                        let taken = plan.blocks(level).len();
                        bucket.is_on_path(left.leaf) && taken < geometry.slots(level)
                    });
                    let is_stuck = !has_room || !model.set_has_room(left.address);
                    assert!(is_stuck, "a block stayed in the stash although it had room");
                }
                top.store(evicted, &plan, &mut blocks);
                stash.finish_eviction(&mut blocks);
                assert!(stash.len() < before + kind.growth_max());
            }
            TreeTopStep::Take { nth, by_address } => {
                let Some((_, taken, leaf)) = model.held.get(nth % model.held.len().max(1)).copied()
                else {
                    continue;
                };
                let found_by_address = kind != TreeTopKind::Dedicated;
                assert_eq!(top.find(taken).is_some(), found_by_address);
                let entry = if by_address && found_by_address {
                    top.take_found(taken)
                } else {
                    top.take(leaf, taken)
                };
                let entry = entry.expect("the model has it");
                assert_eq!((entry.address, entry.leaf), (taken, leaf));
                assert_eq!(blocks.get(entry.place), [taken as u8; BLOCK_BYTES]);
                blocks.free(entry.place);
                model.held.retain(|(_, address, _)| *address != taken);
                assert!(top.take(leaf, taken).is_none() && top.find(taken).is_none());
            }
            TreeTopStep::BringBack { leaf, level } => {
                let entry = new_entry(leaf);
                let bucket = BucketId::on_path(Leaf(leaf), level);
                let has_room = top.has_room(bucket, address, &geometry);
                assert_eq!(has_room, model.has_room(bucket, address));
                if has_room {
                    blocks.get_mut(entry.place).fill(address as u8);
                    top.insert(bucket, entry);
                    model.held.push((bucket, address, Leaf(leaf)));
                } else {
                    blocks.free(entry.place);
                }
            }
            TreeTopStep::Drop { of } => {
                top.retain(|entry| !entry.address.is_multiple_of(of), &mut blocks);
                model.held.retain(|(_, address, _)| !address.is_multiple_of(of));
            }
        }
        let held: Vec<_> = top
            .blocks()
            .map(|(bucket, entry)| {
                assert_eq!(blocks.get(entry.place), [entry.address as u8; BLOCK_BYTES]);
                (bucket, entry.address, entry.leaf)
            })
            .collect();
        assert_eq!(held, model.in_order());
    }
}

proptest! {
    #[test]
    fn both_kinds_are_a_list_of_blocks(
        (slots, levels, ways, steps) in (1u8..6).prop_flat_map(|leaf_level| (
            prop::collection::vec(1u16..5, usize::from(leaf_level) + 1),
            0..=leaf_level,
            prop::sample::select(vec![None, Some(1), Some(2), Some(4), Some(8), Some(200)]),
            prop::collection::vec(step(leaf_level), 0..150),
        )),
    ) {
        let kind = ways.map_or(TreeTopKind::Dedicated, |ways| TreeTopKind::SetAssociative { ways });
        run(kind, &slots, levels, &steps);
    }
}

/// Tests that the number of blocks per set has the variance of a Poisson distribution, for
/// addresses with different strides.
#[test]
fn addresses_are_spread_evenly() {
    const SETS: usize = 1023;
    const BLOCKS: u64 = 32 * SETS as u64;
    for stride in [1, 2, 32, 1 << 10, 1023, 1 << 20, 3 << 33] {
        let mut counts = vec![0u64; SETS];
        (0..BLOCKS).for_each(|i| counts[set_of(i * stride, SETS)] += 1);
        // The variance of a Poisson distribution is its mean.
        let variance =
            counts.iter().map(|count| count.abs_diff(32).pow(2)).sum::<u64>() / SETS as u64;
        assert!((26..=38).contains(&variance), "stride {stride}: {variance}");
    }
    assert!((0..1000).all(|address| set_of(address, 1) == 0));
}

#[test]
fn empty_or_oversized_sets_are_refused() {
    for ways in [0, 257, u16::MAX] {
        assert!(TreeTopKind::SetAssociative { ways }.check().is_err());
    }
    for ways in [1, 4, 256] {
        assert!(TreeTopKind::SetAssociative { ways }.check().is_ok());
    }
    let geometry = Geometry::profile(&[3, 2, 2]).unwrap();
    let sets_of = |levels, ways| sets(levels, ways, &geometry);
    assert_eq!([sets_of(0, 4), sets_of(1, 4), sets_of(2, 4), sets_of(2, 1)], [1, 1, 2, 7]);
}
