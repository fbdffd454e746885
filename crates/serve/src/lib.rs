//! Serves a volume to programs that know disks and files.

pub mod fuse;
pub mod mount;
pub mod nbd;
