//! A sink shared by several owners.

use alloc::sync::Arc;
use std::sync::{Mutex, PoisonError};

use super::{Event, EventSink, Exchange, ExchangeSink, Operation};

/// A shared sink can be read while a store, or the ORAM on it, owns the recorder. Each event takes
/// the lock: a caller that holds it while a store is in use deadlocks.
impl<K: EventSink> EventSink for Arc<Mutex<K>> {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self.lock().unwrap_or_else(PoisonError::into_inner).record(event, contents);
    }

    fn turn_to(&mut self, operation: Option<Operation>) {
        self.lock().unwrap_or_else(PoisonError::into_inner).turn_to(operation);
    }
}

/// A shared sink, as for events.
impl<K: ExchangeSink> ExchangeSink for Arc<Mutex<K>> {
    fn exchanged(&mut self, exchange: &Exchange, contents: &[u8]) {
        self.lock().unwrap_or_else(PoisonError::into_inner).exchanged(exchange, contents);
    }
}
