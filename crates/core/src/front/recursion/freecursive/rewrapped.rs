//! Moves an ORAM to another wrapper of its scheme and to other coins.

use rand_core::CryptoRng;

use super::FreecursiveOram;
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::scheme::{Scheme, TreeConfig};

impl<S: Scheme, R: CryptoRng> FreecursiveOram<S, R> {
    /// The same ORAM, with its blocks and keys, over a wrapper that `wrap` puts around its scheme.
    /// From then on, the ORAM uses `coins`. These must be unpredictable to storage, and independent
    /// of the coins used before: with repeated coins, new positions would follow from positions
    /// that storage has seen.
    ///
    /// So one ORAM that was filled once can serve many runs: plain, behind a recorder of its paths,
    /// or as the main tree of [ρ](crate::front::rho).
    ///
    /// # Errors
    /// The errors of `wrap`; [`ErrorKind::InvalidConfig`] if the wrapped scheme has another tree;
    /// [`ErrorKind::MustReopen`] after an earlier error.
    pub fn rewrapped<T: Scheme, Q: CryptoRng>(
        self,
        wrap: impl FnOnce(S) -> Result<T, Error>,
        coins: Q,
    ) -> Result<FreecursiveOram<T, Q>, Error> {
        check_not_broken(self.broken)?;
        let shape = |tree: &TreeConfig| (tree.capacity, tree.block_bytes, tree.geometry.clone());
        let had = shape(self.scheme.config());
        let scheme = wrap(self.scheme)?;
        if shape(scheme.config()) != had {
            let message = "the wrapper changed the tree's shape: a wrapper must keep it";
            return Err(Error::new(ErrorKind::InvalidConfig, message));
        }
        Ok(FreecursiveOram {
            scheme,
            coins,
            space: self.space,
            counters: self.counters,
            prf: self.prf,
            guard: self.guard,
            table: self.table,
            plb: self.plb,
            keeps_plb: self.keeps_plb,
            before: self.before,
            moved: self.moved,
            capacity: self.capacity,
            block_bytes: self.block_bytes,
            hits: self.hits,
            tally: self.tally,
            broken: self.broken,
        })
    }
}
