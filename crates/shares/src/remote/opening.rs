//! Creates, opens and removes a volume on all servers at once.

use oblivio_core::error::join_failures;
use oblivio_core::store::TreeShape;

use super::retry::RetryPolicy;
use super::server::{Server, name};
use super::threads::all_at_once;
use super::{SERVERS_MAX, SERVERS_MIN, ShareServer, SharedStore};
use oblivio_store::{
    Condition, Connector, Remnants, RemoteMode, RemoteOptions, RemoteStore, StoreFailure,
};
use oblivio_store::{OpenError, OpenErrorKind};

impl SharedStore {
    /// Creates a volume with record trees of these shapes on every server, `TreeId(0)` first, and
    /// opens it for writing. `colluding` servers may collude.
    ///
    /// # Errors
    /// If a server cannot be reached or refuses. The volume is then removed again from the other
    /// servers.
    pub fn create(
        servers: Vec<ShareServer>,
        shapes: &[TreeShape],
        colluding: usize,
        options: RemoteOptions,
    ) -> Result<Self, OpenError> {
        check(&servers, colluding)?;
        // Create the volume on the server with the least key first. If several clients create a
        // volume of the same name, the loser fails there, before it has created anything.
        let Some((first, server)) = servers.iter().enumerate().min_by_key(|(_, it)| it.key) else {
            return Err(OpenError::new(OpenErrorKind::WrongMembers, "the URL names no servers"));
        };
        let create = |connector| RemoteStore::create(connector, shapes, options.clone());
        let made_first = create((server.make_connector)())
            .map_err(|error| error.named(&name(first + 1, &server.address)))?;
        let others = servers.iter().enumerate().filter(|(at, _)| *at != first);
        let mut made = at_once(others.map(|(_, server)| server), create);
        made.insert(first, Ok(made_first));
        let (mut stores, mut failures) = (Vec::new(), Failures::default());
        for (made, called) in made.into_iter().zip(names(&servers)) {
            match made {
                Ok(store) => stores.push(Some(store)),
                Err(error) => {
                    stores.push(None);
                    failures.add(called, error);
                }
            }
        }
        if let Some(error) = failures.into_error() {
            for (store, server) in stores.into_iter().zip(&servers) {
                if store.is_some() {
                    drop(store);
                    // If this fails, the next creation will report the remains.
                    let _ = RemoteStore::remove((server.make_connector)(), &options.name);
                }
            }
            return Err(error);
        }
        let opened = stores.into_iter().flatten().map(Ok).collect();
        Ok(Self::from_opened(
            servers,
            opened,
            shapes.to_vec(),
            colluding,
            options,
            RemoteMode::Write,
        ))
    }

    /// Opens a volume. At least 2 * `colluding` + 1 servers must be present.
    ///
    /// # Errors
    /// If too few servers open the volume, another client uses it, or the trees of servers differ.
    /// A server that refuses for any other reason counts as missing.
    pub fn open(
        servers: Vec<ShareServer>,
        mode: RemoteMode,
        colluding: usize,
        options: RemoteOptions,
    ) -> Result<(Self, Condition), OpenError> {
        Self::open_with(servers, mode, colluding, 2 * colluding + 1, options)
    }

    /// Opens a damaged volume even if only `colluding` + 1 servers are present. The data can then
    /// be read if none of these servers lies.
    ///
    /// # Errors
    /// The errors of [`Self::open`].
    pub fn open_damaged(
        servers: Vec<ShareServer>,
        mode: RemoteMode,
        colluding: usize,
        options: RemoteOptions,
    ) -> Result<(Self, Condition), OpenError> {
        Self::open_with(servers, mode, colluding, colluding + 1, options)
    }

