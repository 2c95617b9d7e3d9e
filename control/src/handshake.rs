//! The handshake of a connection to the control service: both ends prove that they know the job's token before anything else
//! is sent. The token itself is never sent, so an attacker who listens in place of node 0 does not learn it.
//!
//! ```text
//! connecting end                                        listening end
//! hello: magic, version, TLS or not, nonce          ->
//!                                                   <-  answer: the same of this end, HMAC(token, "listener", all of both)
//! HMAC(token, "connector", all of both)             ->
//!                                                   <-  welcome
//! TLS where both ends speak it, then gRPC
//! ```
//!
//! All messages have a fixed length. [`Proof`] says why neither end's MAC can be replayed or reflected. The connecting end
//! sends its MAC only to a listener that has proved itself. An attacker who can change packets between two hosts can take over a
//! connection after its handshake; TLS (`--tls-dir`) prevents that.

use std::fmt;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::ToSocketAddrs;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use oflow_comm::proof::{MAC, NONCE, Nonce, Proof, nonce};
use oflow_comm::tcp::Outage;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;

use crate::Token;

const MAGIC: [u8; 8] = *b"oflowctl";
const VERSION: u32 = 1;
const GREETING: usize = 8 + 4 + 4 + NONCE;
const WELCOME: [u8; 4] = *b"oflw";

/// Length in bytes of the listening end's answer.
const ANSWER: usize = GREETING + MAC;

/// The first message of each end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Greeting {
    version: u32,
    tls: bool,
    nonce: Nonce,
}

impl Greeting {
    fn new(tls: bool) -> io::Result<Greeting> {
        Ok(Greeting { version: VERSION, tls, nonce: nonce().map_err(io::Error::other)? })
    }

    fn encode(&self) -> [u8; GREETING] {
        let mut b = [0; GREETING];
        b[..8].copy_from_slice(&MAGIC);
        b[8..12].copy_from_slice(&self.version.to_le_bytes());
        b[12] = u8::from(self.tls);
        b[16..].copy_from_slice(&self.nonce);
        b
    }

    /// Reads the other end's first message; `None` if that is not a greeting of oflow's.
    fn decode(b: &[u8; GREETING]) -> Option<Greeting> {
        let known = b[..8] == MAGIC && b[12] <= 1 && b[13..16] == [0; 3];
        let mut nonce = Nonce::default();
        nonce.copy_from_slice(&b[16..]);
        let version = u32::from_le_bytes([b[8], b[9], b[10], b[11]]);
        known.then_some(Greeting { version, tls: b[12] == 1, nonce })
    }
}

fn proof<'a>(token: &'a Token, hello: &'a [u8], answer: &'a [u8]) -> Proof<'a> {
    Proof { token: token.expose().as_bytes(), protocol: "control plane", hello, answer }
}

/// Why a handshake has failed.
#[derive(Debug)]
pub enum Refused {
    /// The other end does not speak this protocol.
    Stranger,
    /// The other end speaks another version.
    Version(u32),
    /// The other end does not know the token.
    Token,
    /// The other end speaks TLS and this end does not.
    WantsTls,
    /// The other end does not speak TLS and this end does.
    NoTls,
    /// The other end closed the connection before it had proved that it knows the token.
    Unproved,
    /// The connection failed or ended.
    Io(io::Error),
}

