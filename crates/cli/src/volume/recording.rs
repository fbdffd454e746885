//! Recording what storage sees, for whoever asks for it.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use oblivio_core::view::{Event, EventSink, FileSink, Recorder};
use oblivio_store::BoxedStore;

use crate::error::CliError;
use crate::files;

type Sink = FileSink<BufWriter<File>>;

/// A view being recorded.
pub(crate) struct Recording {
    path: PathBuf,
    sink: Arc<Mutex<Sink>>,
}

/// The end of a recording that the store holds, while somebody else holds another.
pub(super) struct SharedSink<K>(pub(super) Arc<Mutex<K>>);

impl<K: EventSink> EventSink for SharedSink<K> {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).record(event, contents);
    }
}

impl Recording {
    /// Records what `store` sees to the file `path`, if there is one.
    pub(crate) fn wrap(
        store: BoxedStore,
        path: Option<&Path>,
    ) -> Result<(BoxedStore, Option<Self>), CliError> {
        let Some(path) = path else { return Ok((store, None)) };
        let sink = FileSink::new(files::create(path)?, store.capabilities());
        let sink = Arc::new(Mutex::new(sink));
        let recorder = Recorder::new(store, SharedSink(sink.clone()));
        Ok((Box::new(recorder), Some(Self { path: path.to_owned(), sink })))
    }

    /// Ends the recording, once the store is closed.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        let failed = |error: std::io::Error| files::cannot_write(&self.path, &error);
        let sink = Arc::into_inner(self.sink)
            .ok_or_else(|| failed(std::io::Error::other("the volume is still in use")))?;
        let sink = sink.into_inner().unwrap_or_else(PoisonError::into_inner);
        sink.finish().map(drop).map_err(failed)
    }
}
