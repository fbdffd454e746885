//! Simulated links between a client and a server, by `oblivio-lab relay`.

use std::process::Command;

use super::Testbed;
use crate::growth::Model;
use crate::tools::{End, Running};

/// Bandwidth and delay of a link.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub name: &'static str,
    /// Rate from the server in Mbit/s.
    pub down: f64,
    /// Rate to the server in Mbit/s.
    pub up: f64,
    /// Round-trip time in milliseconds.
    pub delay: f64,
}

impl Link {
    /// The number of accesses per second that the bandwidth can carry, limited by the slower
    /// direction.
    pub fn accesses_per_second(&self, model: &Model) -> f64 {
        let of = |megabits: f64, bytes: f64| megabits * 1e6 / 8.0 / bytes;
        of(self.down, model.read_bytes).min(of(self.up, model.written_bytes))
    }
}

/// A relay between a client and a server.
pub struct Relay {
    relay: Running,
    /// The address to which the client connects.
    pub address: String,
}

impl Relay {
    pub fn start(link: &Link, to: &str, testbed: &Testbed, end: &End) -> Result<Self, String> {
        let Link { down, up, delay, .. } = link;
        let mut command = Command::new(&testbed.programs.lab);
        command.args(["relay", "--json", "--listen", "127.0.0.1:0", "--to", to, "--link"]);
        let (relay, report) =
            Running::start_and_hear(command.arg(format!("{down}/{up}/{delay}")), end)?;
        let address = report["listens"].as_str().ok_or("the relay printed no address")?;
        Ok(Self { relay, address: address.to_owned() })
    }

    pub fn stop(&mut self) -> Result<(), String> {
        self.relay.stop()
    }
}
