//! Makes an eviction on all servers, and repeats it until every server has finished the eviction.
//!
//! Servers deal to each other, and any of them can fail at any message. Then the servers that
//! finished roll back, and the client starts another attempt with freshly shared matrices. An
//! attempt counts on all servers or on none (ADR 16 in the repository). No attempt starts while a
//! server is ahead, so no two servers ever finish different attempts.
//!
//! So an eviction needs all servers, even if accesses do not. If a server is missing, the client
//! retries until the retry limit.

use oblivio_core::{Error, Leaf, StoreError, StoreErrorKind};

use super::array::ShareArray;
use super::client_map::ClientMap;
use super::client_state::{ClientState, Positions, overflow};
use super::coins::eviction_turn;
use super::impossible;
use super::participants::{Participants, Participation};
use super::server_progress::{IS_FURTHER, ROLLED_BACK, check_epoch};
use super::servers;
use crate::answers::Answers;
use crate::client::ClientError;
use crate::message::{Evict, HostEpoch, Request, TreePoint};

/// The advice if a server does not take part in an eviction.
const EVICTIONS_WAIT: &str = "Evictions need all servers, and nothing is lost: bring it back and \
                              open the volume again, or rebuild its shares with `oblivio shares \
                              repair`";

/// Servers that failed, with their errors.
type FailedServers = Vec<(usize, StoreError)>;

/// The result of one attempt at an eviction.
enum AttemptResult {
    /// All servers have finished the eviction.
    Finished,
    /// Some servers are missing or astray, or still lack blocks.
    ServersMissing,
    /// These servers failed before the eviction began: they did not roll back, did not connect to
    /// the others, or did not return the metadata that the client needs to plan the eviction.
    Failed(FailedServers),
    /// These servers failed during the eviction.
    NotEvicted(FailedServers),
}

impl ShareArray {
    /// Evicts the next path of a tree, whose root is full, on all servers.
    pub(super) fn evict_on_servers(&mut self, tree: usize, full: TreePoint) -> Result<(), Error> {
        self.state.plan_eviction()?;
        self.servers(tree).begin_retries();
        if !self.participants[tree].are_all_current() {
            self.servers(tree).wait_for_missing();
        }
        // Connect the servers to each other before the first eviction.
        let mut prospect =
            if self.has_connected { RetryProspect::Retry } else { RetryProspect::WaitForLinks };
        // Counts the failures because of lost links, and all other failures.
        let (mut link_failures, mut other_failures) = (0, 0);
        loop {
            let attempted = self.attempt(tree, full, prospect == RetryProspect::WaitForLinks)?;
            prospect = match &attempted {
                AttemptResult::Finished => break,
                AttemptResult::ServersMissing => {
                    RetryProspect::after(self.participants[tree].failures())
                }
                AttemptResult::NotEvicted(failed) if self.replace_dealers(failed)? => {
                    RetryProspect::Retry
                }
                AttemptResult::Failed(failed) | AttemptResult::NotEvicted(failed) => {
                    RetryProspect::after(failed.iter().map(|(_, error)| error))
                }
            };
            let is_worth_it = match prospect {
                RetryProspect::Futile => false,
                RetryProspect::Retry => {
                    other_failures += 1;
                    other_failures < TRIES_MAX
                }
                RetryProspect::WaitForLinks => {
                    link_failures += 1;
                    self.servers(tree).wait_for_links(link_failures)
                        || link_failures < TRIES_OVER_LINKS_MIN
                }
            };
            if !is_worth_it {
                return Err(self.give_up_error(tree, attempted));
            }
        }
        Ok(())
    }

