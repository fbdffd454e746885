//! The state of a channel's DRAM: open rows, and the earliest clock of each possible command.
//!
//! Each command updates the earliest clocks of the commands that may follow it, so a look-up is
//! cheap. The data bus needs no state of its own: bursts are in the order of their commands, so
//! their distance follows from the kinds of the commands.

use super::{Clock, DramSpec};
use crate::trace::AccessKind;

/// The index of the rank or bank group that contains `bank`.
fn share(bank: u32, log2_size: u32) -> usize {
    (bank >> log2_size) as usize
}

#[derive(Clone, Copy, Debug, Default)]
struct Bank {
    row: Option<u32>,
    activate: Clock,
    precharge: Clock,
    column: Clock,
}

/// A bank group: banks of a rank that share circuits.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    activate: Clock,
    column: [Clock; 2],
}

/// The earliest clocks of the next four activates of a rank, as limited by the last four (tFAW).
#[derive(Clone, Copy, Debug, Default)]
struct Opened {
    ready: [Clock; 4],
    oldest: usize,
}

/// The smallest unit that the banks of two commands share.
#[derive(Clone, Copy)]
enum Relation {
    Group,
    Rank,
    Channel,
}

/// Minimum distances between commands, in the form in which the device looks them up.
#[derive(Clone, Debug)]
struct Distances {
    /// Clocks from an activate to an activate of another bank in the rank, by their [`Relation`].
    activate: [Clock; 2],
    /// Clocks from a read or write to a later read or write of any bank, by the two kinds and the
    /// relation of the banks: `[first][later][relation]`.
    column: [[[Clock; 3]; 2]; 2],
    /// Clocks from a read or write to a precharge of the bank, by the kind of access.
    precharge: [Clock; 2],
}

/// The DRAM of one channel.
#[derive(Clone, Debug)]
pub(super) struct Device {
    banks: Vec<Bank>,
    /// Bit mask of the banks with an open row.
    open_banks: u64,
    groups: Vec<Group>,
    opened: Vec<Opened>,
    /// The earliest clock at which the command bus is free.
    bus: Clock,
    rcd: Clock,
    rp: Clock,
    ras: Clock,
    rc: Clock,
    faw: Clock,
    rfc: Clock,
    distances: Distances,
    /// Clocks from a read or write to the end of its burst, by the kind of access.
    latency: [Clock; 2],
    log2_group: u32,
    log2_rank: u32,
}

impl Device {
    pub(super) fn new(spec: &DramSpec) -> Self {
        let time = spec.timing;
        let group_banks = spec.banks / spec.groups();
        let burst = Clock::from(spec.burst_clocks);
        Self {
            banks: vec![Bank::default(); (spec.ranks * spec.banks) as usize],
            open_banks: 0,
            groups: vec![Group::default(); (spec.ranks * spec.groups()) as usize],
            opened: vec![Opened::default(); spec.ranks as usize],
            bus: 0,
            rcd: time.rcd.into(),
            rp: time.rp.into(),
            ras: time.ras.into(),
            rc: time.rc.into(),
            faw: time.faw.into(),
            rfc: time.rfc.into(),
            distances: Distances::new(spec),
            latency: [Clock::from(time.cas) + burst, Clock::from(time.cwd) + burst],
            log2_group: group_banks.trailing_zeros(),
            log2_rank: spec.banks.trailing_zeros(),
        }
    }

    #[inline]
    pub(super) fn open_row(&self, bank: u32) -> Option<u32> {
        self.banks[bank as usize].row
    }

    /// Bit mask of the banks with an open row.
    #[inline]
    pub(super) fn open_banks(&self) -> u64 {
        self.open_banks
    }

    /// The earliest clock at which the command bus is free. The functions below give the earliest
    /// clocks by all other rules.
    #[inline]
    pub(super) fn bus_free(&self) -> Clock {
        self.bus
    }

    pub(super) fn rank_of(&self, bank: u32) -> u32 {
        bank >> self.log2_rank
    }

    /// The banks of `rank`.
    pub(super) fn banks_of(&self, rank: u32) -> std::ops::Range<u32> {
        rank << self.log2_rank..(rank + 1) << self.log2_rank
    }

    #[inline]
    pub(super) fn column_at(&self, bank: u32, kind: AccessKind) -> Clock {
        let group = &self.groups[share(bank, self.log2_group)];
        self.banks[bank as usize].column.max(group.column[kind as usize])
    }

