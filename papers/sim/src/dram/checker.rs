//! An independent check of every command against the rules of DRAM. It shares no code with the
//! scheduler.
//!
//! The checker keeps the recent commands of each channel, and compares each new command with all
//! that are close enough to matter. This is slow and simple on purpose.
//!
//! Refreshes may be late. At each moment, a rank may lack at most [`LATE_REFRESHES`] of the
//! refreshes due, one per tREFI from clock 0 on. (JESD79-3 allows a controller to postpone 8.) Idle
//! channels need refreshes too, so the checker counts them in all channels whenever time has passed
//! in all.

use std::collections::{HashMap, VecDeque};

use super::{Clock, Command, CommandKind, DramSpec, Observer};

/// The maximum number of outstanding refreshes of a rank.
pub const LATE_REFRESHES: u64 = 1;

/// Observes the commands of a DRAM, and keeps the first violation of a rule.
#[derive(Clone, Debug)]
pub struct Checker {
    spec: DramSpec,
    channels: Vec<Past>,
    violation: Option<String>,
    commands: u64,
}

/// The past of a channel: recent commands, open rows, and counts of refreshes.
#[derive(Clone, Debug, Default)]
struct Past {
    recent: VecDeque<Command>,
    /// The open row of each bank, by rank and bank.
    open_rows: HashMap<(u32, u32), u32>,
    /// The number of refreshes, by rank.
    refreshes: HashMap<u32, u64>,
}

impl Checker {
    /// Creates a checker of commands to `channels` channels of `spec`.
    pub fn new(spec: &DramSpec, channels: u32) -> Self {
        let channels = vec![Past::default(); channels as usize];
        Self { spec: spec.clone(), channels, violation: None, commands: 0 }
    }

    /// Number of commands seen.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// Checks that the commands so far broke no rule.
    ///
    /// # Errors
    /// The description of the first violation.
    pub fn verdict(&self) -> Result<(), String> {
        self.violation.clone().map_or(Ok(()), Err)
    }

    fn check(&mut self, new: Command) -> Result<(), String> {
        let Some(past) = self.channels.get_mut(new.channel as usize) else {
            return Err("no such channel".into());
        };
        let rules = Rules(&self.spec);
        rules.check_state(past, new)?;
        for old in &past.recent {
            rules.check_pair(*old, new)?;
        }
        rules.check_activates(&past.recent, new)?;
        rules.check_refreshes(past, new.clock)?;
        past.remember(new, rules.horizon());
        Ok(())
    }
}

impl Observer for Checker {
    fn observe(&mut self, command: Command) {
        self.commands += 1;
        if self.violation.is_none() {
            self.violation = self.check(command).err().map(|what| format!("{command:?}: {what}"));
        }
    }

    fn passed(&mut self, clock: Clock) {
        if self.violation.is_some() {
            return;
        }
        let rules = Rules(&self.spec);
        let wrong = (0..).zip(&self.channels).find_map(|(number, past)| {
            let what = rules.check_refreshes(past, clock).err()?;
            Some(format!("clock {clock}, channel {number}: {what}"))
        });
        self.violation = wrong;
    }
}

impl Past {
    fn remember(&mut self, new: Command, horizon: Clock) {
        while self.recent.front().is_some_and(|old| old.clock + horizon < new.clock) {
            self.recent.pop_front();
        }
        self.recent.push_back(new);
        let bank = (new.rank, new.bank);
        match new.kind {
            CommandKind::Activate => drop(self.open_rows.insert(bank, new.row)),
            CommandKind::Precharge => drop(self.open_rows.remove(&bank)),
            CommandKind::Refresh => *self.refreshes.entry(new.rank).or_default() += 1,
            CommandKind::Read | CommandKind::Write => {}
        }
    }
}

/// The data of a read or write on the bus: the clocks `start..end`.
struct Burst {
    start: Clock,
    end: Clock,
}

struct Rules<'a>(&'a DramSpec);

