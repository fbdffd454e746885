//! One view, or the views of several servers combined.

use std::path::PathBuf;
use std::time::Duration;

use oblivio_core::store::Capabilities;
use oblivio_core::view::Observed;

use super::input::ViewInput;
use super::parties::Parties;
use crate::error::CliError;

/// View files that can be read repeatedly.
pub(super) struct Inputs {
    inputs: Vec<ViewInput>,
    parties: Option<Parties>,
}

impl Inputs {
    /// Opens view files, to show what the servers `parties` saw. If `parties` is empty, shows what
    /// all recorded servers saw.
    pub(super) fn open(paths: &[PathBuf], parties: &[u8]) -> Result<Self, CliError> {
        let inputs: Result<Vec<_>, _> = paths.iter().map(|path| ViewInput::open(path)).collect();
        let inputs = inputs?;
        let parties = Parties::of(&inputs, parties)?;
        Ok(Self { inputs, parties })
    }

    /// The servers whose view is shown, if storage consists of several servers.
    pub(super) fn parties(&self) -> Option<&Parties> {
        self.parties.as_ref()
    }

    /// The capabilities of the store, if the first file records them.
    pub(super) fn capabilities(&self) -> Option<Capabilities> {
        self.inputs.first().and_then(ViewInput::capabilities)
    }

    /// Passes every observation of the shown servers to `each`, file by file, with its time since
    /// the beginning of the file's recording. Renumbers trips, so that no two trips of different
    /// files have equal numbers.
    pub(super) fn each(
        &mut self,
        each: &mut dyn FnMut(Observed, Option<Duration>),
    ) -> Result<(), CliError> {
        let Self { inputs, parties } = self;
        let mut next = 0_u64;
        for input in inputs {
            // Number the trips of this file after the trips of the previous one.
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
        Observed::PeerMessage(exchange) => exchange.trip = number,
    }
    observed
}
