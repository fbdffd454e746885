//! Records all messages of one server.

use oblivio_core::view::{Event, EventSink, PeerMessage, PeerMessageSink, ViewServers};
use oblivio_shares::host::Host;
use oblivio_shares::message::{DealtShares, Setup};
use oblivio_shares::view::servers_seen_by;

/// The recorded messages of one server.
pub(crate) struct Wire {
    pub(crate) servers: ViewServers,
    pub(crate) trees: Vec<Setup>,
    /// The requests of the server's client.
    pub(crate) calls: Vec<Event>,
    /// The messages between this server and other servers.
    pub(crate) messages: Vec<(PeerMessage, DealtShares<u8>)>,
}

impl Wire {
    pub(crate) fn of(host: &Host) -> Self {
        let servers = servers_seen_by(host.setup().unwrap()).unwrap();
        let trees = host.setups().cloned().collect();
        Self { servers, trees, calls: Vec::new(), messages: Vec::new() }
    }
}

impl EventSink for Wire {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        assert_eq!(event.bytes, contents.len() as u64);
        self.calls.push(*event);
    }
}

impl PeerMessageSink for Wire {
    fn record_message(&mut self, exchange: &PeerMessage, contents: &[u8]) {
        assert_eq!(exchange.bytes, contents.len() as u64);
        self.messages.push((*exchange, DealtShares::decode(contents).unwrap()));
    }
}
