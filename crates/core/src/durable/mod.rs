//! Schemes for storage that outlives the client.
//!
//! A durable scheme splits an access in two. [`plan`](DurableOram::plan) draws everything that the
//! access will show to storage, but shows nothing itself. [`carry_out`](DurableOram::carry_out)
//! makes the access. A client that must survive a crash writes the [`AccessPlan`] to its log in
//! between. If the plan is carried out again from the same state, storage sees the same. This is
//! the commit protocol of ADR 5 of the repository, and it works with every scheme.
//!
//! ```text
//! opening:   DurableScheme ─ decode ─► DurableConfig ─ restore ─► Restore ─ finish ─► Durable
//! an access:      plan ─► (log) ─► carry_out
//! a checkpoint:   flush ─► begin_era ─► save ─► (durable) ─► mark_durable
//! ```
//!
//! An array implements three traits: [`DurableOram`] for accesses, [`Snapshot`] for states that
//! survive the client, and [`Audit`] for reading all of storage. An array with all three is a
//! [`Durable`], and a volume holds it as one `Box<dyn Durable>`.
//!
//! The log keeps a plan as an [`EncodedPlan`], and a checkpoint keeps a state as *sections*. Plans
//! and sections are bytes that only the scheme reads, so only the scheme defines their format. They
//! hold secrets; the caller seals them. A scheme encodes a plan once, when it draws it, and decodes
//! one only during recovery.
//!
//! # Adding a scheme
//! A scheme is a folder and one entry in the list of schemes. After step 3 the program does not
//! compile until steps 4 to 8 are done. The compiler does not check the steps marked with an
//! asterisk.
//!
//! | step | where | what |
//! |---:|---|---|
//! | 1 | `crates/core/src/durable/NAME/` | the scheme; begin with a copy of [`scan`] |
//! | 2 | `crates/core/src/durable/mod.rs` | `pub mod NAME;` |
//! | 3 | `crates/core/src/schemes.rs` | `Name name` in the list `volume` of [`schemes!`] |
//! | 4 | `crates/volume/src/schemes.rs` | its `use` and its arm of `description` |
//! | 5 | `crates/testkit/src/crash/small_volume.rs` | a variant of `SmallScheme`; its parameters |
//! | 5* | the same, `on_each_scheme` | fewer blocks, if an access reads all of them |
//! | 6 | `crates/crash-suite/src/setups/NAME.rs` | its setups in the crash suite |
//! | 7 | `crates/volume/tests/volume/NAME.rs` | tests of what storage sees of this scheme alone |
//! | 8 | `crates/core/tests/engine/durable/mod.rs` | an arm of `configs` |
//! | 9* | `crates/planted-leaks/leaks/` | a patch and a `leaks.toml` row for each privacy test |
//! | 10* | `docs/format.md`, `docs/threat-model.md` | its bytes; what storage learns |
//! | 11* | `docs/choosing.md`, `docs/glossary.md`, `CHANGELOG.md` | its name, and what it is for |
//!
//! Step 1: [`scan`] is a complete scheme in five files. Its parameters are a public type with
//! public fields, because step 5 makes volumes with them. Step 3: append the new entry at the end,
//! because the first scheme of the list is the default of new volumes. Step 4 makes `create
//! --scheme NAME`, `plan`, `info`, `check`, servers, mounts and rescues work, and adds the name to
//! the help. Step 6: three setups, namely the default, one with `Device::Raw` and
//! `SyncMoves::AtFlush`, and one at a fixed rate. Each of the steps 6 and 7 adds a file, and a line
//! `mod NAME;` in the `setups.rs` or `main.rs` that loads it; `scan.rs` is the example. Step 8: the
//! tests of `promises.rs` expect an access to move its block. If the new scheme moves none, exempt
//! it there, like `scan`. Step 10: `docs/format.md` also names all schemes in its list of trees,
//! its superblock and its log. The fuzz targets `volume` and `state_file` and the tests over
//! `SmallScheme::each` include the new scheme by themselves.
//!
//! The compiler reports one step at a time, because each crate depends on the crate of the previous
//! step:
//!
//! ```text
//! step 4   cargo build --profile test -p oblivio-volume
//! step 5   cargo build --profile test -p oblivio-testkit
//! step 6   cargo build --profile test -p oblivio-crash-suite
//! step 7   cargo test --profile test -p oblivio-volume --test volume --no-run
//! step 8   cargo test --profile test -p oblivio-core --test engine --no-run
//! ```
//!
//! [`schemes!`]: crate::schemes!
//!
//! A scheme may be in a crate of its own, as `oblivio_shares::durable` is. That scheme needs
//! [servers](DurableScheme::needs_servers) that compute. Its crash setups are with the setups of
//! `shares`.
//!
//! # What a scheme must guarantee
//! - **Never overwrite what a saved state needs.** After a crash the client returns to the state of
//!   its last [`mark_durable`](Snapshot::mark_durable) and makes the same accesses again. So write
//!   to places that this state does not read: around a ring, or to two copies alternately.
//!   [`Headroom`] says how many accesses are left before a checkpoint. A scheme with headroom for
//!   only one access works, but needs a checkpoint before each access.
//! - **One counter for everything.** Place, name and version of each write follow from one counter,
//!   which a state saves. The seal calls it `eviction`. A name must not be sealed twice in an era,
//!   and a `BucketName` does not contain the place. So an access that writes many buckets gives
//!   each bucket its own number or its own level.
//! - **Eras use the same counter**: `first_eviction` of an [`Era`](crate::seal::Era), the argument
//!   of `drop_before`, and both arguments of `eras_max`. Keep the eras of the last two rounds over
//!   all places, because [`probe_rollback`](Snapshot::probe_rollback) looks for the previous
//!   contents of a place. An era can begin only when an access begins; if an access takes several
//!   numbers, pass numbers of accesses to `eras_max`. A bound that is too large is safe, but `plan`
//!   reserves space for it.
//! - **One [`write`](crate::store::BucketStore::write) is one trip.** It calls its closure once,
//!   with blanks for all pieces. Seal every piece, piece `i` with `BucketPieces { head: i, .. }`,
//!   and finally call `sealed`, which panics if a blank is not sealed. [`scan`] writes one piece at
//!   a time; `crates/core/src/scheme/rotating/io.rs` writes several.
//! - **A store that was never written reads as zeros**, and no key opens zeros. The counter
//!   determines which places were never written: skip them, or expect zeros.
//! - **All padded states have the same length.** Storage sees how long it takes to save one.
//!   [`Save::WholePadded`] adds empty sections up to the length of the longest state.
//! - **Forgotten blocks read as zeros**, even if storage still holds their old contents. Keep a bit
//!   for each block that has contents.
//! - **Parameters are untrusted.** [`decode`](DurableScheme::decode) checks them before it computes
//!   with them, and each configuration has exactly one encoding. Sections were written by this
//!   client; check them nevertheless, with `section::Fields`.
//! - **Set `broken` before the first trip, clear it after the last.** After an error in between,
//!   every method returns [`MustReopen`](crate::ErrorKind::MustReopen).
//!
//! # What storage learns from each method
//! | methods | storage may learn | it must not depend on |
//! |---|---|---|
//! | `plan`, `forget`, `save`, `restore_client_block`, `serve_on_client` | nothing | |
//! | `load` | that there is data, and the size of the array | which blocks have data |
//! | `carry_out`, `announce` | the number of accesses, and what the plan drew | the request |
//! | `headroom`, `evict` | that they are needed | addresses, except as the threat model says |
//! | `missing_positions` | nothing; only the later accesses to positions are seen | |
//! | `flush`, `begin_era`, `mark_durable`, `probe_rollback` | the counter | all else |
//! | `check_storage` | the counter | all else |
//! | `check`, `salvage` | that all buckets are read, in public order; places of damage | blocks |
//!
//! Methods of the first row make no trip and no prefetch. If `serve_on_client` serves a block,
//! storage can notice the missing access. In the row of `carry_out`, the request comprises the
//! address, read or write, block or [dummy](Want::Dummy), whether the block has contents, and where
//! it was found. Whether and when an access fails must not depend on it either.
//!
//! [`StateSize`] is public. No section may exceed its limits.
//!
//! # Tests, and the defects that they find
//! | command | defects that it finds |
//! |---|---|
//! | `cargo test -p oblivio-testkit` | a small volume of another scheme |
//! | `cargo test -p oblivio-crash-suite` | a scheme without crash setups |
//! | `cargo test -p oblivio-core --test engine durable` | after step 8: broken promises |
//! | `cargo test -p oblivio-volume --lib` | an overlong scheme name; equal draws of copies |
//! | `cargo test -p oblivio-volume --test volume schedule` | trips unlike other schemes' |
//! | the same, `going_back`, `privacy::restored`, `crash` | rollbacks and reused names |
//! | the same, `state_room` | a [`StateSize`] too small, or eight times too large |
//! | the same, `padding` | a padded state whose length depends on its contents |
//! | `cargo run --release -p oblivio-crash-suite -- --points 3000 --seeds 1` | lost writes |
//! | `cargo run -p oblivio-planted-leaks -- --only LEAK` | a test that would not see a leak |
//! | `cargo test -p oblivio-architecture` | a volume that names the scheme outside of its table |
//!
//! The `schedule` tests compare dummies, hits, trims and extra trips. They do not compare which
//! bucket of a level is read. The tests of step 7 do that: piece by piece if the scheme draws
//! nothing, and with statistics if it draws leaves.
//!
//! Last, run `create --size 256K --scheme NAME`, `serve nbd --run 'nbdcopy image "$uri"'` and
//! `check`. A `check` of a volume that was never written reads hardly any buckets, so it proves
//! little.

