//! Plain recursion: each level of the position map has its own tree (Tiny ORAM, sections II-B and
//! V-E).

use oblivio_core::scheme::{self, PathScheme};
use oblivio_core::{Front, RecursiveOram, TreeConfig};
use rand::rngs::StdRng;
use rand::{CryptoRng, SeedableRng};

use super::initial::{InitialOram, fill, noted};
use super::path_log::PathLog;
use super::spec::OramSpec;
use super::tags::Contents;
use crate::SimError;

/// Builds the ORAM of `spec` with its initial contents. The ORAM then draws its random numbers from
/// `coins`, and its paths go to `log`. Refuses [`InitialOram::Made`].
pub(super) fn recursive(
    spec: &OramSpec,
    log: &PathLog,
    initial: InitialOram,
    coins: Box<dyn CryptoRng>,
) -> Result<impl Front + use<>, SimError> {
    let InitialOram::Seed(seed) = initial else {
        let message = "plain recursion has no study: make its initial trees from a seed";
        return Err(SimError::Spec(message.to_owned()));
    };
    let mut first = StdRng::seed_from_u64(seed);
    let schemes = spec.recursive_trees()?;
    let block_bytes = spec.block_bytes();
    let tree_of = |(level, tree)| tree_of(level, tree, block_bytes, log);
    let schemes = schemes.iter().enumerate().map(tree_of);
    let schemes = schemes.collect::<Result<_, _>>()?;
    let mut oram = RecursiveOram::new(&spec.recursion()?, schemes, StdRng::from_rng(&mut first))?;
    fill(&mut oram, spec, &mut first)?;
    Ok(oram.with_coins(coins))
}

/// The tree of a level of the position map. Level 0 is the data.
fn tree_of(
    level: usize,
    tree: &TreeConfig,
    block_bytes: usize,
    log: &PathLog,
) -> Result<Box<dyn scheme::Scheme>, SimError> {
    let blocks = 0..tree.capacity;
    // The blocks of the levels below are in other trees.
    let below = std::iter::repeat_n(0..0, level);
    let addresses: Vec<_> = below.chain([blocks]).collect();
    Ok(noted(PathScheme::of_tags(tree)?, Contents::new(&addresses, block_bytes)?, log))
}
