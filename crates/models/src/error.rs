//! Errors of models.

/// The reason why a model or a search gave no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan is invalid. The message says what to change.
    #[error("{0}")]
    Plan(String),
    /// A results file contains no profile that fits this volume. The message says why.
    #[error("{0}")]
    Allocation(String),
    /// A price file is invalid. The message names the field or the line.
    #[error("{0}")]
    Prices(String),
    /// The engine returned an error.
    #[error("the engine refused: {0}")]
    Engine(#[from] oblivio_core::Error),
    /// A file is not a results file.
    #[error("not a results file of this search: {0}")]
    Results(#[from] serde_json::Error),
}
