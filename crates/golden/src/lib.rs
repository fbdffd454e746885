//! Golden model of the hardware ORAM controller.
//!
//! [`Golden`] runs each command of a test bench on the engine, over an image of the controller's
//! memory. It queues the output expected from the controller: memory commands, beats, the response,
//! and the remaining stash. The bench passes the controller's output to the model. The first
//! difference is an error that names the command and the beat.
//!
//! | module | content |
//! |---|---|
//! | [`params`] | parameters of a controller, and the checks on them |
//! | [`layout`] | the address of each bucket in the memory of the controller |
//! | [`image`](mod@image) | the controller's memory, and the engine's store over it |
//! | [`expected`] | the output still expected from the controller |
//! | [`commands`] | random commands |
//! | [`position`] | leaf and contents of each block, and how full the tree is |
//! | [`golden`] | the model |
//! | [`abi`] | the C interface; `hw/dv/golden.h` declares it |

pub mod abi;
pub mod commands;
pub mod expected;
pub mod golden;
pub mod image;
pub mod layout;
pub mod params;
pub mod position;

pub use commands::{Command, Mix, Operation};
pub use golden::Golden;
pub use params::{Params, SchemeKind};

use std::fmt;

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The controller's output differs from the engine's.
    #[error("mismatch: {0}")]
    Mismatch(String),
    /// The bench called the model with invalid arguments or in a wrong state; the model is then
    /// unchanged. Also if the engine fails, or blocks stay in the stash after too many evictions;
    /// the model must then not be used any more.
    #[error("misuse: {0}")]
    Misuse(String),
}

/// Returns a [`Problem::Misuse`] with this text.
pub(crate) fn misuse(text: impl fmt::Display) -> Problem {
    Problem::Misuse(text.to_string())
}