    fn open_with(
        servers: Vec<ShareServer>,
        mode: RemoteMode,
        colluding: usize,
        enough: usize,
        options: RemoteOptions,
    ) -> Result<(Self, Condition), OpenError> {
        check(&servers, colluding)?;
        let found =
            at_once(&servers, |connector| RemoteStore::open(connector, mode, options.clone()));
        let errors = found.iter().map(|found| found.as_ref().err());
        check_has_volume(&options.name, colluding, errors)?;
        let there = found.iter().filter(|found| found.is_ok()).count();
        let count = servers.len();
        let mut missing_max = count - enough;
        // A server that refuses to open could as well be silent, so it counts as missing. But do
        // not take the volume from another client.
        let may_be_missing = |kind| kind != OpenErrorKind::Locked;
        let (mut opened, mut condition) = (Vec::new(), Condition::default());
        let mut refused: Option<OpenError> = None;
        let mut unreached = Vec::new();
        let mut first: Option<(String, Vec<TreeShape>)> = None;
        for ((found, called), number) in found.into_iter().zip(names(&servers)).zip(1..) {
            let found = found.map_err(|error| match error.kind() {
                OpenErrorKind::Missing if there > 0 => {
                    let advice = rebuild_advice(number, there, colluding);
                    missing_volume_error(&options.name, &advice, error)
                }
                OpenErrorKind::Damaged if there > 0 => {
                    damaged_volume_error(&rebuild_advice(number, there, colluding), error)
                }
                _ => error,
            });
            if let Err(error) = &found
                && error.kind() == OpenErrorKind::Unreachable
            {
                unreached.push((called.clone(), error.to_string()));
            }
            match found {
                Ok((store, condition_of_it)) => {
                    condition.add(&called, condition_of_it);
                    let (other, shapes) =
                        first.get_or_insert_with(|| (called.clone(), store.shapes().to_vec()));
                    if shapes != store.shapes() {
                        return Err(differs(other, &called));
                    }
                    opened.push(Ok(store));
                }
                Err(error) if may_be_missing(error.kind()) && missing_max > 0 => {
                    // Later requests to the server fail with this reason.
                    missing_max -= 1;
                    opened.push(Err(error));
                }
                Err(error) => {
                    // `Locked` comes first: a client that is creating the volume has it on some
                    // servers only. `UnknownVersion` comes last: only the server itself reports it,
                    // while other reasons can be verified.
                    let kind = refused.as_ref().map(OpenError::kind);
                    let is_first = kind.is_none_or(|kind| kind == OpenErrorKind::UnknownVersion);
                    if is_first || error.kind() == OpenErrorKind::Locked {
                        refused = Some(error.named(&called));
                    }
                }
            }
        }
        if let Some(error) = refused {
            let needed = format!(". At least {enough} of {count} servers must be available");
            return Err(match error.kind() {
                OpenErrorKind::Unreachable => {
                    let message = join_failures(unreached) + &needed;
                    OpenError::caused_by(OpenErrorKind::Unreachable, message, error)
                }
                _ if enough == colluding + 1 => error.with(&needed),
                _ => error,
            });
        }
        let shapes = first.map(|(_, shapes)| shapes).unwrap_or_default();
        let mut store = Self::from_opened(servers, opened, shapes, colluding, options, mode);
        store.enough = enough;
        Ok((store, condition))
    }

    /// Finds the first server that has a volume of this name. Returns the server's name; `None` if
    /// no server has such a volume.
    ///
    /// # Errors
    /// If a server does not answer.
    pub fn look(servers: &[ShareServer], volume: &str) -> Result<Option<String>, OpenError> {
        let looked = at_once(servers, |connector| RemoteStore::look(connector, volume));
        let (mut found, mut failures) = (None, Failures::default());
        for (looked, called) in looked.into_iter().zip(names(servers)) {
            match looked {
                Ok(true) => drop(found.get_or_insert(called)),
                Ok(false) => (),
                Err(error) => failures.add(called, error),
            }
        }
        failures.into_error().map_or(Ok(found), Err)
    }

    /// Determines what remains of a volume on each server: see
    /// [`Location::remnants`](oblivio_store::Location::remnants).
    ///
    /// # Errors
    /// If no server has anything of the volume, or a server is in use, refuses, or cannot be
    /// reached.
    pub fn remnants(
        servers: &[ShareServer],
        options: &RemoteOptions,
    ) -> Result<Remnants, OpenError> {
        let mode = RemoteMode::Read { allow_incomplete: true };
        let found =
            at_once(servers, |connector| RemoteStore::open(connector, mode, options.clone()));
        let mut remnants = Remnants { bytes: Some(0), ..Default::default() };
        let mut failures = Failures::default();
        for (found, called) in found.into_iter().zip(names(servers)) {
            match found {
                Ok((store, condition)) => {
                    let sum = |bytes: u64| bytes.saturating_add(condition.allocated_bytes);
                    remnants.bytes = remnants.bytes.map(sum);
                    remnants.stores.push(Box::new(store));
                }
                Err(error) if error.kind() == OpenErrorKind::Missing => {
                    remnants.absent.push(called)
                }
                Err(error) if error.kind() == OpenErrorKind::Damaged => remnants.bytes = None,
                Err(error) => failures.add(called, error),
            }
        }
        if let Some(error) = failures.into_error() {
            return Err(error);
        }
        let is_nowhere = remnants.absent.len() == servers.len();
        if is_nowhere { Err(no_volume_error(&options.name)) } else { Ok(remnants) }
    }

