//! The rules of this repository that the compiler does not check, as tests.
//!
//! | test | rule |
//! |---|---|
//! | `arrows` | which crate may depend on which |
//! | `rooms` | which module of the engine may use which |
//! | `purity` | what the engine must not use; where `unsafe` code is allowed |
//! | `claims` | the threat model cites the claims of `docs/claims.toml`, and their tests exist |
//! | `doors` | storage is opened in one place |
//! | `language` | line widths and banned phrases |
//! | `licences` | no dependency has a copyleft licence |
//! | `links` | links between documents lead somewhere |
//! | `private_files` | only their owner can read the files of volumes |
//! | `published` | which crates can be published, and that each is complete |
//! | `schemes` | volumes name schemes only in one table |
//! | `tree` | no file contains a path of a developer's machine; every crate inherits the lints |
//! | `wrappers` | a store that wraps another store forwards every method |
//!
//! Nothing depends on this crate. It has two programs, the examples `draw-comments` and `claims`.

pub mod claims;
pub mod sources;
