//! Requests of the caller, from their beginning to their answer, over redirections and lost links.
//!
//! The caller's thread does all of this while it waits. A *round* asks for the topology, connects,
//! and sends all requests that have no answer again. The first round follows a failure at once; the
//! pause before the next ones grows.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::time::Duration;

use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_wire::link::MonotonicTime;

use super::cluster::{Cluster, SentBatch};
use super::failure::{Failure, FailureKind, Redirection};
use super::keys::{Keys, ObjectCommands};
use super::reply_table::{BatchId, Finished};
use super::topology::Address;
use crate::objects::resp::{Command, Reply};
use crate::objects::{Answer, ObjectName, Ticket};

/// The pause before the second round. The pause doubles before each further round.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// The maximum pause between two rounds.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What a request does.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Get(Range<u64>),
    Create,
    Delete,
}

/// The requests that the caller has not taken the answer of.
pub(super) struct Operations {
    operations: BTreeMap<Ticket, Operation>,
    in_flight: HashMap<BatchId, Ticket>,
    /// When the next round is; `None` if no request needs one.
    next_round: Option<MonotonicTime>,
    pause: Duration,
    /// The node that sent the last redirection. It knows the topology.
    redirected_by: Option<Address>,
    retry_for: Duration,
}

struct Operation {
    name: ObjectName,
    act: Act,
    request: ObjectCommands,
    state: State,
    /// The end of its time; `None` if it has not failed yet.
    until: Option<MonotonicTime>,
    failure: Option<Failure>,
}

enum State {
    /// It waits for the next round.
    Unsent,
    Sent {
        sent: SentBatch,
        is_asking: bool,
    },
    Answered(Result<Answer, StoreError>),
}

impl Operations {
    pub(super) fn new(retry_for: Duration) -> Self {
        Self {
            operations: BTreeMap::new(),
            in_flight: HashMap::new(),
            next_round: None,
            pause: Duration::ZERO,
            redirected_by: None,
            retry_for,
        }
    }

    /// Starts a request. If its master is not connected, it is sent while the caller waits.
    pub(super) fn begin(
        &mut self,
        cluster: &mut Cluster,
        ticket: Ticket,
        name: ObjectName,
        act: Act,
        request: ObjectCommands,
    ) {
        let owner = cluster.topology().owner(request.slot).cloned();
        let sent = owner.and_then(|owner| {
            cluster.send_if_connected(&owner, &request.commands, request.reply_bytes_max)
        });
        let state = match sent {
            Some(sent) => {
                self.in_flight.insert(sent.batch, ticket);
                State::Sent { sent, is_asking: false }
            }
            None => {
                self.next_round.get_or_insert_with(MonotonicTime::now);
                State::Unsent
            }
        };
        let operation = Operation { name, act, request, state, until: None, failure: None };
        self.operations.insert(ticket, operation);
    }

    /// Adds a request that was answered without being sent.
    pub(super) fn refuse(&mut self, ticket: Ticket, name: ObjectName, error: StoreError) {
        let request = ObjectCommands { slot: 0, commands: Vec::new(), reply_bytes_max: 0 };
        let state = State::Answered(Err(error));
        let act = Act::Create;
        let operation = Operation { name, act, request, state, until: None, failure: None };
        self.operations.insert(ticket, operation);
    }

    pub(super) fn forget(&mut self, cluster: &mut Cluster, ticket: Ticket) {
        let Some(operation) = self.operations.remove(&ticket) else { return };
        if let State::Sent { sent, .. } = operation.state {
            self.in_flight.remove(&sent.batch);
            cluster.forget(sent.batch);
        }
    }

    /// Waits for the answer to a request, and takes it.
    pub(super) fn wait(
        &mut self,
        cluster: &mut Cluster,
        ticket: Ticket,
    ) -> Result<Answer, StoreError> {
        loop {
            for batch in cluster.take_failed() {
                self.take_outcome(cluster, batch);
            }
            let Some(operation) = self.operations.get_mut(&ticket) else {
                let message = "the request was already answered or forgotten";
                return Err(StoreError::new(StoreErrorKind::Refused, message));
            };
            let awaited = match &operation.state {
                State::Answered(_) => {
                    let answered = self.operations.remove(&ticket).map(|it| it.state);
                    self.calm_down();
                    let Some(State::Answered(answer)) = answered else { continue };
                    return answer;
                }
                State::Sent { sent, .. } => Some(sent.batch),
                State::Unsent => None,
            };
            if let Some(batch) = awaited
                && self.take_outcome(cluster, batch)
            {
                continue;
            }
            if self.next_round.is_some_and(|at| at.left().is_none()) {
                self.run_round(cluster);
                continue;
            }
            cluster.wait_for_any(awaited, self.next_round);
        }
    }