    /// Removes a volume from all servers that have it. The volume must not be open.
    ///
    /// # Errors
    /// If no server has the volume, or a server cannot remove it. The volume is then removed from
    /// the others.
    pub fn remove(servers: &[ShareServer], volume: &str) -> Result<(), OpenError> {
        let removed = at_once(servers, |connector| RemoteStore::remove(connector, volume));
        let (mut failures, mut is_removed) = (Failures::default(), false);
        for (removed, called) in removed.into_iter().zip(names(servers)) {
            match removed {
                Ok(()) => is_removed = true,
                Err(error) if error.kind() == OpenErrorKind::Missing => (),
                Err(error) => failures.add(called, error),
            }
        }
        match failures.into_error() {
            Some(error) if is_removed => {
                Err(error.with(". It was removed from other servers: repeat the removal"))
            }
            Some(error) => Err(error),
            None if is_removed => Ok(()),
            None => Err(no_volume_error(volume)),
        }
    }

    pub(super) fn from_opened(
        servers: Vec<ShareServer>,
        opened: Vec<Result<RemoteStore, OpenError>>,
        shapes: Vec<TreeShape>,
        colluding: usize,
        options: RemoteOptions,
        mode: RemoteMode,
    ) -> Self {
        let retry_for = options.retry_for;
        let servers = servers.into_iter().zip(opened).zip(1..);
        let servers = servers.map(|((server, opened), number)| {
            Server::new(number, server, options.clone(), mode, opened)
        });
        Self {
            servers: servers.collect(),
            shapes,
            colluding,
            enough: 2 * colluding + 1,
            is_read_only: matches!(mode, RemoteMode::Read { .. } | RemoteMode::Look),
            is_repair: false,
            failure: StoreFailure::default(),
            retries: RetryPolicy::new(retry_for),
            votes: Default::default(),
            silent: Vec::new(),
            written: Default::default(),
        }
    }
}

/// The errors of the servers that failed, with the servers' names.
#[derive(Default)]
pub(super) struct Failures(Vec<(String, OpenError)>);

impl Failures {
    /// Adds the failure of the server named `server`.
    pub(super) fn add(&mut self, server: String, error: OpenError) {
        self.0.push((server, error));
    }

    /// Returns one error, of the kind of the first failure, that names all servers with a failure
    /// of this kind. If another client uses or creates the volume, the error says that instead.
    /// `None` if no server failed.
    pub(super) fn into_error(self) -> Option<OpenError> {
        let is_locked = |(_, error): &&(String, OpenError)| error.kind() == OpenErrorKind::Locked;
        let kind = self.0.iter().find(is_locked).or(self.0.first())?.1.kind();
        let failed: Vec<_> = self.0.into_iter().filter(|(_, error)| error.kind() == kind).collect();
        let texts = failed.iter().map(|(server, error)| (server.clone(), error.to_string()));
        let message = join_failures(texts);
        failed.into_iter().next().map(|(_, first)| first.saying(message))
    }
}

/// Runs `act` for every server, each on its own thread, so that a slow server does not delay the
/// others.
pub(super) fn at_once<'s, T: Send>(
    servers: impl IntoIterator<Item = &'s ShareServer>,
    act: impl Fn(Box<dyn Connector>) -> Result<T, OpenError> + Sync,
) -> Vec<Result<T, OpenError>> {
    let act = &act;
    let acts = servers.into_iter().map(|server| {
        let connector = (server.make_connector)();
        move || act(connector)
    });
    all_at_once(acts).into_iter().map(|done| done.unwrap_or_else(|why| Err(why.into()))).collect()
}

pub(super) fn names(servers: &[ShareServer]) -> impl Iterator<Item = String> {
    servers.iter().zip(1..).map(|(server, number)| name(number, &server.address))
}

/// Fails if no server has the volume, and more servers than may lie report that they do not have
/// it. Then the name is wrong, and no server has lost data. Also fails if too few servers have the
/// volume to read or rebuild it. Does not fail if a server reports that another client uses or
/// creates the volume; the caller reports that instead.
pub(super) fn check_has_volume<'e>(
    volume: &str,
    colluding: usize,
    errors: impl Iterator<Item = Option<&'e OpenError>> + Clone,
) -> Result<(), OpenError> {
    let is_absent = |error: &&OpenError| error.kind() == OpenErrorKind::Missing;
    let absent = errors.clone().flatten().filter(is_absent).count();
    let is_locked = |error: &OpenError| error.kind() == OpenErrorKind::Locked;
    if errors.clone().flatten().any(is_locked) || absent <= colluding {
        return Ok(());
    }
    let is_anywhere = errors.clone().any(|error| error.is_none());
    let servers = errors.count();
    if is_anywhere {
        let needed = colluding + 1;
        if servers - absent >= needed {
            return Ok(());
        }
        let message = format!(
            "{absent} of {servers} servers report no volume {volume}, and {needed} must have it: \
             its data is lost, unless the folders of these servers are restored"
        );
        return Err(OpenError::new(OpenErrorKind::Damaged, message));
    }
    if absent == servers {
        return Err(no_volume_error(volume));
    }
    let message = format!(
        "{absent} of {servers} servers have no volume {volume}, and the others do not open it: \
         check the name, or bring back the others"
    );
    Err(OpenError::new(OpenErrorKind::Missing, message))
}

