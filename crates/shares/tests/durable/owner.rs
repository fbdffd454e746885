//! The owner of an array. It logs each plan before it carries the plan out, and recovers from the
//! log after a crash.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use oblivio_core::durable::WrongServers;
use oblivio_core::durable::{
    Contents, Durable, DurableConfig, EncodedPlan, EraStart, Save, Want, find_number,
};
use oblivio_core::scheme::{Op, RollbackProbe};
use oblivio_core::{Error, MasterKey};
use oblivio_shares::durable::S3OramParams;
use oblivio_shares::map_trees::MapShape;
use oblivio_shares::servers::into_store;
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::Preset;
use oblivio_testkit::ServersWithRecords;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::servers::Servers;

pub(crate) const BLOCKS: u64 = 60;
pub(crate) const BLOCK_BYTES: usize = 32;

/// The shape of buckets: short enough for frequent evictions, and long enough that no bucket
/// overflows.
pub(crate) const PRESET: Preset = Preset { slots: 32, accesses: 4 };

/// A record in the client's directory.
#[derive(Clone)]
pub(crate) enum LogRecord {
    State(Vec<Vec<u8>>),
    Accesses(EncodedPlan, Vec<Option<Vec<u8>>>),
    Forget(u64),
}

impl LogRecord {
    /// Passes the encoded record to `out`.
    pub(crate) fn bytes(&self, out: &mut dyn FnMut(&[u8])) {
        match self {
            Self::State(sections) => sections.iter().for_each(|section| out(section)),
            Self::Accesses(plan, _) => out(plan.section()),
            Self::Forget(address) => out(&address.to_le_bytes()),
        }
    }
}

/// A list of wrong servers in memory, in place of the list in a client's directory.
#[derive(Clone, Default)]
pub(crate) struct WrongServerList(pub(crate) Arc<Mutex<BTreeSet<usize>>>);

impl WrongServers for WrongServerList {
    fn listed(&self) -> Vec<usize> {
        self.0.lock().unwrap().iter().copied().collect()
    }

    fn add(&mut self, server: usize, _: &str) -> Result<(), Error> {
        assert!(self.0.lock().unwrap().insert(server), "a server is added once");
        Ok(())
    }
}

pub(crate) struct Owner {
    pub(crate) params: S3OramParams,
    pub(crate) servers: Servers,
    pub(crate) log: Vec<LogRecord>,
    pub(crate) wrong: WrongServerList,
    pub(crate) array: Box<dyn Durable>,
    pub(crate) expected: HashMap<u64, Vec<u8>>,
    pub(crate) coins: StdRng,
}

/// Constructors for both kinds of arrays: with the position map on the client, and in trees.
pub(crate) const KINDS: [fn(Parties, u64) -> Owner; 2] = [Owner::new, Owner::in_trees];

/// Bytes of the pages of marks at the end of the root's file: two pages for each of 31 buckets. A
/// page has 24 bytes before its marks, and 4 bytes after them. Valid for [`Owner::in_trees`].
pub(crate) const MARK_PAGES_BYTES: usize = 31 * 2 * (24 + PRESET.slots as usize + 4);

pub(crate) fn params(parties: Parties) -> S3OramParams {
    S3OramParams::new(BLOCKS, BLOCK_BYTES as u32, parties, PRESET).unwrap()
}

pub(crate) fn key() -> MasterKey {
    MasterKey::from_bytes([9; 32])
}

impl Owner {
    pub(crate) fn new(parties: Parties, seed: u64) -> Self {
        Self::of(params(parties), seed, None)
    }

    /// Creates an array with its position map in two trees.
    pub(crate) fn in_trees(parties: Parties, seed: u64) -> Self {
        // Four entries in a block.
        let shape = MapShape { block_bytes: 28, client_entries_max: 5 };
        Self::of(params(parties).with_map_in_trees(shape).unwrap(), seed, None)
    }

