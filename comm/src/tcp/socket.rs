//! System calls on TCP sockets: options, non-blocking I/O, the kernel's state of a connection.

use rustix::io::Errno;
use std::io::{IoSlice, IoSliceMut};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Time of silence before the kernel's first keepalive probe, and the shortest interval between probes. The peer's kernel answers
/// them even if its process is stopped or busy.
const PROBE: Duration = Duration::from_secs(1);
/// Most keepalive probes of a connection; a longer silence has longer intervals. Linux allows 127.
const MOST_PROBES: u32 = 100;

/// Prepares a connection: non-blocking, `TCP_NODELAY`, keepalive probes that end it after `silence`. `buffer` sets the size in bytes
/// of the kernel's send and receive buffers, for tests.
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

/// Socket option of Linux 6.15 and later: the longest retransmission time-out, in ms. The libc crate does not name it yet.
const TCP_RTO_MAX_MS: libc::c_int = 44;

/// Bounds the kernel's pause between retransmissions to `most`, clamped to 1 to 120 s. Returns whether the kernel can do so.
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
    /// Number of bytes sent or received.
    Bytes(usize),
    /// The socket is not ready (`EAGAIN`).
    Nothing,
    /// The other side has closed.
    Closed,
}

/// Writes as many bytes as the socket takes without blocking.
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

/// Reads the bytes that have arrived, as far as they fit, without blocking.
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
    /// Bytes in the kernel's send queue: not sent yet, or not acknowledged yet.
    pub(super) unsent: u32,
    /// Time since the last acknowledgement from the peer's kernel.
    pub(super) last_answer: Duration,
    /// Unanswered zero-window probes, which the kernel sends while the peer's receive buffer is full.
    pub(super) probes: u32,
}

/// Asks the kernel about a connection.
pub(super) fn health(stream: &TcpStream) -> Option<Health> {
    // SAFETY: `tcp_info` consists of integers, for which all-zero bytes are valid.
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

/// Bytes in the kernel's send queue: not sent yet, or not acknowledged yet; 0 if the kernel does not say.
pub(super) fn unsent(stream: &TcpStream) -> u32 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ (SIOCOUTQ) writes one int.
    let rc = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
    if rc == 0 { bytes.max(0) as u32 } else { 0 }
}