    /// Makes one attempt at an eviction. If links may be missing (`makes_links`), connects the
    /// servers to each other before the matrices are sent. Otherwise a server without a link would
    /// wait for shares that never arrive, while the client sends long matrices.
    fn attempt(
        &mut self,
        tree: usize,
        begins_at: TreePoint,
        makes_links: bool,
    ) -> Result<AttemptResult, Error> {
        let number = begins_at.evictions;
        let (epochs, are_all_here) = self.progress_at(tree, begins_at)?;
        let has_finished: Vec<_> = epochs.iter().map(|it| it.at.evictions > number).collect();
        if !are_all_here {
            // Let the servers that are here catch up while others are missing.
            if !has_finished.contains(&true) {
                self.catch_up(begins_at)?;
            }
            return Ok(AttemptResult::ServersMissing);
        }
        if has_finished.iter().all(|has_finished| *has_finished) {
            return Ok(AttemptResult::Finished);
        }
        let roll_back =
            |finished: &bool| finished.then_some(Request::RollBack { evictions: number });
        let requests = has_finished.iter().map(roll_back).collect();
        let failed = self.servers(tree).failures(requests);
        if !failed.is_empty() {
            return Ok(AttemptResult::Failed(failed));
        }
        self.catch_up(begins_at)?;
        if !self.participants[tree].are_all_current() {
            return Ok(AttemptResult::ServersMissing);
        }
        // All servers are here, and none claims to be too far ahead.
        let parties = self.params.parties;
        if makes_links {
            let connect = vec![Some(Request::Connect); parties.servers()];
            let failed = self.servers(tree).failures(connect);
            if !failed.is_empty() {
                return Ok(AttemptResult::Failed(failed));
            }
            self.has_connected = true;
        }
        let attempt = epochs.iter().map(|epoch| epoch.attempt).max().unwrap_or(0) + 1;
        let evictions = match self.share(tree, begins_at, attempt)? {
            Ok(evictions) => evictions,
            Err(failed) => return Ok(AttemptResult::Failed(failed)),
        };
        let dealers = self.trust.dealers(&*self.store, parties)?;
        let requests = evictions
            .into_iter()
            .map(|evict| Some(Request::Evict { evict, dealers: dealers.clone() }));
        let failed = self.servers(tree).failures(requests.collect());
        Ok(if failed.is_empty() {
            AttemptResult::Finished
        } else {
            AttemptResult::NotEvicted(failed)
        })
    }

    /// Replaces dealers whose shares were found damaged on their own disks during the eviction.
    /// `failed` must not contain failures to roll back: a rebuilt server reports damage if it
    /// cannot roll back, although its shares are right. Returns whether a dealer was replaced.
    fn replace_dealers(&mut self, failed: &FailedServers) -> Result<bool, Error> {
        let parties = self.params.parties;
        let mut is_any = false;
        for (server, _) in failed.iter().filter(|(_, it)| it.kind() == StoreErrorKind::Damaged) {
            is_any |= self.trust.replace_dealer(&*self.store, parties, *server)?;
        }
        Ok(is_any)
    }

    /// The error when the client gives up an eviction. The client repeats the eviction when the
    /// volume is reopened.
    fn give_up_error(&self, tree: usize, attempted: AttemptResult) -> Error {
        let (AttemptResult::Failed(failed) | AttemptResult::NotEvicted(failed)) = attempted else {
            return self.participants[tree].error(&*self.store, EVICTIONS_WAIT);
        };
        let is = |kind| failed.iter().any(|(_, error)| error.kind() == kind);
        let advice = if is(StoreErrorKind::Full) {
            "Nothing is lost: free space there, and open the volume again"
        } else if is(StoreErrorKind::Damaged) {
            "Nothing is lost as long as the other servers are there: rebuild its shares anyway \
             (`oblivio shares repair`)"
        } else if is(StoreErrorKind::UnknownVersion) {
            "Nothing is lost: use programs of one version"
        } else {
            "An eviction needs all servers, and links between them: check that they reach each \
             other, and open the volume again"
        };
        servers::failure_error(&*self.store, failed, advice)
    }

