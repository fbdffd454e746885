//! The list of servers that have given wrong answers, in the client's directory. A listed server
//! deals no shares in evictions, even after the volume is opened again. The repair of a server
//! removes it from the list.

use std::io;

use oblivio_core::durable::WrongServers;
use oblivio_core::{Error, StoreError};

use crate::error::VolumeError;
use crate::state_dir::{SharedDir, StateDir};

/// The prefix of the names of empty files, one for each listed server. The number of the server
/// follows, counted from 1.
const NAME: &str = "wrong-server-";

/// The list of wrong servers of an open volume.
pub(crate) struct WrongServerList {
    dir: SharedDir,
    listed: Vec<usize>,
    warn: fn(&str),
}

impl WrongServerList {
    /// Reads the list, and warns the owner about each server on it.
    pub(crate) fn open(mut dir: SharedDir, warn: fn(&str)) -> Result<Self, VolumeError> {
        let listed = recorded(&dir)?;
        if !listed.is_empty() {
            // A program that died before its sync may have left names that are not durable.
            dir.sync_names()?;
        }
        listed.iter().for_each(|server| warn(&warning(*server, &format!("server {}", server + 1))));
        Ok(Self { dir, listed, warn })
    }
}

impl WrongServers for WrongServerList {
    fn listed(&self) -> Vec<usize> {
        self.listed.clone()
    }

    fn add(&mut self, server: usize, name: &str) -> Result<(), Error> {
        record(&mut self.dir, server).map_err(failed)?;
        self.listed.push(server);
        self.listed.sort_unstable();
        (self.warn)(&warning(server, name));
        Ok(())
    }
}

fn failed(error: io::Error) -> Error {
    let message = format!("the client's directory failed: {error}");
    StoreError::caused_by(error.kind().into(), message, error).into()
}

/// The warning for a listed server. `server` is counted from 0; `name` is its name in the message.
pub fn warning(server: usize, name: &str) -> String {
    format!(
        "{name} has wrong shares, and no longer deals in evictions. With this client's directory, \
         rebuild its shares: `oblivio shares repair` of server {}. Another server with wrong \
         shares may stop the volume",
        server + 1
    )
}

/// The listed servers of a directory, in ascending order, counted from 0.
///
/// # Errors
/// When the directory cannot be read.
pub fn recorded(dir: &dyn StateDir) -> io::Result<Vec<usize>> {
    let number = |name: &String| name.strip_prefix(NAME)?.parse::<usize>().ok()?.checked_sub(1);
    let mut listed: Vec<_> = dir.names()?.iter().filter_map(number).collect();
    listed.sort_unstable();
    Ok(listed)
}

/// Adds a server, counted from 0, to the list, durably.
///
/// # Errors
/// When the directory cannot be changed.
pub fn record(dir: &mut dyn StateDir, server: usize) -> io::Result<()> {
    if !recorded(dir)?.contains(&server) {
        dir.create(&name(server))?;
    }
    dir.sync_names()
}

/// Removes from the list a server that was repaired, counted from 0.
///
/// # Errors
/// When the directory cannot be changed.
pub fn clear(dir: &mut dyn StateDir, server: usize) -> io::Result<()> {
    if recorded(dir)?.contains(&server) {
        dir.remove(&name(server))?;
        dir.sync_names()?;
    }
    Ok(())
}

fn name(server: usize) -> String {
    format!("{NAME}{}", server + 1)
}
