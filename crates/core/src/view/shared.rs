//! A sink shared by several owners.

use alloc::sync::Arc;
use std::sync::{Mutex, PoisonError};

use super::{Event, EventSink, Operation, PeerMessage, PeerMessageSink};

/// A sink that the caller can still read while a store, or the ORAM on it, owns the recorder.
/// Recording an event takes the lock, so a caller that holds the lock while it uses the store
/// deadlocks.
impl<K: EventSink> EventSink for Arc<Mutex<K>> {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self.lock().unwrap_or_else(PoisonError::into_inner).record(event, contents);
    }

    fn switch_to(&mut self, operation: Option<Operation>) {
        self.lock().unwrap_or_else(PoisonError::into_inner).switch_to(operation);
    }
}

/// A sink for messages that the caller can still read while a store owns the recorder.
impl<K: PeerMessageSink> PeerMessageSink for Arc<Mutex<K>> {
    fn record_message(&mut self, exchange: &PeerMessage, contents: &[u8]) {
        self.lock().unwrap_or_else(PoisonError::into_inner).record_message(exchange, contents);
    }
}
