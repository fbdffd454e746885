//! What becomes of a request whose block is on the client.

/// Whether a request for a block that the client holds makes a path access.
///
/// The client holds a block, and knows it by its address, if it is in the stash or in a
/// [set-associative](crate::stash::TreeTopKind::SetAssociative) tree top. A dedicated tree top is not
/// searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HitPolicy {
    /// It does: there are as many accesses as there would be if the client held nothing.
    #[default]
    Access,
    /// It does not: the block is served where it is, keeps its leaf, and no position map is asked
    /// (IR-ORAM, section IV-C).
    ///
    /// Each access still shows a uniformly random leaf, each used once. But storage sees **how many
    /// accesses there are**, and that depends on the addresses: requests for a few blocks again and
    /// again make far fewer than a scan. Whoever must hide that makes path accesses at a fixed rate.
    Serve,
}
