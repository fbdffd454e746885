//! Volumes and disks: what they hold, what they survive, and what storage sees of them.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod beginning;
mod contents;
mod copying;
mod crash;
mod disk;
mod going_back;
mod keys;
mod lying_storage;
mod overlap;
mod padding;
mod privacy;
mod range;
mod reads;
mod rescue;
mod s3oram;
mod scan;
mod schedule;
mod state_damage;
mod state_room;
mod superblock;
mod support;
mod tamper;
mod torn_anchor;
mod view;