    /// Begins with short pauses again, if no request has failed without an answer.
    fn calm_down(&mut self) {
        let is_failing = |it: &Operation| it.until.is_some() && !it.is_answered();
        if !self.pause.is_zero() && !self.operations.values().any(is_failing) {
            self.pause = Duration::ZERO;
        }
    }

    /// Handles the outcome of a batch. Returns whether it has finished.
    fn take_outcome(&mut self, cluster: &mut Cluster, batch: BatchId) -> bool {
        let Some(ticket) = self.in_flight.get(&batch).copied() else { return false };
        let Some(outcome) = cluster.take(batch) else { return false };
        self.in_flight.remove(&batch);
        if let Some(operation) = self.operations.get_mut(&ticket) {
            let next = operation.take_outcome(cluster, outcome, self.retry_for);
            self.follow(cluster, ticket, next);
        }
        true
    }

    fn follow(&mut self, cluster: &mut Cluster, ticket: Ticket, next: Next) {
        match next {
            Next::Answered => (),
            Next::Round { redirected_by } => {
                self.redirected_by = redirected_by.or(self.redirected_by.take());
                let pause = self.pause;
                self.next_round.get_or_insert_with(|| MonotonicTime::now().after(pause));
            }
            Next::Ask(node) => {
                let Some(operation) = self.operations.get_mut(&ticket) else { return };
                let commands = with_asking(&operation.request.commands);
                match cluster.send(&node, &commands, operation.request.reply_bytes_max) {
                    Ok(sent) => {
                        self.in_flight.insert(sent.batch, ticket);
                        operation.state = State::Sent { sent, is_asking: true };
                    }
                    Err(failure) => {
                        let next = operation.fail(failure.at(&node), None, self.retry_for);
                        self.follow(cluster, ticket, next);
                    }
                }
            }
        }
    }

    /// Asks for the topology, and sends all requests that wait for this.
    fn run_round(&mut self, cluster: &mut Cluster) {
        self.next_round = None;
        self.pause = (2 * self.pause).clamp(PAUSE_MIN, PAUSE_MAX);
        let mut no_topology = None;
        if self.operations.values().any(|it| it.is_unsent() && it.until.is_some()) {
            let first = self.redirected_by.take();
            no_topology = cluster.refresh(first.as_ref()).err();
        }
        let unsent = self.operations.iter().filter(|(_, it)| it.is_unsent());
        let unsent: Vec<_> = unsent.map(|(ticket, _)| *ticket).collect();
        let mut failures: HashMap<Address, Failure> = HashMap::new();
        for ticket in unsent {
            let Some(operation) = self.operations.get_mut(&ticket) else { continue };
            let ObjectCommands { slot, commands, reply_bytes_max } = &operation.request;
            let owner = cluster.topology().owner(*slot).cloned();
            let sent = match owner {
                None => Err(Failure::transient(format!("slot {slot} has no master"))),
                Some(owner) => match failures.get(&owner) {
                    Some(failure) => Err(failure.clone()),
                    None => {
                        let sent = cluster.send(&owner, commands, *reply_bytes_max);
                        sent.map_err(|failure| {
                            let failure = no_topology.clone().unwrap_or(failure.at(&owner));
                            failures.insert(owner, failure.clone());
                            failure
                        })
                    }
                },
            };
            match sent {
                Ok(sent) => {
                    self.in_flight.insert(sent.batch, ticket);
                    operation.state = State::Sent { sent, is_asking: false };
                }
                Err(failure) => {
                    let next = operation.fail(failure, None, self.retry_for);
                    self.follow(cluster, ticket, next);
                }
            }
        }
    }
}

