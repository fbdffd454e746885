//! Tests of the program from a user's point of view: command lines and their results.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]

mod common;
mod documents;
mod transcripts;
mod volume;

/// The program that these tests run.
const PROGRAM: &str = env!("CARGO_BIN_EXE_oblivio");
