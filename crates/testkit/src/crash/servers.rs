//! Server machines, each with its own disk, and the links between any two machines.
//!
//! Each [`Station`] counts its own steps, because machines run concurrently: the steps of a station
//! depend on the requests to it, not on which machine was faster. A crashed machine restarts at
//! once, with the surviving data on its disk.

use std::collections::BTreeMap;
use std::io;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::fault::{InjectedFault, OpKind, Station, StationFailure, Verdict};
use super::medium::Medium;
use super::world::{State, World, crash_disks};

/// The number of the client in the names of links.
pub const CLIENT: u8 = 0;

/// The machine of one server.
#[derive(Default)]
pub(super) struct Machine {
    files: BTreeMap<String, Medium>,
    run: u64,
}

impl Machine {
    /// Crashes the machine. Handles to its files become invalid.
    pub(super) fn dies(&mut self, kept: super::Survival, coins: &mut StdRng) {
        crash_disks(self.files.values_mut(), kept, coins);
        self.run += 1;
    }
}

/// The outcome of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The message arrives.
    Arrives,
    /// The message is lost, and its link ends.
    Lost,
    /// The message arrives, and then its link ends.
    ArrivesLast,
    /// The message is lost because the receiving server crashed. For a message to the client, the
    /// sending server crashed.
    Kills,
}

impl World {
    /// The number of the current run of a server's machine. A run lasts from one crash to the next.
    /// Servers are numbered from 1.
    pub fn server_run(&self, server: u8) -> u64 {
        self.state().servers.entry(server).or_default().run
    }

    /// The disk of a server, valid for this run of its machine.
    pub fn server_disk(&self, server: u8) -> ServerDisk {
        ServerDisk { world: self.clone(), server, run: self.server_run(server) }
    }

    /// Sends a message from one server to another and returns the outcome.
    pub fn message(&self, from: u8, to: u8) -> Delivery {
        self.state().message(from, to)
    }

    /// Sends a message between a server and the client of run `run`, and returns the outcome. The
    /// message counts as an operation of the client.
    pub fn message_of_client(&self, run: u64, from: u8, to: u8) -> Delivery {
        let mut state = self.state();
        let delivery = match state.begin(run, OpKind::Message) {
            Ok(Verdict::Go) => return state.message(from, to),
            Ok(Verdict::Fail(_) | Verdict::Crash) if state.plan.coins.random() => {
                Delivery::ArrivesLast
            }
            Ok(_) | Err(_) => Delivery::Lost,
        };
        // A client that has crashed receives nothing.
        if to == CLIENT { Delivery::Lost } else { delivery }
    }

    /// Records that the client of this run noticed a fault of a server or link, so that the failure
    /// of its request is expected.
    pub fn notice(&self) {
        self.state().plan.fired += 1;
    }
}

impl State {
    fn message(&mut self, from: u8, to: u8) -> Delivery {
        match self.plan.next_at(Station::Link { from, to }, OpKind::Message) {
            None => Delivery::Arrives,
            Some(StationFailure::Lost) => Delivery::Lost,
            Some(StationFailure::Cut) => Delivery::ArrivesLast,
            Some(StationFailure::Dies(kept)) => {
                let mut coins = StdRng::seed_from_u64(self.plan.coins.random());
                let server = if to == CLIENT { from } else { to };
                self.servers.entry(server).or_default().dies(kept, &mut coins);
                Delivery::Kills
            }
        }
    }
}

/// The disk of a server, valid for one run of its machine.
#[derive(Clone)]
pub struct ServerDisk {
    world: World,
    server: u8,
    run: u64,
}

