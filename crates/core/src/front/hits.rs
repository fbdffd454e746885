//! What becomes of a request whose block is on the client.

/// Whether a request for a block that the client holds makes a path access.
///
/// The client holds a block, and knows it by its address, if it is in the stash or in a
/// [set-associative](crate::stash::TreeTopKind::SetAssociative) tree top. A dedicated tree top is not
/// searched.
///
/// ```
/// use oblivio_core::{HitPolicy, Key, MemoryStore, Oram, PathOram, Sealer, TreeConfig, TreeTopKind};
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
/// let mut config = TreeConfig::path(1000, 64)?;
/// config.tree_top_levels = 4;
/// config.tree_top = TreeTopKind::SetAssociative { ways: 4 };
/// let store = MemoryStore::new(&[config.shape()?], MemoryStore::default_layout())?;
/// // Neither durable nor authenticated: what that means is on the first page of this crate.
/// let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree);
/// let oram = PathOram::path(&config, sealer, store, coins)?;
/// let mut oram = oram.with_hits(HitPolicy::Serve);
///
/// for _ in 0..100 {
///     oram.write(7, &[42; 64])?;
/// }
/// assert!(oram.tally().data_accesses < 20, "it soon is near the root, and stays there");
/// # Ok::<(), oblivio_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HitPolicy {
    /// It does: there are as many accesses as there would be if the client held nothing.
    #[default]
    Access,
    /// It does not: the block is served where it is, keeps its leaf, and no position map is asked
    /// (IR-ORAM, section IV-C).
    ///
    /// Each access still shows a leaf that was drawn uniformly and is used once. But storage sees
    /// - **how many accesses there are**, and that depends on the addresses: requests for a few blocks
    ///   again and again make far fewer than a scan. Whoever must hide that makes path accesses at a
    ///   fixed rate.
    /// - **whether they follow the evictions before them.** An eviction moves blocks off the client whose
    ///   leaves share levels with its path, and only a block that is not on the client makes an access. So where
    ///   requests are for a few blocks again and again, accesses share levels with the path that was
    ///   evicted to last more often than chance has it: three levels in 16 of 100 accesses instead of
    ///   12.5, in a tree of seven levels with three of them in sets. A fixed rate thins that
    ///   out and does not hide it. IR-ORAM does not speak of it.
    ///
    /// A block that is served keeps its leaf, so one that waits for room on an overloaded path waits on,
    /// and no background eviction helps: give the stash a bound with room to spare.
    Serve,
}
