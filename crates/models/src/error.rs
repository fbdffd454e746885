//! What can go wrong in a model.

use std::fmt;

/// A model or a search that gave no result.
#[derive(Debug)]
pub enum Error {
    /// The plan asks for something that cannot be measured. The message says what to change.
    Plan(String),
    /// A results file holds no profile that this volume can have. The message says why.
    Allocation(String),
    /// The engine refused.
    Engine(oblivio_core::Error),
    /// A results file is not one.
    Results(serde_json::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(message) | Self::Allocation(message) => f.write_str(message),
            Self::Engine(error) => write!(f, "the engine refused: {error}"),
            Self::Results(error) => write!(f, "this is no results file of this lab: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<oblivio_core::Error> for Error {
    fn from(error: oblivio_core::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Results(error)
    }
}