    /// Creates an array with initial contents. The caller must add these contents to `expected`.
    pub(crate) fn loaded(parties: Parties, seed: u64, mut contents: impl Contents) -> Self {
        Self::of(params(parties), seed, Some(&mut contents))
    }

    pub(crate) fn of(params: S3OramParams, seed: u64, contents: Option<&mut dyn Contents>) -> Self {
        let servers = Servers::new(find_number(&params.facts(), "servers").unwrap() as usize);
        let mut coins = StdRng::seed_from_u64(seed);
        let mut array = params
            .create(
                key(),
                &[],
                into_store(ServersWithRecords::without(servers.clone())),
                &mut coins,
            )
            .unwrap();
        let wrong = WrongServerList::default();
        array.keep_wrong_servers(Box::new(wrong.clone()));
        if let Some(contents) = contents {
            assert!(array.load(contents, &mut coins).unwrap());
        }
        let mut owner = Self {
            params,
            servers,
            log: Vec::new(),
            wrong,
            array,
            expected: HashMap::new(),
            coins,
        };
        owner.save(Save::Whole);
        owner
    }

    pub(crate) fn save(&mut self, what: Save) {
        let mut sections = Vec::new();
        self.array.save(what, &mut |section| sections.push(section.to_vec()));
        self.log.push(LogRecord::State(sections));
        self.array.mark_durable();
    }

    pub(crate) fn checkpoint(&mut self) -> Result<(), Error> {
        self.array.flush()?;
        self.array.begin_era(EraStart::Checkpoint, &mut self.coins);
        self.save(Save::Changes);
        Ok(())
    }

    /// Makes accesses, each of which writes its data if it has any. Compares each block that was
    /// read with `expected`.
    pub(crate) fn access(&mut self, wanted: &[(Want, Option<Vec<u8>>)]) -> Result<(), Error> {
        if self.array.headroom()?.accesses < wanted.len() as u64 {
            self.checkpoint()?;
        }
        let wants: Vec<_> = wanted.iter().map(|(want, _)| *want).collect();
        let plan = self.array.plan(&wants, &[], &mut self.coins)?;
        let writes: Vec<_> = wanted.iter().map(|(_, data)| data.clone()).collect();
        self.log.push(LogRecord::Accesses(plan.encoded().clone(), writes));
        let mut found = vec![vec![0xee; BLOCK_BYTES]; wanted.len()];
        let mut expected = Vec::new();
        for (want, data) in wanted {
            if let Want::Block(address) = want {
                expected.push(self.expected(*address));
                if let Some(data) = data {
                    self.expected.insert(*address, data.clone());
                }
            } else {
                expected.push(vec![0xee; BLOCK_BYTES]);
            }
        }
        let ops = wanted.iter().zip(&mut found).map(|((_, data), found)| match data {
            Some(data) => Op::Write(data),
            None => Op::Read(found),
        });
        self.array.carry_out(&plan, &mut ops.collect::<Vec<_>>())?;
        for (i, (_, data)) in wanted.iter().enumerate() {
            assert!(data.is_some() || found[i] == expected[i], "access {i}");
        }
        Ok(())
    }

    /// Plans several windows of reads, and then makes these reads.
    pub(crate) fn read_ahead(&mut self, windows: &[Vec<u64>]) -> Result<(), Error> {
        let mut plans = Vec::new();
        for window in windows {
            let wants: Vec<_> = window.iter().copied().map(Want::Block).collect();
            let planned: Vec<_> = plans.iter().collect();
            let plan = self.array.plan(&wants, &planned, &mut self.coins)?;
            self.log.push(LogRecord::Accesses(plan.encoded().clone(), vec![None; window.len()]));
            plans.push(plan);
        }
        for (window, plan) in windows.iter().zip(&plans) {
            let mut found = vec![vec![0xee; BLOCK_BYTES]; window.len()];
            let ops = found.iter_mut().map(|found| Op::Read(found));
            self.array.carry_out(plan, &mut ops.collect::<Vec<_>>())?;
            for (address, found) in window.iter().zip(found) {
                assert_eq!(found, self.expected(*address));
            }
        }
        Ok(())
    }

