//! The secret that the ranks of one job share.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

use oflow_base::{Error, Result};

const BYTES: usize = 32;

/// The job token: 32 random bytes in hexadecimal. A process that has it can join the job, so it is never printed: `Debug` shows
/// dots and there is no `Display`.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Makes a token from the operating system's random source.
    pub fn random() -> Result<Token> {
        let mut bytes = [0u8; BYTES];
        File::open("/dev/urandom")
            .and_then(|mut f| f.read_exact(&mut bytes))
            .map_err(|e| Error::io("cannot read /dev/urandom for the job token").because(e))?;
        Ok(Token(bytes.iter().map(|b| format!("{b:02x}")).collect()))
    }

    /// Reads a token from a file.
    ///
    /// # Errors
    /// If the file cannot be read, if other users may read it, or if it does not hold a token.
    pub fn from_file(path: &Path) -> Result<Token> {
        let failed = |what: &str| Error::argument(format!("the token file {} {what}", path.display()));
        let make = "`(umask 077; oflow token > FILE)` makes one";
        let meta = std::fs::metadata(path).map_err(|e| failed("cannot be read").because(e).help(make))?;
        if meta.mode() & 0o077 != 0 {
            return Err(failed("can be read by others").help(format!("`chmod 600 {}`", path.display())));
        }
        let text = std::fs::read_to_string(path).map_err(|e| failed("cannot be read").because(e).help(make))?;
        text.trim().parse().map_err(|e: Error| failed(&format!("is malformed: {}", e.message())).help(make))
    }

    /// Returns the secret itself, to pass it to a rank or to send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl FromStr for Token {
    type Err = Error;

    fn from_str(s: &str) -> Result<Token> {
        if s.len() == 2 * BYTES && s.bytes().all(|b| b.is_ascii_hexdigit()) {
            Ok(Token(s.to_ascii_lowercase()))
        } else {
            Err(Error::argument(format!("a job token is {} hexadecimal digits", 2 * BYTES)))
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_and_hidden() {
        let (a, b) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(a.expose(), b.expose());
        assert!(!format!("{a:?}").contains(&a.expose()[..8]));
        assert_eq!(a.expose().parse::<Token>().unwrap().expose(), a.expose());
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["", "abc", &"g".repeat(64), &"0".repeat(63), &"0".repeat(65)] {
            assert!(text.parse::<Token>().is_err(), "{text:?}");
        }
    }
}
