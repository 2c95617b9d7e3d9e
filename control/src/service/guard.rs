//! Admits connections to the control plane's ports: each proves that it knows the token before it is served.
//!
//! A connection that has not done so is closed after a few seconds. If there are too many of them, a new connection replaces
//! the oldest, so strangers cannot keep members out. So does one for which the system has no descriptor, and strangers never take
//! the descriptors with which the process starts ranks.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use oflow_comm::tcp::Outage;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;

use super::Log;
use super::admitted::Admitted;
use super::tls::Acceptor;
use crate::Token;
use crate::handshake::{Refused, admit};

/// How long a connection may do without the token.
const STRANGER_LIMIT: Duration = Duration::from_secs(5);
/// How many connections without the token there may be at once, beside two for each member: all members may come at once.
const STRANGERS: usize = 512;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;
/// Admitted connections that the server has not taken up yet.
const QUEUE: usize = 64;
/// At most one line about strangers in this time.
const LOG_EVERY: Duration = Duration::from_secs(5);
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

/// Whom a port admits.
pub struct Admission {
    /// Number of clients with the token.
    pub members: usize,
    /// The job's token.
    pub token: Token,
    /// TLS of the connections, if they must use it.
    pub tls: Option<Acceptor>,
    /// The longest outage of the network that connections survive.
    pub outage: Outage,
    /// Where refusals are told.
    pub log: Log,
}

/// Returns the stream of a listener's connections that have proved that they know the token. The listener is closed when the
/// stream is dropped.
pub fn incoming(listener: TcpListener, admission: Admission) -> ReceiverStream<io::Result<Admitted>> {
    let (admitted, stream) = mpsc::channel(QUEUE);
    let room = room(admission.members);
    let number = PORTS.fetch_add(1, Ordering::Relaxed);
    // All members may connect in the same millisecond; who finds no room comes again after a whole second. Only a wish.
    let _as_many_as_the_system_lets = rustix::net::listen(&listener, BACKLOG);
    let port = Arc::new(Port { admission, notices: Mutex::default() });
    tokio::spawn(async move {
        loop {
            let connection = tokio::select! {
                () = admitted.closed() => return,
                connection = listener.accept() => connection,
            };
            let (stream, address) = match connection {
                Ok(accepted) => accepted,
                Err(e) if is_shortage(&e) => {
                    match evict(|_| true).await {
                        Some(from) => port.tell(StrangerNotice::Shortage, |n, s| {
                            format!("{n} connection{s} without the job token: closed, because room was needed ({e}); the last was from {from}")
                        }),
                        // Those that leave make room.
                        None => {
                            port.tell(StrangerNotice::Full, |_, _| format!("no connection can be accepted for now ({e}); it tries again"));
                            tokio::time::sleep(PAUSE).await;
                        }
                    }
                    continue;
                }
                // The caller has gone again.
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            if is_full(number, room)
                && let Some(from) = evict(|s| s.port == number).await
            {
                port.tell(StrangerNotice::Many, |n, s| {
                    format!("{n} connection{s} without the job token: closed, more than {room} at once; the last was from {from}")
                });
            }
            let task = tokio::spawn(port.clone().handshake(stream, address.ip(), admitted.clone()));
            strangers().push_back(Stranger { port: number, from: address.ip(), task });
        }
    });
    ReceiverStream::new(stream)
}

/// A connection that has not proved that it knows the token.
struct Stranger {
    port: usize,
    from: IpAddr,
    task: JoinHandle<()>,
}

/// Strangers at all ports, the oldest first. Descriptors are the process's: a port that needs one takes it from any port's
/// strangers.
static WAITING: Mutex<VecDeque<Stranger>> = Mutex::new(VecDeque::new());
/// Number of ports that there have been.
static PORTS: AtomicUsize = AtomicUsize::new(0);

fn strangers() -> MutexGuard<'static, VecDeque<Stranger>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a port has as many strangers as it may have.
fn is_full(port: usize, room: usize) -> bool {
    let mut all = strangers();
    // Those that have left are looked for only where that can matter: thousands of members may come at once.
    if all.len() < room {
        return false;
    }
    all.retain(|s| !s.task.is_finished());
    all.iter().filter(|s| s.port == port).count() >= room
}

/// Closes the oldest connection of which that is so, and returns where it came from.
async fn evict(which: impl Fn(&Stranger) -> bool) -> Option<IpAddr> {
    let oldest = {
        let mut all = strangers();
        all.retain(|s| !s.task.is_finished());
        let at = all.iter().position(which)?;
        all.remove(at)?
    };
    oldest.task.abort();
    // Its descriptor is free when the task has ended.
    let _was_aborted = oldest.task.await;
    Some(oldest.from)
}

/// How many strangers a port may have. Two ports leave half of the descriptors of the process for its own work, with which it
/// starts ranks.
fn room(members: usize) -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 4;
    (STRANGERS + 2 * members).min(usize::try_from(descriptors).unwrap_or(usize::MAX))
}

