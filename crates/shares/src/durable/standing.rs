//! How far servers are, and which of them are not where they have to be.
//!
//! In an honest past no server is more than one step from any other: a write, or an eviction. *t* of them may lie. None of them can make the client take for done what is not, because it is what all
//! say; and none can make it believe that its directory is old, because *t* + 1 have to say so.

use oblivio_core::store::ShareServers;
use oblivio_core::{Error, ErrorKind};

use crate::message::{HostEpoch, Point};
use crate::sharing::Parties;
use crate::tree::Tree;

/// How far all servers are.
pub(super) struct Standing {
    /// In their order.
    pub(super) epochs: Vec<HostEpoch>,
}

/// No server counts so far: numbers from there on are lies.
const COUNT_MAX: u64 = 1 << 62;

impl Standing {
    /// The point to which all are through, if they stand as servers can.
    ///
    /// # Errors
    /// [`StoreMismatch`](ErrorKind::StoreMismatch), which names those that do not.
    pub(super) fn least(&self, servers: &dyn ShareServers, tree: Tree) -> Result<Point, Error> {
        let is_none = |epoch: &HostEpoch| !epoch.is_set_up;
        self.none_is(servers, is_none, "holds nothing of this volume")?;
        let is_no_point = |epoch: &HostEpoch| {
            epoch.at.written > tree.accesses()
                || epoch.at.evictions > COUNT_MAX
                || epoch.attempt > COUNT_MAX
        };
        self.none_is(servers, is_no_point, "says that it is where no server can be")?;
        let steps: Vec<_> = self.epochs.iter().map(|epoch| steps(tree, epoch.at)).collect();
        let others = |from: u128| steps.iter().filter(|it| (from..=from + 1).contains(it)).count();
        // Most servers are where they have to be.
        let most = steps.iter().copied().max_by_key(|from| (others(*from), *from)).unwrap_or(0);
        let of = |epoch: &HostEpoch| steps_of(tree, epoch);
        self.none_is(servers, |epoch| of(epoch) < most, "is set back behind the others")?;
        self.none_is(
            servers,
            |epoch| of(epoch) > most + 1,
            "says that it is further than the others",
        )?;
        let least = self.epochs.iter().map(|epoch| epoch.at).min();
        Ok(least.unwrap_or_default())
    }

    /// Refuses servers that are not where all were when the client kept its state.
    ///
    /// # Errors
    /// [`StoreMismatch`](ErrorKind::StoreMismatch), which names them.
    pub(super) fn check_from(&self, servers: &dyn ShareServers, kept: Point) -> Result<(), Error> {
        let what = "is set back behind the client's directory, or a server of another volume";
        self.none_is(servers, |epoch| epoch.at < kept, what)
    }

    fn none_is(
        &self,
        servers: &dyn ShareServers,
        is_wrong: impl Fn(&HostEpoch) -> bool,
        what: &str,
    ) -> Result<(), Error> {
        let wrong = self.epochs.iter().enumerate().filter(|(_, epoch)| is_wrong(epoch));
        let names: Vec<_> = wrong.map(|(server, _)| servers.name(server)).collect();
        if names.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{} {what}: bring its folder back as it was, or make its shares anew with `oblivio shares repair`",
            names.join(", ")
        );
        Err(Error::new(ErrorKind::StoreMismatch, message))
    }

    /// The greatest number of an attempt that any of them has seen.
    pub(super) fn attempt(&self) -> u64 {
        self.epochs.iter().map(|epoch| epoch.attempt).max().unwrap_or(0)
    }
}

/// Whether so many servers are beyond a point that one of them at least does not lie.
pub(super) fn are_beyond(parties: Parties, tree: Tree, epochs: &[HostEpoch], at: Point) -> bool {
    let beyond = epochs.iter().filter(|epoch| steps_of(tree, epoch) > steps(tree, at));
    beyond.count() > parties.colluding()
}

fn steps_of(tree: Tree, epoch: &HostEpoch) -> u128 {
    steps(tree, epoch.at)
}

/// How many writes and evictions lead to a point.
fn steps(tree: Tree, Point { evictions, written }: Point) -> u128 {
    u128::from(evictions) * (tree.accesses() as u128 + 1) + written as u128
}
