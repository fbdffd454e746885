//! The client's directory: its files and, separately, their names.
//!
//! A crash keeps or drops each change of a name independently, but drops a change if it dropped
//! another on which the change depends. So each name has one file and each file one name, and a
//! renamed file appears under either name, never under both.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Cursor};

use oblivio_volume::state_dir::{FILLER, StateDir, StateFile, StateSource};
use rand::RngExt;
use rand::rngs::StdRng;

use super::fault::{FailedSync, OpKind, Survival, Verdict};
use super::medium::Medium;
use super::world::World;

/// Maximum number of removed files whose contents may show through holes of later files.
const FREED_FILES_MAX: usize = 4;

/// Maximum bytes kept of each removed file.
const FREED_FILE_BYTES_MAX: usize = 256 << 10;

const NAME_BYTES_MAX: usize = 255;

type FileId = u64;
type Names = BTreeMap<String, FileId>;

#[derive(Default)]
pub(super) struct Directory {
    files: BTreeMap<FileId, Medium>,
    durable: Names,
    cached: Names,
    /// Changes of names since the last sync, oldest first.
    pending: Vec<Change>,
    /// The number of the next file. Numbers are never reused, so an old handle cannot reach a new
    /// file.
    next: FileId,
    freed: VecDeque<Vec<u8>>,
}

enum Change {
    Create { name: String, file: FileId },
    Rename { from: String, to: String, file: FileId },
    Remove { name: String, file: FileId },
}

impl Change {
    fn file(&self) -> FileId {
        match self {
            Self::Create { file, .. } | Self::Rename { file, .. } | Self::Remove { file, .. } => {
                *file
            }
        }
    }

    fn apply(&self, names: &mut Names) {
        match self {
            Self::Create { name, file } => {
                names.insert(name.clone(), *file);
            }
            Self::Rename { from, to, file } if names.get(from) == Some(file) => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
            Self::Remove { name, file } if names.get(name) == Some(file) => {
                names.remove(name);
            }
            Self::Rename { .. } | Self::Remove { .. } => {}
        }
    }
}

impl Directory {
    /// Replaces all files with `files`, durably.
    pub(super) fn replace(&mut self, files: &BTreeMap<String, Vec<u8>>) {
        self.files.clear();
        self.pending.clear();
        self.cached.clear();
        for (name, bytes) in files {
            self.files.insert(self.next, Medium::holding(bytes.clone()));
            self.cached.insert(name.clone(), self.next);
            self.next += 1;
        }
        self.durable.clone_from(&self.cached);
    }

    pub(super) fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let file =
            |(name, file): (&String, &FileId)| (name.clone(), self.files[file].bytes().to_vec());
        self.cached.iter().map(file).collect()
    }

    pub(super) fn crash(&mut self, survival: Survival, kept_share: f64, coins: &mut StdRng) {
        match survival {
            Survival::All => {}
            Survival::None => self.pending.clear(),
            Survival::Random { .. } => self.keep_some_names(kept_share, coins),
        }
        self.cached.clone_from(&self.durable);
        for change in &self.pending {
            change.apply(&mut self.cached);
        }
        for file in self.files.values_mut() {
            let old = coins.random_range(0..2 * self.freed.len().max(1));
            let beneath = self.freed.get(old).map(Vec::as_slice);
            file.crash(survival, kept_share, beneath, coins);
        }
        // Handles end with a crash, so a file that can no longer get a name is freed.
        let pending = self.pending.iter().map(Change::file);
        let named: BTreeSet<_> = self.durable.values().copied().chain(pending).collect();
        let nameless = self.files.extract_if(.., |file, _| !named.contains(file));
        for (_, file) in nameless {
            free(&mut self.freed, file.bytes());
        }
    }

    fn keep_some_names(&mut self, kept_share: f64, coins: &mut StdRng) {
        for change in std::mem::take(&mut self.pending) {
            if coins.random_bool(kept_share) {
                change.apply(&mut self.durable);
            }
        }
    }

    fn sync_names(&mut self) {
        let before: BTreeSet<_> = self.durable.values().copied().collect();
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
        let after: BTreeSet<_> = self.durable.values().copied().collect();
        for file in before.difference(&after) {
            free(&mut self.freed, self.files[file].bytes());
        }
    }

    fn fail_sync_names(&mut self, mode: FailedSync, coins: &mut StdRng) {
        match mode {
            FailedSync::Drops => self.keep_some_names(0.5, coins),
            FailedSync::Retains => {}
        }
    }

    fn find(&self, name: &str) -> io::Result<FileId> {
        let absent = || io::Error::new(io::ErrorKind::NotFound, format!("no file named {name}"));
        self.cached.get(name).copied().ok_or_else(absent)
    }

    fn file_mut(&mut self, file: FileId) -> io::Result<&mut Medium> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the directory was replaced");
        self.files.get_mut(&file).ok_or_else(gone)
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.cached);
        self.pending.push(change);
    }
}

/// Keeps the contents of a removed file, to show through holes of later files.
fn free(freed: &mut VecDeque<Vec<u8>>, bytes: &[u8]) {
    freed.push_back(bytes[..bytes.len().min(FREED_FILE_BYTES_MAX)].to_vec());
    if freed.len() > FREED_FILES_MAX {
        freed.pop_front();
    }
}

/// Whether a call with the outcome `verdict` changes the directory. Random if the call fails or the
/// machine crashes, except that a call without space changes nothing.
fn happens(verdict: Verdict, coins: &mut StdRng) -> bool {
    match verdict {
        Verdict::Go => true,
        Verdict::Fail(io::ErrorKind::StorageFull) => false,
        Verdict::Fail(_) | Verdict::Crash => coins.random(),
    }
}

