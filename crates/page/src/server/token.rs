//! The secret part of the address.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// A secret of 128 random bits.
#[derive(Clone, Copy)]
pub struct Token([u8; 16]);

impl Token {
    /// Number of hexadecimal digits of a token.
    pub(super) const DIGITS: usize = 32;

    /// A token of random bits that cannot be guessed.
    ///
    /// # Errors
    /// If the kernel provides none.
    pub fn random() -> io::Result<Self> {
        let mut bits = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bits)?;
        Ok(Self(bits))
    }

    /// Whether a text is this token. Takes constant time for texts of the right length, so that the time does not
    /// reveal how much of a text is correct.
    pub(super) fn is(&self, text: &[u8]) -> bool {
        let own = self.to_string();
        let differing = own.bytes().zip(text).fold(0, |all, (a, b)| all | (a ^ b));
        text.len() == Self::DIGITS && std::hint::black_box(differing) == 0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_its_own_text_and_no_other() {
        let (token, other) = (Token::random().unwrap(), Token::random().unwrap());
        let text = token.to_string();
        assert_eq!(text.len(), Token::DIGITS);
        assert!(token.is(text.as_bytes()) && !other.is(text.as_bytes()));
        for wrong in [
            "",
            &text[1..],
            &format!("{text}0"),
            &text.to_uppercase().replace(char::is_numeric, "a"),
        ] {
            assert!(!token.is(wrong.as_bytes()), "{wrong}");
        }
    }
}
