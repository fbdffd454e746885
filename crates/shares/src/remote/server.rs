//! One server of a store, present or missing.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use oblivio_core::store::{BucketStore, Piece, TreeShape};
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_store::{
    Condition, OpenError, OpenErrorKind, PendingComputation, RemoteMode, RemoteOptions, RemoteStore,
};
use oblivio_wire::keys::PublicKey;
use oblivio_wire::link::MonotonicTime;

use super::retry::{RETRY_INTERVAL, RETRY_SOON};
use super::written::Written;
use super::{ConnectorFactory, ShareServer};
use crate::servers::{Patience, ServerAnswer};

/// The client of one server, with the means to reconnect to it.
pub(super) struct Server {
    name: String,
    key: PublicKey,
    make_connector: ConnectorFactory,
    options: RemoteOptions,
    /// The mode for reopening the volume on the server.
    mode: RemoteMode,
    state: State,
}

enum State {
    There(Box<RemoteStore>),
    Missing {
        why: String,
        again_at: MonotonicTime,
        /// Receives the result of the thread that reconnects to the server, while there is such a
        /// thread.
        connecting: Option<Receiver<Result<RemoteStore, OpenError>>>,
    },
}

impl Server {
    /// Creates the client of server `number`. `opened` is the result of opening its volume in
    /// `mode`.
    pub(super) fn new(
        number: usize,
        server: ShareServer,
        options: RemoteOptions,
        mode: RemoteMode,
        opened: Result<RemoteStore, OpenError>,
    ) -> Self {
        let ShareServer { address, key, make_connector } = server;
        let state =
            State::Missing { why: String::new(), again_at: MonotonicTime::now(), connecting: None };
        let name = name(number, &address);
        let mut new = Self { name, key, make_connector, options, mode, state };
        new.set_opened(opened);
        new
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn key(&self) -> PublicKey {
        self.key
    }

    pub(super) fn is_missing(&self) -> bool {
        matches!(self.state, State::Missing { .. })
    }

    /// Whether this client has opened the volume on this server for writing, so that it can resume
    /// its session there.
    pub(super) fn was_there(&self) -> bool {
        matches!(self.mode, RemoteMode::Resume { .. })
    }

    /// Why the server is missing, without the server's name. `None` if it is present.
    pub(super) fn why_missing(&self) -> Option<&str> {
        match &self.state {
            State::There(_) => None,
            State::Missing { why, .. } => Some(why),
        }
    }

    pub(super) fn named(&self, error: StoreError) -> StoreError {
        StoreError::caused_by(error.kind(), format!("{}: {error}", self.name), error)
    }

    /// Whether the server is missing and an attempt to reconnect is due.
    pub(super) fn should_reconnect(&self) -> bool {
        match &self.state {
            State::There(_) => false,
            State::Missing { again_at, connecting, .. } => {
                connecting.is_none() && again_at.left().is_none()
            }
        }
    }

    /// If the server is missing, makes the next attempt to reconnect due soon, for a caller that
    /// waits for the server.
    pub(super) fn call_soon(&mut self) {
        if let State::Missing { again_at, .. } = &mut self.state
            && again_at.left().is_some_and(|left| left > RETRY_SOON)
        {
            *again_at = MonotonicTime::now().after(RETRY_SOON);
        }
    }

    /// Starts a thread that reconnects to the missing server.
    pub(super) fn reconnect(&mut self) {
        let State::Missing { again_at, connecting, .. } = &mut self.state else { return };
        *again_at = MonotonicTime::now().after(RETRY_INTERVAL);
        let (sender, receiver) = channel();
        let (connector, options, mode) = ((self.make_connector)(), self.options.clone(), self.mode);
        let call = move || {
            let opened =
                RemoteStore::open(connector, mode, options).map(|(store, Condition { .. })| store);
            // The store may have been dropped meanwhile.
            let _ = sender.send(opened);
        };
        // Without a thread, the server stays missing.
        if thread::Builder::new().name("calls".into()).spawn(call).is_ok() {
            *connecting = Some(receiver);
        }
    }

    /// Makes a missing server present again if it was reached and `is_sound` accepts its trees.
    /// Returns whether the server has become present.
    pub(super) fn take_back(&mut self, is_sound: impl FnOnce(&[TreeShape]) -> bool) -> bool {
        let State::Missing { connecting, .. } = &mut self.state else { return false };
        let opened = connecting.as_ref().map(Receiver::try_recv);
        match opened {
            None | Some(Err(TryRecvError::Empty)) => (),
            Some(Err(TryRecvError::Disconnected)) => *connecting = None,
            Some(Ok(Ok(store))) if !is_sound(store.shapes()) => {
                self.set_missing("it has different trees than before".into());
            }
            Some(Ok(opened)) => self.set_opened(opened),
        }
        !self.is_missing()
    }

    /// Sends the writes that the server missed, and waits until they are durable. A server that
    /// refuses them becomes missing again.
    pub(super) fn receive(&mut self, missed: &Written) {
        let take = |store: &mut RemoteStore| missed.write_to(store).and_then(|()| store.flush());
        if let Some(Err(error)) = self.with_store_unnamed(take) {
            self.set_missing(format!("it refuses the writes that it missed: {error}"));
        }
    }

    /// Runs `act` if the server is present, and returns its result; `None` if the server is
    /// missing. If the connection does not survive an error, the server becomes missing.
    pub(super) fn with_store<T>(
        &mut self,
        act: impl FnOnce(&mut RemoteStore) -> Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let outcome = self.with_store_unnamed(act)?;
        Some(outcome.map_err(|error| self.named(error)))
    }

    /// Runs `act` as [`Self::with_store`] does. Errors do not name the server.
    pub(super) fn with_store_unnamed<T>(
        &mut self,
        act: impl FnOnce(&mut RemoteStore) -> Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let State::There(store) = &mut self.state else { return None };
        let outcome = act(store);
        let has_failed = store.has_failed();
        Some(outcome.inspect_err(|error| {
            if has_failed {
                self.set_missing(error.to_string());
            }
        }))
    }

    /// Removes the volume from the server, if it has one, and creates the volume with trees of
    /// these shapes.
    pub(super) fn recreate(&mut self, shapes: &[TreeShape]) -> Result<(), OpenError> {
        self.set_missing("it is being rebuilt".into());
        match RemoteStore::remove((self.make_connector)(), &self.options.name) {
            Err(error) if error.kind() != OpenErrorKind::Missing => {
                return Err(error.named(&self.name));
            }
            _ => (),
        }
        let made = RemoteStore::create((self.make_connector)(), shapes, self.options.clone());
        let store = made.map_err(|error| error.named(&self.name))?;
        self.mode = RemoteMode::Resume { session: store.session() };
        self.state = State::There(Box::new(store));
        Ok(())
    }

    /// Announces pieces that will be read, if the server is present.
    pub(super) fn announce(&mut self, pieces: &[Piece]) {
        if let State::There(store) = &mut self.state {
            store.prefetch(pieces);
        }
    }

    /// Starts a computation on the server. Errors do not name the server, because the caller knows
    /// it.
    pub(super) fn begin_to_compute(
        &mut self,
        message: Vec<u8>,
        patience: Patience,
    ) -> Result<PendingComputation, StoreError> {
        let works_within = match patience {
            Patience::Short => self.options.works_within,
            Patience::Long => self.options.works_long_within,
        };
        self.require_store_unnamed(|store| store.begin_to_compute(message, works_within))
    }

    /// Waits for the result of a computation that [`Self::begin_to_compute`] started.
    pub(super) fn wait_for_computed(&mut self, pending: PendingComputation) -> ServerAnswer {
        self.require_store_unnamed(|store| store.wait_for_computed(pending).map(Vec::from))
    }

    /// Waits for the result as [`Self::wait_for_computed`] does, but does not reconnect. Returns
    /// `pending` if the link is lost.
    pub(super) fn wait_on_link(
        &mut self,
        pending: PendingComputation,
    ) -> Result<Result<Vec<u8>, PendingComputation>, StoreError> {
        self.require_store_unnamed(|store| Ok(store.wait_on_link(pending)?.map(Vec::from)))
    }

    /// Runs `act` as [`Self::with_store`] does, and fails if the server is missing.
    pub(super) fn require_store<T>(
        &mut self,
        act: impl FnOnce(&mut RemoteStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.require_store_unnamed(act).map_err(|error| self.named(error))
    }

    fn require_store_unnamed<T>(
        &mut self,
        act: impl FnOnce(&mut RemoteStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.why_missing() {
            Some(why) => {
                let message = format!("it is missing: {why}");
                Err(StoreError::new(StoreErrorKind::Unreachable, message))
            }
            None => self.with_store_unnamed(act).unwrap_or_else(|| {
                Err(StoreError::new(StoreErrorKind::Unreachable, "the server is missing"))
            }),
        }
    }

    fn set_opened(&mut self, opened: Result<RemoteStore, OpenError>) {
        match opened {
            Ok(store) => {
                if matches!(self.mode, RemoteMode::Write) {
                    self.mode = RemoteMode::Resume { session: store.session() };
                }
                self.state = State::There(Box::new(store));
            }
            Err(error) => self.set_missing(error.to_string()),
        }
    }

    fn set_missing(&mut self, why: String) {
        let again_at = MonotonicTime::now().after(RETRY_INTERVAL);
        self.state = State::Missing { why, again_at, connecting: None };
    }
}

/// The name of a server in messages. Servers are counted from 1.
pub(super) fn name(number: usize, address: &str) -> String {
    format!("server {number} ({address})")
}
