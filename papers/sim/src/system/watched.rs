//! The observer of a machine's DRAM. It counts commands, and optionally checks them.

use crate::SimError;
use crate::dram::checker::Checker;
use crate::dram::{Clock, Command, DramTally, Observer};

/// An observer that sees each command, including the warm-up.
#[derive(Default)]
pub(super) struct Watched {
    tally: DramTally,
    checker: Option<Checker>,
}

impl Watched {
    /// Creates an observer with an optional checker. Checking takes several times as long as the
    /// simulation itself.
    pub(super) fn with_checker(checker: Option<Checker>) -> Self {
        Self { tally: DramTally::default(), checker }
    }

    pub(super) fn tally(&self) -> DramTally {
        self.tally
    }

    /// The number of checked commands; `None` without a checker.
    pub(super) fn checked(&self) -> Option<u64> {
        self.checker.as_ref().map(Checker::commands)
    }

    /// Checks that all commands so far are legal. Unchecked commands count as legal.
    ///
    /// # Errors
    /// [`SimError::Command`]. The message names the first illegal command.
    pub(super) fn verdict(&self) -> Result<(), SimError> {
        self.checker.as_ref().map_or(Ok(()), Checker::verdict).map_err(SimError::Command)
    }
}

impl Observer for Watched {
    #[inline]
    fn observe(&mut self, command: Command) {
        self.tally.observe(command);
        if let Some(checker) = &mut self.checker {
            checker.observe(command);
        }
    }

    #[inline]
    fn passed(&mut self, clock: Clock) {
        if let Some(checker) = &mut self.checker {
            checker.passed(clock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{machine, machines, timed, trace};
    use super::super::{run, run_checked, run_watched};
    use super::*;
    use crate::controller::InitialOram;
    use crate::dram::DramSpec;
    use crate::system::SystemSpec;

    /// All machines, including one without an ORAM.
    fn all() -> Vec<SystemSpec> {
        machines().into_iter().chain([machine(None)]).collect()
    }

    #[test]
    fn a_checked_run_has_the_same_outcome_and_counts_its_commands() {
        for spec in all() {
            let records = || trace(600, 1);
            let plain = run(&spec, records(), timed(100), 1, &()).unwrap();
            let initial = InitialOram::Seed(1);
            let (checked, commands) =
                run_checked(&spec, initial, records(), timed(100), 1, &()).unwrap();
            assert_eq!(checked, plain, "{spec:?}");
            let dram = plain.memory.dram;
            // The commands of the warm-up are checked too.
            assert!(commands > dram.lines() + dram.activates, "{commands} of {dram:?}");
        }
    }

    type Change = fn(&mut DramSpec);

    /// Runs each machine with a checker whose DRAM has one stricter timing. The run must fail with
    /// the first command that breaks this timing, and name the timing.
    #[test]
    fn a_run_ends_at_its_first_illegal_command_and_names_it() {
        let slower = |change: Change| {
            let mut dram = DramSpec::built_in("DDR3-1600").unwrap();
            change(&mut dram);
            dram
        };
        let rules: [(&str, Change); 4] = [
            ("tRCD", |dram| dram.timing.rcd += 1),
            ("tRP", |dram| dram.timing.rp += 1),
            ("tCCD", |dram| dram.timing.ccd += 1),
            ("tREFI", |dram| dram.timing.refi /= 4),
        ];
        for ((rule, change), spec) in
            rules.into_iter().flat_map(|rule| all().into_iter().map(move |spec| (rule, spec)))
        {
            let watched = Watched::with_checker(Some(Checker::new(&slower(change), spec.channels)));
            let (initial, records) = (InitialOram::Seed(1), trace(2000, 1));
            let error =
                run_watched(&spec, initial, records, timed(0), 1, &(), watched).unwrap_err();
            assert!(matches!(error, SimError::Command(_)), "{error}");
            assert!(error.to_string().contains(rule), "{rule}: {error}");
        }
    }
}
