//! Serves a volume to programs that know disks and files, and stores of volumes to clients elsewhere.

pub mod buckets;
pub mod fuse;
pub mod mount;
pub mod nbd;
pub mod watch;
