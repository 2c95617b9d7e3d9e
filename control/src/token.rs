//! The secret that the ranks of one job share.

use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

use oflow_base::{Error, Result};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};

const BYTES: usize = 32;
/// Bytes of a token file that are read.
const MOST_OF_FILE: u64 = 4096;

/// The user that a file belongs to, if that user cannot change what this process does anyway.
pub(crate) fn foreign_owner(uid: u32) -> Option<String> {
    (!oflow_files::own::is_friend(uid)).then(|| format!("user {uid}"))
}

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
        let unread = |e: std::io::Error| failed("cannot be read").because(e).help(make);
        // What is checked is what is read.
        let file = oflow_files::open(path).map_err(|e| failed(&format!("cannot be read: {e}")).help(make))?;
        let meta = file.metadata().map_err(unread)?;
        if meta.mode() & 0o077 != 0 {
            return Err(failed("can be read by others").help(format!("`chmod 600 {}`", path.display())));
        }
        if let Some(owner) = foreign_owner(meta.uid()) {
            return Err(failed(&format!("belongs to {owner}, who knows the token")).help(make));
        }
        let mut text = String::new();
        file.take(MOST_OF_FILE).read_to_string(&mut text).map_err(unread)?;
        text.trim().parse().map_err(|e: Error| failed(&format!("is malformed: {}", e.message())).help(make))
    }

    /// Puts the token into a file without a name, for processes that inherit the descriptor. Nobody can change it.
    ///
    /// # Errors
    /// If the system has no descriptor or memory.
    pub fn to_descriptor(&self) -> Result<OwnedFd> {
        let failed = |e: std::io::Error| Error::io("cannot pass the job token to the ranks").because(e);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create("oflow-token", flags).map_err(|e| failed(e.into()))?);
        file.write_all(self.0.as_bytes()).map_err(failed)?;
        let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        fcntl_add_seals(&file, seals).map_err(|e| failed(e.into()))?;
        Ok(file.into())
    }

    /// Reads a token from an inherited descriptor ([`Token::to_descriptor`]). Processes that this one starts do not inherit it.
    ///
    /// # Errors
    /// If there is no such descriptor, or no token behind it.
    pub fn from_descriptor(fd: RawFd) -> Result<Token> {
        let failed = |why: String| {
            Error::argument(format!("descriptor {fd} does not hold the job token: {why}"))
                .help("a rank is started by oflaunch itself; a program between them must leave descriptors open")
        };
        let mut text = String::new();
        // By its path: no position is shared with the other ranks, and a number that is not open is an error.
        let file = File::open(format!("/proc/self/fd/{fd}")).map_err(|e| failed(e.to_string()))?;
        let most = 2 * BYTES as u64 + 1;
        file.take(most).read_to_string(&mut text).map_err(|e| failed(e.to_string()))?;
        let token = text.parse().map_err(|e: Error| failed(e.message().to_string()))?;
        // SAFETY: the descriptor was open a moment ago and is borrowed for this call only; at worst the call fails.
        let inherited = unsafe { BorrowedFd::borrow_raw(fd) };
        fcntl_setfd(inherited, FdFlags::CLOEXEC).map_err(|e| failed(e.to_string()))?;
        Ok(token)
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
    fn a_descriptor_passes_it_on_once_to_who_may_have_it() {
        use std::os::fd::AsRawFd;
        let token = Token::random().unwrap();
        let fd = token.to_descriptor().unwrap();
        for _ in 0..2 {
            assert_eq!(Token::from_descriptor(fd.as_raw_fd()).unwrap().expose(), token.expose());
        }
        assert!(rustix::io::fcntl_getfd(&fd).unwrap().contains(FdFlags::CLOEXEC));
        let mut file = File::from(fd);
        assert!(file.write_all(b"x").is_err() && file.set_len(0).is_err(), "it can be changed");
        let number = file.as_raw_fd();
        drop(file);
        let error = Token::from_descriptor(number).unwrap_err().to_string();
        assert!(error.contains(&format!("descriptor {number} does not hold the job token")), "{error}");
        let other = File::open("/dev/zero").unwrap();
        assert!(Token::from_descriptor(other.as_raw_fd()).is_err());
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["", "abc", &"g".repeat(64), &"0".repeat(63), &"0".repeat(65)] {
            assert!(text.parse::<Token>().is_err(), "{text:?}");
        }
    }
}
