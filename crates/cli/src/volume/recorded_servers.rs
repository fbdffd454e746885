//! `oblivio serve shares --record-views`: records the messages that pass a share server, in one
//! view file for each time that a volume is in use.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oblivio_bucket_server::{Computed, WatchVolumes};
use oblivio_core::store::Capabilities;
use oblivio_shares::host::Watcher;
use oblivio_shares::view::{WireRecorder, servers_seen_by};
use oblivio_wire::keys::{AllowedClient, PublicKey};

use super::recording::TimedSink;
use super::views_room::{RecordingQuota, Reservation};
use crate::error::CliError;
use crate::files::{self, FileKind, OutputTarget};

/// Returns a function that begins a recording when a volume comes into use. The recordings are
/// files in `folder`, which is created if missing, of up to `bytes_max` bytes in total. The files
/// are called `CLIENT-VOLUME-serverI-NUMBER.view`, where I is this server's number among the
/// volume's servers.
pub(super) fn record_to(
    folder: &Path,
    bytes_max: u64,
    clients: &[AllowedClient],
) -> Result<Box<WatchVolumes>, CliError> {
    files::make_private_folder(folder)?;
    let names: HashMap<PublicKey, String> =
        clients.iter().map(|client| (client.key, client.name.clone())).collect();
    let folder = folder.to_owned();
    let room = Arc::new(RecordingQuota::new(&folder, bytes_max));
    Ok(Box::new(move |computed: &Computed<'_>| {
        let client = names.get(&computed.client).map_or("unknown", String::as_str);
        let begun =
            room.reserve().and_then(|room| Recorded::begin(&folder, client, computed, room));
        let begun = begun.inspect_err(|error| {
            tracing::warn!(volume = computed.name, %error, "cannot record the view of a volume");
        });
        begun.ok().map(|recorded| Arc::new(recorded) as Arc<dyn Watcher>)
    }))
}

/// A recording in progress. Its file gets its name once the volume is no longer in use.
struct Recorded {
    /// The recorder and its output. `None` once the file has its name.
    under_way: Option<(WireRecorder<TimedSink>, OutputTarget)>,
    /// Space that is reserved until the file has its name.
    _room: Reservation,
}

impl Recorded {
    fn begin(
        folder: &Path,
        client: &str,
        computed: &Computed<'_>,
        room: Reservation,
    ) -> Result<Self, CliError> {
        let setup = computed.trees.first();
        let number = setup.map_or(0, |setup| setup.number);
        let path = unused(folder, &format!("{client}-{}-server{number}", computed.name));
        let output = OutputTarget::begin(&path, FileKind::VIEW)?;
        let servers = setup.and_then(|setup| servers_seen_by(setup));
        let sink = TimedSink::begin(&output, Capabilities::NONE, servers)?.with_room(room.bytes());
        let recorder = WireRecorder::new(sink, computed.trees.iter().copied());
        Ok(Self { under_way: Some((recorder, output)), _room: room })
    }
}

/// A path in `folder` at which no file exists. The file's name begins with `begins`.
fn unused(folder: &Path, begins: &str) -> PathBuf {
    let named = |number: u64| folder.join(format!("{begins}-{number}.view"));
    (1..).map(named).find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_else(|| named(0))
}

impl Watcher for Recorded {
    fn asked(&self, message: &[u8]) {
        self.under_way.iter().for_each(|(recorder, _)| recorder.asked(message));
    }

    fn answered(&self, message: &[u8], answer: &[u8]) {
        self.under_way.iter().for_each(|(recorder, _)| recorder.answered(message, answer));
    }

    fn sent(&self, to: u8, dealt: &[u8]) {
        self.under_way.iter().for_each(|(recorder, _)| recorder.sent(to, dealt));
    }

    fn received(&self, from: u8, dealt: &[u8]) {
        self.under_way.iter().for_each(|(recorder, _)| recorder.received(from, dealt));
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let Some((recorder, output)) = self.under_way.take() else { return };
        if let Err(error) = recorder.into_sink().finish(output) {
            tracing::warn!(%error, "the view of a volume was not recorded");
        }
    }
}
