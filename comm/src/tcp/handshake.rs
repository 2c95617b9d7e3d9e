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
//! The MACs are those of [`Proof`]. The session is a hash over the addresses of all ranks, so a rank of an earlier start of the job is refused. All
//! messages have a fixed length.

use super::socket::{self, Did};
use crate::proof::{MAC, NONCE, Nonce, Proof};
use std::io::{IoSlice, IoSliceMut};
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
/// Last message of the listening rank in a handshake.
pub(super) const WELCOME: [u8; 4] = *b"oflw";

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

/// Data that both sides know once the challenge is there.
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
        b[NONCE..].copy_from_slice(&self.with(|p| p.listener()));
        b
    }
    /// Whether a challenge comes from a process that knows the token.
    pub(super) fn challenge_holds(&self, mac: &[u8]) -> bool {
        self.with(|p| p.listener_holds(mac))
    }
    /// The connecting rank's proof.
    pub(super) fn proof(&self) -> [u8; PROOF] {
        self.with(|p| p.connector())
    }
    /// Whether a proof comes from a process that knows the token.
    pub(super) fn proof_holds(&self, proof: &[u8]) -> bool {
        self.with(|p| p.connector_holds(proof))
    }

    fn with<T>(&self, f: impl FnOnce(&Proof<'_>) -> T) -> T {
        let hello = self.hello.encode();
        f(&Proof { token: self.token, protocol: "data plane", hello: &hello, answer: &self.challenge })
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
