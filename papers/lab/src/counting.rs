//! The world of experiments under test.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::{Host, LabError, line_of};

/// A world that counts, and in which each look at the clock takes a second.
#[derive(Default)]
pub(crate) struct Counting {
    looks: AtomicU64,
    pub(crate) planned: AtomicU64,
    pub(crate) made: AtomicU64,
    /// What was told first.
    pub(crate) made_at_once: AtomicU64,
    pub(crate) file: Mutex<String>,
    pub(crate) foreseen: Mutex<Vec<String>>,
    pub(crate) remarks: Mutex<Vec<String>>,
}

impl<R: Serialize> Host<R> for Counting {
    fn seconds(&self) -> f64 {
        self.looks.fetch_add(1, Ordering::Relaxed) as f64
    }

    fn planned(&self, steps: u64) {
        self.planned.fetch_add(steps, Ordering::Relaxed);
    }

    fn made(&self, steps: u64) {
        if self.made.fetch_add(steps, Ordering::Relaxed) == 0 {
            self.made_at_once.store(steps, Ordering::Relaxed);
        }
    }

    fn keep(&self, record: &R) -> Result<(), LabError> {
        self.file.lock().unwrap().push_str(&line_of(record)?);
        Ok(())
    }

    fn foreseen(&self, text: &str) {
        self.foreseen.lock().unwrap().push(text.to_owned());
    }

    fn remark(&self, text: &str) {
        self.remarks.lock().unwrap().push(text.to_owned());
    }

    fn machine(&self) -> &str {
        "an abacus"
    }

    fn version(&self) -> &str {
        "0"
    }
}
