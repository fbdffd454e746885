//! Records what storage sees, on request.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use oblivio_core::durable::Fact;
use oblivio_core::store::{BucketStore, Capabilities};
use oblivio_core::view::{
    Event, EventSink, FileSink, PeerMessage, PeerMessageSink, Recorder, ViewServers,
};
use oblivio_shares::servers::{into_store, share_servers};
use oblivio_shares::view::{ShareRecorder, heights, servers_of};
use oblivio_store::BoxedStore;

use crate::clock::Stopwatch;
use crate::error::CliError;
use crate::files::{FileKind, OutputTarget};

/// Writes a view file with the time of each trip.
pub(super) struct TimedSink {
    file: FileSink<BufWriter<File>>,
    clock: Stopwatch,
    /// Number of trips so far.
    trips: u64,
}

impl TimedSink {
    /// Begins a view file in `output`, with the capabilities of the store and, if `servers` is
    /// given, the servers whose views the file will hold.
    pub(super) fn begin(
        output: &OutputTarget,
        capabilities: Capabilities,
        servers: Option<ViewServers>,
    ) -> Result<Self, CliError> {
        let out = output.file().try_clone().map_err(|error| output.failed(&error))?;
        let file = FileSink::new(BufWriter::new(out), capabilities, servers);
        Ok(Self { file, clock: Stopwatch::start(), trips: 0 })
    }

    /// Limits the file to `bytes` more bytes: see [`FileSink::with_room`].
    pub(super) fn with_room(self, bytes: u64) -> Self {
        Self { file: self.file.with_room(bytes), ..self }
    }

    /// Ends the recording, and moves the finished file to its final path.
    pub(super) fn finish(self, output: OutputTarget) -> Result<(), CliError> {
        self.file.finish().map(drop).map_err(|error| output.failed(&error))?;
        output.finish()
    }

    /// Records the time of the next event, which belongs to `trip`.
    fn record_time(&mut self, trip: u64) {
        let micros = self.clock.elapsed().as_micros();
        self.file.set_micros(u64::try_from(micros).unwrap_or(u64::MAX));
        self.trips = trip + 1;
    }
}

impl EventSink for TimedSink {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self.record_time(event.trip);
        self.file.record(event, contents);
    }
}

impl PeerMessageSink for TimedSink {
    fn record_message(&mut self, exchange: &PeerMessage, contents: &[u8]) {
        self.record_time(exchange.trip);
        self.file.record_message(exchange, contents);
    }
}

/// A view being recorded.
pub(crate) struct Recording {
    output: OutputTarget,
    sink: Arc<Mutex<TimedSink>>,
}

/// Wraps `store`, so that `sink` gets all events that storage sees. `facts` are the facts that the
/// volume's scheme reports.
///
/// # Errors
/// If the facts of a volume on share servers do not contain the heights of its trees.
pub(super) fn recorded(
    store: BoxedStore,
    sink: impl EventSink + Send + 'static,
    facts: &[Fact],
) -> Result<BoxedStore, CliError> {
    let servers = match share_servers(store) {
        Ok(servers) => servers,
        Err(store) => return Ok(Box::new(Recorder::new(store, sink))),
    };
    let heights = heights(facts).ok_or_else(|| {
        CliError::Input("the volume on share servers lacks the heights of its trees".into())
    })?;
    Ok(into_store(ShareRecorder::new(servers, sink, heights)))
}

impl Recording {
    /// Wraps `store`, so that what storage sees is recorded to the file `path`. Without a path,
    /// returns `store` itself. `facts` are the facts that the volume's scheme reports.
    pub(crate) fn wrap(
        store: BoxedStore,
        path: Option<&Path>,
        facts: &[Fact],
    ) -> Result<(BoxedStore, Option<Self>), CliError> {
        let Some(path) = path else { return Ok((store, None)) };
        let output = OutputTarget::begin(path, FileKind::VIEW)?;
        let sink = TimedSink::begin(&output, store.capabilities(), servers_of(facts))?;
        let sink = Arc::new(Mutex::new(sink));
        let recorder = recorded(store, sink.clone(), facts)?;
        Ok((recorder, Some(Self { output, sink })))
    }

    /// Number of trips that storage has seen.
    pub(super) fn trips(&self) -> u64 {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner).trips
    }

    /// Ends the recording, and moves the finished file to its final path. Fails if the store is
    /// still open.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        let Self { output, sink } = self;
        let sink = Arc::into_inner(sink)
            .ok_or_else(|| output.failed(&std::io::Error::other("the volume is still in use")))?;
        sink.into_inner().unwrap_or_else(PoisonError::into_inner).finish(output)
    }
}