/// What to do with a request after an outcome.
enum Next {
    Answered,
    Round { redirected_by: Option<Address> },
    Ask(Address),
}

impl Operation {
    fn is_unsent(&self) -> bool {
        matches!(self.state, State::Unsent)
    }

    fn is_answered(&self) -> bool {
        matches!(self.state, State::Answered(_))
    }

    fn answer(&mut self, answer: Answer) -> Next {
        self.state = State::Answered(Ok(answer));
        // The parts of an object that was created are no longer needed.
        self.request.commands = Vec::new();
        Next::Answered
    }

    fn take_outcome(
        &mut self,
        cluster: &mut Cluster,
        outcome: Finished,
        retry_for: Duration,
    ) -> Next {
        let State::Sent { sent, is_asking } = &self.state else { return Next::Answered };
        let (sent, is_asking) = (sent.clone(), *is_asking);
        let replies = match outcome {
            Finished::Lost(cause) => {
                if let Act::Create = self.act {
                    self.may_have_created(cluster, &sent);
                    return self.answer(Answer::Unknown);
                }
                return self.fail(Failure::transient(cause).at(&sent.node), None, retry_for);
            }
            Finished::Replies(replies) if is_asking => without_asking(replies),
            Finished::Replies(replies) => replies,
        };
        for reply in &replies {
            let Reply::Error(text) = reply else { continue };
            match Redirection::read(text, &sent.node) {
                // Nodes that redirect each other in turn must not keep the caller busy.
                Some(Redirection::Ask(node)) if !is_asking => {
                    self.state = State::Unsent;
                    return Next::Ask(node);
                }
                Some(_) => {
                    let failure = Failure::of_error(text).at(&sent.node);
                    return self.fail(failure, Some(sent.node), retry_for);
                }
                None => (),
            }
        }
        let answer = match &self.act {
            Act::Get(range) => Keys::got(self.name, range, &replies),
            Act::Create => Keys::created(self.name, &replies),
            Act::Delete => match &replies[..] {
                [Reply::Integer(_)] => Ok(Answer::Absent),
                _ => Err(Failure::of_replies(&replies, "a deletion")),
            },
        };
        match answer {
            Ok(answer) => {
                if let Act::Create = self.act {
                    self.may_have_created(cluster, &sent);
                }
                self.answer(answer)
            }
            Err(failure) => self.fail(failure.at(&sent.node), None, retry_for),
        }
    }

    /// Records that the next sync must cover this object. That also holds for an object that
    /// existed: an earlier attempt of this client may have created it.
    fn may_have_created(&self, cluster: &mut Cluster, sent: &SentBatch) {
        let incarnation = &sent.info.incarnation;
        cluster.unsynced.may_have_created(incarnation, &sent.node, self.request.slot);
    }

    /// Handles a failure after which the node has not done what was asked.
    fn fail(
        &mut self,
        failure: Failure,
        redirected_by: Option<Address>,
        retry_for: Duration,
    ) -> Next {
        let until = *self.until.get_or_insert_with(|| MonotonicTime::now().after(retry_for));
        if failure.kind == FailureKind::Transient && until.left().is_some() {
            self.failure = Some(failure);
            self.state = State::Unsent;
            return Next::Round { redirected_by };
        }
        let (act, name) = (self.act.verb(), self.name);
        self.state = State::Answered(Err(failure.store_error(format!("{act} object {name}"))));
        Next::Answered
    }
}

impl Act {
    fn verb(&self) -> &'static str {
        match self {
            Self::Get(_) => "get",
            Self::Create => "create",
            Self::Delete => "delete",
        }
    }
}

/// Puts `ASKING` in front of each command. It holds for one command.
fn with_asking(commands: &[Command]) -> Vec<Command> {
    commands.iter().flat_map(|command| [Command::new(&[b"ASKING"]), command.clone()]).collect()
}

/// Drops the replies to `ASKING`, except errors.
fn without_asking(replies: Vec<Reply>) -> Vec<Reply> {
    let is_kept =
        |(index, reply): &(usize, Reply)| index % 2 == 1 || matches!(reply, Reply::Error(_));
    replies.into_iter().enumerate().filter(is_kept).map(|(_, reply)| reply).collect()
}