fn no_volume_error(volume: &str) -> OpenError {
    let message = format!("there is no volume {volume} on any of the servers: check the name");
    OpenError::new(OpenErrorKind::Missing, message)
}

/// The advice for a server whose part of a volume must be rebuilt from the other servers. The
/// volume can be opened on `there` servers.
fn rebuild_advice(number: usize, there: usize, colluding: usize) -> String {
    let rebuild = format!("rebuild its shares (`oblivio shares repair` of server {number})");
    let needed = colluding + 1;
    if there >= needed {
        return rebuild;
    }
    format!("first bring back other servers until {needed} have the volume, and then {rebuild}")
}

/// Adds `advice` to the error of a server whose volume is damaged. For use if other servers have
/// the volume.
fn damaged_volume_error(advice: &str, error: OpenError) -> OpenError {
    error.with(&format!(
        ". Other servers have the volume: {advice}. If the server is reported as up to date, it \
         can be rebuilt anyway"
    ))
}

/// Replaces the error of a server without the volume with one that contains `advice`. For use if
/// other servers have the volume.
fn missing_volume_error(volume: &str, advice: &str, error: OpenError) -> OpenError {
    let message =
        format!("it has no volume {volume}, but others do: if it has lost its disk, {advice}");
    OpenError::caused_by(OpenErrorKind::Missing, message, error)
}

pub(super) fn check(servers: &[ShareServer], colluding: usize) -> Result<(), OpenError> {
    let count = servers.len();
    if (SERVERS_MIN..=SERVERS_MAX).contains(&count) && 2 * colluding < count {
        return Ok(());
    }
    let message = format!(
        "cannot use {count} servers of which {colluding} may collude: choose {SERVERS_MIN} to \
         {SERVERS_MAX} servers, and let fewer than half of them collude"
    );
    Err(OpenError::new(OpenErrorKind::WrongMembers, message))
}

fn differs(one: &str, other: &str) -> OpenError {
    let message = format!(
        "{other} has other trees than {one}, so they do not belong to one volume: check the order \
         of the servers and the name"
    );
    OpenError::new(OpenErrorKind::WrongMembers, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use OpenErrorKind::{Locked, Missing, Unreachable};

    #[test]
    fn a_volume_is_lost_if_too_few_servers_have_it_and_no_client_creates_it() {
        let is_lost = |colluding, kinds: &[Option<OpenErrorKind>]| {
            let errors = |kind: &Option<OpenErrorKind>| kind.map(|kind| OpenError::new(kind, "no"));
            let errors: Vec<_> = kinds.iter().map(errors).collect();
            let checked = check_has_volume("disk", colluding, errors.iter().map(Option::as_ref));
            checked.is_err_and(|error| error.kind() == OpenErrorKind::Damaged)
        };
        let (missing, silent) = (Some(Missing), Some(Unreachable));
        assert!(is_lost(1, &[missing, None, missing]));
        assert!(is_lost(2, &[None, missing, missing, missing, silent]));
        // A server that does not answer may have the volume.
        assert!(!is_lost(1, &[missing, None, silent]));
        assert!(!is_lost(1, &[missing, missing, missing, silent, None]));
        assert!(!is_lost(1, &[missing, None, None]));
        assert!(!is_lost(1, &[missing, missing, Some(Locked)]));
        assert!(!is_lost(1, &[missing; 3]));
    }

    #[test]
    fn a_name_is_wrong_if_no_server_has_it_and_more_than_t_deny_it() {
        let is_wrong = |colluding, kinds: &[Option<OpenErrorKind>]| {
            let errors = |kind: &Option<OpenErrorKind>| kind.map(|kind| OpenError::new(kind, "no"));
            let errors: Vec<_> = kinds.iter().map(errors).collect();
            let checked = check_has_volume("dusk", colluding, errors.iter().map(Option::as_ref));
            checked.is_err_and(|error| error.kind() == Missing)
        };
        let (missing, silent) = (Some(Missing), Some(Unreachable));
        assert!(is_wrong(1, &[missing; 3]));
        assert!(is_wrong(1, &[missing, missing, silent]));
        assert!(!is_wrong(1, &[missing, silent, silent]));
        assert!(!is_wrong(2, &[missing, missing, silent, silent, silent]));
        // Some servers have lost the volume.
        assert!(!is_wrong(1, &[missing, missing, None]));
        // Another client uses the volume.
        assert!(!is_wrong(1, &[missing, missing, Some(Locked)]));
    }
}
