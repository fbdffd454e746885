//! A server that keeps its shares in files, and exchanges what it deals with the others.
//!
//! What it answers is durable. A client that asks the same again, because a link was lost or it does not know how far it came, changes nothing:
//! each request says for which state it is meant. An eviction counts once all servers are through with it; until the client writes into the new root,
//! each can go back (ADR 16 of the repository).
//!
//! | module | what it holds |
//! |---|---|
//! | `folder` | files, which whoever runs the server brings |
//! | `kept` | what the server is, and how its marks are written |
//! | `sums` | checksums of what lies there |
//! | `places` | where in them a bucket lies |
//! | `record` | how far the server is |
//! | `files` | reading and writing of slots |
//! | `marks` | which slots were taken, if slots say whose they are |
//! | `requests` | what a client asks of one tree |
//! | `select` | the share of a slot that is not said |
//! | `metadata` | what slots say of themselves |
//! | `evict` | an eviction, part by part of every block |
//! | `mailbox` | what others have dealt |
//! | `watcher` | watching all that passes |

mod evict;
mod files;
mod folder;
mod kept;
mod mailbox;
mod marks;
mod metadata;
mod places;
mod record;
mod requests;
mod select;
mod sums;
mod watcher;

pub use evict::{TILES_AT_ONCE, part_bytes};
pub use folder::{Folder, Peers, ShareFile};
pub use mailbox::{Mailbox, Unwanted};
pub use select::slots_at_once;
pub use watcher::Watcher;

use std::io;
use std::sync::Arc;

use oblivio_core::StoreErrorKind;
use zeroize::Zeroizing;

use crate::message::{Answer, Evict, HostEpoch, Point, Refusal, Request, Setup, TREES_MAX};
use crate::sharing::Seed;
use evict::Eviction;
use files::{Files, bytes_of_file, name_in};
use mailbox::Attempt;
use places::File;
use record::Record;
use watcher::Watched;

/// The file that says what the server is in a tree.
const SETUP: &str = "setup";

/// Draws a seed from the system.
type DrawSeed = dyn FnMut() -> io::Result<Seed> + Send;

/// One server of one volume, which has a tree, and further ones if they say where its blocks are mapped to. Whoever has it asks one thing at a time; what others deal comes beside
/// that, through its [`Mailbox`]: attempts have numbers that grow over all trees, so they say of which tree it is.
pub struct Host {
    folder: Box<dyn Folder>,
    draw_seed: Box<DrawSeed>,
    trees: Vec<Files>,
    mailbox: Arc<Mailbox>,
    watcher: Option<Arc<dyn Watcher>>,
}

impl Host {
    /// Opens what the folder has. It may be empty: then a client sets the server up first.
    /// `draw_seed` draws a seed from the system for each attempt to evict a path.
    ///
    /// # Errors
    /// Those of the system, and when what is there is damaged.
    pub fn open(
        folder: Box<dyn Folder>,
        draw_seed: impl FnMut() -> io::Result<Seed> + Send + 'static,
    ) -> io::Result<Self> {
        let mut trees = Vec::new();
        while trees.len() < TREES_MAX.into()
            && let Some(bytes) = folder.read(&name_in(trees.len(), SETUP))?
        {
            let setup = kept::decode(&bytes)?;
            trees.push(Files::open(&*folder, trees.len(), setup, false)?);
        }
        let (draw_seed, mailbox) = (Box::new(draw_seed), Arc::default());
        let host = Self { folder, draw_seed, trees, mailbox, watcher: None };
        host.limit_mailbox();
        Ok(host)
    }

    /// What it is, once it was set up: it says who the others are.
    pub fn setup(&self) -> Option<&Setup> {
        self.setups().next()
    }

    /// The same of each tree that it has, in order.
    pub fn setups(&self) -> impl Iterator<Item = &Setup> {
        self.trees.iter().map(|files| &files.setup)
    }

    /// From now on, this one is told of all that passes. It is let go with the server.
    pub fn watch(&mut self, watcher: Arc<dyn Watcher>) {
        self.mailbox.watch(&watcher);
        self.watcher = Some(watcher);
    }

