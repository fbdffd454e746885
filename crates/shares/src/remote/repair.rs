//! Opens a volume to rebuild one server, and copies its records.

use oblivio_core::error::join_failures;
use oblivio_core::records::{RecordPlace, RecordStore};
use oblivio_core::store::BucketStore;

use super::opening::{Failures, at_once, check, check_has_volume, names};
use super::{ShareServer, SharedStore};
use oblivio_store::remote::{RemoteMode, RemoteOptions, RemoteStore};
use oblivio_store::{OpenError, OpenErrorKind};

impl SharedStore {
    /// Opens a volume for writing, to rebuild server `repaired`, counted from 0. At least
    /// `colluding` + 1 other servers must be present. A client that has the volume open on the
    /// other servers is fenced off. But if a client has the volume open on server `repaired`, this
    /// fails before it opens the other servers. An existing volume on server `repaired` is opened
    /// unchanged.
    ///
    /// With [`RemoteMode::Look`], the volume is only opened to check whether a repair is needed,
    /// without fencing off a client.
    ///
    /// # Errors
    /// If too few other servers can be opened, one of them is in use, or their trees differ. Also
    /// if server `repaired` cannot be reached, refuses this client, is in use, or cannot open its
    /// files.
    pub fn open_to_repair(
        servers: Vec<ShareServer>,
        repaired: usize,
        mode: RemoteMode,
        colluding: usize,
        options: RemoteOptions,
    ) -> Result<Self, OpenError> {
        check(&servers, colluding)?;
        let called: Vec<_> = names(&servers).collect();
        let Some(lost) = servers.get(repaired) else {
            let message = format!("the volume has only servers 1 to {}", servers.len());
            return Err(OpenError::new(OpenErrorKind::WrongMembers, message));
        };
        // If a client writes on that server, opening for reading is refused.
        let first = match mode {
            RemoteMode::Look => mode,
            _ => RemoteMode::Read { allow_incomplete: true },
        };
        let mut failures = Failures::default();
        // Other problems of that server are the reason for the repair.
        if let Err(error) = RemoteStore::open((lost.make_connector)(), first, options.clone())
            && is_in_the_way(&error)
        {
            let error = match error.kind() {
                OpenErrorKind::Io => error.with(
                    ". Nothing was removed. If that cannot be fixed, remove the volume's folder on \
                     that server, and repeat the repair",
                ),
                _ => error,
            };
            let is_missing = error.kind() == OpenErrorKind::Unreachable;
            failures.add(called[repaired].clone(), error);
            // Name all missing servers. Only `Look` does not fence off another client.
            if is_missing && mode == RemoteMode::Look {
                let others = servers.iter().zip(&called).enumerate();
                let others = others.filter(|(i, _)| *i != repaired).map(|(_, other)| other);
                let open = |connector| RemoteStore::open(connector, mode, options.clone());
                let opened = at_once(others.clone().map(|(server, _)| server), open);
                for ((_, name), opened) in others.zip(opened) {
                    opened.err().into_iter().for_each(|error| failures.add(name.clone(), error));
                }
            }
        }
        if let Some(error) = failures.into_error() {
            return Err(error);
        }
        let mut opened = Vec::new();
        let mut shapes = None;
        for (i, (server, called)) in servers.iter().zip(&called).enumerate() {
            let found = RemoteStore::open((server.make_connector)(), mode, options.clone());
            match found {
                Ok((store, _)) if i == repaired => opened.push(Ok(store)),
                Ok((store, _)) => {
                    let first = shapes.get_or_insert_with(|| store.shapes().to_vec());
                    if first != store.shapes() {
                        let message = format!(
                            "{called} has other trees than the other servers: repair it first"
                        );
                        return Err(OpenError::new(OpenErrorKind::WrongMembers, message));
                    }
                    opened.push(Ok(store));
                }
                Err(error) if i == repaired || error.kind() != OpenErrorKind::Locked => {
                    opened.push(Err(error));
                }
                Err(error) => return Err(error.named(called)),
            }
        }
        let errors = opened.iter().map(|it| it.as_ref().err());
        check_has_volume(&options.name, colluding, errors)?;
        let others = opened.iter().enumerate().filter(|(i, it)| *i != repaired && it.is_ok());
        if others.count() <= colluding {
            return Err(too_few(&called, &opened, repaired, colluding + 1));
        }
        let shapes = shapes.unwrap_or_default();
        let mut store = Self::from_opened(servers, opened, shapes, colluding, options, mode);
        (store.enough, store.is_repair) = (colluding + 1, true);
        Ok(store)
    }

    /// Removes the remains of the volume on a server, and creates it again with these records, but
    /// without shares.
    ///
    /// The caller must have authenticated the records, because other servers may also hold older
    /// ones. Nothing is written to the other servers: they may hold newer data than a client
    /// without its directory finds.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached. The caller must then begin the repair again.
    pub fn recreate_server(
        &mut self,
        server: usize,
        records: &[(RecordPlace, Vec<u8>)],
    ) -> Result<(), OpenError> {
        let shapes = self.shapes.clone();
        self.servers[server].recreate(&shapes)?;
        let mut write = |(place, bytes): &(RecordPlace, Vec<u8>)| {
            self.servers[server].require_store(|store| store.write_records(&[*place], bytes))
        };
        let written = records.iter().try_for_each(&mut write);
        written.and_then(|()| self.servers[server].require_store(|store| store.flush())).map_err(
            |cause| {
                let message =
                    format!("cannot copy records to the server ({cause}): start the repair again");
                OpenError::caused_by(cause.kind().into(), message, cause)
            },
        )
    }
}

/// The error if too few other servers can be opened. Its message has the reason for each server
/// that cannot be opened, and its kind is that of the first such server.
fn too_few(
    called: &[String],
    opened: &[Result<RemoteStore, OpenError>],
    repaired: usize,
    needed: usize,
) -> OpenError {
    let failed = called.iter().zip(opened).enumerate().filter(|(i, _)| *i != repaired);
    let failed = failed.filter_map(|(_, (name, opened))| Some((name, opened.as_ref().err()?)));
    let each = failed.clone().map(|(name, error)| (name.clone(), error.to_string()));
    let each = join_failures(each);
    // Together with the server to be repaired, the opened servers may be enough to repair another
    // one first. Without this hint, each of two repairs would demand the other one first.
    let can_be_recreated = failed.clone().any(|(_, error)| !is_in_the_way(error));
    let kind = failed.map(|(_, error)| error.kind()).next();
    let are_enough_for_another =
        can_be_recreated && opened.iter().filter(|it| it.is_ok()).count() >= needed;
    let or_another = if are_enough_for_another { ", or repair one of these first" } else { "" };
    let message = format!(
        "{each}. {needed} of the other servers must have the volume: bring back another \
         server{or_another}"
    );
    OpenError::new(kind.unwrap_or(OpenErrorKind::Unreachable), message)
}

fn is_in_the_way(error: &OpenError) -> bool {
    use OpenErrorKind::{Io, Locked, NoCredential, NotAdmitted, Unreachable};
    // A server that cannot open its files may still have all of them, for example if it lacks file
    // descriptors.
    matches!(error.kind(), Io | Locked | NoCredential | NotAdmitted | Unreachable)
}
