//! Opens the connections: one between every two ranks of different hosts, authenticated on both sides.
//!
//! The lower rank connects (`dial`), the higher one listens (`door`). A rank stops listening when all its links are open.

use super::dial::{Dial, RETRY};
use super::door::Door;
use super::handshake::Hello;
use super::link::Connection;
use super::links::{self, Alarm, Connections, timespec};
use super::outage::Outage;
use super::socket;
use oflow_base::intern::FixedHasher;
use oflow_base::{Error, Result};
use rustix::event::{PollFd, PollFlags};
use std::hash::Hasher;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options of links and waits.
#[derive(Clone, Debug)]
pub struct MeshOptions {
    /// Longest payload of a post, in bytes.
    pub capacity: usize,
    /// Number of polls of a socket before sleeping.
    pub spins: u32,
    /// Time-out of a wait; the error names the missing ranks.
    pub timeout: Duration,
    /// Time-out for opening all links.
    pub start: Duration,
    /// The longest outage of the network that links survive.
    pub outage: Outage,
    /// Size of a socket's kernel buffers in bytes, for tests. `None`: the kernel's choice.
    pub buffer: Option<usize>,
}

impl MeshOptions {
    /// Makes options for posts of at most `capacity` bytes. Waits spin only if every rank has its own core (`own_core`).
    pub fn new(capacity: usize, own_core: bool) -> MeshOptions {
        MeshOptions {
            capacity,
            spins: if own_core { 100 } else { 0 },
            timeout: Duration::from_secs(30 * 60),
            start: Duration::from_secs(60),
            outage: Outage::default(),
            buffer: None,
        }
    }
}

/// Returns the address of this host on the route to another host. No packet is sent.
pub fn local_address(toward: impl std::net::ToSocketAddrs) -> Result<IpAddr> {
    let failed = |e: std::io::Error| Error::io("cannot determine this host's address").because(e);
    let to = toward.to_socket_addrs().map_err(failed)?.next();
    let to = to.ok_or_else(|| Error::io("cannot determine this host's address: the other host has none"))?;
    let any: IpAddr = if to.is_ipv6() { std::net::Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).map_err(failed)?;
    socket.connect(to).map_err(failed)?;
    Ok(socket.local_addr().map_err(failed)?.ip())
}

/// A rank's listening socket, before its links are open.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on a free port of `address`, an address of this host.
    pub fn bind(address: IpAddr) -> Result<Listener> {
        let failed = |e: std::io::Error| {
            Error::io(format!("cannot listen on {address} for the other hosts"))
                .because(e)
                .help("set OFLOW_ADDR to an address of this host that the other hosts can reach")
        };
        let listener = TcpListener::bind((address, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        // The backlog holds the connections of all lower ranks at once, and those of strangers.
        rustix::net::listen(&listener, 4096).map_err(|e| failed(e.into()))?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Listener { listener, address })
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Like [`connect`](Self::connect), but dials `ways` in place of `addresses`, for tests with proxies.
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
    ) -> Result<Connections> {
        self.open(me, hosts, names, (addresses, ways), token, alarm, options)
    }

    /// Opens the links to all ranks of other hosts. All ranks call this. `hosts` (number of the host), `names` (name of the host) and
    /// `addresses` are indexed by rank and the same on all ranks. Ranks of the same host have no link.
    ///
    /// # Errors
    /// If a link is not open within `options.start`, or if the alarm is raised meanwhile.
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
    ) -> Result<Connections> {
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
    ) -> Result<Connections> {
        let world = addresses.len();
        if hosts.len() != world || names.len() != world || me >= world {
            return Err(Error::argument(format!("rank {me}: {world} addresses and {} hosts", hosts.len())));
        }
        let mut session = FixedHasher::default();
        addresses.iter().for_each(|a| session.write(a.to_string().as_bytes()));
        let mut mesh = Mesh {
            addresses: ways,
            names,
            streams: (0..world).map(|_| None).collect(),
            door: Door::new(me, hosts, token, session.finish()),
            dials: Vec::new(),
        };
        mesh.open(&self.listener, &alarm, options)?;
        let mut peers = Vec::with_capacity(world);
        for (rank, stream) in std::mem::take(&mut mesh.streams).into_iter().enumerate() {
            peers.push(match stream {
                None => None,
                Some(stream) => {
                    options.outage.prepare(&stream);
                    socket::prepare(&stream, links::silence(options.outage), options.buffer)
                        .map_err(|e| Error::io(format!("cannot prepare the link to rank {rank}")).because(e))?;
                    Some(Connection::new(stream, options.capacity))
                }
            });
        }
        Ok(Connections::new(me, peers, names.to_vec(), alarm, options))
    }
}

