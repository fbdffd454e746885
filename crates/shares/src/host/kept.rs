//! What a server is, as it is kept: its setup, and of a tree whose slots say whose they are the version of its pages of marks.
//!
//! The version is here and not in the pages: pages of another version may have another length, and then nothing lies where it is looked for. This is read before anything
//! else, and is there before the first page.

use std::io::{Error, ErrorKind};

use crate::message::Setup;

/// Behind the setup, if there are marks. The version is last.
const MARKS: [u8; 8] = *b"OBLMARK\x03";

/// As it is kept.
pub(super) fn encode(setup: &Setup) -> Vec<u8> {
    let mut bytes = setup.encode();
    if has_marks(setup) {
        bytes.extend(MARKS);
    }
    bytes
}

/// What was kept.
///
/// # Errors
/// `InvalidData` for what no server can be, and `Unsupported` for marks of another version.
pub(super) fn decode(bytes: &[u8]) -> Result<Setup, Error> {
    match Setup::decode(bytes) {
        // A version of its own came with the second.
        Ok(setup) if has_marks(&setup) => return Err(of_version("an older")),
        Ok(setup) => return Ok(setup),
        Err(_) => (),
    }
    let damaged = || Error::new(ErrorKind::InvalidData, "what the server is is damaged");
    let (setup, said) = bytes.split_last_chunk::<{ MARKS.len() }>().ok_or_else(damaged)?;
    let setup = Setup::decode(setup).ok().filter(has_marks).ok_or_else(damaged)?;
    let ([magic @ .., version], [known_magic @ .., known]) = (said, &MARKS);
    if magic != known_magic {
        return Err(damaged());
    }
    match version.cmp(known) {
        std::cmp::Ordering::Equal => Ok(setup),
        std::cmp::Ordering::Less => Err(of_version("an older")),
        std::cmp::Ordering::Greater => Err(of_version("a newer")),
    }
}

fn has_marks(setup: &Setup) -> bool {
    setup.metadata_bytes > 0
}

fn of_version(which: &str) -> Error {
    let message = format!(
        "{which} program has made what is here of the position map, and has kept it in another way: save what the volume holds with that program, and make the volume anew"
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
        // The last key ends as a version does.
        let keys = vec![[1; 32], [2; 32], *b"................................"];
        Setup { number: 2, parties, tree, block_bytes: 700, metadata_bytes, keys }
    }

    #[test]
    fn a_tree_with_marks_says_how_they_are_written_and_no_other_does() {
        let mut without = setup(0);
        without.keys[2][24..].copy_from_slice(&MARKS);
        assert_eq!(encode(&without), without.encode());
        assert_eq!(decode(&encode(&without)).unwrap(), without);
        let with = setup(16);
        let bytes = encode(&with);
        assert_eq!(decode(&bytes).unwrap(), with);
        let kind_of = |bytes: &[u8]| decode(bytes).unwrap_err();
        let older = kind_of(&with.encode());
        assert_eq!(older.kind(), ErrorKind::Unsupported);
        assert!(older.to_string().contains("an older program"), "{older}");
        let end = bytes.len() - 1;
        for (version, which) in [(0, "an older"), (2, "an older"), (4, "a newer"), (255, "a newer")]
        {
            let mut other = bytes.clone();
            other[end] = version;
            let error = kind_of(&other);
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().starts_with(which), "{error}");
        }
        // No other change is taken for another version.
        for at in 0..end {
            let mut other = bytes.clone();
            other[at] ^= 0x20;
            let read = decode(&other);
            assert!(
                read.is_ok_and(|read| read != with)
                    || kind_of(&other).kind() == ErrorKind::InvalidData
            );
        }
        for length in 0..bytes.len() {
            let is_older = length == with.encode().len();
            let expected = if is_older { ErrorKind::Unsupported } else { ErrorKind::InvalidData };
            assert_eq!(kind_of(&bytes[..length]).kind(), expected, "{length}");
        }
        assert_eq!(
            kind_of(&[&without.encode()[..], &MARKS].concat()).kind(),
            ErrorKind::InvalidData
        );
    }
}
