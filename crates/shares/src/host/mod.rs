//! A server that keeps its shares in files, and exchanges what it deals with the others.
//!
//! What it answers is durable. A client that asks the same again, because a link was lost or it does not know how far it came, changes nothing:
//! each request says for which state it is meant. An eviction counts once all servers are through with it; until the client writes into the new root,
//! each can go back (ADR 16 of the repository).
//!
//! | module | what it holds |
//! |---|---|
//! | `folder` | files, which whoever runs the server brings |
//! | `places` | where in them a bucket lies |
//! | `record` | how far the server is |
//! | `files` | reading and writing of slots |
//! | `select` | the share of a slot that is not said |
//! | `evict` | an eviction, part by part of every block |
//! | `mailbox` | what others have dealt |

mod evict;
mod files;
mod folder;
mod mailbox;
mod places;
mod record;
mod select;

pub use folder::{Folder, Peers, ShareFile};
pub use mailbox::{Mailbox, Unwanted};

use std::io;
use std::sync::Arc;

use chacha20::ChaCha20Rng;
use oblivio_core::StoreErrorKind;
use rand_core::SeedableRng;

use crate::field::Gf256;
use crate::message::{Answer, Evict, HostEpoch, Point, Refusal, Request, Select, Setup, Slots};
use crate::sharing::{Seed, Share};
use evict::Eviction;
use files::{Files, bytes_of_file};
use mailbox::Attempt;
use places::File;
use record::Record;

/// The file that says what the server is.
const SETUP: &str = "setup";

/// One server of one tree. Whoever has it asks one thing at a time; what others deal comes beside that, through its [`Mailbox`].
pub struct Host {
    folder: Box<dyn Folder>,
    coins: ChaCha20Rng,
    files: Option<Files>,
    mailbox: Arc<Mailbox>,
}