/// The opening of all links of a rank.
struct Mesh<'a> {
    /// Addresses to dial, indexed by rank.
    addresses: &'a [SocketAddr],
    names: &'a [String],
    streams: Vec<Option<TcpStream>>,
    door: Door<'a>,
    dials: Vec<Dial>,
}

impl Mesh<'_> {
    fn open(&mut self, listener: &TcpListener, alarm: &Alarm, options: &MeshOptions) -> Result<()> {
        let (start, me) = (Instant::now(), self.door.me);
        let remote: Vec<usize> =
            (0..self.addresses.len()).filter(|r| self.door.hosts[*r] != self.door.hosts[me]).collect();
        for &rank in remote.iter().filter(|r| **r > me) {
            let hello =
                Hello { session: self.door.session, from: me as u32, to: rank as u32, nonce: Default::default() };
            self.dials.push(Dial::new(rank, hello, start));
        }
        while remote.iter().any(|r| self.streams[*r].is_none()) {
            if let Some(e) = alarm.failure() {
                return Err(e);
            }
            if start.elapsed() > options.start {
                return Err(self.missing(&remote, options.start));
            }
            let now = Instant::now();
            self.dials.iter_mut().for_each(|d| d.start(self.addresses[d.rank], options.buffer, now));
            self.sleep(listener, alarm);
            self.door.accept(listener)?;
            let streams = &mut self.streams;
            self.door.attend(|rank, stream| streams[rank] = Some(stream));
            self.dials.iter_mut().for_each(|d| streams[d.rank] = d.follow(self.door.token));
            self.dials.retain(|d| streams[d.rank].is_none());
        }
        Ok(())
    }

    fn missing(&self, remote: &[usize], waited: Duration) -> Error {
        let me = self.door.me;
        let line = |r: &usize| {
            let why = match (self.dials.iter().find(|d| d.rank == *r), self.door.shut()) {
                (Some(dial), _) => dial.last.clone(),
                (None, None) => "it has not connected".into(),
                (None, Some(shut)) => format!("rank {me} cannot accept its connection: {shut}"),
            };
            format!("rank {r} on {} ({}): {why}", self.names[*r], self.addresses[*r])
        };
        let lines: Vec<String> = remote.iter().filter(|r| self.streams[**r].is_none()).take(8).map(line).collect();
        Error::link(format!(
            "after {} s rank {me} on {} has no link to\n  {}",
            waited.as_secs_f64(),
            self.names[me],
            lines.join("\n  ")
        ))
        .help("the hosts must reach each other's ports; OFLOW_ADDR says which address of a host to use")
    }

    fn sleep(&self, listener: &TcpListener, alarm: &Alarm) {
        let mut fds: Vec<PollFd> = alarm.fd().into_iter().collect();
        if self.door.is_open(Instant::now()) {
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        fds.extend(self.door.sockets().map(|s| PollFd::from_borrowed_fd(s.as_fd(), PollFlags::IN)));
        for (stream, connecting) in self.dials.iter().filter_map(Dial::socket) {
            let flags = if connecting { PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::from_borrowed_fd(stream.as_fd(), flags));
        }
        // A short time, because dials are retried and the time-out is checked between two sleeps.
        let _ = rustix::event::poll(&mut fds, Some(&timespec(RETRY)));
    }
}
