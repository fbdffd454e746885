//! Volumes and disks: their contents, their durability, and what storage sees of them.

#![allow(clippy::unwrap_used, reason = "this crate is tests")]

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
mod raw;
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

/// Fails to compile if a scheme has no test module here.
macro_rules! require_tests {
    ($($scheme:ident $module:ident),*) => {
        $(
            #[expect(unused_imports, reason = "naming the module is the check")]
            use $module as _;
        )*
    };
}
oblivio_core::schemes!(volume => require_tests);
