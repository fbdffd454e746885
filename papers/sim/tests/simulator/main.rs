//! Compares the simulator with literal models and known results.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod dram_rules;
mod processor;
