//! What can go wrong in a simulation.

use std::io;

/// A simulation that gave no result.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A trace is not one. The message names the file and the line, and says what to do.
    #[error("{0}")]
    Trace(String),
    /// What is to be simulated contradicts itself. The message says what to change.
    #[error("{0}")]
    Spec(String),
    /// The engine refused.
    #[error("the engine refused: {0}")]
    Engine(#[from] oblivio_core::Error),
    /// A command of DRAM that breaks its rules: a defect of the simulator, which only a run that checks commands can find.
    #[error("a command of DRAM is illegal, which is a defect of the simulator: {0}")]
    Command(String),
    /// What is to go on was not saved, or is damaged. The message says why.
    #[error("{0}")]
    Saved(String),
    /// What was made cannot be written to where it should go.
    #[error("the output cannot be written: {0}")]
    Output(#[source] io::Error),
}
