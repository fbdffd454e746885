//! The program as its users meet it: command lines, and how they end.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]

mod common;
mod documents;
mod transcripts;
mod volume;

/// The program that these tests run.
const PROGRAM: &str = env!("CARGO_BIN_EXE_oblivio");
