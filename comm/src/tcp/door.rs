//! The listening side: accepts connections and runs their handshakes.
//!
//! Until its handshake has succeeded, a connection has bounded cost: a fixed number of bytes, [`PATIENCE`] of time, and one of a
//! bounded number of places: two for each expected rank and [`STRANGERS`] more. If all are taken, a new connection replaces the
//! oldest one that has not sent a valid hello. Refused connections are logged.

use super::handshake::{Exchange, HELLO, Hello, PROOF, Reading, WELCOME, say};
use crate::proof::{Nonce, nonce};
use oflow_base::{Error, Result};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Connections that may wait for their proof at a time beside those of the ranks that are to come.
const STRANGERS: usize = 256;
/// Time that a connection has to prove itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause where the system has no descriptor or memory for a connection that waits.
const PAUSE: Duration = Duration::from_millis(100);
/// Number of refusals that are logged one by one.
const TOLD: usize = 20;

/// An incoming connection.
struct Knock {
    stream: TcpStream,
    from: SocketAddr,
    since: Instant,
    state: State,
}

enum State {
    Hello(Reading<HELLO>),
    Proof(Hello, Nonce, Reading<PROOF>),
}

/// Cause of an error of `accept`.
#[derive(Debug, PartialEq, Eq)]
enum Trouble {
    /// One connection that was gone before it was taken.
    Caller,
    /// The system has no room for another one now.
    Shortage,
    /// The listener itself: it will not work any more.
    Listener,
}

/// The connections at one rank's door.
pub(super) struct Door<'a> {
    pub(super) me: usize,
    /// Host of each rank.
    pub(super) hosts: &'a [usize],
    pub(super) token: &'a [u8],
    pub(super) session: u64,
    knocks: VecDeque<Knock>,
    room: usize,
    refused: usize,
    /// Why no connection can be accepted now, and the time of the next attempt.
    shut: Option<(String, Instant)>,
}

impl<'a> Door<'a> {
    /// The door of rank `me`.
    pub(super) fn new(me: usize, hosts: &'a [usize], token: &'a [u8], session: u64) -> Door<'a> {
        let coming = hosts[..me].iter().filter(|h| **h != hosts[me]).count();
        let (knocks, room) = (VecDeque::new(), STRANGERS + 2 * coming);
        Door { me, hosts, token, session, knocks, room, refused: 0, shut: None }
    }

    /// The connections that are to be read.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &TcpStream> {
        self.knocks.iter().map(|k| &k.stream)
    }

    /// Whether the listener is to be asked: not while the system has no room, because it would say so at once, again and again.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.shut.as_ref().is_none_or(|(_, until)| now >= *until)
    }

    /// Why no connection can be accepted, if so.
    pub(super) fn shut(&self) -> Option<&str> {
        self.shut.as_ref().map(|(why, _)| why.as_str())
    }

    /// Accepts waiting connections.
    pub(super) fn accept(&mut self, listener: &TcpListener) -> Result<()> {
        if self.is_open(Instant::now()) { self.take(|| listener.accept()) } else { Ok(()) }
    }

    fn take(&mut self, mut next: impl FnMut() -> io::Result<(TcpStream, SocketAddr)>) -> Result<()> {
        // Bounded, so that nobody can keep this rank at the door.
        for _ in 0..self.room {
            let (stream, from) = match next() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.shut = None;
                    return Ok(());
                }
                Err(e) => match trouble(&e) {
                    Trouble::Caller => continue,
                    Trouble::Shortage => match self.give_up_one() {
                        Some(oldest) => {
                            self.refuse(oldest, &format!("room was needed ({e})"));
                            continue;
                        }
                        None => {
                            self.wait_for_room(&e);
                            return Ok(());
                        }
                    },
                    Trouble::Listener => return Err(Error::io("cannot accept connections of other hosts").because(e)),
                },
            };
            self.shut = None;
            if let Err(e) = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)) {
                self.refuse(from, &e.to_string());
                continue;
            }
            self.add(stream, from);
        }
        Ok(())
    }

    /// Takes a connection in, in the place of an older one if there is no other.
    pub(super) fn add(&mut self, stream: TcpStream, from: SocketAddr) {
        if self.knocks.len() >= self.room
            && let Some(oldest) = self.give_up_one()
        {
            self.refuse(oldest, "too many connections wait for their handshake");
        }
        self.knocks.push_back(Knock { stream, from, since: Instant::now(), state: State::Hello(Reading::new()) });
    }

    /// Closes the connection that can best be missed: the oldest, but rather one that has not said a hello of this job.
    fn give_up_one(&mut self) -> Option<SocketAddr> {
        let silent = self.knocks.iter().position(|k| matches!(k.state, State::Hello(_)));
        self.knocks.remove(silent.unwrap_or(0)).map(|k| k.from)
    }

    fn wait_for_room(&mut self, e: &io::Error) {
        if self.shut.is_none() {
            tracing::warn!("rank {} cannot accept connections of other hosts for now ({e}); it tries again", self.me);
        }
        self.shut = Some((e.to_string(), Instant::now() + PAUSE));
    }

    /// Moves the connections on; `proven` gets those that are.
    pub(super) fn attend(&mut self, mut proven: impl FnMut(usize, TcpStream)) {
        for _ in 0..self.knocks.len() {
            let Some(mut k) = self.knocks.pop_front() else { break };
            match self.step(&mut k) {
                Ok(None) if k.since.elapsed() > PATIENCE => {
                    self.refuse(k.from, &format!("its handshake was not complete within {} s", PATIENCE.as_secs()));
                }
                Ok(None) => self.knocks.push_back(k),
                Ok(Some(rank)) => proven(rank, k.stream),
                Err(why) => self.refuse(k.from, &why),
            }
        }
    }

    /// The rank whose connection is proven now.
    fn step(&self, k: &mut Knock) -> Result<Option<usize>, String> {
        loop {
            match &mut k.state {
                State::Hello(reading) => {
                    let Some(bytes) = reading.read(&k.stream)? else { return Ok(None) };
                    let hello = Hello::decode(&bytes)?;
                    let from = hello.from as usize;
                    if hello.session != self.session {
                        return Err("it belongs to another start of the job".into());
                    }
                    if hello.to as usize != self.me || from >= self.me || self.hosts[from] == self.hosts[self.me] {
                        return Err(format!("it claims to be rank {from} and asks for rank {}", hello.to));
                    }
                    let challenge = nonce().map_err(|e| e.message().to_owned())?;
                    say(&k.stream, &Exchange { token: self.token, hello, challenge }.challenge())?;
                    k.state = State::Proof(hello, challenge, Reading::new());
                }
                State::Proof(hello, challenge, reading) => {
                    let Some(bytes) = reading.read(&k.stream)? else { return Ok(None) };
                    let exchange = Exchange { token: self.token, hello: *hello, challenge: *challenge };
                    if !exchange.proof_holds(&bytes) {
                        return Err("it does not know the job's token".into());
                    }
                    say(&k.stream, &WELCOME)?;
                    // A second one of the same rank replaces the first, whose welcome it did not wait for.
                    return Ok(Some(hello.from as usize));
                }
            }
        }
    }

    fn refuse(&mut self, from: SocketAddr, why: &str) {
        self.refused += 1;
        if self.refused <= TOLD {
            tracing::warn!("rank {} refused a connection from {from}: {why}", self.me);
        }
    }
}

