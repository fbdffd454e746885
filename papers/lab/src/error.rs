//! Errors of experiments.

/// The reason why an experiment gave no result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The plan cannot be measured. The message says what to change.
    #[error("{0}")]
    Plan(String),
    /// An input file is invalid, or does not belong to the plan. The message says what is wrong.
    #[error("{0}")]
    Input(String),
    /// A result or a measured file cannot be written. The message names the file or the folder.
    #[error("{0}")]
    Output(String),
    /// An error of the simulator.
    #[error(transparent)]
    Simulation(#[from] oblivio_sim::SimError),
    /// An error of the engine.
    #[error("the engine failed: {0}")]
    Engine(#[from] oblivio_core::Error),
    /// A file is not a results file, or results cannot be serialized.
    #[error("not a results file of this lab: {0}")]
    Results(#[from] serde_json::Error),
    /// A plot could not be drawn.
    #[error("cannot draw the plot: {0}")]
    Plot(String),
}

impl From<oblivio_models::Error> for LabError {
    fn from(error: oblivio_models::Error) -> Self {
        match error {
            oblivio_models::Error::Plan(message) => Self::Plan(message),
            oblivio_models::Error::Allocation(message) | oblivio_models::Error::Prices(message) => {
                Self::Input(message)
            }
            oblivio_models::Error::Engine(error) => Self::Engine(error),
            oblivio_models::Error::Results(error) => Self::Results(error),
        }
    }
}
