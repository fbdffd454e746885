//! Which servers take part in accesses, and why others do not.

use oblivio_core::error::join_failures;
use oblivio_core::{Error, ErrorKind, StoreError, StoreErrorKind};

use super::servers;
use crate::servers::ShareServers;
use crate::sharing::Parties;

/// What part one server takes.
#[derive(Debug)]
pub(super) enum Part {
    /// It has all that was written, and takes part.
    Current,
    /// It lacks blocks that were written to the root lately.
    Lags,
    /// It does not answer, or has not done what it was asked.
    Failed(StoreError),
    /// It is where it must not be, as people are told.
    Astray(&'static str),
}

impl Part {
    /// Whether it is worth asking before an access if it is back. A store that has called a server in vain says so at once.
    fn may_be_back(&self) -> bool {
        match self {
            Self::Lags => true,
            Self::Failed(error) => error.kind() == StoreErrorKind::Unreachable,
            Self::Current | Self::Astray(_) => false,
        }
    }

    /// Why it takes no part; none if it does.
    pub(super) fn why(&self) -> Option<String> {
        match self {
            Self::Current => None,
            Self::Lags => Some("it lacks what was written last".into()),
            Self::Failed(error) => Some(error.to_string()),
            Self::Astray(why) => Some(format!("it {why}")),
        }
    }
}

/// The parts of all servers, in their order.
#[derive(Debug)]
pub(super) struct Parts(Vec<Part>);

impl Parts {
    pub(super) fn new(parts: Vec<Part>) -> Self {
        Self(parts)
    }

    /// All of so many take part.
    pub(super) fn all(count: usize) -> Self {
        Self((0..count).map(|_| Part::Current).collect())
    }

    pub(super) fn set(&mut self, server: usize, part: Part) {
        self.0[server] = part;
    }

    /// Which take part.
    pub(super) fn current(&self) -> Vec<bool> {
        self.0.iter().map(|part| matches!(part, Part::Current)).collect()
    }

    /// How many do.
    pub(super) fn count(&self) -> usize {
        self.0.iter().filter(|part| matches!(part, Part::Current)).count()
    }

    pub(super) fn are_all_current(&self) -> bool {
        self.count() == self.0.len()
    }

    /// Whether this one lacks blocks that were written lately.
    pub(super) fn lags(&self, server: usize) -> bool {
        matches!(self.0[server], Part::Lags)
    }

    /// What has failed on those that failed.
    pub(super) fn failures(&self) -> impl Iterator<Item = &StoreError> + Clone {
        self.0.iter().filter_map(|part| match part {
            Part::Failed(error) => Some(error),
            _ => None,
        })
    }

    /// Which are to be asked whether they are back.
    pub(super) fn may_be_back(&self) -> Vec<bool> {
        self.0.iter().map(Part::may_be_back).collect()
    }

    /// A server has not done what it was asked: it takes no part for now.
    ///
    /// # Errors
    /// If somebody else has taken the volume over, which is for all servers.
    pub(super) fn fail(
        &mut self,
        servers: &dyn ShareServers,
        server: usize,
        error: StoreError,
    ) -> Result<(), Error> {
        if error.kind() == StoreErrorKind::Fenced {
            let advice = "Somebody else has opened the volume";
            return Err(servers::failure(servers, vec![(server, error)], advice));
        }
        self.set(server, Part::Failed(error));
        Ok(())
    }

    /// Refuses to go on if fewer take part than give back a product.
    ///
    /// # Errors
    /// One that names the others.
    pub(super) fn check_enough(
        &self,
        servers: &dyn ShareServers,
        parties: Parties,
    ) -> Result<(), Error> {
        if self.count() >= parties.for_product() {
            return Ok(());
        }
        let needed = match parties.for_product() {
            all if all == parties.servers() => "Every server".into(),
            some => format!("{some} of the servers"),
        };
        Err(self.error(servers, &format!("{needed} must have what is written: {BRING_BACK}")))
    }

    /// An error that names those that take no part. It is one of storage that does not answer, unless all of them are astray.
    pub(super) fn error(&self, servers: &dyn ShareServers, advice: &str) -> Error {
        let each = self.0.iter().enumerate();
        let each = each.filter_map(|(server, part)| Some((servers.name(server), part.why()?)));
        let are_all_astray = self.0.iter().all(|part| matches!(part, Part::Astray(_)));
        let advice = if are_all_astray { ALL_ARE_ASTRAY } else { advice };
        let message = format!("{}. {advice}", join_failures(each));
        match self.failures().min_by_key(|error| servers::rank(error.kind())) {
            Some(error) => StoreError::new(error.kind(), message).into(),
            None => Error::new(ErrorKind::StoreRolledBack, message),
        }
    }
}

/// What is done about servers none of which is where it has to be.
const ALL_ARE_ASTRAY: &str = "Bring back their folders as they were: shares can be made anew from those of other servers alone";

/// What is done about a server that takes no part.
pub(super) const BRING_BACK: &str = "bring it back as it was and open the volume again; if it has \
                                     lost its disk, make its shares anew with `oblivio shares \
                                     repair`";
