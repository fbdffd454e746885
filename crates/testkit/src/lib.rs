//! What the tests of Oblivio share. Only ever a dev-dependency.
//!
//! - [`statistics`]: what can be told from the leaves of a view, with a stated rate of false alarms.
//! - [`crash`]: a world in which machines die, to try durable volumes in.
//! - [`machine`]: what tests need of the machine.
//! - [`memory_disk`]: a disk in memory, for tests of what serves disks.
//! - [`example_params`]: parameters of a volume, for superblocks.
//! - [`Faulty`]: a store that fails, lies, waits or counts as a test says.
//! - [`ShareDisk`]: the files of a share server.
//! - [`ServersWithRecords`]: share servers as a store.
//! - [`workload`]: sequences of requests that an oblivious RAM must make look alike.
//!
//! The tool `crash-suite`, a crate of its own, lets volumes die in that world at thousands of points.

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
