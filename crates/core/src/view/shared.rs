//! A sink shared by several owners.

use alloc::sync::Arc;
use std::sync::{Mutex, PoisonError};

use super::{Event, EventSink, Operation, PeerMessage, PeerMessageSink};

/// A sink that can be read while a store, or the ORAM on it, owns the recorder. Each event takes
/// the lock: a caller that holds it while a store is in use deadlocks.
impl<K: EventSink> EventSink for Arc<Mutex<K>> {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self.lock().unwrap_or_else(PoisonError::into_inner).record(event, contents);
    }

    fn switch_to(&mut self, operation: Option<Operation>) {
        self.lock().unwrap_or_else(PoisonError::into_inner).switch_to(operation);
    }
}

/// A sink for messages that can be read while a store owns the recorder.
impl<K: PeerMessageSink> PeerMessageSink for Arc<Mutex<K>> {
    fn record_message(&mut self, exchange: &PeerMessage, contents: &[u8]) {
        self.lock().unwrap_or_else(PoisonError::into_inner).record_message(exchange, contents);
    }
}
