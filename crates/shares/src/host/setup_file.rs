//! The setup file of a tree: the server's setup, and the version of the tree's files.
//!
//! The version is in this file because the other files may have another layout in another version.
//! The server reads this file before the others.

use std::io::{Error, ErrorKind};

use crate::message::Setup;

/// The bytes that follow the setup. The last byte is the version.
const FILES: [u8; 8] = *b"OBLKEPT\x04";

/// The bytes that follow the setup in versions 1 to 3, if slots have metadata. Without metadata,
/// those versions had no bytes after the setup.
const MARKS: [u8; 7] = *b"OBLMARK";

/// Encodes the setup file.
pub(super) fn encode(setup: &Setup) -> Vec<u8> {
    [&setup.encode()[..], &FILES].concat()
}

/// Decodes the setup file.
///
/// # Errors
/// `InvalidData` for an invalid setup, and `Unsupported` for files of another version.
pub(super) fn decode(bytes: &[u8]) -> Result<Setup, Error> {
    if Setup::decode(bytes).is_ok() {
        return Err(of_version("an older"));
    }
    let damaged = || Error::new(ErrorKind::InvalidData, "the setup file of the server is damaged");
    let (setup, trailer) = bytes.split_last_chunk::<{ FILES.len() }>().ok_or_else(damaged)?;
    let setup = Setup::decode(setup).map_err(|_| damaged())?;
    let ([magic @ .., version], [known_magic @ .., known]) = (trailer, &FILES);
    if *magic == MARKS && setup.metadata_bytes > 0 {
        return Err(of_version("an older"));
    }
    if magic != known_magic {
        return Err(damaged());
    }
    match version.cmp(known) {
        std::cmp::Ordering::Equal => Ok(setup),
        std::cmp::Ordering::Less => Err(of_version("an older")),
        std::cmp::Ordering::Greater => Err(of_version("a newer")),
    }
}

fn of_version(which: &str) -> Error {
    let message = format!(
        "{which} program wrote the shares of this server in another format: save the volume's data \
         with that program, and create the volume again"
    );
    Error::new(ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sharing::Parties;
    use crate::tree::{Preset, Tree};

    fn setup(metadata_bytes: usize) -> Setup {
        let parties = Parties::new(3, 1).unwrap();
        let tree = Tree::new(2, Preset { slots: 12, accesses: 3 }).unwrap();
        let keys = vec![[1; 32], [2; 32], *b"................................"];
        Setup { number: 2, parties, tree, block_bytes: 700, metadata_bytes, keys }
    }

    #[test]
    fn the_setup_file_has_the_version_of_the_files() {
        for metadata_bytes in [0, 16] {
            let mut stored = setup(metadata_bytes);
            // The last key ends like the bytes that follow a setup.
            stored.keys[2][24..].copy_from_slice(&FILES);
            let bytes = encode(&stored);
            assert_eq!(decode(&bytes).unwrap(), stored);
            let error_of = |bytes: &[u8]| decode(bytes).unwrap_err();
            let older = error_of(&stored.encode());
            assert_eq!(older.kind(), ErrorKind::Unsupported);
            assert!(older.to_string().contains("an older program"), "{older}");
            let with_marks = [&stored.encode()[..], &MARKS, &[3]].concat();
            let expected =
                if metadata_bytes > 0 { ErrorKind::Unsupported } else { ErrorKind::InvalidData };
            assert_eq!(error_of(&with_marks).kind(), expected);
            let end = bytes.len() - 1;
            for (version, which) in
                [(0, "an older"), (3, "an older"), (5, "a newer"), (255, "a newer")]
            {
                let mut other = bytes.clone();
                other[end] = version;
                let error = error_of(&other);
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(error.to_string().starts_with(which), "{error}");
            }
            // No other change reads as another version.
            for at in 0..end {
                let mut other = bytes.clone();
                other[at] ^= 0x20;
                let read = decode(&other);
                assert!(
                    read.is_ok_and(|read| read != stored)
                        || error_of(&other).kind() == ErrorKind::InvalidData
                );
            }
            for length in 0..bytes.len() {
                let is_older = length == stored.encode().len();
                let expected =
                    if is_older { ErrorKind::Unsupported } else { ErrorKind::InvalidData };
                assert_eq!(error_of(&bytes[..length]).kind(), expected, "{length}");
            }
        }
    }
}
