//! The client's counter of sealed writes.

use crate::error::{Error, ErrorKind};

/// Issues each 64-bit value once: the stored counter of the seal (`IV2` in RAW ORAM).
///
/// One value serves all buckets of a path, because their names distinguish their masks. Value 0 is
/// never issued: a bucket never written reads as zeros, so it differs from a written bucket.
/// Public: the counter is the number of path writes.
#[derive(Debug)]
pub struct WriteCounter {
    last: u64,
}

impl WriteCounter {
    /// A counter for a key that was never used.
    pub fn new() -> Self {
        Self::resume_after(0)
    }

    /// A counter for a key that may have been used with values up to `last`.
    pub fn resume_after(last: u64) -> Self {
        Self { last }
    }

    /// Issues the next value.
    ///
    /// # Errors
    /// [`ErrorKind::CounterExhausted`] if no value is left: a value is never issued twice.
    pub fn advance(&mut self) -> Result<u64, Error> {
        self.last = self.last.checked_add(1).ok_or_else(exhausted)?;
        Ok(self.last)
    }
}

impl Default for WriteCounter {
    fn default() -> Self {
        Self::new()
    }
}

/// The error of an exhausted counter.
pub(crate) fn exhausted() -> Error {
    Error::new(
        ErrorKind::CounterExhausted,
        "2^64 writes have been sealed under this key: move the data to an ORAM with a fresh key",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_at_one_and_ends_with_an_error() {
        let mut counter = WriteCounter::new();
        assert_eq!((counter.advance().unwrap(), counter.advance().unwrap()), (1, 2));
        let mut counter = WriteCounter::resume_after(u64::MAX - 1);
        assert_eq!(counter.advance().unwrap(), u64::MAX);
        for _ in 0..3 {
            assert_eq!(counter.advance().unwrap_err().kind(), ErrorKind::CounterExhausted);
        }
    }
}
