//! What can go wrong in the lab.

use std::fmt;

/// An experiment that gave no result.
#[derive(Debug)]
pub enum LabError {
    /// The plan asks for something that cannot be measured. The message says what to change.
    Plan(String),
    /// A file is not what it should be. The message names it and where it is wrong, and says what to do.
    Input(String),
    /// What was asked for cannot be kept. The message names the file.
    Output(String),
    /// The simulator refused.
    Simulation(oblivio_sim::SimError),
    /// The engine refused.
    Engine(oblivio_core::Error),
    /// A results file is not one.
    Results(serde_json::Error),
    /// A plot could not be drawn.
    Plot(String),
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(message) | Self::Input(message) | Self::Output(message) => {
                f.write_str(message)
            }
            Self::Simulation(error) => error.fmt(f),
            Self::Engine(error) => write!(f, "the engine refused: {error}"),
            Self::Results(error) => write!(f, "this is no results file of this lab: {error}"),
            Self::Plot(message) => write!(f, "the plot could not be drawn: {message}"),
        }
    }
}

impl std::error::Error for LabError {}

impl From<oblivio_models::Error> for LabError {
    fn from(error: oblivio_models::Error) -> Self {
        match error {
            oblivio_models::Error::Plan(message) => Self::Plan(message),
            oblivio_models::Error::Allocation(message) => Self::Input(message),
            oblivio_models::Error::Engine(error) => Self::Engine(error),
            oblivio_models::Error::Results(error) => Self::Results(error),
        }
    }
}

impl From<oblivio_core::Error> for LabError {
    fn from(error: oblivio_core::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<oblivio_sim::SimError> for LabError {
    fn from(error: oblivio_sim::SimError) -> Self {
        Self::Simulation(error)
    }
}

impl From<serde_json::Error> for LabError {
    fn from(error: serde_json::Error) -> Self {
        Self::Results(error)
    }
}
