//! What can go wrong in a model.

/// A model or a search that gave no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan asks for something that cannot be measured. The message says what to change.
    #[error("{0}")]
    Plan(String),
    /// A results file holds no profile that this volume can have. The message says why.
    #[error("{0}")]
    Allocation(String),
    /// The engine refused.
    #[error("the engine refused: {0}")]
    Engine(#[from] oblivio_core::Error),
    /// A results file is not one.
    #[error("this is no results file of this lab: {0}")]
    Results(#[from] serde_json::Error),
}