    /// Asks all servers for their progress, and updates their participation. Returns the progress
    /// of the servers that answered, and whether every server can take part. A server cannot take
    /// part if it failed or its progress is invalid, or if its point is later than the end of this
    /// eviction or belongs to an earlier eviction. Neither can a server that claims too many
    /// attempts. A server that only lacks blocks can take part: it catches up.
    fn progress_at(
        &mut self,
        tree: usize,
        begins_at: TreePoint,
    ) -> Result<(Vec<HostEpoch>, bool), Error> {
        let (shape, parties) = (self.trees[tree].tree, self.params.parties);
        let mut servers = self.servers(tree);
        let reported = servers.epochs();
        servers::check_not_fenced(&*servers, &reported)?;
        let (mut epochs, mut participants) = (Vec::new(), Vec::new());
        let is_over = TreePoint { evictions: begins_at.evictions + 1, written: 0 };
        let attempts = reported.iter().filter_map(|reported| Some(reported.as_ref().ok()?.attempt));
        let attempt_max = attempt_max(attempts.collect(), parties.colluding());
        for reported in reported {
            participants.push(match reported {
                Err(error) => Participation::Failed(error),
                Ok(epoch) => {
                    epochs.push(epoch);
                    match check_epoch(shape, &epoch) {
                        Err(astray) => astray,
                        Ok(_) if epoch.attempt > attempt_max => {
                            Participation::Astray("claims more attempts than there were")
                        }
                        Ok(at) if at == begins_at || at == is_over => Participation::Current,
                        Ok(at) if at > is_over => Participation::Astray(IS_FURTHER),
                        Ok(at) if at.evictions == begins_at.evictions => Participation::Lagging,
                        Ok(_) => Participation::Astray(ROLLED_BACK),
                    }
                }
            });
        }
        let is_absent = |participation: &Participation| {
            matches!(participation, Participation::Failed(_) | Participation::Astray(_))
        };
        let are_all_here = !participants.iter().any(is_absent);
        self.participants[tree] = Participants::new(participants);
        Ok((epochs, are_all_here))
    }

    /// Creates the request for each server to make an eviction that begins at `at`. If metadata
    /// cannot be read, returns the servers that failed instead.
    fn share(
        &mut self,
        tree: usize,
        at: TreePoint,
        attempt: u64,
    ) -> Result<Result<Vec<Evict<u8>>, FailedServers>, Error> {
        let turn = eviction_turn(self.state.accesses());
        let client = self.state.client(tree);
        client.set_progress(at);
        client.set_turn(turn);
        let asked = match &self.state.positions {
            Positions::OnClient(_) => None,
            Positions::InTrees(map) => Some(map.trees[tree].eviction_leaves()),
        };
        let mut metadata = Vec::new();
        for leaf in asked.into_iter().flatten() {
            match self.path_metadata(tree, at, leaf) {
                Ok(answers) => metadata.push(answers),
                Err(failed) => return Ok(Err(failed)),
            }
        }
        let Self { state: ClientState { positions, .. }, coins, sealer, .. } = self;
        let of_slots;
        let (next, client) = match positions {
            Positions::OnClient(ClientMap { client, next, .. }) => (next.as_ref(), client),
            Positions::InTrees(map) => {
                let [path, beside] = &metadata[..] else { return Ok(Err(FailedServers::new())) };
                of_slots = match map.trees[tree].next_eviction([path, beside]) {
                    Ok(next) => next,
                    Err(error @ ClientError::Overflow(_)) => return Err(overflow(error)),
                    Err(error) => return Err(self.corrupt(tree, &error.to_string())),
                };
                (Some(&of_slots), &mut map.trees[tree].client)
            }
        };
        let next = next.ok_or_else(|| {
            impossible("internal error: no plan for the eviction; report this bug")
        })?;
        // The moves follow from the servers' metadata, and servers may answer a copy of this client
        // differently.
        let coins = coins.of_attempt(sealer, (tree, at, attempt), next)?;
        // Subroutine 3, steps 15 to 17: share the matrices.
        Ok(Ok(client.eviction_shares(next, attempt, coins)))
    }