    pub(crate) fn read(&mut self, address: u64) -> Result<(), Error> {
        self.access(&[(Want::Block(address), None)])
    }

    pub(crate) fn write(&mut self, address: u64, fill: u8) -> Result<(), Error> {
        self.access(&[(Want::Block(address), Some(vec![fill; BLOCK_BYTES]))])
    }

    pub(crate) fn forget(&mut self, address: u64) {
        self.log.push(LogRecord::Forget(address));
        self.array.forget(address..address + 1).unwrap();
        self.expected.remove(&address);
    }

    fn expected(&self, address: u64) -> Vec<u8> {
        self.expected.get(&address).cloned().unwrap_or(vec![0; BLOCK_BYTES])
    }

    pub(crate) fn read_all(&mut self) {
        for address in 0..BLOCKS {
            self.read(address).unwrap();
        }
    }

    /// Restores the client's last checkpoint. Returns the array, and the records since the
    /// checkpoint.
    pub(crate) fn restored(&self) -> (Box<dyn Durable>, Vec<LogRecord>) {
        let latest = self.log.iter().rposition(|it| matches!(it, LogRecord::State(_))).unwrap();
        let mut restore = self.params.restore().unwrap();
        for record in &self.log[..=latest] {
            match record {
                LogRecord::State(sections) => {
                    restore.begin_state().unwrap();
                    sections.iter().for_each(|section| restore.section(section).unwrap());
                }
                LogRecord::Accesses(plan, writes) => {
                    let is_written: Vec<_> = writes.iter().map(Option::is_some).collect();
                    restore.replay(plan, &is_written).unwrap();
                }
                LogRecord::Forget(address) => restore.replay_forget(*address..address + 1).unwrap(),
            }
        }
        let mut array = restore
            .finish(key(), &[], into_store(ServersWithRecords::without(self.servers.clone())))
            .unwrap();
        array.keep_wrong_servers(Box::new(self.wrong.clone()));
        (array, self.log[latest + 1..].to_vec())
    }

    /// Asks the servers whether the client was rolled back, as a restarted client does.
    pub(crate) fn probe_rollback(&self) -> Result<RollbackProbe, Error> {
        let (mut array, pending) = self.restored();
        let accesses = pending.iter().map(|record| match record {
            LogRecord::Accesses(plan, _) => plan.accesses() as u64,
            _ => 0,
        });
        array.probe_rollback(accesses.sum(), 0)
    }

    /// Recovers as a volume does: probes for a rollback, replays the log, and saves the state.
    pub(crate) fn reopen(&mut self) -> Result<(), Error> {
        let (mut array, pending) = self.restored();
        let accesses = pending.iter().map(|record| match record {
            LogRecord::Accesses(plan, _) => plan.accesses() as u64,
            _ => 0,
        });
        assert_eq!(array.probe_rollback(accesses.sum(), 0)?, RollbackProbe::NotYet);
        array.begin_era(EraStart::Opening, &mut self.coins);
        for record in pending {
            match record {
                LogRecord::Accesses(plan, writes) => {
                    let mut nowhere = vec![vec![0; BLOCK_BYTES]; writes.len()];
                    let ops = writes.iter().zip(&mut nowhere).map(|(data, nowhere)| {
                        data.as_ref().map_or(Op::Read(nowhere), |data| Op::Write(data))
                    });
                    let plan = array.decode_plan(&plan)?;
                    array.carry_out(&plan, &mut ops.collect::<Vec<_>>())?;
                }
                LogRecord::Forget(address) => array.forget(address..address + 1)?,
                LogRecord::State(_) => unreachable!(),
            }
        }
        array.flush()?;
        self.array = array;
        self.log.clear();
        self.save(Save::WholePadded);
        Ok(())
    }
}
