//! Machines beside that of the client, each with a disk of its own, and the links between any two.
//!
//! Steps are counted at each [`Station`] by itself, because machines work at the same time: what a station does follows from what it is asked,
//! and not from who of several was faster. A machine that has died is started again at once, with what is left on its disk.

use std::collections::BTreeMap;
use std::io;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::fault::{Fault, Mishap, OpKind, Station, Verdict};
use super::medium::Medium;
use super::world::{State, World, crash_disks};

/// The number of the client, where links are named.
pub const CLIENT: u8 = 0;

/// Of one server.
#[derive(Default)]
pub(super) struct Machine {
    files: BTreeMap<String, Medium>,
    run: u64,
}

impl Machine {
    /// It loses its power, and whoever used its files is dead.
    pub(super) fn dies(&mut self, kept: super::Survival, coins: &mut StdRng) {
        crash_disks(self.files.values_mut(), kept, coins);
        self.run += 1;
    }
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It does not, and its link ends.
    Lost,
    /// It arrives, and then its link ends.
    ArrivesLast,
    /// It does not, and the server that it was for has died; or the one that it was from, if it was for the client.
    Kills,
}

impl World {
    /// Which run of its machine a server is in: from one death to the next. Servers are numbered from 1.
    pub fn server_run(&self, server: u8) -> u64 {
        self.state().servers.entry(server).or_default().run
    }

    /// The disk of a server, for this run of its machine.
    pub fn server_disk(&self, server: u8) -> ServerDisk {
        ServerDisk { world: self.clone(), server, run: self.server_run(server) }
    }

    /// One server has sent a message to another: says what becomes of it.
    pub fn message(&self, from: u8, to: u8) -> Fate {
        self.state().message(from, to)
    }

    /// The client of this run sends a message to a server or takes one from it, which is an operation of its own: says what becomes of it.
    pub fn message_of_client(&self, run: u64, from: u8, to: u8) -> Fate {
        let mut state = self.state();
        let fate = match state.begin(run, OpKind::Message) {
            Ok(Verdict::Go) => return state.message(from, to),
            Ok(Verdict::Fail(_) | Verdict::Crash) if state.plan.coins.random() => Fate::ArrivesLast,
            Ok(_) | Err(_) => Fate::Lost,
        };
        // Whoever is off takes nothing.
        if to == CLIENT { Fate::Lost } else { fate }
    }

    /// Whoever uses the world has noticed what befell servers and links.
    pub fn notice(&self) {
        self.state().plan.fired += 1;
    }
}

impl State {
    fn message(&mut self, from: u8, to: u8) -> Fate {
        match self.plan.next_at(Station::Link { from, to }, OpKind::Message) {
            None => Fate::Arrives,
            Some(Mishap::Lost) => Fate::Lost,
            Some(Mishap::Cut) => Fate::ArrivesLast,
            Some(Mishap::Dies(kept)) => {
                let mut coins = StdRng::seed_from_u64(self.plan.coins.random());
                let server = if to == CLIENT { from } else { to };
                self.servers.entry(server).or_default().dies(kept, &mut coins);
                Fate::Kills
            }
        }
    }
}

/// The disk of a server, for one run of its machine.
#[derive(Clone)]
pub struct ServerDisk {
    world: World,
    server: u8,
    run: u64,
}

