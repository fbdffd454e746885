//! Tests of engines of objects, and of stores over them.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod contract;
mod engines;
mod near;
mod packed;
mod redis;
mod redis_cluster;
mod redis_lies;
mod redis_speed;
mod s3;
mod s3_cost;
mod s3_server;
mod s3_tls;
mod seaweedfs;
mod view;
mod world;
