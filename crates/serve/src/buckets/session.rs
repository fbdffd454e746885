//! The number of the latest opening to write, in a small file beside the store.
//!
//! It is durable before anybody is told it: so a client that comes back after the server was killed is let in only if nobody has
//! opened to write since. The file holds `oblivio-session-1 NUMBER` and a line end. It is replaced as a whole.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use rand::TryRng;
use rand::rngs::SysRng;

const NAME: &str = "session";
const NAME_OF_NEXT: &str = "session.next";
const PREFIX: &str = "oblivio-session-1 ";

/// Bits of the first number of a volume.
const FIRST_BITS: u32 = 48;

/// That of the volume which lies in `folder`; none if nobody has opened it to write.
pub(super) fn read(folder: &Path) -> io::Result<Option<u64>> {
    let path = folder.join(NAME);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let number = text.strip_prefix(PREFIX).and_then(|rest| rest.trim_end().parse().ok());
    number.map(Some).ok_or_else(|| {
        let message = format!(
            "{} is damaged: remove it, and the next opening to write draws a new number",
            path.display()
        );
        io::Error::new(ErrorKind::InvalidData, message)
    })
}

/// The one that follows. Where there is none, chance says it: a client of a volume that was removed cannot go on with another
/// that was made under its name.
pub(super) fn after(latest: Option<u64>) -> io::Result<u64> {
    match latest {
        Some(latest) => latest.checked_add(1).ok_or_else(|| ErrorKind::InvalidData.into()),
        None => Ok(draw()? >> (u64::BITS - FIRST_BITS)),
    }
}

/// A number by chance.
pub(super) fn draw() -> io::Result<u64> {
    SysRng.try_next_u64().map_err(io::Error::other)
}

/// Is durable when this returns.
pub(super) fn write(folder: &Path, session: u64) -> io::Result<()> {
    let next = folder.join(NAME_OF_NEXT);
    let mut file = File::create(&next)?;
    file.write_all(format!("{PREFIX}{session}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&next, folder.join(NAME))?;
    sync_folder(folder)
}

/// Whatever of it is there.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    [NAME_OF_NEXT, NAME].into_iter().try_for_each(|name| match fs::remove_file(folder.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    })
}

/// The names in it are durable when this returns.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_and_a_damaged_one_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(read(folder).unwrap(), None);
        let first = after(None).unwrap();
        assert!(first >> FIRST_BITS == 0);
        write(folder, first).unwrap();
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
        remove(folder).unwrap();
        assert_eq!(read(folder).unwrap(), None);
    }
}
