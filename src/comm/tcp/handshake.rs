//! How two ranks prove to each other that they belong to one job, before anything else goes over a connection.
//!
//! ```text
//! connecting rank                                  listening rank
//! hello: magic, version, session, from, to, nonce c  ->
//!                                                  <-  challenge: nonce s, HMAC(token, "listener", all of both)
//! proof: HMAC(token, "connector", all of both)     ->
//!                                                  <-  welcome
//! ```
//!
//! Nonces are fresh on both sides, so nothing can be replayed; the two MACs are over different words, so neither can be sent
//! back; the session is a hash over the addresses of all ranks, so that a rank of an earlier start of the job is refused. All
//! messages have a fixed length: there is nothing to overflow.

use hmac::{Hmac, Mac};
use sha2::Sha256;

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

    pub(super) fn decode(b: &[u8; HELLO]) -> Result<Hello, String> {
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
    /// Whether a challenge comes from who knows the token.
    pub(super) fn challenge_holds(&self, mac: &[u8]) -> bool {
        // Compared in constant time.
        self.mac(b"listener").is_some_and(|m| m.verify_slice(mac).is_ok())
    }
    /// The connecting rank's proof.
    pub(super) fn proof(&self) -> [u8; PROOF] {
        self.mac(b"connector").map_or([0; PROOF], |m| m.finalize().into_bytes().into())
    }
    /// Whether a proof comes from who knows the token.
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
