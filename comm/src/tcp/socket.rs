//! The few calls on sockets that the rest of this room needs.

use rustix::io::Errno;
use std::io::{IoSlice, IoSliceMut};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Keepalive probes of the kernel: the first after a second of silence, then one a second, or as many as there may be in the time
/// that silence is waited for. The peer's kernel answers them, whatever its process does.
const PROBE: Duration = Duration::from_secs(1);
const MOST_PROBES: u32 = 100;

/// Prepares a connection: no delays, no blocking, probes that end it after `silence`. `buffer` limits what the kernel keeps, for
/// tests.
pub(super) fn prepare(stream: &TcpStream, silence: Duration, buffer: Option<usize>) -> std::io::Result<()> {
    use rustix::net::sockopt;
    let every = Duration::from_secs(silence.as_secs().div_ceil(MOST_PROBES.into())).max(PROBE);
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE)?;
    sockopt::set_tcp_keepintvl(stream, every)?;
    sockopt::set_tcp_keepcnt(stream, (silence.as_secs_f64() / every.as_secs_f64()).ceil() as u32)?;
    if let Some(bytes) = buffer {
        sockopt::set_socket_send_buffer_size(stream, bytes)?;
        sockopt::set_socket_recv_buffer_size(stream, bytes)?;
    }
    Ok(())
}

/// Option of Linux 6.15 and later, which the libc crate does not name yet.
const TCP_RTO_MAX_MS: libc::c_int = 44;

/// Bounds the pause before the kernel sends again what was not acknowledged, for a second to two minutes. Returns whether it can.
pub(super) fn bound_pauses(stream: BorrowedFd<'_>, most: Duration) -> bool {
    let ms = most.as_millis().clamp(1000, 120_000) as libc::c_int;
    // SAFETY: the option's value is one int, which lives until the call returns.
    let rc = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_RTO_MAX_MS,
            (&raw const ms).cast::<libc::c_void>(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    rc == 0
}

/// Result of a non-blocking call.
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

/// State of a connection, as the kernel knows it.
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
