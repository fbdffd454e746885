//! What somebody has to know who wants to see the page.

use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRng;
use rand::rngs::{SysError, SysRng};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

const TOKEN_BYTES: usize = 32;

/// The two tokens of a page. The owner is told the first, which is good for one visit: whoever shows it is sent to the second. A browser that is
/// started with an address shows that to all users of the machine, in the list of processes; so that one is worth nothing once the browser has
/// been there.
pub(super) struct Tokens {
    /// In the address that the owner is told.
    pub(super) ticket: Token,
    is_used: AtomicBool,
    /// In the address to which the one who shows the ticket is sent.
    pub(super) page: Token,
}

impl Tokens {
    pub(super) fn draw() -> Result<Self, SysError> {
        let (ticket, page) = (Token::draw()?, Token::draw()?);
        Ok(Self { ticket, is_used: AtomicBool::new(false), page })
    }

    /// Takes the ticket from who has shown it. No more than one gets something for it.
    pub(super) fn take_ticket(&self) -> Option<&Token> {
        (!self.is_used.swap(true, Ordering::Relaxed)).then_some(&self.page)
    }
}

/// A part of an address that nobody can guess. Secret.
pub(super) struct Token(Zeroizing<String>);

impl Token {
    /// A fresh one.
    pub(super) fn draw() -> Result<Self, SysError> {
        let mut bytes = [0; TOKEN_BYTES];
        SysRng.try_fill_bytes(&mut bytes)?;
        let token = Self(Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes)));
        bytes.zeroize();
        Ok(token)
    }

    /// As it stands in the address.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether somebody has said it. How long that takes tells of the digests, which say nothing of the token.
    pub(super) fn is(&self, said: &str) -> bool {
        Sha256::digest(said) == Sha256::digest(self.0.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_token_is_another_and_is_known_whole() {
        let [one, other] = [Token::draw().unwrap(), Token::draw().unwrap()];
        assert_eq!(one.as_str().len(), 43, "256 bits, six a letter");
        assert!(one.is(one.as_str()));
        assert!(!one.is(other.as_str()));
        assert!(!one.is(&one.as_str()[..42]));
        assert!(!one.is(""));
    }

    /// Each letter is drawn, and none is filled in.
    #[test]
    fn every_letter_of_a_token_varies() {
        let tokens: Vec<_> = (0..32).map(|_| Token::draw().unwrap()).collect();
        for at in 0..43 {
            let letters: BTreeSet<_> = tokens.iter().map(|it| it.as_str().as_bytes()[at]).collect();
            assert!(letters.len() > 8, "letter {at}: {letters:?}");
        }
    }
}
