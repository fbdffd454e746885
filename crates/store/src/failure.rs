//! The error after which a store over other stores refuses all later calls.

use oblivio_core::{StoreError, StoreErrorKind};

/// The first error of a store that consists of other stores. After this error, the contents of the
/// underlying stores are unknown.
#[derive(Debug, Default)]
pub struct StoreFailure(Option<(StoreErrorKind, String)>);

impl StoreFailure {
    /// Checks that the store has not failed.
    ///
    /// # Errors
    /// An error of the kind of the failure, if the store has failed.
    pub fn check(&self) -> Result<(), StoreError> {
        self.0.as_ref().map_or(Ok(()), |(kind, message)| {
            let message = format!("the store refuses all calls after an error: {message}");
            Err(StoreError::new(*kind, message))
        })
    }

    /// Records an error as the failure, and returns it.
    pub fn record(&mut self, error: StoreError) -> StoreError {
        self.0 = Some((error.kind(), error.to_string()));
        error
    }
}
