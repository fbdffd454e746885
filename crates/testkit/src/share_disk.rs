//! The files of a share server, with power losses.

#![allow(clippy::unwrap_used, reason = "only tests use it")]

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use oblivio_shares::host::{Folder, ShareFile};
use rand::rngs::StdRng;
use rand::{Rng, RngExt};

/// Bytes per sector. A sector is written atomically.
const SECTOR: usize = 512;

/// A folder in memory. Clones are the same folder.
#[derive(Clone, Default)]
pub struct ShareDisk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    files: BTreeMap<String, Content>,
    /// Number of steps until the machine dies: writes, syncs, and openings or replacements of
    /// files. `None` if it stays alive.
    left: Option<u64>,
    power_losses: u64,
    /// The file whose syncs fail.
    failing: Option<&'static str>,
}

#[derive(Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// Byte ranges written since the last sync.
    written: Vec<(usize, usize)>,
}

impl ShareDisk {
    /// Makes the machine die after `steps` more writes, syncs, and openings or replacements of
    /// files. All later ones fail; reads still work.
    pub fn dies_after(&self, steps: u64) {
        self.0.lock().unwrap().left = Some(steps);
    }

    /// The number of power losses so far.
    pub fn power_losses(&self) -> u64 {
        self.0.lock().unwrap().power_losses
    }

    /// Whether the machine has died, after the steps that [`dies_after`](Self::dies_after) set.
    pub fn is_dead(&self) -> bool {
        self.0.lock().unwrap().left == Some(0)
    }

    /// Simulates a power loss and a restart. A random subset of the unsynced sectors survives.
    pub fn loses_power(&self, coins: &mut StdRng) {
        let mut state = self.0.lock().unwrap();
        state.left = None;
        state.power_losses += 1;
        for content in state.files.values_mut() {
            let Content { now, durable, written } = content;
            for (start, end) in written.drain(..) {
                for sector in start / SECTOR..end.div_ceil(SECTOR) {
                    if coins.random() {
                        let bytes = sector * SECTOR..(sector * SECTOR + SECTOR).min(now.len());
                        durable[bytes.clone()].copy_from_slice(&now[bytes]);
                    }
                }
            }
            now.clone_from(durable);
        }
    }

    /// Makes syncs of file `name` fail until called with `None`. After a failed sync, reads still
    /// show the unsynced writes, but no later sync makes them durable.
    pub fn fail_syncs_of(&self, name: Option<&'static str>) {
        self.0.lock().unwrap().failing = name;
    }

    /// Creates a new disk with equal contents, all of them durable.
    pub fn copy(&self) -> Self {
        let state = self.0.lock().unwrap();
        let copy = |(name, Content { now, .. }): (&String, &Content)| {
            let content = Content { now: now.clone(), durable: now.clone(), written: Vec::new() };
            (name.clone(), content)
        };
        let files = state.files.iter().map(copy).collect();
        Self(Arc::new(Mutex::new(State { files, ..State::default() })))
    }

    /// Returns the contents of a file.
    pub fn content(&self, name: &str) -> Vec<u8> {
        self.0.lock().unwrap().files[name].now.clone()
    }

    /// Overwrites bytes of a file, durably.
    pub fn overwrite(&self, name: &str, from: usize, bytes: &[u8]) {
        let mut state = self.0.lock().unwrap();
        let content = state.files.get_mut(name).unwrap();
        content.now[from..from + bytes.len()].copy_from_slice(bytes);
        content.durable[from..from + bytes.len()].copy_from_slice(bytes);
    }

    /// Flips a bit of byte `at` of a file.
    pub fn flips_a_bit_at(&self, name: &str, at: usize) {
        let mut state = self.0.lock().unwrap();
        let content = state.files.get_mut(name).unwrap();
        content.now[at] ^= 4;
        content.durable[at] ^= 4;
    }

    /// Flips a bit of a random byte of a file.
    pub fn flips_a_bit(&self, name: &str, coins: &mut StdRng) {
        let mut state = self.0.lock().unwrap();
        let content = state.files.get_mut(name).unwrap();
        let at = (coins.next_u64() % content.now.len() as u64) as usize;
        content.now[at] ^= 1;
        content.durable[at] ^= 1;
    }

    fn step<T>(&self, work: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let state = &mut *self.0.lock().unwrap();
        match &mut state.left {
            Some(0) => return Err(io::Error::other("the machine has died")),
            Some(left) => *left -= 1,
            None => (),
        }
        work(state)
    }
}

impl Folder for ShareDisk {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().files.get(name).map(|content| content.now.clone()))
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.step(|state| {
            let [now, durable] = [(); 2].map(|()| bytes.to_vec());
            state.files.insert(name.into(), Content { now, durable, written: Vec::new() });
            Ok(())
        })
    }

    fn open(&self, name: &str, bytes: u64, _: bool) -> io::Result<Box<dyn ShareFile>> {
        self.step(|state| {
            let content = state.files.entry(name.into()).or_default();
            if content.now.is_empty() {
                content.now.resize(bytes as usize, 0);
                content.durable.resize(bytes as usize, 0);
            }
            assert_eq!(content.now.len() as u64, bytes);
            Ok(())
        })?;
        Ok(Box::new(File { disk: self.clone(), name: name.into() }))
    }
}

struct File {
    disk: ShareDisk,
    name: String,
}

impl ShareFile for File {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.disk.0.lock().unwrap();
        let now = &state.files[&self.name].now;
        out.copy_from_slice(&now[offset as usize..][..out.len()]);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.step(|state| {
            let content = state.files.get_mut(&self.name).unwrap();
            let start = offset as usize;
            content.now[start..start + bytes.len()].copy_from_slice(bytes);
            content.written.push((start, start + bytes.len()));
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.step(|state| {
            let fails = state.failing == Some(&*self.name);
            let content = state.files.get_mut(&self.name).unwrap();
            let Content { now, durable, written } = content;
            if fails {
                written.clear();
                return Err(io::Error::other("the disk has failed"));
            }
            for (start, end) in written.drain(..) {
                durable[start..end].copy_from_slice(&now[start..end]);
            }
            Ok(())
        })
    }
}
