//! Tests of images of a tree of tags and its client.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::geometry::{Geometry, Leaf};
use crate::scheme::{Op, PathScheme, Scheme, TagTree, TreeConfig};
use crate::stash::TreeTopKind;

type Tags = PathScheme<TagTree>;

const CAPACITY: u64 = 50;
const LEAF_LEVEL: u8 = 5;
const TOP_LEVELS: u8 = 2;

fn scheme(tree_top: TreeTopKind) -> Tags {
    let geometry = Geometry::uniform(LEAF_LEVEL, 2).unwrap();
    let config = TreeConfig::new(CAPACITY, 0, geometry, 10);
    Tags::of_tags(&TreeConfig { tree_top_levels: TOP_LEVELS, tree_top, ..config }).unwrap()
}

const KINDS: [TreeTopKind; 2] = [TreeTopKind::Dedicated, TreeTopKind::SetAssociative { ways: 2 }];

/// A tree of tags after many accesses, and the leaf of each block.
fn used(kind: TreeTopKind) -> (Tags, Vec<u64>) {
    let (mut tags, mut coins) = (scheme(kind), StdRng::seed_from_u64(1));
    let mut leaves = vec![0; CAPACITY as usize];
    go_on(&mut tags, &mut leaves, &mut coins, 500);
    (tags, leaves)
}

fn go_on(tags: &mut Tags, leaves: &mut [u64], coins: &mut StdRng, accesses: usize) {
    for _ in 0..accesses {
        let address = coins.random_range(0..CAPACITY);
        let to = coins.random_range(0..1 << LEAF_LEVEL);
        let from = std::mem::replace(&mut leaves[address as usize], to);
        tags.access(address, Leaf(from), Leaf(to), &mut Op::Write(&[])).unwrap();
    }
}

fn image(tags: &Tags) -> Vec<u8> {
    let mut image = Vec::new();
    tags.write_image(&mut image).unwrap();
    image
}

fn refused(kind: TreeTopKind, numbers: &[u64]) -> String {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let error = checked(kind, &bytes).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    error.to_string()
}

/// Reads and checks an image that consists of arbitrary bytes.
fn checked(kind: TreeTopKind, bytes: &[u8]) -> Result<Tags> {
    let mut tags = scheme(kind);
    tags.read_image(&mut &bytes[..])?;
    tags.check_image()?;
    Ok(tags)
}

#[test]
fn a_tree_resumes_from_its_image() {
    for kind in KINDS {
        let (mut tags, mut leaves) = used(kind);
        let written = image(&tags);
        let mut again = scheme(kind);
        again.read_image(&mut &written[..]).unwrap();
        assert!(image(&again) == written);
        let mut other_leaves = leaves.clone();
        for (tags, leaves) in [(&mut tags, &mut leaves), (&mut again, &mut other_leaves)] {
            go_on(tags, leaves, &mut StdRng::seed_from_u64(2), 500);
        }
        assert!(image(&again) == image(&tags));
    }
}

#[test]
fn the_stash_keeps_its_order() {
    let mut tags = scheme(KINDS[0]);
    for address in [30, 7, 41] {
        tags.append(address, Leaf(address % 32), &[]).unwrap();
    }
    let mut again = scheme(KINDS[0]);
    again.read_image(&mut &image(&tags)[..]).unwrap();
    assert_eq!(again.stash().addresses().collect::<Vec<_>>(), [30, 7, 41]);
}

#[test]
fn a_torn_image_is_an_error() {
    let (tags, _) = used(KINDS[0]);
    let written = image(&tags);
    for bytes in 0..written.len() {
        let error = scheme(KINDS[0]).read_image(&mut &written[..bytes]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    }
}

#[test]
fn impossible_clients_are_refused() {
    for kind in KINDS {
        let refused = |numbers: &[u64]| refused(kind, numbers);
        assert!(refused(&[1, CAPACITY, 0]).contains("past the capacity"));
        assert!(refused(&[1, 0, 1 << LEAF_LEVEL]).contains("outside of the tree"));
        let endless: Vec<u64> = [u64::MAX].into_iter().chain([7; 1000]).collect();
        assert!(refused(&endless).contains("than the stash has room for"));
        assert!(refused(&[0, 1, 3, 0, 0]).contains("past the tree top"));
        assert!(refused(&[0, 1, u64::MAX, 0, 0]).contains("past the tree top"));
    }
    // A dedicated tree top is part of the tree of tags.
    assert!(refused(KINDS[0], &[0, 1, 0, 0, 0]).contains("past the tree top"));
    assert!(refused(KINDS[1], &[0, 1, 1, 0, 1]).contains("off its path"));
    // The third block of a bucket of two slots.
    let blocks = [0, 3, 0, 1, 0, 0, 2, 0, 0, 3, 0];
    assert!(refused(KINDS[1], &blocks).contains("without room"));
    // The third block of a set of two ways.
    let same_set = |address: &u64| crate::stash::set_of(*address, 3) == 0;
    let set: Vec<u64> = (0..CAPACITY).filter(same_set).take(3).collect();
    let blocks = [0, 3, 0, set[0], 0, 0, set[1], 0, 1, set[2], 0];
    assert!(refused(KINDS[1], &blocks).contains("without room"));
}

#[test]
fn impossible_trees_are_refused() {
    // No block on the client, then each slot from the root down, and two more to fill a cache line.
    let with = |level: u8, address: u64, leaf: u64| {
        let mut numbers = vec![0; 2 + 2 * ((2 << LEAF_LEVEL) - 1) + 2];
        numbers[2 + 2 * ((1 << level) - 1)] = (address << LEAF_LEVEL | leaf) + 1;
        numbers
    };
    let kind = KINDS[0];
    assert!(refused(kind, &with(3, CAPACITY, 0)).contains("past its capacity"));
    assert!(refused(kind, &with(3, u64::MAX >> LEAF_LEVEL, 0)).contains("past its capacity"));
    assert!(refused(kind, &with(3, 1, 1)).contains("off its path"));
    let in_tree_top = with(TOP_LEVELS - 1, 1, 0);
    assert!(refused(KINDS[1], &in_tree_top).contains("kept on the client"));
    for numbers in [with(3, 1, 8), in_tree_top] {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        checked(kind, &bytes).unwrap();
    }
}
