//! What can go wrong in a simulation.

use std::{fmt, io};

/// A simulation that gave no result.
#[derive(Debug)]
pub enum SimError {
    /// A trace is not one. The message names the file and the line, and says what to do.
    Trace(String),
    /// What is to be simulated contradicts itself. The message says what to change.
    Spec(String),
    /// The engine refused.
    Engine(oblivio_core::Error),
    /// A command of DRAM that breaks its rules: a defect of the simulator, which only a run that checks commands can find.
    Command(String),
    /// What is to go on was not saved, or is damaged. The message says why.
    Saved(String),
    /// What was made cannot be written to where it should go.
    Output(io::Error),
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(message) | Self::Spec(message) | Self::Saved(message) => {
                f.write_str(message)
            }
            Self::Command(message) => write!(
                f,
                "a command of DRAM is illegal, which is a defect of the simulator: {message}"
            ),
            Self::Engine(error) => write!(f, "the engine refused: {error}"),
            Self::Output(error) => write!(f, "the output cannot be written: {error}"),
        }
    }
}

impl std::error::Error for SimError {}

impl From<oblivio_core::Error> for SimError {
    fn from(error: oblivio_core::Error) -> Self {
        Self::Engine(error)
    }
}
