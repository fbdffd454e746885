//! One server made anew: what the others hold is put there again.

use oblivio_core::error::join_failures;
use oblivio_core::records::{RecordPlace, RecordStore};
use oblivio_core::store::BucketStore;

use super::opening::{Failures, at_once, check, check_has_volume, names};
use super::{ShareServer, SharedStore};
use oblivio_store::remote::{RemoteMode, RemoteOptions, RemoteStore};
use oblivio_store::{OpenError, OpenErrorKind};

impl SharedStore {
    /// Opens a volume to write, to make the server at this place anew, counted from 0. As many others as may collude and one more have to be there. Whoever has the volume open is
    /// fenced off, unless it has it open on that server: then nothing is opened. If that server has a volume, it is there, as it is.
    ///
    /// With [`RemoteMode::Look`], it is opened to see whether that is needed, beside whoever has it open.
    ///
    /// # Errors
    /// When too few of the others can be reached, one refuses, or that server cannot be reached or is in use.
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
            let message = format!("there are servers 1 to {}", servers.len());
            return Err(OpenError::new(OpenErrorKind::WrongMembers, message));
        };
        // While somebody writes there, nobody can be let in to read.
        let first = match mode {
            RemoteMode::Look => mode,
            _ => RemoteMode::Read { may_be_cut_off: true },
        };
        let mut failures = Failures::default();
        // What else is wrong with it is what it is made anew for.
        if let Err(error) = RemoteStore::open((lost.dialing)(), first, options.clone())
            && is_in_the_way(&error)
        {
            let error = match error.kind() {
                OpenErrorKind::Io => error.with(
                    ". Nothing was removed. If that cannot be mended, remove the volume's folder \
                     on that server, and repeat the repair",
                ),
                _ => error,
            };
            let is_missing = error.kind() == OpenErrorKind::Unreachable;
            failures.add(called[repaired].clone(), error);
            // Names all that are missing. Only a look takes the volume from no other client.
            if is_missing && mode == RemoteMode::Look {
                let others = servers.iter().zip(&called).enumerate();
                let others = others.filter(|(i, _)| *i != repaired).map(|(_, other)| other);
                let open = |dial| RemoteStore::open(dial, mode, options.clone());
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
            let found = RemoteStore::open((server.dialing)(), mode, options.clone());
            match found {
                Ok((store, _)) if i == repaired => opened.push(Ok(store)),
                Ok((store, _)) => {
                    let first = shapes.get_or_insert_with(|| store.shapes().to_vec());
                    if first != store.shapes() {
                        let message =
                            format!("{called} has other trees than others: repair it first");
                        return Err(OpenError::new(OpenErrorKind::WrongMembers, message));
                    }
                    opened.push(Ok(store));
                }
                Err(error) if i == repaired || error.kind() != OpenErrorKind::Locked => {
                    opened.push(Err(error));
                }
                Err(error) => return Err(error.of(called)),
            }
        }
        let errors = opened.iter().map(|it| it.as_ref().err());
        check_has_volume(&options.name, colluding, errors)?;
        let others = opened.iter().enumerate().filter(|(i, it)| *i != repaired && it.is_ok());
        if others.count() <= colluding {
            return Err(too_few(&called, &opened, repaired, colluding + 1));
        }
        let shapes = shapes.unwrap_or_default();
        let mut store = Self::over(servers, opened, shapes, colluding, options, mode);
        (store.enough, store.is_repair) = (colluding + 1, true);
        Ok(store)
    }

    /// Removes what is left of the volume on a server, and makes it there anew with these records.
    /// It has no shares then.
    ///
    /// The caller has authenticated the records, because the other servers may hold older ones as
    /// well. No other server is written to: what it holds may be newer than what a client without
    /// its directory finds.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn make_anew(
        &mut self,
        server: usize,
        records: &[(RecordPlace, Vec<u8>)],
    ) -> Result<(), OpenError> {
        let shapes = self.shapes.clone();
        self.servers[server].be_made_anew(&shapes)?;
        let mut write = |(place, bytes): &(RecordPlace, Vec<u8>)| {
            self.servers[server].answer(|store| store.write_records(&[*place], bytes))
        };
        let written = records.iter().try_for_each(&mut write);
        written.and_then(|()| self.servers[server].answer(|store| store.flush())).map_err(|cause| {
            let message =
                format!("records could not be copied to the server ({cause}): begin again");
            OpenError::caused_by(cause.kind().into(), message, cause)
        })
    }
}

/// Of the others, too few can be opened. It is said of each why not, and the error is of the kind of the first.
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
    // With the one that was to be made anew they may be enough for another one: else each would be said to need the other first.
    let can_be_made_anew = failed.clone().any(|(_, error)| !is_in_the_way(error));
    let kind = failed.map(|(_, error)| error.kind()).next();
    let are_enough_for_another =
        can_be_made_anew && opened.iter().filter(|it| it.is_ok()).count() >= needed;
    let or_another = if are_enough_for_another { ", or repair one of these first" } else { "" };
    let message = format!(
        "{each}. {needed} of the other servers have to have the volume: bring back \
         another{or_another}"
    );
    OpenError::new(kind.unwrap_or(OpenErrorKind::Unreachable), message)
}

fn is_in_the_way(error: &OpenError) -> bool {
    use OpenErrorKind::{Io, Locked, NoCredential, NotLetIn, Unreachable};
    // A server that cannot open its files may have them all: it may be short of file descriptors.
    matches!(error.kind(), Io | Locked | NoCredential | NotLetIn | Unreachable)
}
