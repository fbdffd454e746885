//! A durable, byte-addressed disk over an oblivious RAM.

pub mod device;
pub mod keys;
pub mod state_dir;
pub mod superblock;
