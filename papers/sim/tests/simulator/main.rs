//! The simulator against literal models and known answers.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod dram_rules;
mod processor;
