//! What can go wrong in the lab.

use std::fmt;

/// An experiment that gave no result.
#[derive(Debug)]
pub enum LabError {
    /// The plan asks for something that cannot be measured. The message says what to change.
    Plan(String),
    /// The engine refused.
    Engine(oblivio_core::Error),
    /// A results file is not one.
    Results(serde_json::Error),
    /// A results file holds no profile that this volume can have. The message says why.
    Allocation(String),
    /// A plot could not be drawn.
    Plot(String),
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(message) | Self::Allocation(message) => f.write_str(message),
            Self::Engine(error) => write!(f, "the engine refused: {error}"),
            Self::Results(error) => write!(f, "this is no results file of this lab: {error}"),
            Self::Plot(message) => write!(f, "the plot could not be drawn: {message}"),
        }
    }
}

impl std::error::Error for LabError {}

impl From<oblivio_core::Error> for LabError {
    fn from(error: oblivio_core::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<serde_json::Error> for LabError {
    fn from(error: serde_json::Error) -> Self {
        Self::Results(error)
    }
}
