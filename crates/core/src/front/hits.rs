//! The policy for requests to blocks on the client.

/// The policy that says whether a request for a block on the client makes a path access.
///
/// The client can find a block by its address if the block is in the stash or in a
/// [set-associative](crate::stash::TreeTopKind::SetAssociative) tree top. A dedicated tree top is
/// not searched.
///
/// ```
/// use oblivio_core::{HitPolicy, Key, MemoryStore, Oram, PathOram, Sealer};
/// use oblivio_core::{TreeConfig, TreeTopKind};
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
/// let mut config = TreeConfig::path(1000, 64)?;
/// config.tree_top_levels = 4;
/// config.tree_top = TreeTopKind::SetAssociative { ways: 4 };
/// let store = MemoryStore::new(&[config.shape()?], MemoryStore::default_layout())?;
/// // Neither durable nor authenticated: see "Limitations" on the first page of this crate.
/// let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree);
/// let oram = PathOram::path(&config, sealer, store, coins)?;
/// let mut oram = oram.with_hits(HitPolicy::Serve);
///
/// for _ in 0..100 {
///     oram.write(7, &[42; 64])?;
/// }
/// assert!(oram.tally().data_accesses < 20, "soon the block is near the root and stays there");
/// # Ok::<(), oblivio_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HitPolicy {
    /// A request for a block on the client makes an access, so the number of accesses does not
    /// depend on what the client holds.
    #[default]
    Access,
    /// A request for a block on the client makes no access. The block is served in place, keeps its
    /// leaf, and the position map is not used (IR-ORAM, section IV-C).
    ///
    /// Each access still reveals a uniformly drawn leaf that is used once. But storage sees:
    /// - **How many accesses there are.** The number depends on the addresses: repeated requests
    ///   for a few blocks make far fewer than a scan. To hide this, make path accesses at a fixed
    ///   rate.
    /// - **A correlation between accesses and earlier evictions.** An eviction moves blocks off the
    ///   client if their leaves share levels with its path, and only a block that is not on the
    ///   client makes an access. So with repeated requests for a few blocks, accesses share levels
    ///   with the last evicted path more often than by chance. In a tree of seven levels, three of
    ///   them in a set-associative tree top, 16 % of accesses shared three levels instead of
    ///   12.5 %. A fixed rate dilutes this correlation and does not hide it. IR-ORAM does not
    ///   mention it.
    ///
    /// A served block keeps its leaf. So a block that waits for a slot on an overloaded path keeps
    /// waiting, and background evictions do not help: choose a stash bound with headroom.
    Serve,
}