/// Whether the system has no room for another connection.
fn is_shortage(e: &io::Error) -> bool {
    matches!(Errno::from_io_error(e), Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

/// A port and what has been said about its strangers.
struct Port {
    admission: Admission,
    notices: Mutex<[Lines; 6]>,
}

/// Kind of message about strangers; each has lines of its own.
#[derive(Clone, Copy)]
enum StrangerNotice {
    Many,
    Shortage,
    Full,
    Token,
    Tls,
    Certificate,
}

#[derive(Default)]
struct Lines {
    last: Option<Instant>,
    count: usize,
}

impl Port {
    /// Admits a connection, or closes it.
    async fn handshake(
        self: Arc<Self>,
        mut stream: TcpStream,
        from: IpAddr,
        admitted: mpsc::Sender<io::Result<Admitted>>,
    ) {
        // Small answers at once.
        let _as_it_is = stream.set_nodelay(true);
        self.admission.outage.prepare(&stream);
        let Admission { token, tls, .. } = &self.admission;
        match tokio::time::timeout(STRANGER_LIMIT, admit(&mut stream, token, tls.is_some())).await {
            Ok(Ok(())) => {
                let connection = match tls {
                    None => Admitted(Box::new(stream)),
                    Some(tls) => match tls.accept(stream).await {
                        Ok(connection) => connection,
                        Err(why) => return self.tell_of_certificates(from, &why),
                    },
                };
                // The server may be closing.
                drop(admitted.send(Ok(connection)).await);
            }
            Ok(Err(Refused::NoTls)) => self.tell(StrangerNotice::Tls, |n, s| {
                format!(
                    "{n} connection{s} without TLS: refused; the last was from {from}; start that host with --tls-dir"
                )
            }),
            // It said nothing, or went away.
            Err(_) | Ok(Err(Refused::Io(_))) => {}
            Ok(Err(why)) => self.tell(StrangerNotice::Token, |n, s| {
                format!("{n} connection{s} without the job token: refused; the last was from {from}: {why}")
            }),
        }
    }

    /// Tells of a host with the token whose TLS handshake has failed.
    fn tell_of_certificates(&self, from: IpAddr, why: &str) {
        self.tell(StrangerNotice::Certificate, |n, s| {
            format!(
                "{n} connection{s} with the job token: refused in the TLS handshake; the last was from {from}: {why}"
            )
        });
    }

    /// Counts a stranger, and tells of those since the last line.
    fn tell(&self, what: StrangerNotice, line: impl FnOnce(usize, &str) -> String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = &mut notices[what as usize];
        lines.count += 1;
        if lines.last.is_none_or(|last| last.elapsed() > LOG_EVERY) {
            let s = if lines.count == 1 { "" } else { "s" };
            (self.admission.log)(&format!("control service: {}", line(lines.count, s)));
            *lines = Lines { last: Some(Instant::now()), count: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[tokio::test]
    async fn the_oldest_stranger_makes_room_and_its_descriptor_is_free_then() {
        let number = PORTS.fetch_add(1, Ordering::Relaxed);
        let (held, mut closed) = mpsc::channel::<()>(1);
        for last in 1..=3u8 {
            let held = held.clone();
            let task = tokio::spawn(async move {
                // What it has is dropped with it.
                let _held = held;
                std::future::pending::<()>().await;
            });
            strangers().push_back(Stranger { port: number, from: Ipv4Addr::new(10, 0, 0, last).into(), task });
        }
        drop(held);
        assert!(!is_full(number, 4) && is_full(number, 3));
        for last in 1..=3u8 {
            assert!(closed.try_recv() == Err(mpsc::error::TryRecvError::Empty));
            assert_eq!(evict(|s| s.port == number).await, Some(Ipv4Addr::new(10, 0, 0, last).into()));
        }
        assert!(closed.try_recv() == Err(mpsc::error::TryRecvError::Disconnected), "the last is not closed");
        assert_eq!(evict(|s| s.port == number).await, None);
    }

    #[test]
    fn only_a_shortage_costs_a_stranger_its_place() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert!(is_shortage(&errno.into()));
        }
        assert!(!is_shortage(&Errno::CONNABORTED.into()));
    }

    #[test]
    fn two_ports_leave_half_of_the_descriptors() {
        let limit = usize::try_from(getrlimit(Resource::Nofile).current.unwrap_or(1 << 30)).unwrap();
        assert!(2 * room(1 << 20) <= limit / 2 + 1);
        assert!(room(1) <= STRANGERS + 2);
    }
}
