//! Servers that hand out a disk.

pub mod nbd;
