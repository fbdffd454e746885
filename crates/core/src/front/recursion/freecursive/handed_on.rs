//! An ORAM that goes on behind another wrapper of its scheme, and with other coins.

use rand_core::CryptoRng;

use super::FreecursiveOram;
use crate::error::{Error, ErrorKind, check_sound};
use crate::scheme::{Scheme, TreeConfig};

impl<S: Scheme, R: CryptoRng> FreecursiveOram<S, R> {
    /// The same ORAM, with the blocks that it holds and the keys that it has, over what `wrap` makes of its
    /// scheme. It goes on with `coins`, which must be unpredictable to storage, and independent of those that it
    /// had: positions drawn from the same ones again would follow from positions that storage has seen.
    ///
    /// So one that was filled once serves many: as it is, behind a log of its paths, or as the main tree of
    /// [ρ](crate::front::rho).
    ///
    /// # Errors
    /// Those of `wrap`; [`ErrorKind::InvalidConfig`] when what it makes has another tree;
    /// [`ErrorKind::MustReopen`] after an earlier error.
    pub fn handed_on<T: Scheme, Q: CryptoRng>(
        self,
        wrap: impl FnOnce(S) -> Result<T, Error>,
        coins: Q,
    ) -> Result<FreecursiveOram<T, Q>, Error> {
        check_sound(self.broken)?;
        let shape = |tree: &TreeConfig| (tree.capacity, tree.block_bytes, tree.geometry.clone());
        let had = shape(self.scheme.config());
        let scheme = wrap(self.scheme)?;
        if shape(scheme.config()) != had {
            let message = "an ORAM goes on over the tree that it has, and not over another one";
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
