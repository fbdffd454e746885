//! Results of searches by time, for the machines of the evaluation.

use std::sync::LazyLock;

use super::{Allocation, Profile};
use oblivio_models::paper::PAPER_SLOTS;

/// Results of `oblivio-lab run alloc-search --judge time --levels L`: the three sizes of Fig. 16,
/// and three smaller ones.
const BY_SIZE: [&str; 6] = [
    include_str!("../../results/alloc-time/L18.json"),
    include_str!("../../results/alloc-time/L19.json"),
    include_str!("../../results/alloc-time/L20.json"),
    include_str!("../../results/alloc-time/L23.json"),
    include_str!("../../results/alloc-time/L24.json"),
    include_str!("../../results/alloc-time/L25.json"),
];

/// Results of the same experiment with `--ir-stash`.
const BESIDE_IR_STASH: [&str; 1] = [include_str!("../../results/alloc-time/ir-stash-L20.json")];

static FOUND_BY_SIZE: LazyLock<Vec<Allocation>> = LazyLock::new(|| read(&BY_SIZE));
static FOUND_BESIDE_IR_STASH: LazyLock<Vec<Allocation>> = LazyLock::new(|| read(&BESIDE_IR_STASH));

fn read(files: &[&str]) -> Vec<Allocation> {
    let file = |text: &&str| {
        Allocation::from_json(text).expect("a test checks that the committed files parse")
    };
    files.iter().map(file).collect()
}

/// The profile that the search for IR-Alloc found for a tree with leaves on `leaf_level` whose
/// client keeps `tree_top_levels`. If the search did not run for this size, the profile for the
/// nearest size, [aligned at the leaves](Profile::carried).
pub fn sized_profile(leaf_level: u8, tree_top_levels: u8) -> Profile {
    nearest(&FOUND_BY_SIZE, leaf_level, tree_top_levels)
}

/// Like [`sized_profile`], for IR-Alloc with IR-Stash.
pub fn profile_beside_ir_stash(leaf_level: u8, tree_top_levels: u8) -> Profile {
    nearest(&FOUND_BESIDE_IR_STASH, leaf_level, tree_top_levels)
}

fn nearest(found: &[Allocation], leaf_level: u8, tree_top_levels: u8) -> Profile {
    let away = |allocation: &&Allocation| allocation.plan.leaf_level.abs_diff(leaf_level);
    match found.iter().min_by_key(away) {
        Some(Allocation { plan, profile, .. }) => {
            profile.carried(plan.tree_top_levels, plan.slots, leaf_level, tree_top_levels)
        }
        None => Profile::uniform(leaf_level, PAPER_SLOTS),
    }
}
