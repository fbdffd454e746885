//! A server that keeps its shares in files, and exchanges messages with the other servers.
//!
//! All data that the server acknowledges is durable. Each request names the state it is meant for,
//! so a client can repeat a request after a lost link without changing anything. An eviction counts
//! once all servers have finished it. Until the client writes to the new root, each server can roll
//! back (ADR 16 in the repository).
//!
//! | module | contents |
//! |---|---|
//! | `folder` | interfaces to files and to other servers |
//! | `setup_file` | the setup file, and the version of the files |
//! | `sums` | checksums of slots |
//! | `places` | the place of each bucket in the files |
//! | `record` | the record of the server's progress |
//! | `files` | reading and writing of slots |
//! | `marks` | marks of taken blocks, if slots have metadata |
//! | `requests` | client requests to one tree |
//! | `select` | the private selection of a slot |
//! | `metadata` | the metadata of slots |
//! | `evict` | evictions, one part of every block at a time |
//! | `mailbox` | messages from other servers |
//! | `watcher` | observing all messages |

mod evict;
mod files;
mod folder;
mod mailbox;
mod marks;
mod metadata;
mod places;
mod record;
mod requests;
mod select;
mod setup_file;
mod sums;
mod watcher;

pub use evict::{TILES_AT_ONCE, part_bytes};
pub use folder::{Folder, Peers, ShareFile};
pub use mailbox::{Mailbox, ProtocolViolation};
pub use select::slots_at_once;
pub use watcher::Watcher;

use std::io;
use std::sync::Arc;

use oblivio_core::StoreErrorKind;
use zeroize::Zeroizing;

use crate::message::{Answer, Evict, HostEpoch, Refusal, Request, Setup, TREES_MAX, TreePoint};
use crate::sharing::Seed;
use evict::Eviction;
use files::{Files, bytes_of_file, name_in};
use mailbox::Attempt;
use places::File;
use record::Record;
use watcher::Watched;

/// The name of the file that holds a tree's setup.
const SETUP: &str = "setup";

/// A function that draws a seed from the system.
type DrawSeed = dyn FnMut() -> io::Result<Seed> + Send;

/// One server of one volume, with its shares of the data tree and of the map trees. The server
/// handles one request at a time. Messages of other servers arrive concurrently through its
/// [`Mailbox`]. Attempt numbers grow across all trees, so they identify the tree of a message.
pub struct Host {
    folder: Box<dyn Folder>,
    draw_seed: Box<DrawSeed>,
    trees: Vec<Files>,
    mailbox: Arc<Mailbox>,
    watcher: Option<Arc<dyn Watcher>>,
}

impl Host {
    /// Opens the files in the folder. If the folder is empty, a client must set the server up
    /// first. `draw_seed` draws a seed from the system for each attempt to evict a path.
    ///
    /// # Errors
    /// System errors, and errors about damaged files or files of another version.
    pub fn open(
        folder: Box<dyn Folder>,
        draw_seed: impl FnMut() -> io::Result<Seed> + Send + 'static,
    ) -> io::Result<Self> {
        let mut trees = Vec::new();
        while trees.len() < TREES_MAX.into()
            && let Some(bytes) = folder.read(&name_in(trees.len(), SETUP))?
        {
            let setup = setup_file::decode(&bytes)?;
            trees.push(Files::open(&*folder, trees.len(), setup, false)?);
        }
        let (draw_seed, mailbox) = (Box::new(draw_seed), Arc::default());
        let host = Self { folder, draw_seed, trees, mailbox, watcher: None };
        host.limit_mailbox();
        Ok(host)
    }

    /// The setup of the data tree, which lists the other servers; `None` before the server is set
    /// up.
    pub fn setup(&self) -> Option<&Setup> {
        self.setups().next()
    }

    /// The setups of all trees, in order.
    pub fn setups(&self) -> impl Iterator<Item = &Setup> {
        self.trees.iter().map(|files| &files.setup)
    }

    /// Reports all messages to `watcher` from now on. The server holds a reference to the watcher
    /// until the server is dropped.
    pub fn watch(&mut self, watcher: Arc<dyn Watcher>) {
        self.mailbox.watch(&watcher);
        self.watcher = Some(watcher);
    }

