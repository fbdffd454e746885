//! The state that all connections of a server share.

use std::io;
use std::sync::Arc;

use oblivio_wire::buffer_pool::BufferPool;

use super::admission::Admission;
use super::computing::Computing;
use super::memory::Memory;
use super::metrics::Metrics;
use super::refusal::Refusal;
use super::{BucketLimits, BucketServerError};

pub(super) struct Service {
    pub(super) limits: BucketLimits,
    pub(super) admission: Admission,
    pub(super) memory: Memory,
    pub(super) buffers: Arc<BufferPool>,
    pub(super) metrics: Metrics,
    /// The other share servers. `None` for a server that only keeps stores.
    computing: Option<Computing>,
}

impl Service {
    pub(super) fn new(
        limits: BucketLimits,
        computing: Option<Computing>,
    ) -> Result<Self, BucketServerError> {
        limits.check()?;
        let admission =
            Admission::new(&limits, computing.as_ref().map_or(0, |it| it.keys().count()))
                .map_err(|error| BucketServerError::System(io::Error::other(error)))?;
        let memory = Memory::new(limits.memory_bytes_max);
        let (buffers, metrics) = (Arc::default(), Metrics::default());
        Ok(Self { limits, admission, memory, buffers, metrics, computing })
    }

    /// The other share servers, or a refusal if this server only keeps stores.
    pub(super) fn computing(&self) -> Result<&Computing, Refusal> {
        self.computing.as_ref().ok_or_else(Refusal::computes_nothing)
    }
}
