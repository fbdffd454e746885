//! Volumes as users and the programs of others meet them: real processes, files, sockets and mounts.

mod alloc;
mod background;
mod checking;
mod coins;
mod copy;
mod core_dumps;
mod damage;
mod ends;
mod exit_codes;
mod foreign;
mod full_disk;
mod kill;
mod life;
mod locations;
mod mount;
mod mount_place;
mod planning;
mod rate;
mod remote;
mod rescue;
mod rescued;
mod secrets;
mod serving;
mod share_machines;
mod share_openings;
mod share_records;
mod share_trouble;
mod shares;
mod store_file;
mod striped;
mod view;
mod watch;
// What the tests of both crates need is said once.
#[path = "../../../../serve/tests/servers/support/needs.rs"]
pub(crate) mod needs;
#[path = "../../../../store/tests/file_systems/own_file_system.rs"]
mod own_file_system;
#[path = "../../../../serve/tests/servers/watch/reader.rs"]
mod page_reader;
#[path = "../../../../serve/tests/servers/nbd/tools.rs"]
mod tools;
mod world;
