//! Helpers that Oblivio's tests share. Used only as a dev-dependency.
//!
//! - [`statistics`]: statistical tests of the leaves in a view, with a stated rate of false alarms.
//! - [`crash`]: a simulation of machines that crash, to test durable volumes.
//! - [`machine`]: checks for what the tests need on the machine.
//! - [`memory_disk`]: a disk in memory, for tests of programs that serve disks.
//! - [`example_params`]: parameters of a volume, for superblocks.
//! - [`Faulty`]: a store that fails, lies, waits or counts under the control of a test.
//! - [`ShareDisk`]: the files of a share server.
//! - [`ServersWithRecords`]: share servers as a store.
//! - [`workload`]: sequences of requests that an oblivious RAM must make look alike.
//!
//! The tool `crash-suite`, in its own crate, crashes volumes in that simulation at thousands of
//! points.

pub mod crash;
mod example_params;
mod faulty;
pub mod machine;
pub mod memory_disk;
mod share_disk;
mod share_servers;
pub mod statistics;
pub mod workload;

pub use example_params::{example_params, example_raw_params};
pub use faulty::{Answer, Call, Faulty, Rule, WholeBuckets, whole_buckets};
pub use share_disk::ShareDisk;
pub use share_servers::ServersWithRecords;
