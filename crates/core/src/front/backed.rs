//! ORAMs over one scheme: what else can make path accesses beside them.

use rand_core::CryptoRng;

use super::{FlatOram, TakingOram};
use crate::scheme::Scheme;

/// An ORAM all of whose path accesses one scheme makes, and whose blocks are there under their own
/// addresses. [ρ](crate::front::rho) stands before such a one; and is none itself, as it has two trees.
pub trait BackedOram: TakingOram {
    /// What makes the path accesses.
    type Scheme: Scheme;

    /// What makes the path accesses.
    fn scheme(&self) -> &Self::Scheme;

    /// What makes the path accesses, for whoever wraps it.
    fn scheme_mut(&mut self) -> &mut Self::Scheme;
}

impl<S: Scheme, R: CryptoRng> BackedOram for FlatOram<S, R> {
    type Scheme = S;

    fn scheme(&self) -> &S {
        &self.scheme
    }

    fn scheme_mut(&mut self) -> &mut S {
        &mut self.scheme
    }
}