impl Host {
    /// Opens what the folder has. It may be empty: then a client sets the server up first. What is dealt is drawn from the seed, which is drawn for each
    /// opening.
    ///
    /// # Errors
    /// Those of the system, and when what is there is damaged.
    pub fn open(folder: Box<dyn Folder>, seed: Seed) -> io::Result<Self> {
        let files = match folder.read(SETUP)? {
            Some(bytes) => {
                let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, error);
                let setup = Setup::decode(&bytes).map_err(damaged)?;
                Some(Files::open(&*folder, setup, false)?)
            }
            None => None,
        };
        let host =
            Self { folder, coins: ChaCha20Rng::from_seed(seed), files, mailbox: Arc::default() };
        host.limit_mailbox();
        Ok(host)
    }

    /// What it is, once it was set up: it says who the others are.
    pub fn setup(&self) -> Option<&Setup> {
        self.files.as_ref().map(|files| &files.setup)
    }

    /// Bytes that the files of such a server can take.
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
        message == Request::Epoch.encode()
    }

    /// Does what a client asks, and answers. Whatever is refused has changed nothing. `check` is told what the server is to be before it is set up, and
    /// says why it must not be.
    pub fn answer(
        &mut self,
        message: &[u8],
        peers: &dyn Peers,
        check: &dyn Fn(&Setup) -> Result<(), Refusal>,
    ) -> Vec<u8> {
        let answer = Request::decode(message)
            .map_err(|error| Refusal::from(error.to_string()))
            .and_then(|request| self.answered(request, peers, check));
        answer.unwrap_or_else(Answer::Refused).encode()
    }

    fn answered(
        &mut self,
        request: Request,
        peers: &dyn Peers,
        check: &dyn Fn(&Setup) -> Result<(), Refusal>,
    ) -> Result<Answer, Refusal> {
        self.check_durable().inspect_err(|_| peers.give_up())?;
        match request {
            Request::Setup(setup) => self.set_up(setup, check)?,
            Request::Epoch => {
                let record = self.files.as_ref().map(|files| files.record);
                let Record { at, attempt, .. } = record.unwrap_or_default();
                let is_set_up = record.is_some();
                return Ok(Answer::Epoch(HostEpoch { at, attempt, is_set_up }));
            }
            Request::Select { at, select } => {
                return self.files()?.selected(at, select).map(Answer::Share);
            }
            Request::Write { at, block } => self.files()?.write(at, block)?,
            Request::Evict { evict, dealers } => {
                self.evict(evict, &dealers, peers).inspect_err(|_| peers.give_up())?;
            }
            Request::GoBack { evictions } => self.files()?.go_back(evictions)?,
            Request::Fetch { at, slots } => {
                return self.files()?.fetched(at, slots).map(Answer::Share);
            }
            Request::Put { at, slots, share } => self.files()?.put(at, slots, share)?,
            Request::Adopt { at } => self.files()?.adopt(at)?,
            Request::Meet => {
                self.files()?;
                peers.meet().map_err(|error| evict::of_another(error.to_string()))?;
            }
        }
        Ok(Answer::Done)
    }

    /// All that is answered is durable: where that is in doubt, nothing is.
    fn check_durable(&self) -> Result<(), Refusal> {
        let is_doubtful = self.files.as_ref().is_some_and(|files| files.is_doubtful);
        if !is_doubtful {
            return Ok(());
        }
        let why = "this server could not make durable what it has written, and does nothing more: see to its disk, and start it again";
        Err(Refusal { kind: StoreErrorKind::Failed, why: why.into() })
    }

    fn files(&mut self) -> Result<&mut Files, Refusal> {
        self.files.as_mut().ok_or_else(|| "this is no server of a tree yet".into())
    }

    fn set_up(
        &mut self,
        setup: Setup,
        check: &dyn Fn(&Setup) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if let Some(files) = &self.files {
            let is_the_same = files.setup == setup;
            return is_the_same.then_some(()).ok_or_else(|| {
                "this is a server of another tree, or has another number there: name the servers in the order in which the volume was made".into()
            });
        }
        check(&setup)?;
        let bytes = setup.encode();
        let files = Files::open(&*self.folder, setup, true).map_err(unusable)?;
        // Without this there is no server: it is last.
        self.folder.keep(SETUP, &bytes).map_err(unusable)?;
        self.files = Some(files);
        self.limit_mailbox();
        Ok(())
    }

    /// Others deal no more at once than a round of an eviction takes.
    fn limit_mailbox(&self) {
        if let Some(Setup { tree, block_bytes, .. }) = self.setup() {
            self.mailbox.limit(evict::portion_bytes_max(*block_bytes, tree.slots()));
        }
    }

    fn evict(
        &mut self,
        evict: Evict<u8>,
        dealers: &[u8],
        peers: &dyn Peers,
    ) -> Result<(), Refusal> {
        let Self { files, coins, mailbox, .. } = self;
        let files = files.as_mut().ok_or("this is no server of a tree yet")?;
        let Evict { number, attempt, matrices } = evict;
        let Record { at, attempt: latest, .. } = files.record;
        if at == (Point { evictions: number + 1, written: 0 }) && attempt == latest {
            // It is over, and the answer was lost.
            return Ok(());
        }
        if at.evictions != number {
            return Err("another eviction is next".into());
        }
        if attempt <= latest {
            return Err("there was a later attempt to evict a path".into());
        }
        let matrices = files.matrices(matrices, dealers)?;
        // Kept before anything is sent: what is dealt in one attempt is nothing in another.
        files.keep(Record { attempt, ..files.record }).map_err(unusable)?;
        let attempt = Attempt { attempt, number };
        mailbox.begin(attempt);
        let eviction = Eviction { files, attempt, dealers, matrices: &matrices, mailbox, peers };
        eviction.run(coins)?;
        files.sync_buckets().map_err(unusable)?;
        let record = Record {
            at: Point { evictions: number + 1, written: 0 },
            written_before: Some(at.written),
            ..files.record
        };
        files.keep(record).map_err(unusable)
    }
}

impl Files {
    /// The state is the server's, or the one before the write that came last.
    fn check_at(&self, at: Point) -> Result<(), Refusal> {
        let here = self.record.at;
        let is_here = at.evictions == here.evictions
            && (at.written == here.written || at.written + 1 == here.written);
        is_here.then_some(()).ok_or_else(|| {
            let Point { evictions, written } = here;
            Refusal::from(format!(
                "this server is at eviction {evictions}, write {written}, and not at eviction {}, write {}",
                at.evictions, at.written
            ))
        })
    }

    fn selected(&self, at: Point, select: Select<u8>) -> Result<Vec<u8>, Refusal> {
        self.check_at(at)?;
        let Select { leaf, query } = select;
        let tree = self.setup.tree;
        if leaf.0 >= tree.leaves() {
            return Err("the tree has no such path".into());
        }
        let query = elements(query, tree.path_slots())?;
        select::select(self, at, leaf, &query).map_err(unusable)
    }

    fn write(&mut self, at: Point, block: Share<u8>) -> Result<(), Refusal> {
        self.check_at(at)?;
        if at.written == self.setup.tree.accesses() {
            return Err("the root is full, and has to be evicted first".into());
        }
        let block = elements(block, self.setup.block_bytes)?;
        self.write_block(at, &block).map_err(unusable)
    }

