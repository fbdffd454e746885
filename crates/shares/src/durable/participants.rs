//! Which servers participate in accesses, and why the other servers do not.

use oblivio_core::error::join_failures;
use oblivio_core::{Error, ErrorKind, StoreError, StoreErrorKind};

use super::servers;
use crate::servers::ShareServers;
use crate::sharing::Parties;

/// Whether a server participates in accesses.
#[derive(Debug)]
pub(super) enum Participation {
    /// The server has all writes, so it participates.
    Current,
    /// The server lacks recent writes to the root, so it must catch up before it participates.
    Lagging,
    /// The server does not answer, or failed a request.
    Failed(StoreError),
    /// The server's progress is invalid, or contradicts the client's state or the other servers.
    /// Holds a human-readable reason.
    Astray(&'static str),
}

impl Participation {
    /// Whether the server may have returned, so that the client asks it before an access. While the
    /// server is unreachable, the store fails such a request at once.
    fn may_be_back(&self) -> bool {
        match self {
            Self::Lagging => true,
            Self::Failed(error) => error.kind() == StoreErrorKind::Unreachable,
            Self::Current | Self::Astray(_) => false,
        }
    }

    /// The reason why the server does not participate; `None` if it participates.
    pub(super) fn why(&self) -> Option<String> {
        match self {
            Self::Current => None,
            Self::Lagging => Some("it lacks the last writes".into()),
            Self::Failed(error) => Some(error.to_string()),
            Self::Astray(why) => Some(format!("it {why}")),
        }
    }
}

/// The participation of all servers, in their order.
#[derive(Debug)]
pub(super) struct Participants(Vec<Participation>);

impl Participants {
    pub(super) fn new(participants: Vec<Participation>) -> Self {
        Self(participants)
    }

    /// The participation of `count` servers that are all current.
    pub(super) fn all_current(count: usize) -> Self {
        Self((0..count).map(|_| Participation::Current).collect())
    }

    pub(super) fn set(&mut self, server: usize, participation: Participation) {
        self.0[server] = participation;
    }

    /// For each server, whether it participates.
    pub(super) fn current(&self) -> Vec<bool> {
        self.0.iter().map(|participation| matches!(participation, Participation::Current)).collect()
    }

    /// The number of participating servers.
    pub(super) fn count(&self) -> usize {
        self.0
            .iter()
            .filter(|participation| matches!(participation, Participation::Current))
            .count()
    }

    pub(super) fn are_all_current(&self) -> bool {
        self.count() == self.0.len()
    }

    /// Whether a server answers but lacks recent writes.
    pub(super) fn is_lagging(&self, server: usize) -> bool {
        matches!(self.0[server], Participation::Lagging)
    }

    /// The errors of failed servers.
    pub(super) fn failures(&self) -> impl Iterator<Item = &StoreError> + Clone {
        self.0.iter().filter_map(|participation| match participation {
            Participation::Failed(error) => Some(error),
            _ => None,
        })
    }

    /// For each server, whether the client asks before an access if the server has returned.
    pub(super) fn may_be_back(&self) -> Vec<bool> {
        self.0.iter().map(Participation::may_be_back).collect()
    }

    /// Excludes a server whose request failed, until the client asks it again.
    ///
    /// # Errors
    /// If another client has taken the volume over, which applies to all servers.
    pub(super) fn fail(
        &mut self,
        servers: &dyn ShareServers,
        server: usize,
        error: StoreError,
    ) -> Result<(), Error> {
        if error.kind() == StoreErrorKind::Fenced {
            let advice = "Another client has opened the volume";
            return Err(servers::failure_error(servers, vec![(server, error)], advice));
        }
        self.set(server, Participation::Failed(error));
        Ok(())
    }

    /// Fails if too few servers participate to recover a product.
    ///
    /// # Errors
    /// An error that names the servers that do not participate.
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
        Err(self.error(servers, &format!("{needed} must have all writes: {BRING_BACK}")))
    }

    /// An error that names the servers that do not participate. It has the kind of the most
    /// important failure of these servers, or [`ErrorKind::StoreRolledBack`] if no server failed.
    pub(super) fn error(&self, servers: &dyn ShareServers, advice: &str) -> Error {
        let each = self.0.iter().enumerate();
        let each = each.filter_map(|(server, participation)| {
            Some((servers.name(server), participation.why()?))
        });
        let are_all_astray =
            self.0.iter().all(|participation| matches!(participation, Participation::Astray(_)));
        let advice = if are_all_astray { ALL_ARE_ASTRAY } else { advice };
        let message = format!("{}. {advice}", join_failures(each));
        match self.failures().min_by_key(|error| servers::rank(error.kind())) {
            Some(error) => StoreError::new(error.kind(), message).into(),
            None => Error::new(ErrorKind::StoreRolledBack, message),
        }
    }
}

/// The advice if all servers are astray.
const ALL_ARE_ASTRAY: &str = "Restore the folders of the servers: shares can only be rebuilt from \
                              other servers";

/// The advice for a server that does not participate.
pub(super) const BRING_BACK: &str = "bring each of these servers back with its data and open the \
                                     volume again; if a server has lost its disk, rebuild its \
                                     shares with `oblivio shares repair`";