/// Text of the innermost source of a transport error. Its own text is only `transport error`.
pub(crate) fn innermost(error: &tonic::transport::Error) -> String {
    let mut error: &dyn std::error::Error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Stranger => f.write_str("it does not speak oflow's control protocol"),
            Refused::Version(v) => write!(f, "it speaks version {v} of the control protocol, this end {VERSION}"),
            Refused::Token => f.write_str("it does not know the job's token"),
            Refused::Unproved => f.write_str(
                "it closed the connection before it had proved that it knows the job's token: it has another one, or its time was up",
            ),
            Refused::WantsTls => f.write_str("it speaks TLS and this end does not"),
            Refused::NoTls => f.write_str("it does not speak TLS and this end does"),
            Refused::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof => f.write_str("it closed the connection"),
            Refused::Io(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl From<io::Error> for Refused {
    fn from(e: io::Error) -> Refused {
        Refused::Io(e)
    }
}

impl Refused {
    /// Returns the refusal among the sources of a transport error, if there is one.
    pub fn of<'a>(mut error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Refused> {
        loop {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            error = error.source()?;
        }
    }
}

/// The connecting end of a handshake, without I/O.
struct Handshake {
    hello: [u8; GREETING],
    tls: bool,
}

impl Handshake {
    /// Starts a handshake. `tls` is whether TLS follows.
    ///
    /// # Errors
    /// If the system gives no random numbers for the nonce.
    fn new(tls: bool) -> io::Result<Handshake> {
        Ok(Handshake { hello: Greeting::new(tls)?.encode(), tls })
    }

    /// First message to the listener.
    fn hello(&self) -> &[u8] {
        &self.hello
    }

    /// Checks the listener's answer, and returns the MAC that proves the token to it.
    ///
    /// # Errors
    /// If the listener does not know the token, or if version or TLS of the two ends differ.
    fn prove(&self, token: &Token, answer: &[u8; ANSWER]) -> Result<[u8; MAC], Refused> {
        let (said, mac) = answer.split_at(GREETING);
        let listener = said.try_into().ok().and_then(Greeting::decode).ok_or(Refused::Stranger)?;
        if listener.version != VERSION {
            return Err(Refused::Version(listener.version));
        }
        let proof = proof(token, &self.hello, said);
        match (proof.listener_holds(mac), listener.tls, self.tls) {
            (false, ..) => Err(Refused::Token),
            (_, true, false) => Err(Refused::WantsTls),
            (_, false, true) => Err(Refused::NoTls),
            _ => Ok(proof.connector()),
        }
    }
}

/// Makes connections to a control service, each with a handshake.
#[derive(Clone, Debug)]
pub struct Connector {
    /// The job's token.
    pub token: Token,
    /// Whether TLS follows the handshake.
    pub tls: bool,
    /// The longest outage of the network that connections survive.
    pub outage: Outage,
}

impl Connector {
    /// Makes a connection, for programs that speak gRPC by hand. Reads and writes block.
    ///
    /// # Errors
    /// If the connection or its handshake fails.
    pub fn blocking(&self, to: impl ToSocketAddrs) -> Result<std::net::TcpStream, Refused> {
        let mut stream = std::net::TcpStream::connect(to)?;
        let handshake = Handshake::new(self.tls)?;
        let (mut answer, mut welcome) = ([0; ANSWER], WELCOME.map(|_| 0));
        stream.write_all(handshake.hello())?;
        stream.read_exact(&mut answer)?;
        stream.write_all(&handshake.prove(&self.token, &answer)?)?;
        stream.read_exact(&mut welcome)?;
        if welcome == WELCOME { Ok(stream) } else { Err(Refused::Stranger) }
    }

    async fn connect(self, to: Uri) -> Result<TokioIo<TcpStream>, Refused> {
        let missing =
            || io::Error::new(io::ErrorKind::InvalidInput, "an address of a control service has host and port");
        let host = to.host().ok_or_else(missing)?;
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let mut stream = TcpStream::connect((host, to.port_u16().ok_or_else(missing)?)).await?;
        stream.set_nodelay(true)?;
        self.outage.prepare(&stream);
        let handshake = Handshake::new(self.tls)?;
        stream.write_all(handshake.hello()).await?;
        let mut answer = [0; ANSWER];
        // A listener of another protocol may send fewer bytes than an answer and then wait: compare the first bytes first.
        stream.read_exact(&mut answer[..MAGIC.len()]).await?;
        if answer[..MAGIC.len()] != MAGIC {
            return Err(Refused::Stranger);
        }
        stream.read_exact(&mut answer[MAGIC.len()..]).await?;
        stream.write_all(&handshake.prove(&self.token, &answer)?).await?;
        let mut welcome = WELCOME.map(|_| 0);
        stream.read_exact(&mut welcome).await?;
        if welcome == WELCOME { Ok(TokioIo::new(stream)) } else { Err(Refused::Stranger) }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = Refused;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Refused>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        Box::pin(self.clone().connect(to))
    }
}

/// Answer of the listening end to a hello, without I/O.
struct Answer {
    /// Bytes of the answer.
    said: [u8; ANSWER],
    /// Whether version and TLS of the two ends agree. The answer is sent in either case, so that the other end can say what differs.
    fits: Result<(), Refused>,
}

fn answer(token: &Token, tls: bool, hello: &[u8; GREETING]) -> Result<Answer, Refused> {
    let from = Greeting::decode(hello).ok_or(Refused::Stranger)?;
    let own = Greeting::new(tls)?.encode();
    let mut said = [0; ANSWER];
    said[..GREETING].copy_from_slice(&own);
    said[GREETING..].copy_from_slice(&proof(token, hello, &own).listener());
    let fits = match (from.version, from.tls, tls) {
        (VERSION, false, true) => Err(Refused::NoTls),
        (VERSION, true, false) => Err(Refused::WantsTls),
        (VERSION, ..) => Ok(()),
        (version, ..) => Err(Refused::Version(version)),
    };
    Ok(Answer { said, fits })
}

/// Whether a MAC proves that the connecting end knows the token, and belongs to this hello and this answer.
fn proved(token: &Token, hello: &[u8; GREETING], said: &[u8; ANSWER], mac: &[u8; MAC]) -> bool {
    proof(token, hello, &said[..GREETING]).connector_holds(mac)
}

/// The listening end of a handshake, on a new connection.
pub(crate) async fn admit(stream: &mut TcpStream, token: &Token, tls: bool) -> Result<(), Refused> {
    let mut hello = [0; GREETING];
    // A client of another protocol may send fewer bytes than a hello and then wait: compare the first bytes first.
    stream.read_exact(&mut hello[..MAGIC.len()]).await?;
    if hello[..MAGIC.len()] != MAGIC {
        return Err(Refused::Stranger);
    }
    stream.read_exact(&mut hello[MAGIC.len()..]).await?;
    let Answer { said, fits } = answer(token, tls, &hello)?;
    stream.write_all(&said).await?;
    fits?;
    let mut mac = [0; MAC];
    // A connecting end with another token rejects the answer and closes the connection.
    stream.read_exact(&mut mac).await.map_err(|_| Refused::Unproved)?;
    if !proved(token, &hello, &said, &mac) {
        return Err(Refused::Token);
    }
    Ok(stream.write_all(&WELCOME).await?)
}

/// For `cargo xtask fuzz`: feeds bytes to both ends.
#[doc(hidden)]
pub mod fuzz {
    use super::*;

    fn token() -> Result<Token, String> {
        "5a".repeat(32).parse().map_err(|_| "no token".to_string())
    }

    /// Takes the input as a hello for the listening end, followed by an answer for the connecting end. Fails if an end without the token
    /// is accepted.
    pub fn heard(input: &[u8]) -> Result<bool, String> {
        let token = token()?;
        let Some(hello) = input.first_chunk::<GREETING>() else { return Ok(false) };
        let known = answer(&token, false, hello).is_ok();
        if let Some(said) = input[GREETING..].first_chunk::<ANSWER>() {
            let handshake = Handshake { hello: *hello, tls: false };
            // The input was made before the fresh nonce, so it cannot contain a valid answer to it.
            let fresh = Handshake::new(false).map_err(|e| e.to_string())?;
            if fresh.prove(&token, said).is_ok() {
                return Err("an old answer is believed".into());
            }
            return Ok(handshake.prove(&token, said).is_ok());
        }
        Ok(known)
    }

    /// Valid inputs for [`heard`], to start from: a hello with its answer, and a hello alone.
    pub fn recorded() -> Vec<Vec<u8>> {
        let (Ok(token), Ok(handshake)) = (token(), Handshake::new(false)) else { return vec![] };
        let Ok(Answer { said, .. }) = answer(&token, false, &handshake.hello) else { return vec![] };
        vec![[&handshake.hello[..], &said].concat(), handshake.hello.to_vec()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(word: &str) -> Token {
        word.repeat(32).parse().unwrap()
    }

    fn both(connector: (&Token, bool), listener: (&Token, bool)) -> (Result<(), String>, Result<(), String>) {
        let handshake = Handshake::new(connector.1).unwrap();
        let answer = answer(listener.0, listener.1, &handshake.hello).unwrap();
        let proved = handshake.prove(connector.0, &answer.said);
        let heard = match (&proved, &answer.fits) {
            (_, Err(e)) => Err(e.to_string()),
            (Ok(mac), Ok(())) if super::proved(listener.0, &handshake.hello, &answer.said, mac) => Ok(()),
            _ => Err(Refused::Token.to_string()),
        };
        (proved.map(drop).map_err(|e| e.to_string()), heard)
    }

    #[test]
    fn both_ends_say_what_does_not_fit() {
        let (a, b) = (token("0a"), token("0b"));
        assert_eq!(both((&a, false), (&a, false)), (Ok(()), Ok(())));
        assert_eq!(both((&a, true), (&a, true)), (Ok(()), Ok(())));
        let unknown = || Err("it does not know the job's token".to_string());
        assert_eq!(both((&a, false), (&b, false)), (unknown(), unknown()));
        let wants = || Err("it speaks TLS and this end does not".to_string());
        let has_none = || Err("it does not speak TLS and this end does".to_string());
        assert_eq!(both((&a, false), (&a, true)), (wants(), has_none()));
        assert_eq!(both((&a, true), (&a, false)), (has_none(), wants()));
        // Who does not know the token learns no more than that.
        assert_eq!(both((&b, false), (&a, true)).0, unknown());
    }

    #[test]
    fn nothing_that_is_said_twice_or_said_back_is_believed() {
        let t = token("0a");
        let (first, second) = (Handshake::new(false).unwrap(), Handshake::new(false).unwrap());
        let Answer { said, .. } = answer(&t, false, &first.hello).unwrap();
        let mac = first.prove(&t, &said).unwrap();
        assert!(matches!(second.prove(&t, &said), Err(Refused::Token)), "an answer to another hello");
        let again = answer(&t, false, &first.hello).unwrap();
        assert!(!proved(&t, &first.hello, &again.said, &mac), "a proof for another answer");
        assert!(proved(&t, &first.hello, &said, &mac));
        assert_ne!(said, again.said);
        // The listener's own MAC, and its greeting, said back.
        assert_ne!(mac[..], said[GREETING..]);
        let back = answer(&t, false, said[..GREETING].try_into().unwrap()).unwrap();
        assert!(matches!(first.prove(&t, &back.said), Err(Refused::Token)));
        for at in 0..GREETING {
            let mut bent = said;
            bent[at] ^= 1;
            assert!(first.prove(&t, &bent).is_err(), "byte {at}");
        }
    }

    #[test]
    fn the_token_is_not_in_what_is_said() {
        let t = token("7e");
        let handshake = Handshake::new(false).unwrap();
        let Answer { said, .. } = answer(&t, false, &handshake.hello).unwrap();
        let all = [handshake.hello(), &said, &handshake.prove(&t, &said).unwrap()].concat();
        for secret in [t.expose().as_bytes(), &[0x7e; 8][..]] {
            assert!(!all.windows(8).any(|w| w == &secret[..8]));
        }
    }
}
