//! The program as its users meet it: command lines, and how they end.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]

mod blocks;
mod common;
mod documents;
mod evaluation;
mod irregular;
mod lab_run;
mod relay;
mod report;
mod simulate;
mod trace_record;
mod traces;
mod transcripts;
mod volume;
