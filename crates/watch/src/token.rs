//! The secret tokens in the page's addresses.

use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRng;
use rand::rngs::{SysError, SysRng};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

const TOKEN_BYTES: usize = 32;

/// The two tokens of a page. The owner gets the ticket, which works once and redirects to the
/// page's own token. If an address is passed to a browser as an argument, all users of the machine
/// can read it in the process list. So the ticket becomes worthless once it is used.
pub(super) struct Tokens {
    /// The ticket, which is part of the address that is printed for the owner.
    pub(super) ticket: Token,
    is_used: AtomicBool,
    /// The page's own token, which is part of the address to which the ticket redirects.
    pub(super) page: Token,
}

impl Tokens {
    pub(super) fn draw() -> Result<Self, SysError> {
        let (ticket, page) = (Token::draw()?, Token::draw()?);
        Ok(Self { ticket, is_used: AtomicBool::new(false), page })
    }

    /// Uses up the ticket. Only the first caller gets the page's token.
    pub(super) fn take_ticket(&self) -> Option<&Token> {
        (!self.is_used.swap(true, Ordering::Relaxed)).then_some(&self.page)
    }
}

/// An unguessable part of an address. Secret.
pub(super) struct Token(Zeroizing<String>);

impl Token {
    /// Draws a random token.
    pub(super) fn draw() -> Result<Self, SysError> {
        let mut bytes = [0; TOKEN_BYTES];
        SysRng.try_fill_bytes(&mut bytes)?;
        let token = Self(Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes)));
        bytes.zeroize();
        Ok(token)
    }

    /// The token in the form in which it is part of the address.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `text` is the token. Compares digests, so that the time of the comparison reveals
    /// nothing about the token.
    pub(super) fn is(&self, text: &str) -> bool {
        Sha256::digest(text) == Sha256::digest(self.0.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tokens_differ_and_only_the_whole_token_matches() {
        let [one, other] = [Token::draw().unwrap(), Token::draw().unwrap()];
        assert_eq!(one.as_str().len(), 43, "256 bits, six per character");
        assert!(one.is(one.as_str()));
        assert!(!one.is(other.as_str()));
        assert!(!one.is(&one.as_str()[..42]));
        assert!(!one.is(""));
    }

    /// All characters of a token are random; none is padding.
    #[test]
    fn every_letter_of_a_token_varies() {
        let tokens: Vec<_> = (0..32).map(|_| Token::draw().unwrap()).collect();
        for at in 0..43 {
            let letters: BTreeSet<_> = tokens.iter().map(|it| it.as_str().as_bytes()[at]).collect();
            assert!(letters.len() > 8, "letter {at}: {letters:?}");
        }
    }
}
