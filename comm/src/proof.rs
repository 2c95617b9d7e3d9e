//! Proof that both ends of a new connection know the job's token, which itself is never sent.
//!
//! Both ends contribute a fresh nonce, so a recorded handshake cannot be replayed. The two MACs are over different words, so
//! one end's cannot be reflected. The handshakes of the data plane ([`tcp`](crate::tcp)) and of the control plane use it.

use hmac::{Hmac, Mac};
use oflow_base::{Error, Result};
use sha2::Sha256;
use std::io::Read;

/// Bytes of a nonce.
pub const NONCE: usize = 16;
/// Bytes of a MAC.
pub const MAC: usize = 32;

/// A number that has not been used before.
pub type Nonce = [u8; NONCE];

/// Data that both ends know once the listener has answered the hello.
pub struct Proof<'a> {
    /// The job's token.
    pub token: &'a [u8],
    /// Name of the protocol: a MAC of one is of no use in another.
    pub protocol: &'a str,
    /// First message of the connecting end, its nonce included.
    pub hello: &'a [u8],
    /// Answer of the listening end, its nonce included and its MAC not.
    pub answer: &'a [u8],
}

impl Proof<'_> {
    /// The listening end's MAC.
    pub fn listener(&self) -> [u8; MAC] {
        self.mac(b"listener").map_or([0; MAC], |m| m.finalize().into_bytes().into())
    }
    /// Whether a MAC is that of a listener that knows the token. Compared in constant time.
    pub fn listener_holds(&self, mac: &[u8]) -> bool {
        self.mac(b"listener").is_some_and(|m| m.verify_slice(mac).is_ok())
    }
    /// The connecting end's MAC.
    pub fn connector(&self) -> [u8; MAC] {
        self.mac(b"connector").map_or([0; MAC], |m| m.finalize().into_bytes().into())
    }
    /// Whether a MAC is that of a connector that knows the token. Compared in constant time.
    pub fn connector_holds(&self, mac: &[u8]) -> bool {
        self.mac(b"connector").is_some_and(|m| m.verify_slice(mac).is_ok())
    }

    fn mac(&self, role: &[u8]) -> Option<Hmac<Sha256>> {
        // An HMAC takes keys of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(self.token).ok()?;
        // Hello and answer have fixed lengths in a protocol, so no two conversations read alike.
        for part in [b"oflow ".as_slice(), self.protocol.as_bytes(), b" ", role, self.hello, self.answer] {
            mac.update(part);
        }
        Some(mac)
    }
}

/// Makes a nonce from the operating system's random source.
///
/// # Errors
/// If it cannot be read.
pub fn nonce() -> Result<Nonce> {
    let mut nonce = Nonce::default();
    std::fs::File::open("/dev/urandom")
        .and_then(|mut f| f.read_exact(&mut nonce))
        .map_err(|e| Error::io("cannot read /dev/urandom").because(e))?;
    Ok(nonce)
}
