//! Requests to all servers, and errors about failed servers.

use std::ops::{Deref, DerefMut};

use oblivio_core::durable::AnyStore;
use oblivio_core::error::{join_failures, sanitize_message};
use oblivio_core::{Error, ErrorKind, StoreError, StoreErrorKind};

use crate::message::{Answer, HostEpoch, Refusal, Request};
use crate::servers::{AnyServers, Patience, ServerAnswer, ShareServers, share_servers};

/// The answer of a server, or the error if the request failed or was refused.
pub(super) type ServerResult = Result<Answer, StoreError>;

/// Finds the `count` share servers that form a store.
///
/// # Errors
/// [`StoreMismatch`](ErrorKind::StoreMismatch) if the store has no share servers, or another number
/// of them.
pub(super) fn share_servers_of(store: AnyStore, count: usize) -> Result<AnyServers, Error> {
    let mismatch = |problem: String| Err(Error::new(ErrorKind::StoreMismatch, problem));
    match share_servers(store) {
        Err(_) => mismatch(
            "this scheme needs share servers, and the store has none: use a volume at shares://…"
                .into(),
        ),
        Ok(servers) if servers.count() != count => mismatch(format!(
            "the volume has {count} share servers, and the store has {}: name all of them, in \
             order",
            servers.count()
        )),
        Ok(servers) => Ok(servers),
    }
}

/// All share servers, as receivers of requests about one tree.
pub(super) struct TreeServers<'s> {
    pub(super) servers: &'s mut dyn ShareServers,
    pub(super) tree: u8,
}

impl<'s> Deref for TreeServers<'s> {
    type Target = dyn ShareServers + 's;

    fn deref(&self) -> &Self::Target {
        self.servers
    }
}

impl DerefMut for TreeServers<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.servers
    }
}

impl TreeServers<'_> {
    /// Sends one request to each server, all at the same time.
    pub(super) fn ask(&mut self, requests: Vec<Request>) -> Vec<ServerResult> {
        all_results(self.ask_some(requests.into_iter().map(Some).collect()))
    }

    /// Sends each request to its server. A server whose request is `None` is not asked.
    pub(super) fn ask_some(&mut self, requests: Vec<Option<Request>>) -> Vec<Option<ServerResult>> {
        let may_take_long = |request: &Request| {
            matches!(request, Request::Evict { .. } | Request::Setup(_) | Request::Connect)
        };
        let may_take_long = requests.iter().flatten().any(may_take_long);
        let patience = if may_take_long { Patience::Long } else { Patience::Short };
        self.ask_with(requests, patience)
    }

    fn ask_with(
        &mut self,
        requests: Vec<Option<Request>>,
        patience: Patience,
    ) -> Vec<Option<ServerResult>> {
        let has_request: Vec<_> = requests.iter().map(Option::is_some).collect();
        let mut answered = self.servers.ask(self.tree, requests, patience);
        answered.resize_with(has_request.len(), || None);
        let read = |has_request: bool, answered: Option<ServerAnswer>| {
            has_request
                .then(|| decode_answer(answered.unwrap_or_else(|| Err(wrong_answer_error()))))
        };
        has_request
            .into_iter()
            .zip(answered)
            .map(|(has_request, it)| read(has_request, it))
            .collect()
    }

    /// Sends requests whose only correct answer is `Done`. Returns the servers that failed, with
    /// their errors.
    pub(super) fn failures(&mut self, requests: Vec<Option<Request>>) -> Vec<(usize, StoreError)> {
        let results = self.ask_some(requests).into_iter().enumerate();
        results.filter_map(|(server, result)| Some((server, expect_done(result?).err()?))).collect()
    }

    /// Asks all servers for their progress. Waits as long as an eviction may take: a server that is
    /// still evicting for a lost client answers only when it has finished.
    pub(super) fn epochs(&mut self) -> Vec<Result<HostEpoch, StoreError>> {
        let requests = vec![Some(Request::Epoch); self.count()];
        all_results(self.ask_with(requests, Patience::Long)).into_iter().map(expect_epoch).collect()
    }
}

fn all_results(results: Vec<Option<ServerResult>>) -> Vec<ServerResult> {
    results.into_iter().map(|result| result.unwrap_or_else(|| Err(wrong_answer_error()))).collect()
}

fn decode_answer(answered: ServerAnswer) -> ServerResult {
    match Answer::decode(&answered?) {
        Ok(Answer::Refused(Refusal { kind, why })) => {
            Err(StoreError::new(kind, sanitize_message(&why)))
        }
        Ok(answer) => Ok(answer),
        Err(_) => Err(wrong_answer_error()),
    }
}

