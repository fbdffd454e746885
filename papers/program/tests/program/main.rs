//! Tests of `oblivio-lab` from the command line.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]

mod blocks;
// Helpers that the tests of both programs share.
#[allow(dead_code, reason = "the tests of `oblivio` need more of it")]
#[path = "../../../../crates/cli/tests/program/common/mod.rs"]
mod common;
mod documents;
mod evaluation;
mod experiments;
mod irregular;
mod lab_run;
mod relay;
mod report;
mod simulate;
mod trace_record;
mod traces;

/// The program that these tests run.
const PROGRAM: &str = env!("CARGO_BIN_EXE_oblivio-lab");
