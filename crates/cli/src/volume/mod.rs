//! Volumes: what `oblivio create`, `info`, `check`, `serve`, `mount`, `key` and `bench` do.

mod alloc;
mod bench;
mod check;
mod clean_end;
mod client_watch;
mod create;
mod disk_watch;
mod info;
mod key;
mod machine;
mod man;
mod mount;
mod opening;
mod plan;
mod recording;
mod rescue;
mod room;
mod running_command;
mod salvage;
mod secret;
mod serve;
mod signals;
mod sizes;
mod state_home;

pub(crate) use bench::bench;
pub(crate) use check::check;
pub(crate) use create::create;
pub(crate) use info::info;
pub(crate) use key::{add, list, remove};
pub(crate) use man::man;
pub(crate) use mount::{mount, umount};
pub(crate) use opening::{Opened, coins, open};
pub(crate) use plan::plan;
pub(crate) use rescue::rescue;
pub(crate) use serve::{record_view, serve_nbd};
pub(crate) use signals::EndAsked;