    /// Reads the metadata of a path from all servers, or returns the servers that failed to send
    /// it.
    fn path_metadata(
        &mut self,
        tree: usize,
        at: TreePoint,
        leaf: Leaf,
    ) -> Result<Answers<u8>, FailedServers> {
        let (parties, bytes) = (self.params.parties, self.trees[tree].path_metadata_bytes());
        let asked = vec![Some(Request::Metadata { at, leaf }); parties.servers()];
        let results = self.servers(tree).ask_some(asked).into_iter().flatten();
        let (shares, failed) =
            servers::split_failures(results.map(|result| servers::expect_share(result, bytes)));
        if !failed.is_empty() {
            return Err(failed);
        }
        Ok(Answers { numbers: parties.numbers().collect(), shares })
    }
}

/// The maximum difference between the attempt numbers of two honest servers. In practice it is
/// never reached.
const ATTEMPTS_APART_MAX: u64 = 1 << 32;

/// A bound on the attempt number of honest servers, if `colluding` servers may lie: one of the
/// `colluding` + 1 greatest numbers is honest.
///
/// Attempt numbers only grow, on all servers. If the client believed a lie, it could run out of
/// numbers for later attempts.
fn attempt_max(mut attempts: Vec<u64>, colluding: usize) -> u64 {
    attempts.sort_unstable_by(|one, other| other.cmp(one));
    let honest = attempts.get(colluding).or(attempts.last()).copied().unwrap_or_default();
    honest.saturating_add(ATTEMPTS_APART_MAX)
}

/// The number of failed attempts after which the client gives up an eviction. Attempts that fail
/// because of a lost link do not count. The client gives up immediately after a failure that would
/// repeat.
const TRIES_MAX: u32 = 5;

/// The minimum number of attempts if links are missing. After a short outage, a server may still
/// wait for an attempt that the other servers have given up. That wait can be longer than the
/// client's time limit for missing servers.
const TRIES_OVER_LINKS_MIN: u32 = 2;

/// Whether another attempt at an eviction can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryProspect {
    /// Another attempt would fail again.
    Futile,
    /// Another attempt may succeed at once.
    Retry,
    /// Another attempt may succeed once links are restored.
    WaitForLinks,
}

impl RetryProspect {
    /// Whether another attempt can succeed after these failures of servers.
    fn after<'f>(mut failed: impl Iterator<Item = &'f StoreError> + Clone) -> Self {
        let mut kinds = failed.clone().map(StoreError::kind);
        if kinds.any(servers::is_cause) {
            Self::Futile
        } else if failed.any(|error| error.kind() == StoreErrorKind::Unreachable) {
            Self::WaitForLinks
        } else {
            Self::Retry
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client does not retry after a failure that would repeat: the server would fail the
    /// repeated request in the same way.
    #[test]
    fn no_retry_follows_a_failure_that_will_repeat() {
        use StoreErrorKind::{Damaged, Failed, Full, UnknownVersion, Unreachable};
        let after = |kinds: &[StoreErrorKind]| {
            let failed: Vec<_> = kinds.iter().map(|kind| StoreError::new(*kind, "no")).collect();
            RetryProspect::after(failed.iter())
        };
        for kind in [Full, Damaged, UnknownVersion] {
            assert_eq!(after(&[Unreachable, Failed, kind]), RetryProspect::Futile);
        }
        assert_eq!(after(&[Failed, Unreachable]), RetryProspect::WaitForLinks);
        assert_eq!(after(&[Failed]), RetryProspect::Retry);
    }

    #[test]
    fn an_attempt_number_that_only_liars_claim_is_rejected() {
        let apart = ATTEMPTS_APART_MAX;
        assert_eq!(attempt_max(vec![7, 1 << 62, 5], 1), 7 + apart);
        assert_eq!(attempt_max(vec![7, 8, 5], 1), 7 + apart);
        assert_eq!(attempt_max(vec![1 << 62, 1 << 61, 3, 2, 4], 2), 4 + apart);
        assert_eq!(attempt_max(vec![9], 1), 9 + apart);
    }
}
