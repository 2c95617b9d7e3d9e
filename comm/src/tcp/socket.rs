//! The few calls on sockets that the rest of this room needs.

use rustix::io::Errno;
use std::io::{IoSlice, IoSliceMut};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Keepalive probes of the kernel: the first after a second of silence, then one a second; three without an answer end the
/// connection. The peer's kernel answers them, whatever its process does.
const PROBE: Duration = Duration::from_secs(1);
const PROBES: u32 = 3;

/// Prepares a connection: no delays, no blocking, probes. `buffer` limits what the kernel keeps, for tests.
pub(super) fn prepare(stream: &TcpStream, buffer: Option<usize>) -> std::io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE)?;
    sockopt::set_tcp_keepintvl(stream, PROBE)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    if let Some(bytes) = buffer {
        sockopt::set_socket_send_buffer_size(stream, bytes)?;
        sockopt::set_socket_recv_buffer_size(stream, bytes)?;
    }
    Ok(())
}

/// What a non-blocking call did.
pub(super) enum Did {
    /// That many bytes.
    Bytes(usize),
    /// Nothing: the socket is not ready.
    Nothing,
    /// The other side has closed.
    Closed,
}

/// Writes what the socket takes.
pub(super) fn send(stream: &TcpStream, parts: &[IoSlice]) -> Result<Did, Errno> {
    let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
    loop {
        match rustix::net::sendmsg(stream, parts, &mut Default::default(), flags) {
            Ok(n) => return Ok(Did::Bytes(n)),
            Err(Errno::AGAIN) => return Ok(Did::Nothing),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
}

/// Reads what is there.
pub(super) fn receive(stream: &TcpStream, parts: &mut [IoSliceMut]) -> Result<Did, Errno> {
    loop {
        match rustix::io::readv(stream, parts) {
            Ok(0) => return Ok(Did::Closed),
            Ok(n) => return Ok(Did::Bytes(n)),
            Err(Errno::AGAIN) => return Ok(Did::Nothing),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
}

/// What the kernel knows of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Health {
    /// Whether something was sent that the peer's kernel has not acknowledged.
    pub(super) in_flight: bool,
    /// Bytes that the kernel has not sent yet, because the peer's buffers are full or the network is slow.
    pub(super) unsent: u32,
    /// Time since the peer's kernel last acknowledged something.
    pub(super) last_answer: Duration,
    /// Probes of a full peer that were not answered.
    pub(super) probes: u32,
}

/// Asks the kernel about a connection.
pub(super) fn health(stream: &TcpStream) -> Option<Health> {
    // SAFETY: plain integers, for which zero is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the pointer is to `len` writable bytes; the kernel writes no more and says how many.
    let rc = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast::<libc::c_void>(),
            &mut len,
        )
    };
    (rc == 0).then(|| Health {
        in_flight: info.tcpi_unacked > 0,
        unsent: unsent(stream),
        last_answer: Duration::from_millis(info.tcpi_last_ack_recv.into()),
        probes: info.tcpi_probes.into(),
    })
}

/// Bytes in the kernel's send queue, acknowledged or not.
pub(super) fn unsent(stream: &TcpStream) -> u32 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ (SIOCOUTQ) writes one int.
    let rc = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
    if rc == 0 { bytes.max(0) as u32 } else { 0 }
}
