//! The connecting side: connects to one rank, and retries until the handshake has succeeded.

use super::handshake::{CHALLENGE, Exchange, Hello, Reading, VERSION, WELCOME, say, split_challenge};
use crate::proof::nonce;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A refused or unanswered connection is tried again after so long.
pub(super) const RETRY: Duration = Duration::from_millis(100);
/// How long the other side may take for its answer to the hello.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection that this rank opens.
pub(super) struct Dial {
    pub(super) rank: usize,
    stream: Option<TcpStream>,
    state: Stage,
    hello: Hello,
    since: Instant,
    /// Not before then.
    again: Instant,
    /// Why the last try has failed.
    pub(super) last: String,
}

enum Stage {
    Connecting,
    Challenge(Reading<CHALLENGE>),
    Welcome(Reading<{ WELCOME.len() }>),
}

impl Dial {
    /// Makes the connection to a rank, with this hello; each attempt has a new nonce.
    pub(super) fn new(rank: usize, hello: Hello, now: Instant) -> Dial {
        Dial {
            rank,
            stream: None,
            state: Stage::Connecting,
            hello,
            since: now,
            again: now,
            last: "it does not answer".into(),
        }
    }

    /// Over a connection that is open.
    pub(super) fn over(stream: TcpStream, hello: Hello) -> Dial {
        Dial { stream: Some(stream), ..Dial::new(hello.to as usize, hello, Instant::now()) }
    }

    /// The connection, and whether it is only being opened.
    pub(super) fn socket(&self) -> Option<(&TcpStream, bool)> {
        Some((self.stream.as_ref()?, matches!(self.state, Stage::Connecting)))
    }

    /// Starts the connection if its time has come.
    pub(super) fn start(&mut self, to: SocketAddr, buffer: Option<usize>, now: Instant) {
        if self.stream.is_some() || self.again > now {
            return;
        }
        (self.state, self.since) = (Stage::Connecting, now);
        match start_connecting(to, buffer) {
            Ok(stream) => self.stream = Some(stream),
            Err(e) => self.fail(e.to_string()),
        }
    }

    /// Moves it on; the connection, once it is proven.
    pub(super) fn follow(&mut self, token: &[u8]) -> Option<TcpStream> {
        let step = self.step(token);
        // Who has our proof may have taken us and listen no more: it is not left any more, however slow it is.
        let proven = matches!(self.state, Stage::Welcome(_));
        match step {
            Ok(true) => return self.stream.take(),
            Ok(false) if self.stream.is_some() && !proven && self.since.elapsed() > PATIENCE => {
                self.fail("it does not answer".into());
            }
            Ok(false) => {}
            Err(why) => self.fail(why),
        }
        None
    }

    fn fail(&mut self, why: String) {
        self.last = why;
        self.stream = None;
        self.again = Instant::now() + RETRY;
    }

    /// Whether the connection is proven.
    fn step(&mut self, token: &[u8]) -> Result<bool, String> {
        let Some(stream) = &self.stream else { return Ok(false) };
        loop {
            match &mut self.state {
                Stage::Connecting => {
                    match rustix::net::sockopt::socket_error(stream) {
                        Ok(Ok(())) => {}
                        Ok(Err(e)) | Err(e) => return Err(e.to_string()),
                    }
                    if rustix::net::getpeername(stream).is_err() {
                        return Ok(false);
                    }
                    // A fresh nonce for each try.
                    self.hello.nonce = nonce().map_err(|e| e.message().to_owned())?;
                    say(stream, &self.hello.encode())?;
                    self.state = Stage::Challenge(Reading::new());
                }
                Stage::Challenge(reading) => {
                    let refused = |why| {
                        format!("{why} after this rank's hello (its oflow may be another version than {VERSION})")
                    };
                    let Some(bytes) = reading.read(stream).map_err(refused)? else { return Ok(false) };
                    let (challenge, mac) = split_challenge(&bytes);
                    let exchange = Exchange { token, hello: self.hello, challenge };
                    if !exchange.challenge_holds(mac) {
                        return Err("the process that listens there does not know the job's token".into());
                    }
                    say(stream, &exchange.proof())?;
                    self.state = Stage::Welcome(Reading::new());
                }
                Stage::Welcome(reading) => {
                    return match reading.read(stream)? {
                        None => Ok(false),
                        Some(WELCOME) => Ok(true),
                        Some(_) => Err("its welcome is malformed".into()),
                    };
                }
            }
        }
    }
}

fn start_connecting(to: SocketAddr, buffer: Option<usize>) -> Result<TcpStream, Errno> {
    let family = if to.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(bytes) = buffer {
        // Before connecting: the window is agreed on then.
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    }
    let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(e) => Err(e),
    }
}
