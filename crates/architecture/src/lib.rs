//! The rules of this repository that no compiler knows, as tests.
//!
//! | test | rule |
//! |---|---|
//! | `arrows` | which crate may know which |
//! | `rooms` | which module of the engine may know which |
//! | `purity` | what the engine must not use; where `unsafe` may stand |
//! | `claims` | documents name tests that there are |
//! | `doors` | storage is opened in one place |
//! | `licences` | everything we build on may be used without copyleft |
//! | `tree` | no file names somebody's machine; every crate has the common lints |
//!
//! Nothing depends on this crate, and it has no code of its own.
