//! Opening the connections: one between every two ranks of different hosts, proven on both sides.
//!
//! Until it is proven, a connection may cost only little: a fixed number of bytes, [`PATIENCE`] of time, and one of
//! [`MOST_UNPROVEN`] places, of which the oldest is given up for a new one. What is refused is logged and harms nothing. When
//! all links are there the rank stops listening.

use super::handshake::{CHALLENGE, Exchange, HELLO, Hello, Nonce, PROOF, VERSION, WELCOME, split_challenge};
use super::link::Link;
use super::links::{Alarm, Links, timespec};
use super::socket::{self, Did};
use crate::error::{Error, Result};
use crate::intern::FixedHasher;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::collections::VecDeque;
use std::hash::Hasher;
use std::io::{IoSlice, IoSliceMut, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections that may wait for their proof at a time.
const MOST_UNPROVEN: usize = 256;
/// Time that a connection has to prove itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// A refused or unanswered connection is tried again after so long.
const RETRY: Duration = Duration::from_millis(100);
/// Refusals that are told one by one.
const TOLD: usize = 20;

/// How links are opened and how a rank waits.
#[derive(Clone, Debug)]
pub struct MeshOptions {
    /// Longest payload of a post.
    pub capacity: usize,
    /// Looks at a socket before sleeping.
    pub spins: u32,
    /// A wait that takes longer is an error that names who is missing.
    pub timeout: Duration,
    /// Until all links must be there.
    pub start: Duration,
    /// Bytes of the kernel's buffers of a socket, for tests; it knows best.
    pub buffer: Option<usize>,
}

impl MeshOptions {
    /// For posts of at most that many bytes; with a core for every rank, a wait begins with looking.
    pub fn new(capacity: usize, own_core: bool) -> MeshOptions {
        MeshOptions {
            capacity,
            spins: if own_core { 100 } else { 0 },
            timeout: Duration::from_secs(30 * 60),
            start: Duration::from_secs(60),
            buffer: None,
        }
    }
}

/// The address of this host on the way to another: none of its packets is sent to find out.
pub fn local_address(toward: impl std::net::ToSocketAddrs) -> Result<IpAddr> {
    let failed = |e: std::io::Error| Error::io("cannot tell this host's address").because(e);
    let to = toward.to_socket_addrs().map_err(failed)?.next();
    let to = to.ok_or_else(|| Error::io("cannot tell this host's address: the other has none"))?;
    let any: IpAddr = if to.is_ipv6() { std::net::Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).map_err(failed)?;
    socket.connect(to).map_err(failed)?;
    Ok(socket.local_addr().map_err(failed)?.ip())
}

/// A rank that can be connected to.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on a free port of an address of this host.
    pub fn bind(address: IpAddr) -> Result<Listener> {
        let failed = |e: std::io::Error| {
            Error::io(format!("cannot listen on {address} for the other hosts"))
                .because(e)
                .help("set OFLOW_ADDR to an address of this host that the others reach")
        };
        let listener = TcpListener::bind((address, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        // Room for what comes at once: all lower ranks, and whoever knocks beside them.
        rustix::net::listen(&listener, 4096).map_err(|e| failed(e.into()))?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Listener { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// As [`connect`](Self::connect), over other ways to the `addresses`, for tests.
    #[cfg(test)]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn connect_by(
        self,
        me: usize,
        hosts: &[usize],
        names: &[String],
        addresses: &[SocketAddr],
        ways: &[SocketAddr],
        token: &[u8],
        alarm: Arc<Alarm>,
        options: &MeshOptions,
    ) -> Result<Links> {
        self.open(me, hosts, names, (addresses, ways), token, alarm, options)
    }

    /// Opens the links to all ranks of other hosts, which do the same. The numbers of the `hosts`, their names and the
    /// `addresses` are by rank and the same everywhere; ranks of one host get no link.
    #[allow(clippy::too_many_arguments)]
    pub fn connect(
        self,
        me: usize,
        hosts: &[usize],
        names: &[String],
        addresses: &[SocketAddr],
        token: &[u8],
        alarm: Arc<Alarm>,
        options: &MeshOptions,
    ) -> Result<Links> {
        self.open(me, hosts, names, (addresses, addresses), token, alarm, options)
    }

    #[allow(clippy::too_many_arguments)]
    fn open(
        self,
        me: usize,
        hosts: &[usize],
        names: &[String],
        (addresses, ways): (&[SocketAddr], &[SocketAddr]),
        token: &[u8],
        alarm: Arc<Alarm>,
        options: &MeshOptions,
    ) -> Result<Links> {
        let world = addresses.len();
        if hosts.len() != world || names.len() != world || me >= world {
            return Err(Error::argument(format!("rank {me}: {world} addresses and {} hosts", hosts.len())));
        }
        let mut session = FixedHasher::default();
        addresses.iter().for_each(|a| session.write(a.to_string().as_bytes()));
        let mut mesh = Mesh {
            me,
            addresses: ways,
            hosts,
            names,
            token,
            session: session.finish(),
            streams: (0..world).map(|_| None).collect(),
            knocks: VecDeque::new(),
            dials: Vec::new(),
            refused: 0,
        };
        mesh.open(&self.listener, &alarm, options)?;
        let mut links = Vec::with_capacity(world);
        for (rank, stream) in std::mem::take(&mut mesh.streams).into_iter().enumerate() {
            links.push(match stream {
                None => None,
                Some(stream) => {
                    socket::prepare(&stream, options.buffer)
                        .map_err(|e| Error::io(format!("cannot prepare the link to rank {rank}")).because(e))?;
                    Some(Link::new(stream, options.capacity))
                }
            });
        }
        Ok(Links::new(me, links, names.to_vec(), alarm, options.spins, options.timeout))
    }
}

/// A message of fixed length that comes in piece by piece.
struct Reading<const N: usize> {
    bytes: [u8; N],
    have: usize,
}

impl<const N: usize> Reading<N> {
    fn new() -> Self {
        Reading { bytes: [0; N], have: 0 }
    }
    /// Reads no byte more than the message has. The message, once it is whole.
    fn read(&mut self, stream: &TcpStream) -> Result<Option<[u8; N]>, String> {
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
fn say(stream: &TcpStream, bytes: &[u8]) -> Result<(), String> {
    match socket::send(stream, &[IoSlice::new(bytes)]) {
        Ok(Did::Bytes(n)) if n == bytes.len() => Ok(()),
        Ok(_) => Err("it takes no bytes".into()),
        Err(e) => Err(e.to_string()),
    }
}

fn nonce() -> Result<Nonce> {
    let mut nonce = Nonce::default();
    std::fs::File::open("/dev/urandom")
        .and_then(|mut f| f.read_exact(&mut nonce))
        .map_err(|e| Error::io("cannot read /dev/urandom").because(e))?;
    Ok(nonce)
}

/// A connection that somebody opened to this rank.
struct Knock {
    stream: TcpStream,
    from: SocketAddr,
    since: Instant,
    state: Door,
}

enum Door {
    Hello(Reading<HELLO>),
    Proof(Hello, Nonce, Reading<PROOF>),
}

/// A connection that this rank opens.
struct Dial {
    rank: usize,
    stream: Option<TcpStream>,
    state: Call,
    hello: Hello,
    since: Instant,
    /// Not before then.
    again: Instant,
    last: String,
}

enum Call {
    Connecting,
    Challenge(Reading<CHALLENGE>),
    Welcome(Reading<{ WELCOME.len() }>),
}

struct Mesh<'a> {
    me: usize,
    addresses: &'a [SocketAddr],
    hosts: &'a [usize],
    names: &'a [String],
    token: &'a [u8],
    session: u64,
    streams: Vec<Option<TcpStream>>,
    knocks: VecDeque<Knock>,
    dials: Vec<Dial>,
    refused: usize,
}

impl Mesh<'_> {
    fn open(&mut self, listener: &TcpListener, alarm: &Alarm, options: &MeshOptions) -> Result<()> {
        let start = Instant::now();
        let remote: Vec<usize> = (0..self.addresses.len()).filter(|r| self.hosts[*r] != self.hosts[self.me]).collect();
        for &rank in remote.iter().filter(|r| **r > self.me) {
            let hello = Hello { session: self.session, from: self.me as u32, to: rank as u32, nonce: nonce()? };
            self.dials.push(Dial {
                rank,
                stream: None,
                state: Call::Connecting,
                hello,
                since: start,
                again: start,
                last: "it does not answer".into(),
            });
        }
        while remote.iter().any(|r| self.streams[*r].is_none()) {
            if let Some(e) = alarm.failure() {
                return Err(e);
            }
            if start.elapsed() > options.start {
                return Err(self.missing(&remote, options.start));
            }
            self.dial(options);
            self.sleep(listener, alarm);
            self.accept(listener)?;
            self.attend();
            self.follow();
        }
        Ok(())
    }

    fn missing(&self, remote: &[usize], waited: Duration) -> Error {
        let line = |r: &usize| {
            let dial = self.dials.iter().find(|d| d.rank == *r);
            let why = dial.map_or("it has not connected", |d| &d.last);
            format!("rank {r} on {} ({}): {why}", self.names[*r], self.addresses[*r])
        };
        let lines: Vec<String> = remote.iter().filter(|r| self.streams[**r].is_none()).take(8).map(line).collect();
        Error::link(format!(
            "after {} s rank {} on {} has no link to\n  {}",
            waited.as_secs_f64(),
            self.me,
            self.names[self.me],
            lines.join("\n  ")
        ))
        .help("the hosts must reach each other's ports; OFLOW_ADDR says which address of a host to use")
    }

    fn sleep(&self, listener: &TcpListener, alarm: &Alarm) {
        let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
        fds.extend(alarm.fd());
        fds.extend(self.knocks.iter().map(|k| PollFd::from_borrowed_fd(k.stream.as_fd(), PollFlags::IN)));
        for d in &self.dials {
            if let Some(s) = &d.stream {
                let flags = if matches!(d.state, Call::Connecting) { PollFlags::OUT } else { PollFlags::IN };
                fds.push(PollFd::from_borrowed_fd(s.as_fd(), flags));
            }
        }
        // Short, because dials are tried again and patience ends.
        let _ = rustix::event::poll(&mut fds, Some(&timespec(RETRY)));
    }

    /// Starts the connections whose time has come.
    fn dial(&mut self, options: &MeshOptions) {
        let now = Instant::now();
        for d in self.dials.iter_mut().filter(|d| d.stream.is_none() && d.again <= now) {
            (d.state, d.since) = (Call::Connecting, now);
            match start_connecting(self.addresses[d.rank], options.buffer) {
                Ok(stream) => d.stream = Some(stream),
                Err(e) => d.fail(e.to_string()),
            }
        }
    }

    /// Moves this rank's own connections on.
    fn follow(&mut self) {
        for d in &mut self.dials {
            let step = d.step(self.token);
            // Who has our proof may have taken us and listen no more: it is not left any more, however slow it is.
            let proven = matches!(d.state, Call::Welcome(_));
            match step {
                Ok(false) if d.stream.is_some() && !proven && d.since.elapsed() > PATIENCE => {
                    d.fail("it does not answer".into());
                }
                Ok(false) => {}
                Ok(true) => self.streams[d.rank] = d.stream.take(),
                Err(why) => d.fail(why),
            }
        }
        self.dials.retain(|d| self.streams[d.rank].is_none());
    }

    fn accept(&mut self, listener: &TcpListener) -> Result<()> {
        // Bounded, so that nobody can keep this rank at the door.
        for _ in 0..MOST_UNPROVEN {
            let (stream, from) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionAborted => continue,
                // Out of descriptors: the oldest of the unproven has to go.
                Err(e) => match self.knocks.pop_front() {
                    Some(oldest) => {
                        self.refuse(oldest.from, &format!("room was needed ({e})"));
                        continue;
                    }
                    None => return Err(Error::io("cannot accept connections of other hosts").because(e)),
                },
            };
            if let Err(e) = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)) {
                self.refuse(from, &e.to_string());
                continue;
            }
            if self.knocks.len() == MOST_UNPROVEN
                && let Some(oldest) = self.knocks.pop_front()
            {
                self.refuse(oldest.from, "too many wait to prove themselves");
            }
            let state = Door::Hello(Reading::new());
            self.knocks.push_back(Knock { stream, from, since: Instant::now(), state });
        }
        Ok(())
    }

    /// Moves the connections on that others have opened.
    fn attend(&mut self) {
        for _ in 0..self.knocks.len() {
            let Some(mut k) = self.knocks.pop_front() else { break };
            match self.step(&mut k) {
                Ok(None) if k.since.elapsed() > PATIENCE => {
                    self.refuse(k.from, &format!("it did not prove itself within {} s", PATIENCE.as_secs()));
                }
                Ok(None) => self.knocks.push_back(k),
                Ok(Some(rank)) => self.streams[rank] = Some(k.stream),
                Err(why) => self.refuse(k.from, &why),
            }
        }
    }

    /// The rank whose connection is proven now.
    fn step(&self, k: &mut Knock) -> Result<Option<usize>, String> {
        loop {
            match &mut k.state {
                Door::Hello(reading) => {
                    let Some(bytes) = reading.read(&k.stream)? else { return Ok(None) };
                    let hello = Hello::decode(&bytes)?;
                    let from = hello.from as usize;
                    if hello.session != self.session {
                        return Err("it belongs to another start of the job".into());
                    }
                    if hello.to as usize != self.me || from >= self.me || self.hosts[from] == self.hosts[self.me] {
                        return Err(format!("it says to be rank {from} and looks for rank {}", hello.to));
                    }
                    let challenge = nonce().map_err(|e| e.message().to_owned())?;
                    say(&k.stream, &Exchange { token: self.token, hello, challenge }.challenge())?;
                    k.state = Door::Proof(hello, challenge, Reading::new());
                }
                Door::Proof(hello, challenge, reading) => {
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

impl Drop for Mesh<'_> {
    fn drop(&mut self) {
        if self.refused > TOLD {
            tracing::warn!("rank {} refused {} connections in all", self.me, self.refused);
        }
    }
}

impl Dial {
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
                Call::Connecting => {
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
                    self.state = Call::Challenge(Reading::new());
                }
                Call::Challenge(reading) => {
                    let refused = |why| {
                        format!("{why} after this rank's hello (its oflow may be another version than {VERSION})")
                    };
                    let Some(bytes) = reading.read(stream).map_err(refused)? else { return Ok(false) };
                    let (challenge, mac) = split_challenge(&bytes);
                    let exchange = Exchange { token, hello: self.hello, challenge };
                    if !exchange.challenge_holds(mac) {
                        return Err("who listens there does not know the job's token".into());
                    }
                    say(stream, &exchange.proof())?;
                    self.state = Call::Welcome(Reading::new());
                }
                Call::Welcome(reading) => {
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
