//! Tests with real processes, files, sockets and mounts, and with other programs.

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
// As a dependency, the testkit would enable features of the tested program, so only this file of
// the testkit is included.
#[path = "../../../../testkit/src/machine.rs"]
#[allow(unreachable_pub, reason = "it is public in the testkit")]
pub(crate) mod needs;
#[path = "../../../../store/tests/file_systems/own_file_system.rs"]
mod own_file_system;
#[path = "../../../../watch/tests/watch_page/reader.rs"]
mod page_reader;
mod test_dir;
#[path = "../../../../nbd/tests/nbd_server/tools.rs"]
mod tools;
