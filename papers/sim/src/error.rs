//! Errors of a simulation.

use std::io;

/// The reason why a simulation gave no result.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A trace is invalid. The message names the position of the fault, if it is known, and says
    /// what to do.
    #[error("{0}")]
    Trace(String),
    /// The specification is invalid. The message says what to change.
    #[error("{0}")]
    Spec(String),
    /// The engine refused a request.
    #[error("the engine refused: {0}")]
    Engine(#[from] oblivio_core::Error),
    /// A DRAM command breaks the rules: a defect of the simulator. Only runs with a checker can
    /// detect it.
    #[error("illegal DRAM command (a defect of the simulator): {0}")]
    Command(String),
    /// A saved study cannot be read, is damaged, or belongs to another specification, seed or
    /// version of the program. The message says which.
    #[error("{0}")]
    Saved(String),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[source] io::Error),
}
