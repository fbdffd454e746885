//! What can go wrong in the lab.

/// An experiment that gave no result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The plan asks for something that cannot be measured. The message says what to change.
    #[error("{0}")]
    Plan(String),
    /// A file is not what it should be. The message names it and where it is wrong, and says what to do.
    #[error("{0}")]
    Input(String),
    /// What was asked for cannot be kept. The message names the file.
    #[error("{0}")]
    Output(String),
    /// The simulator refused.
    #[error(transparent)]
    Simulation(#[from] oblivio_sim::SimError),
    /// The engine refused.
    #[error("the engine refused: {0}")]
    Engine(#[from] oblivio_core::Error),
    /// A results file is not one.
    #[error("this is no results file of this lab: {0}")]
    Results(#[from] serde_json::Error),
    /// A plot could not be drawn.
    #[error("the plot could not be drawn: {0}")]
    Plot(String),
}

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
