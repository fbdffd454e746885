//! Asking all servers, and what is said of one that fails.

use std::ops::{Deref, DerefMut};

use oblivio_core::durable::AnyStore;
use oblivio_core::error::{for_people, join_failures};
use oblivio_core::{Error, ErrorKind, StoreError, StoreErrorKind};

use crate::message::{Answer, HostEpoch, Refusal, Request};
use crate::servers::{AnyServers, Patience, ServerAnswer, ShareServers, share_servers};

/// What one server has answered, or why it has not, or will not do it.
pub(super) type Said = Result<Answer, StoreError>;

/// The `count` share servers of which a store consists.
///
/// # Errors
/// [`StoreMismatch`](ErrorKind::StoreMismatch) if the store is something else.
pub(super) fn of(store: AnyStore, count: usize) -> Result<AnyServers, Error> {
    let mismatch = |problem: String| Err(Error::new(ErrorKind::StoreMismatch, problem));
    match share_servers(store) {
        Err(_) => mismatch(
            "this scheme needs share servers, and the store has none: name a volume shares://…"
                .into(),
        ),
        Ok(servers) if servers.count() != count => mismatch(format!(
            "the volume is for {count} share servers, and the store has {}: name all of them, in their order",
            servers.count()
        )),
        Ok(servers) => Ok(servers),
    }
}

/// Share servers, asked about one of the trees.
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
    /// Asks each server one thing, all at once.
    pub(super) fn ask(&mut self, requests: Vec<Request>) -> Vec<Said> {
        all_said(self.ask_some(requests.into_iter().map(Some).collect()))
    }

    /// Asks those servers for which there is a request.
    pub(super) fn ask_some(&mut self, requests: Vec<Option<Request>>) -> Vec<Option<Said>> {
        let may_take_long = |request: &Request| {
            matches!(request, Request::Evict { .. } | Request::Setup(_) | Request::Meet)
        };
        let may_take_long = requests.iter().flatten().any(may_take_long);
        let patience = if may_take_long { Patience::Long } else { Patience::Short };
        self.ask_with(requests, patience)
    }

    fn ask_with(
        &mut self,
        requests: Vec<Option<Request>>,
        patience: Patience,
    ) -> Vec<Option<Said>> {
        let is_asked: Vec<_> = requests.iter().map(Option::is_some).collect();
        let mut answered = self.servers.ask(self.tree, requests, patience);
        answered.resize_with(is_asked.len(), || None);
        let read = |is_asked: bool, answered: Option<ServerAnswer>| {
            is_asked.then(|| said(answered.unwrap_or_else(|| Err(no_answer()))))
        };
        is_asked.into_iter().zip(answered).map(|(is_asked, it)| read(is_asked, it)).collect()
    }

    /// Sends requests whose only good answer is `Done`. Returns the servers that failed, with their
    /// errors.
    pub(super) fn failures(&mut self, requests: Vec<Option<Request>>) -> Vec<(usize, StoreError)> {
        let said = self.ask_some(requests).into_iter().enumerate();
        said.filter_map(|(server, said)| Some((server, done(said?).err()?))).collect()
    }

    /// How far all servers are, when a volume is opened and before an attempt to evict a path. A
    /// server that works on an eviction whose client was lost answers when it is over.
    pub(super) fn epochs(&mut self) -> Vec<Result<HostEpoch, StoreError>> {
        let requests = vec![Some(Request::Epoch); self.count()];
        all_said(self.ask_with(requests, Patience::Long)).into_iter().map(epoch).collect()
    }
}

fn all_said(said: Vec<Option<Said>>) -> Vec<Said> {
    said.into_iter().map(|said| said.unwrap_or_else(|| Err(no_answer()))).collect()
}

fn said(answered: ServerAnswer) -> Said {
    match Answer::decode(&answered?) {
        Ok(Answer::Refused(Refusal { kind, why })) => Err(StoreError::new(kind, for_people(&why))),
        Ok(answer) => Ok(answer),
        Err(_) => Err(no_answer()),
    }
}

/// It has answered with something else than what was asked for.
pub(super) fn no_answer() -> StoreError {
    StoreError::new(StoreErrorKind::Failed, "it answers something else than what it was asked")
}

/// Whether it was done.
pub(super) fn done(said: Said) -> Result<(), StoreError> {
    match said? {
        Answer::Done => Ok(()),
        _ => Err(no_answer()),
    }
}

/// How far a server is that was asked that.
pub(super) fn epoch(said: Said) -> Result<HostEpoch, StoreError> {
    match said? {
        Answer::Epoch(epoch) => Ok(epoch),
        _ => Err(no_answer()),
    }
}

/// Refuses to go on if somebody else has taken the volume over from this client.
pub(super) fn check_not_fenced<T>(
    servers: &dyn ShareServers,
    told: &[Result<T, StoreError>],
) -> Result<(), Error> {
    let mut failed =
        told.iter().enumerate().filter_map(|(i, told)| Some((i, told.as_ref().err()?)));
    match failed.find(|(_, error)| error.kind() == StoreErrorKind::Fenced) {
        Some((i, error)) => {
            let error = StoreError::new(error.kind(), format!("{}: {error}", servers.name(i)));
            Err(error.into())
        }
        None => Ok(()),
    }
}

/// The share, if it is one of so many bytes.
pub(super) fn share(said: Said, bytes: usize) -> Result<Vec<u8>, StoreError> {
    match said? {
        Answer::Share(share) if share.len() == bytes => Ok(share),
        _ => Err(no_answer()),
    }
}

/// What servers have told, and those that have not, with the reason.
pub(super) fn parted<T>(
    told: impl IntoIterator<Item = Result<T, StoreError>>,
) -> (Vec<T>, Vec<(usize, StoreError)>) {
    let (mut values, mut failed) = (Vec::new(), Vec::new());
    for (server, told) in told.into_iter().enumerate() {
        match told {
            Ok(value) => values.push(value),
            Err(error) => failed.push((server, error)),
        }
    }
    (values, failed)
}

/// What all have told; or an error that names those that have not, and says what is to be done.
pub(super) fn all<T>(
    servers: &dyn ShareServers,
    told: impl IntoIterator<Item = Result<T, StoreError>>,
    advice: &str,
) -> Result<Vec<T>, Error> {
    let (values, failed) = parted(told);
    if failed.is_empty() { Ok(values) } else { Err(failure(servers, failed, advice)) }
}

/// An error that names servers, and says what is to be done.
pub(super) fn failure(
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

/// Whether a server that has failed so will do the same again: others only wait for it.
pub(super) fn is_cause(kind: StoreErrorKind) -> bool {
    use StoreErrorKind::{Damaged, Full, UnknownVersion};
    matches!(kind, Full | Damaged | UnknownVersion)
}

/// What counts of several failures, the least first. What a server's files hold can be seen by
/// others; what it says of versions it alone says. A lost link is the reason why others fail as
/// well.
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

    /// One that says another version may lie, and an error has one exit code.
    #[test]
    fn what_a_server_says_of_versions_counts_after_what_keeps_others_waiting() {
        use StoreErrorKind::{Damaged, Failed, Full, Refused, UnknownVersion, Unreachable};
        assert_eq!((rank(Full), rank(Failed)), (rank(Damaged), rank(Refused)));
        let ranks = [Damaged, UnknownVersion, Unreachable, Failed].map(rank);
        assert!(ranks.is_sorted_by(|one, other| one < other), "{ranks:?}");
    }
}
