//! Being asked to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::TERM_SIGNALS;

use crate::error::CliError;

/// Set once SIGTERM, SIGINT or SIGQUIT has come. The second one ends the process at once: the volume
/// survives that, as it survives every crash.
pub(crate) struct EndAsked(Arc<AtomicBool>);

impl EndAsked {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Self, CliError> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in TERM_SIGNALS {
            // In this order: only a second signal finds the flag set.
            signal_hook::flag::register_conditional_shutdown(*signal, 1, asked.clone())
                .and_then(|_| signal_hook::flag::register(*signal, asked.clone()))
                .map_err(|error| CliError::Engine(format!("signals cannot be had: {error}")))?;
        }
        Ok(Self(asked))
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
