//! Schemes for storage that outlives the client.
//!
//! A durable scheme splits an access in two. [`plan`](DurableOram::plan) draws all that the access
//! will show to storage, and shows nothing. [`carry_out`](DurableOram::carry_out) makes the access.
//! A client that must survive a crash writes the [`AccessPlan`] to its log in between. If the plan
//! is carried out again from the same state, it shows storage the same. This is the commit protocol
//! of ADR 5 of the repository, and it works with every scheme.
//!
//! ```text
//! opening:   DurableScheme ─ decode ─► DurableConfig ─ restore ─► Restore ─ finish ─► Durable
//! an access:      plan ─► (log) ─► carry_out
//! a checkpoint:   flush ─► begin_era ─► save ─► (durable) ─► mark_durable
//! ```
//!
//! An array implements three traits: [`DurableOram`] for accesses, [`Snapshot`] for states that
//! survive the client, and [`Audit`] for reading all of storage. Then it is a [`Durable`], and a
//! volume holds it as one `Box<dyn Durable>`.
//!
//! The log keeps a plan as an [`EncodedPlan`], and a checkpoint keeps a state as *sections*. Both
//! are bytes that only the scheme reads, so it alone can change their form. They hold secrets; the
//! caller seals them. A scheme encodes a plan once, when it draws it, and decodes one only during
//! recovery.
//!
//! # Adding a scheme
//! A scheme is a folder and one entry in the list of schemes. After step 3 the compiler demands
//! steps 4 to 8. It does not demand the steps marked with an asterisk.
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
//! public fields, because step 5 makes volumes with them. Step 3: append the new entry, because the
//! first scheme of the list is the default of new volumes. Step 4 makes `create --scheme NAME`,
//! `plan`, `info`, `check`, servers, mounts and rescues work, and adds the name to the help. Step
//! 6: three setups, namely the default, one with `Device::Raw` and `SyncMoves::AtFlush`, and one at
//! a fixed rate. Steps 6 and 7 are files with a `mod NAME;` in `setups.rs` and `main.rs` beside
//! them; `scan.rs` is the example. Step 8: the tests of `promises.rs` expect an access to move its
//! block. If the new scheme moves none, exempt it there, like `scan`. Step 10: `docs/format.md`
//! also links all schemes from its list of trees, its superblock and its log. The fuzz targets
//! `volume` and `state_file` and the tests over `SmallScheme::each` include the new scheme by
//! themselves.
//!
//! The compiler points at one step at a time, because each crate needs the one before:
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
//! [servers](DurableScheme::needs_servers) that compute; its crash setups are beside the setups of
//! `shares`.
//!
//! # What a scheme has to get right
//! - **Never overwrite what a saved state needs.** After a crash the client returns to the state of
//!   its last [`mark_durable`](Snapshot::mark_durable) and makes the same accesses again. So write
//!   to places that this state does not read: round a ring, or to two copies in turn. [`Headroom`]
//!   says how many accesses are left. One is enough to work, with a checkpoint before each access.
//! - **One counter for everything.** Place, name and version of each write follow from one counter,
//!   which a state saves. The seal calls it `eviction`. A name may be sealed once in an era, and a
//!   `BucketName` does not contain the place. An access that writes many buckets takes one number
//!   or one level for each.
//! - **Eras use the same counter**: `first_eviction` of an [`Era`](crate::seal::Era), the argument
//!   of `drop_before`, and both arguments of `eras_max`. Keep the eras of two rounds, because
//!   [`probe_rollback`](Snapshot::probe_rollback) looks for what a place held before. An era can
//!   begin only where an access begins; if an access takes several numbers, give `eras_max`
//!   accesses. A bound that is too large loses nothing, but `plan` reserves space for it.
//! - **One [`write`](crate::store::BucketStore::write) is one trip.** It calls its closure once,
//!   with blanks for all pieces. Seal each, piece `i` with `BucketPieces { head: i, .. }`, and end
//!   with `sealed`. An unsealed blank panics. [`scan`] writes one piece at a time;
//!   `crates/core/src/scheme/rotating/io.rs` writes several.
//! - **A store that was never written reads as zeros**, and no key opens zeros. The counter says
//!   which places were never written: skip them, or expect zeros.
//! - **All padded states have the same length.** Storage sees how long it takes to save one.
//!   [`Save::WholePadded`] adds empty sections up to the length of the longest state.
//! - **Forgotten blocks read as zeros**, even if storage still holds their old contents. Keep a bit
//!   for each block that has contents.
//! - **Parameters are untrusted.** [`decode`](DurableScheme::decode) checks them before it computes
//!   with them, and each configuration has exactly one encoding. Sections are this client's own;
//!   check them all the same, with `section::Fields`.
//! - **Set `broken` before the first trip, clear it after the last.** After an error in between,
//!   every method returns [`MustReopen`](crate::ErrorKind::MustReopen).
//!
//! # What each method shows
//! | methods | storage may learn | it must not depend on |
//! |---|---|---|
//! | `plan`, `forget`, `save`, `restore_client_block`, `serve_on_client` | nothing | |
//! | `load` | that there is data, and the size of the array | which blocks have data |
//! | `carry_out`, `announce` | the number of accesses, and what the plan drew | the request |
//! | `headroom`, `evict` | that they are needed | addresses, but for the threat model's limits |
//! | `missing_positions` | nothing; the accesses to positions show | |
//! | `flush`, `begin_era`, `mark_durable`, `probe_rollback` | the counter | all else |
//! | `check_storage` | the counter | all else |
//! | `check`, `salvage` | that all is read, in the counter's order; the place of damage | blocks |
//!
//! Methods of the first row make no trip and no prefetch. A block that `serve_on_client` serves
//! shows as an access that does not happen. The request of `carry_out` is the address, read or
//! write, block or [dummy](Want::Dummy), whether the block has contents and where it was found.
//! Whether and when an access fails must not depend on it either.
//!
//! [`StateSize`] is public. No section may be longer than it says.
//!
//! # Tests, and what they find
//! | command | it finds |
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
//! bucket of a level is read; the tests of step 7 do that, to the piece where nothing is drawn, and
//! with statistics where leaves are.
//!
//! Last, run `create --size 256K --scheme NAME`, `serve nbd --run 'nbdcopy image "$uri"'` and
//! `check`. A `check` of a volume that was never written reads little, and proves little.

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
/// After any error but [`InvalidRequest`](crate::ErrorKind::InvalidRequest) and
/// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) an array refuses every request with
/// [`MustReopen`](crate::ErrorKind::MustReopen).
pub trait Durable: DurableOram + Snapshot + Audit {}

impl<T: DurableOram + Snapshot + Audit> Durable for T {}
