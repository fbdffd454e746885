//! The failure that makes a composite store refuse all later calls.

use oblivio_core::{StoreError, StoreErrorKind};

/// The failure of a store over others, if there was one. After it, the contents of the stores below
/// are unknown.
#[derive(Debug, Default)]
pub struct StoreFailure(Option<(StoreErrorKind, String)>);

impl StoreFailure {
    /// Checks that the store has not failed.
    ///
    /// # Errors
    /// An error of the kind of the failure.
    pub fn check(&self) -> Result<(), StoreError> {
        self.0.as_ref().map_or(Ok(()), |(kind, message)| {
            let message = format!("the store answers nothing more after an error: {message}");
            Err(StoreError::new(*kind, message))
        })
    }

    /// Keeps an error as the failure, and returns it.
    pub fn keep(&mut self, error: StoreError) -> StoreError {
        self.0 = Some((error.kind(), error.to_string()));
        error
    }
}
