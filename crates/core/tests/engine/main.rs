//! Tests of the engine's interface, in one program to save linking.

#![allow(clippy::unwrap_used, reason = "test code")]

mod background_eviction;
mod bad_input;
mod cached;
mod capabilities;
mod composition;
mod durable;
mod frontend;
mod golden;
mod hits;
mod oracle;
mod pmmac;
mod populate;
mod privacy;
mod range;
mod rho;
mod rotating;
mod steps;
mod stores;
mod support;
mod tags;