impl Rules<'_> {
    /// Checks that the bank and the row exist, and that the row is open or closed, as the command
    /// needs.
    fn check_state(&self, past: &Past, new: Command) -> Result<(), String> {
        let open = past.open_rows.get(&(new.rank, new.bank));
        let rank_open = past.open_rows.keys().any(|(rank, _)| *rank == new.rank);
        let ok = match new.kind {
            CommandKind::Activate => open.is_none(),
            CommandKind::Refresh => !rank_open,
            CommandKind::Read | CommandKind::Write | CommandKind::Precharge => {
                open == Some(&new.row)
            }
        };
        let inside = new.rank < self.0.ranks && new.bank < self.0.banks && new.row < self.0.rows;
        match (ok, inside) {
            (true, true) => Ok(()),
            (_, false) => Err("no such place".into()),
            (false, _) => Err(format!("the open row of the bank is {open:?}")),
        }
    }

    /// Checks the distance in clocks between two commands of a channel.
    fn check_pair(&self, old: Command, new: Command) -> Result<(), String> {
        use CommandKind::{Activate, Precharge, Read, Refresh, Write};
        let time = &self.0.timing;
        let same_rank = old.rank == new.rank;
        let same_bank = same_rank && old.bank == new.bank;
        let group_banks = self.0.banks / self.0.groups();
        let same_group = same_rank && old.bank / group_banks == new.bank / group_banks;
        let (ccd, rrd, wtr) = match self.0.bank_groups {
            Some(long) if same_group => (long.ccd, long.rrd, long.wtr),
            _ => (time.ccd, time.rrd, time.wtr),
        };
        let write_data = time.cwd + self.0.burst_clocks;

        let gap = |name: &str, applies: bool, least: u32| {
            if applies && new.clock < old.clock + Clock::from(least) {
                return Err(format!("{name}: less than {least} clocks after {old:?}"));
            }
            Ok(())
        };
        gap("one command per clock", true, 1)?;
        match (old.kind, new.kind) {
            (Activate, Read | Write) => gap("tRCD", same_bank, time.rcd),
            (Activate, Precharge) => gap("tRAS", same_bank, time.ras),
            (Activate, Activate) => {
                gap("tRC", same_bank, time.rc)?;
                gap("tRRD", same_rank, rrd)
            }
            (Activate, Refresh) => gap("tRC", same_rank, time.rc),
            (Precharge, Activate) => gap("tRP", same_bank, time.rp),
            (Precharge, Refresh) => gap("tRP", same_rank, time.rp),
            (Read, Precharge) => gap("tRTP", same_bank, time.rtp),
            (Write, Precharge) => gap("tWR", same_bank, write_data + time.wr),
            (Refresh, _) => gap("tRFC", same_rank, time.rfc),
            (Read | Write, Read | Write) => {
                gap("tCCD", same_rank && (old.kind == new.kind || old.kind == Read), ccd)?;
                gap("tWTR", same_rank && (old.kind, new.kind) == (Write, Read), write_data + wtr)?;
                self.check_bus(old, new)
            }
            (Precharge, _) | (Read | Write, Activate | Refresh) => Ok(()),
        }
    }

    /// Checks the data bus, which carries one burst at a time, and pauses when the rank or the
    /// direction changes.
    fn check_bus(&self, old: Command, new: Command) -> Result<(), String> {
        let changes = old.rank != new.rank || old.kind != new.kind;
        let rest = if changes { Clock::from(self.0.timing.rtrs) } else { 0 };
        if self.burst(new).start < self.burst(old).end + rest {
            return Err(format!("data bus: tRTRS, or the burst itself, after {old:?}"));
        }
        Ok(())
    }

    fn burst(&self, command: Command) -> Burst {
        let time = &self.0.timing;
        let wait = if command.kind == CommandKind::Read { time.cas } else { time.cwd };
        let start = command.clock + Clock::from(wait);
        Burst { start, end: start + Clock::from(self.0.burst_clocks) }
    }

    /// Checks tFAW: at most four rows of a rank are opened within this time.
    fn check_activates(&self, recent: &VecDeque<Command>, new: Command) -> Result<(), String> {
        let activates =
            |command: &&Command| command.kind == CommandKind::Activate && command.rank == new.rank;
        let fourth = recent.iter().rev().filter(activates).nth(3);
        let faw = Clock::from(self.0.timing.faw);
        match fourth {
            Some(old) if new.kind == CommandKind::Activate && new.clock < old.clock + faw => {
                Err(format!("tFAW: four rows were opened since {old:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that at `clock` no rank of the channel lacks more than [`LATE_REFRESHES`] refreshes.
    fn check_refreshes(&self, past: &Past, clock: Clock) -> Result<(), String> {
        for rank in 0..self.0.ranks {
            let refreshes = past.refreshes.get(&rank).copied().unwrap_or_default();
            let should = clock / Clock::from(self.0.timing.refi);
            if refreshes + LATE_REFRESHES < should {
                return Err(format!(
                    "tREFI: rank {rank} was refreshed {refreshes} times instead of {should}"
                ));
            }
        }
        Ok(())
    }

    /// Clocks after which a command can no longer affect any rule.
    fn horizon(&self) -> Clock {
        let time = &self.0.timing;
        let longest = time.ras.max(time.rc).max(time.rfc).max(time.faw).max(time.rp);
        let data = time.cas.max(time.cwd) + self.0.burst_clocks;
        let long = self.0.bank_groups.map_or(0, |long| long.ccd.max(long.rrd).max(long.wtr));
        let rest = time.wr + time.wtr + time.rtp + time.rcd + time.ccd + time.rrd + time.rtrs;
        Clock::from(longest + data + long + rest)
    }
}

#[cfg(test)]
mod tests {
    use CommandKind::{Activate, Precharge, Read, Refresh, Write};

    use super::*;

    /// Checks commands to banks of one rank, given as clock, bank, row and kind.
    fn verdict(commands: &[(Clock, u32, u32, CommandKind)]) -> Result<(), String> {
        let spec = DramSpec::built_in("DDR3-1600").unwrap();
        let mut checker = Checker::new(&spec, 1);
        for &(clock, bank, row, kind) in commands {
            checker.observe(Command { clock, channel: 0, rank: 0, bank, row, kind });
        }
        assert_eq!(checker.commands(), commands.len() as u64);
        checker.verdict()
    }

    #[test]
    fn commands_find_the_rows_they_need() {
        let open = (100, 0, 7, Activate);
        let fine = [open, (111, 0, 7, Read), (128, 0, 7, Precharge), (139, 0, 0, Refresh)];
        assert_eq!(verdict(&fine), Ok(()));
        for (wrong, says) in [
            (vec![(100, 0, 7, Read)], "open row"),
            (vec![(100, 0, 7, Precharge)], "open row"),
            (vec![open, (300, 0, 8, Write)], "open row"),
            (vec![open, (300, 1, 7, Write)], "open row"),
            (vec![open, (300, 0, 8, Activate)], "open row"),
            (vec![open, (300, 1, 0, Refresh)], "open row"),
            (vec![open, (100, 1, 7, Activate)], "one command per clock"),
            (vec![(100, 8, 7, Activate)], "no such place"),
            (vec![(2 * 6240, 0, 7, Activate)], "tREFI"),
        ] {
            let found = verdict(&wrong).unwrap_err();
            assert!(found.contains(says), "{wrong:?}: {found}");
        }
    }

    #[test]
    fn a_channel_without_commands_is_refreshed_as_well() {
        let spec = DramSpec::built_in("DDR3-1600").unwrap();
        let mut checker = Checker::new(&spec, 2);
        for (rank, clock) in [(0, 6000), (1, 6100)] {
            let kind = Refresh;
            checker.observe(Command { clock, channel: 0, rank, bank: 0, row: 0, kind });
        }
        checker.passed(2 * 6240 - 1);
        assert_eq!(checker.verdict(), Ok(()));
        checker.passed(2 * 6240);
        let found = checker.verdict().unwrap_err();
        let expected = "clock 12480, channel 1: tREFI: rank 0 was refreshed 0 times instead of 2";
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_violation_is_kept() {
        let found = verdict(&[(5, 0, 1, Read), (5, 0, 1, Refresh)]).unwrap_err();
        assert!(found.contains("Read"), "{found}");
    }
}