    /// The maximum bytes that the server's files for a tree take.
    pub fn file_bytes(setup: &Setup) -> u64 {
        [File::Root, File::Siblings, File::Leaves]
            .map(|file| bytes_of_file(setup, file))
            .iter()
            .sum()
    }

    /// The mailbox for messages of other servers.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.mailbox.clone()
    }

    /// Whether an encoded request only asks for the server's progress.
    pub fn is_progress_request(message: &[u8]) -> bool {
        Request::decode_in(message).is_ok_and(|(_, request)| request == Request::Epoch)
    }

    /// Handles a request of the client and returns the answer. A refused request leaves the
    /// contents of the tree unchanged, but a refused eviction may have used up its attempt number.
    /// `check` is called with a new setup before the server accepts it, and may refuse it.
    pub fn answer(
        &mut self,
        message: &[u8],
        peers: &dyn Peers,
        check: &dyn Fn(&Setup) -> Result<(), Refusal>,
    ) -> Vec<u8> {
        let Some(watcher) = self.watcher.clone() else {
            return self.answer_unwatched(message, peers, check);
        };
        watcher.asked(message);
        let watched = Watched { peers, watcher: &*watcher };
        let answer = self.answer_unwatched(message, &watched, check);
        watcher.answered(message, &answer);
        answer
    }

    fn answer_unwatched(
        &mut self,
        message: &[u8],
        peers: &dyn Peers,
        check: &dyn Fn(&Setup) -> Result<(), Refusal>,
    ) -> Vec<u8> {
        let answer = Request::decode_in(message)
            .map_err(|error| Refusal::from(error.to_string()))
            .and_then(|(tree, request)| self.answered(tree.into(), request, peers, check));
        answer.unwrap_or_else(Answer::Refused).encode()
    }

    fn answered(
        &mut self,
        tree: usize,
        request: Request,
        peers: &dyn Peers,
        check: &dyn Fn(&Setup) -> Result<(), Refusal>,
    ) -> Result<Answer, Refusal> {
        self.check_durable().inspect_err(|_| peers.give_up())?;
        match request {
            Request::Setup(setup) => self.set_up(tree, setup, check)?,
            Request::Epoch => {
                let record = self.trees.get(tree).map(|files| files.record);
                let at = record.unwrap_or_default().at;
                let (attempt, is_set_up) = (self.latest_attempt(), record.is_some());
                return Ok(Answer::Epoch(HostEpoch { at, attempt, is_set_up }));
            }
            Request::Select { at, select } => {
                return self.files(tree)?.selected(at, select).map(Answer::Share);
            }
            Request::Write { at, block } => self.files(tree)?.write(at, block)?,
            Request::Evict { evict, dealers } => {
                self.evict(tree, evict, &dealers, peers).inspect_err(|_| peers.give_up())?;
            }
            Request::RollBack { evictions } => self.files(tree)?.roll_back(evictions)?,
            Request::Metadata { at, leaf } => {
                return self.files(tree)?.metadata(at, leaf).map(Answer::Share);
            }
            Request::Fetch { at, slots } => {
                return self.files(tree)?.fetched(at, slots).map(Answer::Share);
            }
            Request::Put { at, slots, share } => self.files(tree)?.put(at, slots, share)?,
            Request::SetPoint { at } => self.files(tree)?.set_point(at)?,
            Request::Connect => {
                self.files(tree)?;
                peers.connect().map_err(|error| evict::of_another(error.to_string()))?;
            }
        }
        Ok(Answer::Done)
    }

    /// Refuses every request if a sync has failed, because everything that the server acknowledged
    /// must be durable.
    fn check_durable(&self) -> Result<(), Refusal> {
        let is_doubtful = self.trees.iter().any(|files| files.is_doubtful);
        if !is_doubtful {
            return Ok(());
        }
        let why = "this server could not sync its files, and refuses all requests: check its \
                   disk, and restart it";
        Err(Refusal { kind: StoreErrorKind::Failed, why: why.into() })
    }

    fn files(&mut self, tree: usize) -> Result<&mut Files, Refusal> {
        self.trees.get_mut(tree).ok_or_else(no_tree)
    }

    /// The greatest attempt number that the server has seen, over all trees.
    fn latest_attempt(&self) -> u64 {
        self.trees.iter().map(|files| files.record.attempt).max().unwrap_or_default()
    }

    fn set_up(
        &mut self,
        tree: usize,
        setup: Setup,
        check: &dyn Fn(&Setup) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if let Some(files) = self.trees.get(tree) {
            let is_the_same = files.setup == setup;
            return is_the_same.then_some(()).ok_or_else(|| {
                "this server is set up for another tree, or with another number or other \
                 servers"
                    .into()
            });
        }
        if tree != self.trees.len() {
            return Err("the trees of a volume must be set up in order".into());
        }
        check(&setup)?;
        let bytes = setup_file::encode(&setup);
        let files = Files::open(&*self.folder, tree, setup, true).map_err(unusable)?;
        // The server exists only once this file does, so write it last.
        self.folder.keep(&name_in(tree, SETUP), &bytes).map_err(unusable)?;
        self.trees.push(files);
        self.limit_mailbox();
        Ok(())
    }

    /// Limits the length of messages from other servers to the shares of one round.
    fn limit_mailbox(&self) {
        let bytes =
            self.setups().map(|it| evict::portion_bytes_max(it.block_bytes, it.tree.slots()));
        bytes.max().into_iter().for_each(|bytes| self.mailbox.limit(bytes));
    }

    fn evict(
        &mut self,
        tree: usize,
        evict: Evict<u8>,
        dealers: &[u8],
        peers: &dyn Peers,
    ) -> Result<(), Refusal> {
        let latest = self.latest_attempt();
        let Self { trees, draw_seed, mailbox, .. } = self;
        let files = trees.get_mut(tree).ok_or_else(no_tree)?;
        let Evict { number, attempt, matrices } = evict;
        let Record { at, attempt: latest_here, .. } = files.record;
        if at == (TreePoint { evictions: number + 1, written: 0 }) && attempt == latest_here {
            // The eviction is over, and the answer was lost.
            return Ok(());
        }
        // A server that has restarted may have dropped a torn block, and would deal zeros instead.
        files.check_is(TreePoint { evictions: number, written: files.setup.tree.accesses() })?;
        if attempt <= latest {
            return Err(begun_before(attempt == latest));
        }
        let matrices = files.matrices(matrices, dealers)?;
        // Store the attempt before anything is sent: shares of one attempt are invalid in another.
        files.store_record(Record { attempt, ..files.record }).map_err(unusable)?;
        let attempt = Attempt { attempt, number };
        mailbox.begin(attempt);
        let seed = &Zeroizing::new(draw_seed().map_err(no_randomness)?);
        let eviction =
            Eviction { files, attempt, dealers, matrices: &matrices, mailbox, peers, seed };
        eviction.run()?;
        files.sync_buckets().map_err(unusable)?;
        if let Some(marks) = files.marks() {
            marks.evict(at).map_err(unusable)?;
            files.sync_bucket(oblivio_core::BucketId::ROOT).map_err(unusable)?;
        }
        let record = Record {
            at: TreePoint { evictions: number + 1, written: 0 },
            written_before: Some(at.written),
            ..files.record
        };
        files.store_record(record).map_err(unusable)
    }
}

/// The refusal of an attempt that this server has already begun. A server makes each attempt only
/// once, because a second run would deal different shares. A client repeats the latest attempt only
/// after it has lost its link. So the refusal names the lost link as the reason. The client then
/// starts another attempt.
fn begun_before(is_latest: bool) -> Refusal {
    if is_latest {
        evict::of_another("the link to the client was lost during this attempt to evict".into())
    } else {
        "this server has seen a later attempt to evict".into()
    }
}

fn no_tree() -> Refusal {
    "this server is not set up for this tree".into()
}

fn no_randomness(error: io::Error) -> Refusal {
    let why = format!("this server cannot get randomness from its system: {error}");
    Refusal { kind: StoreErrorKind::Failed, why }
}

fn unusable(error: io::Error) -> Refusal {
    let why = format!("this server cannot use its files: {error}");
    Refusal { kind: error.kind().into(), why }
}
