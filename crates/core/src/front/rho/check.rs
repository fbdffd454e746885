//! Checks that each block of ρ exists once and in a valid place.

use hashbrown::HashMap;
use rand_core::CryptoRng;

use super::{RhoOram, TwoTrees};
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::front::Front;
use crate::geometry::Leaf;
use crate::scheme::{Location, Scheme};

impl<F, S, R> RhoOram<F, S, R>
where
    F: Front + AsRef<TwoTrees<S, R>> + AsMut<TwoTrees<S, R>>,
    S: Scheme,
    R: CryptoRng,
{
    /// Checks the invariants of both trees: see [`Front::check_invariants`].
    pub(super) fn check_both_trees(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.main.check_invariants()?;
        let Self { main, array, victim, .. } = self;
        let mut violation = None;
        let mut report = |defect: &'static str| {
            violation.get_or_insert(defect);
        };
        main.as_mut().visit_blocks(&mut |_, address, _| {
            if array.find(address).is_some() || *victim == Some(address) {
                report("a block is both in the main ORAM and in front of it");
            }
        })?;
        if victim.is_some_and(|address| array.find(address).is_some()) {
            report("the victim of the array is still in it");
        }
        let mut leaves: HashMap<u64, Leaf> =
            array.blocks().map(|(line, tag)| (line.number(), tag.leaf)).collect();
        main.as_mut().small_mut().visit_blocks(&mut |location, line, leaf| {
            if leaves.remove(&line) != Some(leaf) {
                report(
                    "a block is in the small tree twice, or differs from its entry in the array",
                );
            } else if matches!(location, Location::Bucket(bucket) if !bucket.is_on_path(leaf)) {
                report("a block of the small tree is off its path");
            }
        })?;
        if !leaves.is_empty() {
            report("a block of the array is not in the small tree");
        }
        violation.map_or(Ok(()), |message| Err(Error::new(ErrorKind::Corrupt, message)))
    }
}
