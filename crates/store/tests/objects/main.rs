//! Tests of engines of objects, and of stores over them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[allow(dead_code, reason = "used by the tests of each engine")]
mod contract;