mod audit;
mod config;
mod contents;
mod oram;
mod plan;
mod policy;
pub mod range;
mod requirements;
pub mod rotating;
mod salvage;
pub mod scan;
pub mod section;
mod snapshot;
mod sparse_address_set;
mod store;
mod wrong_servers;

pub use audit::Audit;
pub use config::{
    Cost, DurableConfig, DurableScheme, Fact, FactValue, Restore, SectionSize, StateSize,
    find_number,
};
pub use contents::Contents;
pub use oram::{ArrayFacts, DurableOram, Headroom, PositionUse, StashFill};
pub use plan::{AccessPlan, EncodedPlan, Want};
pub use policy::RangePolicy;
pub use requirements::{ArrayRequirements, Slots};
pub use salvage::{Recoverability, Salvage};
pub use snapshot::{EraStart, Save, Snapshot};
pub use sparse_address_set::SparseAddressSet;
pub use store::{AnyStore, VolumeStore};
pub use wrong_servers::WrongServers;

/// An array of blocks over a store that outlives the client: see [the module](self).
///
/// Addresses of blocks are 0 to the number of blocks less one. A scheme may keep its position map
/// among its own blocks. Then the *positions* of a block, which have numbers of their own, must be
/// on the client before the block can be accessed.
///
/// After an error of an access, an eviction or a flush, an array refuses all further accesses,
/// evictions and flushes with [`MustReopen`](crate::ErrorKind::MustReopen). Exceptions are
/// [`InvalidRequest`](crate::ErrorKind::InvalidRequest),
/// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) and
/// [`StashFull`](crate::ErrorKind::StashFull), which are returned before anything is touched.
pub trait Durable: DurableOram + Snapshot + Audit {}

impl<T: DurableOram + Snapshot + Audit> Durable for T {}