    /// Expanded, once all are found to be sound.
    fn matrices(&self, shares: Vec<Share<u8>>, dealers: &[u8]) -> Result<Vec<Vec<u8>>, Refusal> {
        let Setup { parties, tree, .. } = self.setup;
        if dealers.len() != parties.for_product() || !parties.are_some(dealers) {
            return Err("so many servers have to deal as give back a product".into());
        }
        if shares.len() != usize::from(tree.height()) + 1 {
            return Err(
                "an eviction has a matrix for each level, and one for the last sibling".into()
            );
        }
        let bytes = 2 * tree.slots() * tree.slots();
        if !shares.iter().all(|share| share.is_of::<Gf256>(bytes)) {
            return Err(wrong_length());
        }
        shares.into_iter().map(|share| elements(share, bytes)).collect()
    }

    fn go_back(&mut self, evictions: u64) -> Result<(), Refusal> {
        let Record { at, written_before, .. } = self.record;
        if at.evictions == evictions {
            return Ok(());
        }
        if at != (Point { evictions: evictions + 1, written: 0 }) {
            return Err("this server is further, or was never there".into());
        }
        let Some(written) = written_before else {
            return Err(
                "the shares of this server were put where they are: it was never before that"
                    .into(),
            );
        };
        // What the root holds from before is whole: its last block is not looked at again.
        let at = Point { evictions, written };
        let block_sum = self.sum_of_last_block(at).map_err(unusable)?;
        self.keep(Record { at, block_sum, ..self.record }).map_err(unusable)
    }

    fn check_slots(&self, Slots { bucket, first, count }: Slots) -> Result<(), Refusal> {
        let Setup { tree, block_bytes, .. } = self.setup;
        if bucket.level() > tree.height() || first + count > tree.slots() {
            return Err("the tree has no such slot".into());
        }
        let is_short = count <= Slots::at_once(block_bytes);
        is_short.then_some(()).ok_or_else(|| "so many slots are too long for a message".into())
    }

    fn fetched(&self, at: Point, slots: Slots) -> Result<Vec<u8>, Refusal> {
        self.check_slots(slots)?;
        self.check_at(at)?;
        let block_bytes = self.setup.block_bytes;
        let mut shares = vec![0; slots.count * block_bytes];
        if let Some(bucket) = self.bucket(slots.bucket, at)
            && slots.first < bucket.slots
        {
            let held = (bucket.slots - slots.first).min(slots.count);
            bucket.read(slots.first, &mut shares[..held * block_bytes]).map_err(unusable)?;
        }
        Ok(shares)
    }

    /// Before anything else was done.
    fn check_new(&self) -> Result<(), Refusal> {
        let is_new = self.record.at == Point::default() && self.record.attempt == 0;
        is_new
            .then_some(())
            .ok_or_else(|| "the tree has been used: shares can only be put into a new one".into())
    }

    fn put(&mut self, at: Point, slots: Slots, share: Share<u8>) -> Result<(), Refusal> {
        self.check_slots(slots)?;
        self.check_new()?;
        if at.written > self.setup.tree.accesses() {
            return Err("no root holds so many blocks".into());
        }
        let share = elements(share, slots.count * self.setup.block_bytes)?;
        let bucket = self.bucket(slots.bucket, at);
        let bucket = bucket.filter(|bucket| slots.first + slots.count <= bucket.slots);
        let bucket = bucket.ok_or("at this point the slot is zeros everywhere")?;
        bucket.write(slots.first, &share).map_err(unusable)?;
        // It is not asked for again, if the server starts again before all is there.
        self.sync_bucket(slots.bucket).map_err(unusable)
    }

    fn adopt(&mut self, at: Point) -> Result<(), Refusal> {
        if self.record.at == at {
            return Ok(());
        }
        self.check_new()?;
        if at.written > self.setup.tree.accesses() {
            return Err("no root holds so many blocks".into());
        }
        self.sync_buckets().map_err(unusable)?;
        let block_sum = self.sum_of_last_block(at).map_err(unusable)?;
        let record = Record { at, block_sum, written_before: None, ..self.record };
        self.keep(record).map_err(unusable)
    }
}

fn elements(share: Share<u8>, count: usize) -> Result<Vec<u8>, Refusal> {
    share.into_elements::<Gf256>(count).ok_or_else(wrong_length)
}

fn wrong_length() -> Refusal {
    "a share has another length than what is shared".into()
}

fn unusable(error: io::Error) -> Refusal {
    let why = format!("this server cannot use its files: {error}");
    Refusal { kind: error.kind().into(), why }
}