impl ServerDisk {
    /// Which run of the machine it is of.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// All that a small file holds.
    ///
    /// # Errors
    /// When the machine has died.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut state = self.world.state();
        let machine = self.machine(&mut state)?;
        Ok(machine.files.get(name).map(|file| file.bytes().to_vec()))
    }

    /// Makes or replaces a small file: it is durable, and whole.
    ///
    /// # Errors
    /// When the machine has died, or dies: then the file is there or it is not.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.step(OpKind::ServerSync, |machine, verdict, coins| {
            if verdict == Verdict::Go || coins.random() {
                machine.files.insert(name.into(), Medium::holding(bytes.to_vec()));
            }
            verdict.answer()
        })
    }

    /// Makes a file of so many zeros, if there is none: it is there durably.
    ///
    /// # Errors
    /// When the machine has died, or dies.
    pub fn make(&self, name: &str, bytes: usize) -> io::Result<()> {
        self.step(OpKind::ServerSync, |machine, verdict, coins| {
            if verdict == Verdict::Go || coins.random() {
                let zeros = || Medium::holding(vec![0; bytes]);
                machine.files.entry(name.into()).or_insert_with(zeros);
            }
            verdict.answer()
        })
    }

    /// Reads from there on.
    ///
    /// # Errors
    /// When the machine has died, or the file is shorter.
    pub fn read_at(&self, name: &str, offset: usize, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.world.state();
        let file = file(self.machine(&mut state)?, name)?;
        let read = file.bytes().get(offset..offset + out.len());
        out.copy_from_slice(read.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// Writes from there on.
    ///
    /// # Errors
    /// When the machine has died, or dies: then any sectors are written.
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

    /// Makes durable what was written to a file.
    ///
    /// # Errors
    /// When the machine has died, or dies: then it may be durable.
    pub fn sync(&self, name: &str) -> io::Result<()> {
        self.step(OpKind::ServerSync, |machine, verdict, coins| {
            file(machine, name)?.answer_sync(verdict, super::FailedSync::Drops, coins)
        })
    }

    fn machine<'s>(&self, state: &'s mut State) -> io::Result<&'s mut Machine> {
        let machine = state.servers.entry(self.server).or_default();
        if machine.run == self.run { Ok(machine) } else { Err(super::fault::machine_is_off()) }
    }

    /// Counts what a machine does, and lets it die in it if that is planned.
    fn step(
        &self,
        kind: OpKind,
        act: impl FnOnce(&mut Machine, Verdict, &mut StdRng) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut state = self.world.state();
        self.machine(&mut state)?;
        let mishap = state.plan.next_at(Station::Disk { server: self.server }, kind);
        // Only where something goes wrong is anything drawn.
        let seed = mishap.map_or(0, |_| state.plan.coins.random());
        let mut coins = StdRng::seed_from_u64(seed);
        let machine = self.machine(&mut state)?;
        let verdict = if mishap.is_some() { Verdict::Crash } else { Verdict::Go };
        let outcome = act(machine, verdict, &mut coins);
        if let Some(Mishap::Dies(kept)) = mishap {
            machine.dies(kept, &mut coins);
        }
        outcome
    }
}

fn file<'m>(machine: &'m mut Machine, name: &str) -> io::Result<&'m mut Medium> {
    machine.files.get_mut(name).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Whether what is planned for a station can happen there.
pub(super) fn is_sound(fault: &Fault) -> bool {
    match *fault {
        Fault::StationAt(Station::Disk { server }, _, mishap) => {
            server != CLIENT && matches!(mishap, Mishap::Dies(_))
        }
        Fault::StationAt(Station::Link { from, to }, ..) => from != to,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::Survival;

    fn planned(fault: Fault) -> World {
        let world = World::new(&[]);
        world.plan(&[fault], &mut StdRng::seed_from_u64(1));
        world
    }

    #[test]
    fn a_server_dies_in_its_own_step_and_loses_what_was_not_synced() {
        let dies = Mishap::Dies(Survival::None);
        let world = planned(Fault::StationAt(Station::Disk { server: 2 }, 4, dies));
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
        let strike = world.first_strike().unwrap();
        assert_eq!((strike.operation, strike.kind), (4, OpKind::ServerSync));
        // Nobody has told the client.
        assert_eq!(world.faults_fired(), 0);
        let held = world.server_disk(2).read("file").unwrap().unwrap();
        assert!(held == b"old!" || held == b"new!");
    }

    #[test]
    fn messages_are_counted_on_each_link_and_way() {
        let world = planned(Fault::StationAt(Station::Link { from: 1, to: 2 }, 1, Mishap::Lost));
        assert_eq!(world.message(1, 2), Fate::Arrives);
        assert_eq!(world.message(2, 1), Fate::Arrives);
        assert_eq!(world.message(2, 1), Fate::Arrives);
        assert_eq!(world.message(1, 3), Fate::Arrives);
        assert_eq!(world.message(1, 2), Fate::Lost);
        assert_eq!(world.message(1, 2), Fate::Arrives);
        let dies = Mishap::Dies(Survival::All);
        let world = planned(Fault::StationAt(Station::Link { from: 3, to: CLIENT }, 0, dies));
        assert_eq!(world.message_of_client(world.run(), 3, CLIENT), Fate::Kills);
        assert_eq!(world.server_run(3), 1);
    }

    #[test]
    fn a_client_that_is_off_sends_nothing() {
        let world = planned(Fault::CrashAt(1));
        let run = world.run();
        assert_eq!(world.message_of_client(run, CLIENT, 1), Fate::Arrives);
        assert_ne!(world.message_of_client(run, CLIENT, 1), Fate::Arrives);
        assert_eq!(world.message_of_client(run, CLIENT, 1), Fate::Lost);
        assert!(world.is_off());
    }
}