/// The directory of a [`World`], for one run.
pub struct CrashDir {
    pub(super) world: World,
    pub(super) run: u64,
}

impl StateDir for CrashDir {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut state = self.world.state();
        state.begin(self.run, OpKind::DirNames)?.answer()?;
        Ok(state.directory.cached.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StateSource>> {
        let mut state = self.world.state();
        state.begin(self.run, OpKind::DirRead)?.answer()?;
        let file = state.directory.find(name)?;
        Ok(Box::new(Cursor::new(state.directory.file_mut(file)?.bytes().to_vec())))
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let mut file = {
            let file = self.world.state().directory.find(name)?;
            CrashFile::new(self.world.clone(), self.run, file)
        };
        file.write_again()?;
        file.sync()
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn StateFile>> {
        check_name(name)?;
        let mut state = self.world.state();
        let verdict = state.begin(self.run, OpKind::DirCreate)?;
        if state.directory.cached.contains_key(name) {
            verdict.answer()?;
            let message = format!("there is a file named {name}");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let file = state.directory.next;
        if happens(verdict, &mut state.plan.coins) {
            let directory = &mut state.directory;
            directory.next += 1;
            directory.files.insert(file, Medium::default());
            directory.change(Change::Create { name: name.into(), file });
        }
        verdict.answer()?;
        Ok(Box::new(CrashFile::new(self.world.clone(), self.run, file)))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        check_name(to)?;
        let mut state = self.world.state();
        let verdict = state.begin(self.run, OpKind::DirRename)?;
        let file = state.directory.find(from)?;
        if happens(verdict, &mut state.plan.coins) {
            let change = Change::Rename { from: from.into(), to: to.into(), file };
            state.directory.change(change);
        }
        verdict.answer()
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut state = self.world.state();
        let verdict = state.begin(self.run, OpKind::DirRemove)?;
        let file = state.directory.find(name)?;
        if happens(verdict, &mut state.plan.coins) {
            state.directory.change(Change::Remove { name: name.into(), file });
        }
        verdict.answer()
    }

    fn sync_names(&mut self) -> io::Result<()> {
        let mut state = self.world.state();
        let verdict = state.begin(self.run, OpKind::DirSyncNames)?;
        let state = &mut *state;
        match verdict {
            Verdict::Fail(_) => {
                state.directory.fail_sync_names(state.failed_sync, &mut state.plan.coins);
            }
            _ if happens(verdict, &mut state.plan.coins) => state.directory.sync_names(),
            _ => {}
        }
        verdict.answer()
    }
}

/// Accepts only short, plain names, so that tests find names that a real directory would refuse.
fn check_name(name: &str) -> io::Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let is_sound = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain);
    if is_sound && name != "." && name != ".." {
        return Ok(());
    }
    let message = format!("{name:?} is no valid file name: use letters, digits, - and .");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Bytes of filler written after an append if more appends are expected. The filler is longer than
/// a sector, so that filler and data both get torn.
const FILLER_BYTES: usize = 700;

/// A file of a [`CrashDir`], opened for appending.
pub struct CrashFile {
    world: World,
    run: u64,
    file: FileId,
    /// The offset of the next append.
    end: usize,
    /// Whether to write filler past the end.
    has_filler: bool,
}

impl CrashFile {
    fn new(world: World, run: u64, file: FileId) -> Self {
        Self { world, run, file, end: 0, has_filler: false }
    }

    /// Rewrites the contents of the file in place.
    fn write_again(&mut self) -> io::Result<()> {
        let mut state = self.world.state();
        let verdict = state.begin(self.run, OpKind::FileAppend)?;
        let state = &mut *state;
        let file = state.directory.file_mut(self.file)?;
        let bytes = file.bytes().to_vec();
        match verdict {
            Verdict::Go => file.write(0, &bytes),
            Verdict::Fail(_) | Verdict::Crash => {
                file.write_sectors(0, &bytes, &mut state.plan.coins);
            }
        }
        verdict.answer()
    }
}

impl StateFile for CrashFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.world.state();
        let verdict = state.begin(self.run, OpKind::FileAppend)?;
        let state = &mut *state;
        let file = state.directory.file_mut(self.file)?;
        let end = self.end + bytes.len();
        let filler_from = file.bytes().len();
        if self.has_filler && end > filler_from {
            file.write(filler_from, &vec![FILLER; end - filler_from + FILLER_BYTES]);
        }
        match verdict {
            Verdict::Go => file.write(self.end, bytes),
            Verdict::Fail(_) | Verdict::Crash => {
                file.write_prefix(self.end, bytes, &mut state.plan.coins);
            }
        }
        self.end = end;
        verdict.answer()
    }

    fn expect_more(&mut self) {
        self.has_filler = true;
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.world.state();
        let verdict = state.begin(self.run, OpKind::FileSync)?;
        let state = &mut *state;
        let file = state.directory.file_mut(self.file)?;
        file.answer_sync(verdict, state.failed_sync, &mut state.plan.coins)
    }

    fn begin_sync(&mut self) -> io::Result<()> {
        let mut state = self.world.state();
        state.begin(self.run, OpKind::FileBeginSync)?.answer()?;
        state.directory.file_mut(self.file)?.begin_sync();
        Ok(())
    }

    fn finish_sync(&mut self) -> io::Result<()> {
        let mut state = self.world.state();
        let verdict = state.begin(self.run, OpKind::FileSync)?;
        let state = &mut *state;
        let file = state.directory.file_mut(self.file)?;
        file.answer_begun_sync(verdict, state.failed_sync, &mut state.plan.coins)
    }
}