impl ServerDisk {
    /// The number of the run of the machine.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Reads a small file. `None` if it does not exist.
    ///
    /// # Errors
    /// If the machine has crashed.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut state = self.world.state();
        let machine = self.machine(&mut state)?;
        Ok(machine.files.get(name).map(|file| file.bytes().to_vec()))
    }

    /// Creates or replaces a small file, atomically and durably.
    ///
    /// # Errors
    /// If the machine has crashed, or crashes now: then the change may or may not have happened.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.step(OpKind::ServerSync, |machine, verdict, coins| {
            if verdict == Verdict::Go || coins.random() {
                machine.files.insert(name.into(), Medium::holding(bytes.to_vec()));
            }
            verdict.answer()
        })
    }

    /// Creates a file of `bytes` zeros, durably, unless it exists.
    ///
    /// # Errors
    /// If the machine has crashed, or crashes now.
    pub fn make(&self, name: &str, bytes: usize) -> io::Result<()> {
        self.step(OpKind::ServerSync, |machine, verdict, coins| {
            if verdict == Verdict::Go || coins.random() {
                let zeros = || Medium::holding(vec![0; bytes]);
                machine.files.entry(name.into()).or_insert_with(zeros);
            }
            verdict.answer()
        })
    }

    /// Fills `out` from `offset` on.
    ///
    /// # Errors
    /// If the machine has crashed, or the file is too short.
    pub fn read_at(&self, name: &str, offset: usize, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.world.state();
        let file = file(self.machine(&mut state)?, name)?;
        let read = file.bytes().get(offset..offset + out.len());
        out.copy_from_slice(read.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    /// If the machine has crashed, or crashes now: then any subset of the sectors is written.
    pub fn write_at(&self, name: &str, offset: usize, bytes: &[u8]) -> io::Result<()> {
        self.step(OpKind::ServerWrite, |machine, verdict, coins| {
            let file = file(machine, name)?;
            match verdict {
                Verdict::Go => file.write(offset, bytes),
                Verdict::Fail(_) | Verdict::Crash => file.write_sectors(offset, bytes, coins),
            }
            verdict.answer()
        })
    }

    /// Makes all writes to a file durable.
    ///
    /// # Errors
    /// If the machine has crashed, or crashes now: then the writes may be durable.
    pub fn sync(&self, name: &str) -> io::Result<()> {
        self.step(OpKind::ServerSync, |machine, verdict, coins| {
            file(machine, name)?.answer_sync(verdict, super::FailedSync::Drops, coins)
        })
    }

    fn machine<'s>(&self, state: &'s mut State) -> io::Result<&'s mut Machine> {
        let machine = state.servers.entry(self.server).or_default();
        if machine.run == self.run { Ok(machine) } else { Err(super::fault::machine_is_off()) }
    }

    /// Counts a step of the machine, and crashes the machine during it if that is planned.
    fn step(
        &self,
        kind: OpKind,
        act: impl FnOnce(&mut Machine, Verdict, &mut StdRng) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut state = self.world.state();
        self.machine(&mut state)?;
        let failure = state.plan.next_at(Station::Disk { server: self.server }, kind);
        // Draw only if something goes wrong, so that steps without faults use no randomness.
        let seed = failure.map_or(0, |_| state.plan.coins.random());
        let mut coins = StdRng::seed_from_u64(seed);
        let machine = self.machine(&mut state)?;
        let verdict = if failure.is_some() { Verdict::Crash } else { Verdict::Go };
        let outcome = act(machine, verdict, &mut coins);
        if let Some(StationFailure::Dies(kept)) = failure {
            machine.dies(kept, &mut coins);
        }
        outcome
    }
}

fn file<'m>(machine: &'m mut Machine, name: &str) -> io::Result<&'m mut Medium> {
    machine.files.get_mut(name).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Whether the fault can occur at its station.
pub(super) fn is_sound(fault: &InjectedFault) -> bool {
    match *fault {
        InjectedFault::StationAt(Station::Disk { server }, _, failure) => {
            server != CLIENT && matches!(failure, StationFailure::Dies(_))
        }
        InjectedFault::StationAt(Station::Link { from, to }, ..) => from != to,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::Survival;

    fn planned(fault: InjectedFault) -> World {
        let world = World::new(&[]);
        world.plan(&[fault], &mut StdRng::seed_from_u64(1));
        world
    }

    #[test]
    fn a_server_crashes_in_its_own_step_and_loses_unsynced_writes() {
        let dies = StationFailure::Dies(Survival::None);
        let world = planned(InjectedFault::StationAt(Station::Disk { server: 2 }, 4, dies));
        let disks = [1, 2].map(|server| world.server_disk(server));
        for disk in &disks {
            disk.make("file", 4).unwrap();
            disk.write_at("file", 0, b"old!").unwrap();
            disk.sync("file").unwrap();
            disk.write_at("file", 0, b"new!").unwrap();
        }
        let synced = disks.each_ref().map(|disk| disk.sync("file").is_ok());
        assert_eq!(synced, [true, false]);
        assert!(disks[1].read("file").is_err());
        assert_eq!([1, 2].map(|server| world.server_run(server)), [0, 1]);
        let strike = world.first_failure().unwrap();
        assert_eq!((strike.operation, strike.kind), (4, OpKind::ServerSync));
        // The client has not noticed.
        assert_eq!(world.faults_fired(), 0);
        let held = world.server_disk(2).read("file").unwrap().unwrap();
        assert!(held == b"old!" || held == b"new!");
    }

    #[test]
    fn messages_are_counted_on_each_link_and_direction() {
        let world = planned(InjectedFault::StationAt(
            Station::Link { from: 1, to: 2 },
            1,
            StationFailure::Lost,
        ));
        assert_eq!(world.message(1, 2), Delivery::Arrives);
        assert_eq!(world.message(2, 1), Delivery::Arrives);
        assert_eq!(world.message(2, 1), Delivery::Arrives);
        assert_eq!(world.message(1, 3), Delivery::Arrives);
        assert_eq!(world.message(1, 2), Delivery::Lost);
        assert_eq!(world.message(1, 2), Delivery::Arrives);
        let dies = StationFailure::Dies(Survival::All);
        let world =
            planned(InjectedFault::StationAt(Station::Link { from: 3, to: CLIENT }, 0, dies));
        assert_eq!(world.message_of_client(world.run(), 3, CLIENT), Delivery::Kills);
        assert_eq!(world.server_run(3), 1);
    }

    #[test]
    fn a_crashed_client_sends_nothing() {
        let world = planned(InjectedFault::CrashAt(1));
        let run = world.run();
        assert_eq!(world.message_of_client(run, CLIENT, 1), Delivery::Arrives);
        assert_ne!(world.message_of_client(run, CLIENT, 1), Delivery::Arrives);
        assert_eq!(world.message_of_client(run, CLIENT, 1), Delivery::Lost);
        assert!(world.is_off());
    }
}