impl Drop for Door<'_> {
    fn drop(&mut self) {
        if self.refused > TOLD {
            tracing::warn!("rank {} refused {} connections in all", self.me, self.refused);
        }
    }
}

/// Linux hands errors that a new connection already has to `accept`; only a few say that the listener is broken.
fn trouble(e: &io::Error) -> Trouble {
    match Errno::from_io_error(e) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Trouble::Shortage,
        Some(Errno::BADF | Errno::FAULT | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP) | None => Trouble::Listener,
        Some(_) => Trouble::Caller,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// A listener and connections to it that wait to be accepted.
    fn callers(n: usize) -> (TcpListener, Vec<TcpStream>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let to = listener.local_addr().unwrap();
        let calls = (0..n).map(|_| TcpStream::connect(to).unwrap()).collect();
        (listener, calls)
    }

    #[test]
    fn errors_of_accept_are_told_apart() {
        let of = |errno: Errno| trouble(&io::Error::from(errno));
        for errno in [Errno::CONNABORTED, Errno::INTR, Errno::PROTO, Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::PERM]
        {
            assert_eq!(of(errno), Trouble::Caller, "{errno}");
        }
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert_eq!(of(errno), Trouble::Shortage, "{errno}");
        }
        assert_eq!(of(Errno::BADF), Trouble::Listener);
    }

    #[test]
    fn callers_that_have_gone_keep_nobody_out() {
        let (listener, _calls) = callers(3);
        let mut gone = 5;
        let mut door = Door::new(1, &[0, 1], b"t", 7);
        door.take(|| {
            gone -= 1;
            if gone >= 0 {
                Err([Errno::CONNABORTED, Errno::INTR, Errno::NETDOWN][gone as usize % 3].into())
            } else {
                listener.accept()
            }
        })
        .unwrap();
        assert_eq!(door.sockets().count(), 3);
    }

    #[test]
    fn a_shortage_of_descriptors_is_waited_out_without_asking_again_and_again() {
        let (listener, _calls) = callers(2);
        let mut door = Door::new(1, &[0, 1], b"t", 7);
        let mut asked = 0;
        door.take(|| {
            asked += 1;
            Err(Errno::MFILE.into())
        })
        .unwrap();
        // Nobody could be given up: the door is shut for a moment, and says why.
        assert_eq!((asked, door.is_open(Instant::now())), (1, false));
        assert!(door.shut().unwrap().contains("Too many open files"), "{:?}", door.shut());
        door.accept(&listener).unwrap();
        assert_eq!(door.sockets().count(), 0);
        // Later there is room again.
        assert!(door.is_open(Instant::now() + PAUSE));
        door.take(|| listener.accept()).unwrap();
        assert_eq!((door.sockets().count(), door.shut()), (2, None));
        // Who waits without a proof gives way, as long as there is anybody.
        let mut short = 2;
        door.take(|| {
            short -= 1;
            if short >= 0 { Err(Errno::NFILE.into()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        })
        .unwrap();
        assert_eq!((door.sockets().count(), door.shut()), (0, None));
    }

    #[test]
    fn a_broken_listener_is_an_error() {
        let mut door = Door::new(1, &[0, 1], b"t", 7);
        let e = door.take(|| Err(Errno::BADF.into())).unwrap_err();
        assert_eq!(e.message(), "cannot accept connections of other hosts");
    }

    #[test]
    fn strangers_take_no_place_from_who_has_said_hello() {
        use std::io::Write;
        let hosts = [0, 1];
        let mut door = Door::new(1, &hosts, b"t", 7);
        let room = door.room;
        let (listener, mut calls) = callers(1);
        calls[0].write_all(&Hello { session: 7, from: 0, to: 1, nonce: [1; 16] }.encode()).unwrap();
        while !matches!(door.knocks.front(), Some(Knock { state: State::Proof(..), .. })) {
            door.take(|| listener.accept()).unwrap();
            door.attend(|_, _| ());
        }
        let to = listener.local_addr().unwrap();
        for _ in 0..room + 20 {
            calls.push(TcpStream::connect(to).unwrap());
            // One at a time, so that none waits outside.
            let seen = |door: &Door| door.refused + door.knocks.len();
            let before = seen(&door);
            while seen(&door) == before {
                door.take(|| listener.accept()).unwrap();
            }
        }
        assert!(door.sockets().count() <= room);
        assert!(matches!(door.knocks.front(), Some(Knock { state: State::Proof(..), .. })));
    }

    #[test]
    fn more_ranks_than_strangers_may_wait_come_at_once() {
        use super::super::handshake::{CHALLENGE, split_challenge};
        use std::io::{Read, Write};
        let ranks = STRANGERS + 44;
        let hosts: Vec<usize> = (0..=ranks).collect();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        rustix::net::listen(&listener, 4096).unwrap();
        let to = listener.local_addr().unwrap();
        // All have connected before anybody is let in, and none has said anything yet.
        let mut calls: Vec<TcpStream> = (0..ranks).map(|_| TcpStream::connect(to).unwrap()).collect();
        let mut door = Door::new(ranks, &hosts, b"t", 7);
        while door.sockets().count() < ranks {
            door.accept(&listener).unwrap();
            door.attend(|_, _| ());
        }
        let mut came = vec![false; ranks];
        let hellos: Vec<Hello> =
            (0..ranks).map(|r| Hello { session: 7, from: r as u32, to: ranks as u32, nonce: [r as u8; 16] }).collect();
        for (call, hello) in calls.iter_mut().zip(&hellos) {
            call.write_all(&hello.encode()).unwrap();
        }
        for (call, hello) in calls.iter_mut().zip(&hellos) {
            let mut challenge = [0; CHALLENGE];
            call.set_nonblocking(true).unwrap();
            while call.peek(&mut challenge).unwrap_or(0) < CHALLENGE {
                door.attend(|_, _| ());
            }
            call.read_exact(&mut challenge).unwrap();
            let (challenge, _) = split_challenge(&challenge);
            call.write_all(&Exchange { token: b"t", hello: *hello, challenge }.proof()).unwrap();
        }
        while came.iter().any(|c| !c) {
            door.attend(|rank, _| came[rank] = true);
        }
        assert_eq!(door.refused, 0);
    }

    #[test]
    fn there_is_room_for_every_rank_that_is_to_come() {
        let hosts: Vec<usize> = (0..601).map(|r| usize::from(r == 600)).collect();
        assert_eq!(Door::new(600, &hosts, b"t", 7).room, STRANGERS + 1200);
        // Ranks of the own host and higher ranks do not come.
        assert_eq!(Door::new(1, &[0, 0, 1], b"t", 7).room, STRANGERS);
    }
}