    /// Bytes that the files of such a server can take for a tree.
    pub fn file_bytes(setup: &Setup) -> u64 {
        [File::Root, File::Siblings, File::Leaves]
            .map(|file| bytes_of_file(setup, file))
            .iter()
            .sum()
    }

    /// For what comes from other servers.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.mailbox.clone()
    }

    /// Whether a message only asks how far the server is.
    pub fn asks_how_far(message: &[u8]) -> bool {
        Request::decode_in(message).is_ok_and(|(_, request)| request == Request::Epoch)
    }

    /// Does what a client asks, and answers. Whatever is refused has changed nothing. `check` is told what the server is to be before it is set up, and
    /// says why it must not be.
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
            Request::GoBack { evictions } => self.files(tree)?.go_back(evictions)?,
            Request::Metadata { at, leaf } => {
                return self.files(tree)?.metadata(at, leaf).map(Answer::Share);
            }
            Request::Fetch { at, slots } => {
                return self.files(tree)?.fetched(at, slots).map(Answer::Share);
            }
            Request::Put { at, slots, share } => self.files(tree)?.put(at, slots, share)?,
            Request::Adopt { at } => self.files(tree)?.adopt(at)?,
            Request::Meet => {
                self.files(tree)?;
                peers.meet().map_err(|error| evict::of_another(error.to_string()))?;
            }
        }
        Ok(Answer::Done)
    }

    /// All that is answered is durable: where that is in doubt, nothing is.
    fn check_durable(&self) -> Result<(), Refusal> {
        let is_doubtful = self.trees.iter().any(|files| files.is_doubtful);
        if !is_doubtful {
            return Ok(());
        }
        let why = "this server could not make durable what it has written, and does nothing more: see to its disk, and start it again";
        Err(Refusal { kind: StoreErrorKind::Failed, why: why.into() })
    }

    fn files(&mut self, tree: usize) -> Result<&mut Files, Refusal> {
        self.trees.get_mut(tree).ok_or_else(no_tree)
    }

    /// In all trees.
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
                "this is a server of another tree, or has another number or other companions there".into()
            });
        }
        if tree != self.trees.len() {
            return Err("the trees of a volume are set up one after the other".into());
        }
        check(&setup)?;
        let bytes = kept::encode(&setup);
        let files = Files::open(&*self.folder, tree, setup, true).map_err(unusable)?;
        // Without this there is no server: it is last.
        self.folder.keep(&name_in(tree, SETUP), &bytes).map_err(unusable)?;
        self.trees.push(files);
        self.limit_mailbox();
        Ok(())
    }

    /// Others deal no more at once than a round of an eviction takes.
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
        if at == (Point { evictions: number + 1, written: 0 }) && attempt == latest_here {
            // It is over, and the answer was lost.
            return Ok(());
        }
        // A server that was started again since it was asked may lack a block, and would deal
        // zeros.
        files.check_is(Point { evictions: number, written: files.setup.tree.accesses() })?;
        if attempt <= latest {
            return Err(begun_before(attempt == latest));
        }
        let matrices = files.matrices(matrices, dealers)?;
        // Kept before anything is sent: what is dealt in one attempt is nothing in another.
        files.keep(Record { attempt, ..files.record }).map_err(unusable)?;
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
            at: Point { evictions: number + 1, written: 0 },
            written_before: Some(at.written),
            ..files.record
        };
        files.keep(record).map_err(unusable)
    }
}

/// An attempt is made once: what is dealt in it twice would differ. A client repeats the latest one
/// if its link was lost, so that is why it fails. It begins another attempt.
fn begun_before(is_latest: bool) -> Refusal {
    if is_latest {
        evict::of_another(
            "the link to the client was lost during this attempt to evict a path".into(),
        )
    } else {
        "there was a later attempt to evict a path".into()
    }
}

fn no_tree() -> Refusal {
    "this is no server of such a tree yet".into()
}

fn no_randomness(error: io::Error) -> Refusal {
    let why = format!("the system of this server gives no randomness: {error}");
    Refusal { kind: StoreErrorKind::Failed, why }
}

fn unusable(error: io::Error) -> Refusal {
    let why = format!("this server cannot use its files: {error}");
    Refusal { kind: error.kind().into(), why }
}
