//! The number of the latest session that could write, in a small file next to the store.
//!
//! The number is durable before any client learns it. So a client can resume after a crash of the
//! server only if no other client has opened the volume for writing since. The file contains
//! `oblivio-session-1 NUMBER` and a newline. It is replaced atomically.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use rand::TryRng;
use rand::rngs::SysRng;

use super::disk::{Disk, sync_folder};

const NAME: &str = "session";
const NAME_OF_NEXT: &str = "session.next";
const PREFIX: &str = "oblivio-session-1 ";

/// The number of bits of a volume's first session number.
const FIRST_BITS: u32 = 48;

/// Reads the session number of the volume in `folder`. `None` if the volume was never opened for
/// writing.
pub(super) fn read(folder: &Path) -> io::Result<Option<u64>> {
    let path = folder.join(NAME);
    let found = match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    // Reading a pipe or device could block for ever.
    let text = if found.is_file() { fs::read_to_string(&path)? } else { String::new() };
    number_in(&text).map(Some).ok_or_else(|| {
        let message = format!(
            "{} is damaged; remove it, and the next opening to write draws a new number",
            path.display()
        );
        io::Error::new(ErrorKind::InvalidData, message)
    })
}

fn number_in(text: &str) -> Option<u64> {
    text.strip_prefix(PREFIX)?.trim_end().parse().ok()
}

/// The session number after `latest`. The first one is random, so that a client of a removed volume
/// cannot resume a new volume of the same name.
pub(super) fn after(latest: Option<u64>) -> io::Result<u64> {
    match latest {
        Some(latest) => latest.checked_add(1).ok_or_else(|| ErrorKind::InvalidData.into()),
        None => Ok(draw()? >> (u64::BITS - FIRST_BITS)),
    }
}

/// Draws a random number.
pub(super) fn draw() -> io::Result<u64> {
    SysRng.try_next_u64().map_err(io::Error::other)
}

/// Writes the session number durably.
pub(super) fn write(disk: &impl Disk, folder: &Path, session: u64) -> io::Result<()> {
    let next = folder.join(NAME_OF_NEXT);
    let mut file = disk.create(&next)?;
    disk.append(&mut file, format!("{PREFIX}{session}\n").as_bytes())?;
    disk.sync(&file)?;
    disk.rename(&next, &folder.join(NAME))?;
    sync_folder(disk, folder)
}

/// Removes all files of this module from `folder`.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    [NAME_OF_NEXT, NAME].into_iter().try_for_each(|name| match fs::remove_file(folder.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::disk::System;

    #[test]
    fn numbers_round_trip_and_damage_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(read(folder).unwrap(), None);
        let first = after(None).unwrap();
        assert!(first >> FIRST_BITS == 0);
        write(&System, folder, first).unwrap();
        assert_eq!(read(folder).unwrap(), Some(first));
        assert_eq!(after(Some(first)).unwrap(), first + 1);
        assert!(after(Some(u64::MAX)).is_err());
        for damaged in
            ["", "7", "oblivio-session-1 x\n", "oblivio-session-1 99999999999999999999\n"]
        {
            fs::write(folder.join(NAME), damaged).unwrap();
            assert_eq!(read(folder).unwrap_err().kind(), ErrorKind::InvalidData, "{damaged}");
        }
        remove(folder).unwrap();
        // A pipe without a writer must not block the reader.
        let made = std::process::Command::new("mkfifo").arg(folder.join(NAME)).status();
        assert!(made.unwrap().success());
        assert_eq!(read(folder).unwrap_err().kind(), ErrorKind::InvalidData);
        remove(folder).unwrap();
        remove(folder).unwrap();
        assert_eq!(read(folder).unwrap(), None);
    }

    /// A session number must survive any crash once it is written, because the server then sends it
    /// to the client.
    #[test]
    fn a_written_number_survives_a_loss_of_power_and_is_never_torn() {
        let folder = Path::new("volume");
        for steps in 0.. {
            let disk = Forgetful { steps_left: Cell::new(usize::MAX), ..Forgetful::default() };
            write(&disk, folder, 7).unwrap();
            disk.steps_left.set(steps);
            let is_durable = write(&disk, folder, 8).is_ok();
            // Names that were not synced may or may not be durable.
            for names in [&disk.names, &disk.durable_names] {
                let number = disk.number(&names.borrow(), folder);
                let is_sound = number == Some(8) || !is_durable && number == Some(7);
                assert!(is_sound, "after {steps} steps: {number:?}");
            }
            if is_durable {
                break;
            }
        }
    }

    /// A disk that fails after a number of steps, and then loses everything that was not synced.
    #[derive(Default)]
    struct Forgetful {
        steps_left: Cell<usize>,
        files: RefCell<Vec<Written>>,
        /// The current file of each name. `durable_names` holds the files after a loss of power.
        names: RefCell<Names>,
        durable_names: RefCell<Names>,
    }

    type Names = BTreeMap<PathBuf, usize>;

    #[derive(Default)]
    struct Written {
        text: String,
        durable_bytes: usize,
    }

    enum Handle {
        File(usize),
        Folder,
    }

    impl Forgetful {
        fn step(&self) -> io::Result<()> {
            let left = self.steps_left.get().checked_sub(1).ok_or(ErrorKind::BrokenPipe)?;
            self.steps_left.set(left);
            Ok(())
        }

        fn number(&self, names: &Names, folder: &Path) -> Option<u64> {
            let file = &self.files.borrow()[*names.get(&folder.join(NAME))?];
            number_in(&file.text[..file.durable_bytes])
        }
    }

    impl Disk for Forgetful {
        type File = Handle;

        fn create(&self, path: &Path) -> io::Result<Handle> {
            self.step()?;
            let mut files = self.files.borrow_mut();
            self.names.borrow_mut().insert(path.into(), files.len());
            files.push(Written::default());
            Ok(Handle::File(files.len() - 1))
        }

        fn open(&self, _: &Path) -> io::Result<Handle> {
            self.step()?;
            Ok(Handle::Folder)
        }

        fn append(&self, file: &mut Handle, bytes: &[u8]) -> io::Result<()> {
            self.step()?;
            let Handle::File(file) = file else { return Err(ErrorKind::IsADirectory.into()) };
            self.files.borrow_mut()[*file].text.push_str(str::from_utf8(bytes).unwrap());
            Ok(())
        }

        fn sync(&self, file: &Handle) -> io::Result<()> {
            self.step()?;
            match file {
                Handle::File(file) => {
                    let file = &mut self.files.borrow_mut()[*file];
                    file.durable_bytes = file.text.len();
                }
                Handle::Folder => self.durable_names.borrow_mut().clone_from(&self.names.borrow()),
            }
            Ok(())
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.step()?;
            let mut names = self.names.borrow_mut();
            let file = names.remove(from).ok_or(ErrorKind::NotFound)?;
            names.insert(to.into(), file);
            Ok(())
        }
    }
}
