//! The rules for passphrases.
//!
//! The same rules apply to files, to the output of commands and to terminals: a new passphrase that
//! one of them accepts can be supplied through each of the others. A passphrase that opens a volume
//! may contain any characters: a slot opens only if it was made with the same bytes.
//! `docs/formats/keys.md` specifies both.

use std::fmt;

use oblivio_volume::keys::PASSPHRASE_BYTES_MAX;
use zeroize::Zeroizing;

/// Maximum bytes of a text that holds a passphrase, including its line end.
pub(super) const TEXT_BYTES_MAX: usize = PASSPHRASE_BYTES_MAX + 2;

/// The reason why a text is not a passphrase. Reveals nothing else about the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidPassphrase {
    Empty,
    TooLong,
    NotUtf8,
    ManyLines,
    CarriageReturn,
    ByteOrderMark,
    ControlCharacter,
}

/// Completes a sentence that begins with the source: "the passphrase file p".
impl fmt::Display for InvalidPassphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is empty",
            Self::TooLong => "is too long",
            Self::NotUtf8 => "is not UTF-8 text",
            Self::ManyLines => "has more than one line",
            Self::CarriageReturn => "holds a carriage return that ends no line",
            Self::ByteOrderMark => "holds a byte order mark (U+FEFF)",
            Self::ControlCharacter => "holds a control character, such as a tab, an escape or NUL",
        })
    }
}

/// The purpose of a passphrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassphraseUse {
    /// Opens a slot that was made with this passphrase.
    Open,
    /// Makes a new slot that this passphrase opens.
    New,
}

/// The passphrase in `text`: its one line, without the LF or CRLF that ends it.
///
/// # Errors
/// If it is not one line of 1 to [`PASSPHRASE_BYTES_MAX`] bytes. A new passphrase is also refused
/// if some terminal could not type it again: it must be UTF-8 without control characters, line
/// separators and byte order marks.
pub(super) fn passphrase_in(
    mut text: Zeroizing<Vec<u8>>,
    purpose: PassphraseUse,
) -> Result<Zeroizing<Vec<u8>>, InvalidPassphrase> {
    let line = match text.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => &text[..],
    };
    let bytes = line.len();
    match check_line(line, purpose) {
        Some(fault) => Err(fault),
        None => {
            // The line end stays in the capacity, which is wiped, too.
            text.truncate(bytes);
            Ok(text)
        }
    }
}

fn check_line(line: &[u8], purpose: PassphraseUse) -> Option<InvalidPassphrase> {
    if line.is_empty() {
        Some(InvalidPassphrase::Empty)
    } else if line.len() > PASSPHRASE_BYTES_MAX {
        Some(InvalidPassphrase::TooLong)
    } else if line.contains(&b'\n') {
        Some(InvalidPassphrase::ManyLines)
    } else if line.contains(&b'\r') {
        Some(InvalidPassphrase::CarriageReturn)
    } else if purpose == PassphraseUse::New {
        check_characters(line)
    } else {
        None
    }
}

fn check_characters(line: &[u8]) -> Option<InvalidPassphrase> {
    let Ok(line) = str::from_utf8(line) else { return Some(InvalidPassphrase::NotUtf8) };
    let holds = |is_such: fn(char) -> bool| line.contains(is_such);
    if holds(|it| matches!(it, '\u{2028}' | '\u{2029}')) {
        Some(InvalidPassphrase::ManyLines)
    } else if holds(|it| it == '\u{feff}') {
        Some(InvalidPassphrase::ByteOrderMark)
    } else if holds(char::is_control) {
        Some(InvalidPassphrase::ControlCharacter)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::InvalidPassphrase::{
        ByteOrderMark, CarriageReturn, ControlCharacter, Empty, ManyLines, NotUtf8, TooLong,
    };
    use super::*;

    fn taken_for(purpose: PassphraseUse, text: &[u8]) -> Result<Vec<u8>, InvalidPassphrase> {
        passphrase_in(Zeroizing::new(text.to_vec()), purpose).map(|it| it.to_vec())
    }

    fn taken(text: &[u8]) -> Result<Vec<u8>, InvalidPassphrase> {
        taken_for(PassphraseUse::New, text)
    }

    #[test]
    fn the_passphrase_is_the_one_line_without_its_end() {
        for (text, passphrase) in [
            ("hunter2", "hunter2"),
            ("hunter2\n", "hunter2"),
            ("hunter2\r\n", "hunter2"),
            // Spaces count, and nothing is normalised.
            (" two  words \n", " two  words "),
            ("Grüße, 東京\n", "Grüße, 東京"),
            ("u\u{308}", "u\u{308}"),
        ] {
            assert_eq!(taken(text.as_bytes()), Ok(passphrase.into()), "{text:?}");
        }
    }

    #[test]
    fn a_text_that_a_terminal_could_not_type_again_is_refused() {
        for (text, fault) in [
            (&b""[..], Empty),
            (b"\n", Empty),
            (b"\r\n", Empty),
            (b"hunter2\rextra", CarriageReturn),
            (b"hunter2\r", CarriageReturn),
            (b"hunter2\r\r\n", CarriageReturn),
            (b"hunter2\nurl: here\n", ManyLines),
            (b"hunter2\n\n", ManyLines),
            (b"\nhunter2", ManyLines),
            (b"one\r\ntwo\r\n", ManyLines),
            ("one\u{2028}two".as_bytes(), ManyLines),
            (b"\xef\xbb\xbfhunter2", ByteOrderMark),
            (b"\xff\xfeh\0u\0", NotUtf8),
            (b"Gr\xfc\xdfe", NotUtf8),
            (b"h\0unter2", ControlCharacter),
            (b"a\ttab", ControlCharacter),
            (b"\x1b[A", ControlCharacter),
            (b"\x7f", ControlCharacter),
            ("\u{85}".as_bytes(), ControlCharacter),
        ] {
            assert_eq!(taken(text), Err(fault), "{text:?}");
            // A slot made by an earlier version may have this passphrase, unless it is empty or
            // holds a line end.
            let is_one_line = !text.is_empty() && !text.iter().any(|it| b"\r\n".contains(it));
            let expected = if is_one_line { Ok(text.to_vec()) } else { Err(fault) };
            assert_eq!(taken_for(PassphraseUse::Open, text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_passphrase_has_a_longest_length() {
        let longest = vec![b'x'; PASSPHRASE_BYTES_MAX];
        for end in ["", "\n", "\r\n"] {
            let text = [&longest[..], end.as_bytes()].concat();
            assert!(text.len() <= TEXT_BYTES_MAX);
            assert_eq!(taken(&text).as_ref(), Ok(&longest));
            assert_eq!(taken(&[b"x", &text[..]].concat()), Err(TooLong));
        }
    }

    proptest! {
        #[test]
        fn an_accepted_passphrase_is_plain_and_differs_from_its_text_by_one_line_end(
            text in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..40),
                "[a-c\r\n\u{feff}\t ]{0,6}".prop_map(String::into_bytes),
            ]
        ) {
            if let Ok(line) = taken(&text) {
                let ends = [&b""[..], b"\n", b"\r\n"];
                prop_assert!(ends.iter().any(|end| [&line[..], end].concat() == text));
                let typed = String::from_utf8(line.clone()).unwrap();
                prop_assert!(!typed.is_empty() && !typed.contains(|it: char| it.is_control()));
                for end in ends {
                    prop_assert_eq!(taken(&[&line[..], end].concat()), Ok(line.clone()));
                }
            }
        }
    }
}
