//! ORAMs over one backend: what else can make path accesses beside them.

use rand_core::CryptoRng;

use super::{FlatOram, TakingOram};
use crate::scheme::TakingBackend;

/// An ORAM all of whose path accesses one backend makes, and whose blocks are there under their own
/// addresses. [ρ](crate::rho) stands before such a one; and is none itself, as it has two trees.
pub trait BackedOram: TakingOram {
    /// What makes the path accesses.
    type Backend: TakingBackend;

    /// What makes the path accesses.
    fn backend(&self) -> &Self::Backend;

    /// What makes the path accesses, for whoever wraps it.
    fn backend_mut(&mut self) -> &mut Self::Backend;
}

impl<B: TakingBackend, R: CryptoRng> BackedOram for FlatOram<B, R> {
    type Backend = B;

    fn backend(&self) -> &B {
        &self.backend
    }

    fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }
}