    #[inline]
    pub(super) fn activate_at(&self, bank: u32) -> Clock {
        let group = &self.groups[share(bank, self.log2_group)];
        self.banks[bank as usize].activate.max(group.activate)
    }

    #[inline]
    pub(super) fn precharge_at(&self, bank: u32) -> Clock {
        self.banks[bank as usize].precharge
    }

    /// The earliest clock of a refresh of a rank without open rows.
    pub(super) fn refresh_at(&self, rank: u32) -> Clock {
        self.banks_of(rank).map(|bank| self.banks[bank as usize].activate).fold(0, Ord::max)
    }

    pub(super) fn activate(&mut self, at: Clock, number: u32, row: u32) {
        let bank = &mut self.banks[number as usize];
        bank.row = Some(row);
        self.open_banks |= 1 << number;
        bank.column = at + self.rcd;
        bank.precharge = at + self.ras;
        bank.activate = at + self.rc;

        let rank = self.rank_of(number);
        let opened = &mut self.opened[rank as usize];
        opened.ready[opened.oldest] = at + self.faw;
        opened.oldest = (opened.oldest + 1) % opened.ready.len();
        let fifth = opened.ready[opened.oldest];
        for (group, relation) in self.related(number).filter(|(_, relation)| relation.in_rank()) {
            let ready = &mut self.groups[group].activate;
            *ready = (*ready).max(fifth).max(at + self.distances.activate[relation as usize]);
        }
        self.bus = at + 1;
    }

    /// Closes the open row of bank `number`, and returns the row's number; 0 if no row is open.
    pub(super) fn precharge(&mut self, at: Clock, number: u32) -> u32 {
        self.open_banks &= !(1 << number);
        let bank = &mut self.banks[number as usize];
        bank.activate = bank.activate.max(at + self.rp);
        self.bus = at + 1;
        bank.row.take().unwrap_or_default()
    }

    /// Reads or writes a line of the open row. Returns the end of its burst.
    pub(super) fn column(&mut self, at: Clock, number: u32, kind: AccessKind) -> Clock {
        let bank = &mut self.banks[number as usize];
        bank.precharge = bank.precharge.max(at + self.distances.precharge[kind as usize]);
        for (group, relation) in self.related(number) {
            let distances = &self.distances.column[kind as usize];
            let ready = &mut self.groups[group].column;
            for (ready, distance) in ready.iter_mut().zip(distances) {
                *ready = (*ready).max(at + distance[relation as usize]);
            }
        }
        self.bus = at + 1;
        at + self.latency[kind as usize]
    }

    pub(super) fn refresh(&mut self, at: Clock, rank: u32) {
        for bank in self.banks_of(rank) {
            self.banks[bank as usize].activate = at + self.rfc;
        }
        self.bus = at + 1;
    }

    /// Returns the index of each bank group of the channel, with the relation of the group's banks
    /// to `bank`.
    #[inline]
    fn related(&self, bank: u32) -> impl Iterator<Item = (usize, Relation)> + use<> {
        let home = share(bank, self.log2_group);
        let log2_groups = self.log2_rank - self.log2_group;
        (0..self.groups.len()).map(move |group| {
            let relation = if group == home {
                Relation::Group
            } else if group >> log2_groups == home >> log2_groups {
                Relation::Rank
            } else {
                Relation::Channel
            };
            (group, relation)
        })
    }
}

impl Relation {
    fn in_rank(self) -> bool {
        !matches!(self, Self::Channel)
    }
}

impl Distances {
    fn new(spec: &DramSpec) -> Self {
        let time = spec.timing;
        let (ccd, rrd, wtr) = spec
            .bank_groups
            .map_or((time.ccd, time.rrd, time.wtr), |group| (group.ccd, group.rrd, group.wtr));
        let [cas, cwd, burst, turn] = [time.cas, time.cwd, spec.burst_clocks, time.rtrs];
        let written = cwd + burst;
        let read_write = (cas + burst + turn).saturating_sub(cwd);
        let write_read = (written + turn).saturating_sub(cas);
        // Indexed by `Relation`.
        let alike = [ccd.max(burst), time.ccd.max(burst), burst + turn];
        let turns = [
            [alike, [read_write.max(ccd), read_write.max(time.ccd), read_write]],
            [
                [write_read.max(written + wtr), write_read.max(written + time.wtr), write_read],
                alike,
            ],
        ];
        Self {
            activate: [rrd.into(), time.rrd.into()],
            column: turns.map(|first| first.map(|second| second.map(Clock::from))),
            precharge: [time.rtp.into(), (written + time.wr).into()],
        }
    }
}