/// The error for an answer of the wrong kind.
pub(super) fn wrong_answer_error() -> StoreError {
    StoreError::new(StoreErrorKind::Failed, "the server's answer does not match the request")
}

/// Checks that the server did what was requested.
pub(super) fn expect_done(result: ServerResult) -> Result<(), StoreError> {
    match result? {
        Answer::Done => Ok(()),
        _ => Err(wrong_answer_error()),
    }
}

/// The progress in an answer; an error for any other answer.
pub(super) fn expect_epoch(result: ServerResult) -> Result<HostEpoch, StoreError> {
    match result? {
        Answer::Epoch(epoch) => Ok(epoch),
        _ => Err(wrong_answer_error()),
    }
}

/// Fails if another client has taken the volume over.
pub(super) fn check_not_fenced<T>(
    servers: &dyn ShareServers,
    reported: &[Result<T, StoreError>],
) -> Result<(), Error> {
    let mut failed =
        reported.iter().enumerate().filter_map(|(i, reported)| Some((i, reported.as_ref().err()?)));
    match failed.find(|(_, error)| error.kind() == StoreErrorKind::Fenced) {
        Some((i, error)) => {
            let error = StoreError::new(error.kind(), format!("{}: {error}", servers.name(i)));
            Err(error.into())
        }
        None => Ok(()),
    }
}

/// The share in an answer; an error if it does not have `bytes` bytes.
pub(super) fn expect_share(result: ServerResult, bytes: usize) -> Result<Vec<u8>, StoreError> {
    match result? {
        Answer::Share(share) if share.len() == bytes => Ok(share),
        _ => Err(wrong_answer_error()),
    }
}

/// Separates the values of the servers that succeeded from the errors of the servers that failed.
pub(super) fn split_failures<T>(
    reported: impl IntoIterator<Item = Result<T, StoreError>>,
) -> (Vec<T>, Vec<(usize, StoreError)>) {
    let (mut values, mut failed) = (Vec::new(), Vec::new());
    for (server, reported) in reported.into_iter().enumerate() {
        match reported {
            Ok(value) => values.push(value),
            Err(error) => failed.push((server, error)),
        }
    }
    (values, failed)
}

/// The values of all servers. If a server failed, an error that names the failed servers and ends
/// with `advice`.
pub(super) fn require_all<T>(
    servers: &dyn ShareServers,
    reported: impl IntoIterator<Item = Result<T, StoreError>>,
    advice: &str,
) -> Result<Vec<T>, Error> {
    let (values, failed) = split_failures(reported);
    if failed.is_empty() { Ok(values) } else { Err(failure_error(servers, failed, advice)) }
}

/// An error that names the failed servers and ends with `advice`.
pub(super) fn failure_error(
    servers: &dyn ShareServers,
    failed: Vec<(usize, StoreError)>,
    advice: &str,
) -> Error {
    let each = failed.iter().map(|(server, error)| (servers.name(*server), error.to_string()));
    let message = format!("{}. {advice}", join_failures(each));
    match failed.into_iter().min_by_key(|(_, error)| rank(error.kind())) {
        Some((_, first)) => StoreError::caused_by(first.kind(), message, first).into(),
        None => Error::new(ErrorKind::Store, message),
    }
}

/// Whether a failure of this kind will repeat, and so is also the reason why other servers wait in
/// vain.
pub(super) fn is_cause(kind: StoreErrorKind) -> bool {
    use StoreErrorKind::{Damaged, Full, UnknownVersion};
    matches!(kind, Full | Damaged | UnknownVersion)
}

/// Ranks a failure among several; the most important failure has the lowest rank. A damaged file
/// and a full disk can be verified by other clients; an unknown version is known only from the
/// server itself. A lost link ranks after these, because it is a consequence or cause of failures
/// of other servers.
pub(super) fn rank(kind: StoreErrorKind) -> u8 {
    match kind {
        StoreErrorKind::UnknownVersion => 1,
        StoreErrorKind::Unreachable => 2,
        kind if is_cause(kind) => 0,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unknown version ranks after full and damaged servers: a server that reports one may lie,
    /// and an error has one exit code.
    #[test]
    fn an_unknown_version_ranks_after_full_and_damaged_servers() {
        use StoreErrorKind::{Damaged, Failed, Full, Refused, UnknownVersion, Unreachable};
        assert_eq!((rank(Full), rank(Failed)), (rank(Damaged), rank(Refused)));
        let ranks = [Damaged, UnknownVersion, Unreachable, Failed].map(rank);
        assert!(ranks.is_sorted_by(|one, other| one < other), "{ranks:?}");
    }
}
