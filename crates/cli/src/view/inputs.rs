//! One view, or those of several servers as one.

use std::path::PathBuf;
use std::time::Duration;

use oblivio_core::store::Capabilities;
use oblivio_core::view::Observed;

use super::input::ViewInput;
use super::parties::Parties;
use crate::error::CliError;

/// View files, to be read as often as it takes.
pub(super) struct Inputs {
    inputs: Vec<ViewInput>,
    parties: Option<Parties>,
}

impl Inputs {
    /// Opens them, to show what these servers saw. If none is named: all of which there is something.
    pub(super) fn open(paths: &[PathBuf], parties: &[u8]) -> Result<Self, CliError> {
        let inputs: Result<Vec<_>, _> = paths.iter().map(|path| ViewInput::open(path)).collect();
        let inputs = inputs?;
        let parties = Parties::of(&inputs, parties)?;
        Ok(Self { inputs, parties })
    }

    /// Whose view is shown, if storage is several servers.
    pub(super) fn parties(&self) -> Option<&Parties> {
        self.parties.as_ref()
    }

    /// What the store could do, if the first file says it.
    pub(super) fn capabilities(&self) -> Option<Capabilities> {
        self.inputs.first().and_then(ViewInput::capabilities)
    }

    /// Names what was seen by those whose view is shown, file by file, and when it happened after the beginning of its recording. No two trips have one number.
    pub(super) fn each(
        &mut self,
        each: &mut dyn FnMut(Observed, Option<Duration>),
    ) -> Result<(), CliError> {
        let Self { inputs, parties } = self;
        let mut next = 0_u64;
        for input in inputs {
            // Trips of this file are numbered behind those of the one before.
            let (mut begin, mut last) = (None, next);
            input.each(&mut |observed, time| {
                let trip = observed.trip();
                last = next.wrapping_add(trip.wrapping_sub(*begin.get_or_insert(trip)));
                if parties.as_ref().is_none_or(|parties| parties.saw(observed)) {
                    each(numbered(*observed, last), time);
                }
            })?;
            next = last.wrapping_add(1);
        }
        Ok(())
    }
}

fn numbered(mut observed: Observed, number: u64) -> Observed {
    match &mut observed {
        Observed::Event(event) => event.trip = number,
        Observed::Exchange(exchange) => exchange.trip = number,
    }
    observed
}
