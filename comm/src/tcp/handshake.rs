//! The handshake of a connection: two ranks prove to each other that they belong to one job.
//!
//! ```text
//! connecting rank                                  listening rank
//! hello: magic, version, session, from, to, nonce c  ->
//!                                                  <-  challenge: nonce s, HMAC(token, "listener", all of both)
//! proof: HMAC(token, "connector", all of both)     ->
//!                                                  <-  welcome
//! ```
//!
//! Both nonces are fresh, so a recorded handshake cannot be replayed. The two MACs are over different words, so a MAC cannot be
//! reflected. The session is a hash over the addresses of all ranks, so a rank of an earlier start of the job is refused. All
//! messages have a fixed length.

use super::socket::{self, Did};
use hmac::{Hmac, Mac};
use oflow_base::{Error, Result};
use sha2::Sha256;
use std::io::{IoSlice, IoSliceMut, Read};
use std::net::TcpStream;

/// Version of the handshake and of the frames.
pub(super) const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"oflowtcp";

/// Bytes of a hello.
pub(super) const HELLO: usize = 8 + 4 + 8 + 4 + 4 + NONCE;
/// Bytes of a challenge.
pub(super) const CHALLENGE: usize = NONCE + MAC;
/// Bytes of a proof.
pub(super) const PROOF: usize = MAC;
/// What the listening rank sends at the end.
pub(super) const WELCOME: [u8; 4] = *b"oflw";

const NONCE: usize = 16;
const MAC: usize = 32;

pub(super) type Nonce = [u8; NONCE];

/// The first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) session: u64,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) nonce: Nonce,
}

impl Hello {
    pub(super) fn encode(&self) -> [u8; HELLO] {
        let mut b = [0; HELLO];
        b[..8].copy_from_slice(&MAGIC);
        b[8..12].copy_from_slice(&VERSION.to_le_bytes());
        b[12..20].copy_from_slice(&self.session.to_le_bytes());
        b[20..24].copy_from_slice(&self.from.to_le_bytes());
        b[24..28].copy_from_slice(&self.to.to_le_bytes());
        b[28..].copy_from_slice(&self.nonce);
        b
    }

    pub(super) fn decode(b: &[u8; HELLO]) -> std::result::Result<Hello, String> {
        let word = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        if b[..8] != MAGIC {
            return Err("it does not speak oflow's protocol".into());
        }
        if word(8) != VERSION {
            return Err(format!("it speaks version {} of the protocol, this rank {VERSION}", word(8)));
        }
        let mut nonce = [0; NONCE];
        nonce.copy_from_slice(&b[28..]);
        let session = u64::from(word(12)) | u64::from(word(16)) << 32;
        Ok(Hello { session, from: word(20), to: word(24), nonce })
    }
}

/// What both sides know once the challenge is there.
pub(super) struct Exchange<'a> {
    pub(super) token: &'a [u8],
    pub(super) hello: Hello,
    pub(super) challenge: Nonce,
}

impl Exchange<'_> {
    /// The listening rank's answer to a hello.
    pub(super) fn challenge(&self) -> [u8; CHALLENGE] {
        let mut b = [0; CHALLENGE];
        b[..NONCE].copy_from_slice(&self.challenge);
        if let Some(mac) = self.mac(b"listener") {
            b[NONCE..].copy_from_slice(&mac.finalize().into_bytes());
        }
        b
    }
    /// Whether a challenge comes from a process that knows the token.
    pub(super) fn challenge_holds(&self, mac: &[u8]) -> bool {
        // Compared in constant time.
        self.mac(b"listener").is_some_and(|m| m.verify_slice(mac).is_ok())
    }
    /// The connecting rank's proof.
    pub(super) fn proof(&self) -> [u8; PROOF] {
        self.mac(b"connector").map_or([0; PROOF], |m| m.finalize().into_bytes().into())
    }
    /// Whether a proof comes from a process that knows the token.
    pub(super) fn proof_holds(&self, proof: &[u8]) -> bool {
        self.mac(b"connector").is_some_and(|m| m.verify_slice(proof).is_ok())
    }

    fn mac(&self, role: &[u8]) -> Option<Hmac<Sha256>> {
        // An HMAC takes keys of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(self.token).ok()?;
        mac.update(b"oflow data plane ");
        mac.update(role);
        mac.update(&self.hello.encode());
        mac.update(&self.challenge);
        Some(mac)
    }
}

/// The nonce and the MAC of a challenge.
pub(super) fn split_challenge(b: &[u8; CHALLENGE]) -> (Nonce, &[u8]) {
    let mut nonce = [0; NONCE];
    nonce.copy_from_slice(&b[..NONCE]);
    (nonce, &b[NONCE..])
}

/// A message of fixed length that comes in piece by piece.
pub(super) struct Reading<const N: usize> {
    bytes: [u8; N],
    have: usize,
}

impl<const N: usize> Reading<N> {
    pub(super) fn new() -> Self {
        Reading { bytes: [0; N], have: 0 }
    }
    /// Reads no byte more than the message has. The message, once it is whole.
    pub(super) fn read(&mut self, stream: &TcpStream) -> std::result::Result<Option<[u8; N]>, String> {
        while self.have < N {
            match socket::receive(stream, &mut [IoSliceMut::new(&mut self.bytes[self.have..])]) {
                Ok(Did::Bytes(n)) => self.have += n,
                Ok(Did::Nothing) => return Ok(None),
                Ok(Did::Closed) => return Err("it closed the connection".into()),
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(Some(self.bytes))
    }
}

/// Sends a short message, for which the buffer of a new connection has room.
pub(super) fn say(stream: &TcpStream, bytes: &[u8]) -> std::result::Result<(), String> {
    match socket::send(stream, &[IoSlice::new(bytes)]) {
        Ok(Did::Bytes(n)) if n == bytes.len() => Ok(()),
        Ok(_) => Err("it takes no bytes".into()),
        Err(e) => Err(e.to_string()),
    }
}

/// A number that has not been used before.
pub(super) fn nonce() -> Result<Nonce> {
    let mut nonce = Nonce::default();
    std::fs::File::open("/dev/urandom")
        .and_then(|mut f| f.read_exact(&mut nonce))
        .map_err(|e| Error::io("cannot read /dev/urandom").because(e))?;
    Ok(nonce)
}
