//! Limits connections to the control plane's ports: how many, and how long without the token.
//!
//! A connection that has not sent the token is closed after a few seconds. If there are too many of them, a new connection
//! replaces the oldest, so strangers cannot keep members out.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use tonic::{Request, Status};

use super::Log;
use crate::Token;
use oflow_proto::TOKEN_KEY;

/// How long a connection may do without the token.
const STRANGER_LIMIT: Duration = Duration::from_secs(5);
/// How many connections without the token there may be at once, beside two for each member: all members may come at once.
const STRANGERS: usize = 512;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;
/// Accepted connections that the server has not taken up yet.
const QUEUE: usize = 64;
/// At most one line about strangers in this time.
const LOG_EVERY: Duration = Duration::from_secs(5);
/// Pause when the system has no descriptor for a new connection.
const NO_DESCRIPTORS: Duration = Duration::from_millis(50);

/// What somebody hears who comes without TLS where hosts speak it: HTTP/2's own words, settings and a farewell that says that the
/// connection is not safe enough.
const SPEAK_TLS: [u8; 26] = {
    let mut frames = [0; 26];
    // Settings without entries (type 4), then GOAWAY (type 7) of 8 bytes: no stream was taken, INADEQUATE_SECURITY.
    (frames[3], frames[11], frames[12], frames[25]) = (4, 8, 7, 0xc);
    frames
};

/// The connection of a request.
#[derive(Clone)]
pub struct Peer {
    address: SocketAddr,
    member: Arc<AtomicBool>,
}

/// A connection under guard.
pub struct Guarded {
    stream: TcpStream,
    peer: Peer,
    /// Until it has shown the token.
    stranger: Option<Stranger>,
    /// Until its first byte has come, where that has to be one of TLS.
    unheard: Option<Arc<Clear>>,
    /// The connection does not use TLS; its data is dropped.
    turned_away: bool,
}

/// Receives the log line about connections without TLS.
struct Clear {
    log: Log,
    told: std::sync::Mutex<Told>,
}

struct Stranger {
    deadline: Pin<Box<Sleep>>,
    /// Ends when the connection is to give way.
    told_to_go: oneshot::Receiver<()>,
}

impl Guarded {
    /// An error if the connection has no token and its time is up or its place is needed.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(stranger) = &mut self.stranger else { return Ok(()) };
        if self.peer.member.load(Ordering::Relaxed) {
            self.stranger = None;
        } else if stranger.deadline.as_mut().poll(cx).is_ready()
            || Pin::new(&mut stranger.told_to_go).poll(cx).is_ready()
        {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl AsyncRead for Guarded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        loop {
            let before = buf.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
            let Some(first) = buf.filled().get(before).copied() else { return Poll::Ready(Ok(())) };
            if let Some(clear) = self.unheard.take()
                // The first letter of every HTTP/2 connection, and of no record of TLS.
                && first == b'P'
            {
                self.turned_away = true;
                // A new connection has room for it.
                let _told_in_vain = self.stream.try_write(&SPEAK_TLS);
                clear.tell(self.peer.address);
            }
            if !self.turned_away {
                return Poll::Ready(Ok(()));
            }
            // Read to its end, or its time's: closing with something unread would throw away what it is told.
            buf.set_filled(before);
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }
}

impl Connected for Guarded {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl Clear {
    fn tell(&self, address: SocketAddr) {
        let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        told.tell(&self.log, |count| {
            let connections = if count == 1 { "connection" } else { "connections" };
            format!(
                "control service: {count} {connections} without TLS: refused; the last was from {}; start that host with --tls-dir",
                address.ip()
            )
        });
    }
}

/// Returns the stream of a listener's connections. `members`: number of clients with the token. `tls`: connections must use TLS.
/// The listener is closed when the stream is dropped.
pub fn incoming(listener: TcpListener, members: usize, tls: bool, log: Log) -> ReceiverStream<io::Result<Guarded>> {
    let clear = tls.then(|| Arc::new(Clear { log: log.clone(), told: Default::default() }));
    let (accepted, stream) = mpsc::channel(QUEUE);
    let room = STRANGERS + 2 * members;
    // All members may knock in the same millisecond; who finds no room comes again after a whole second. Only a wish.
    let _as_many_as_the_system_lets = rustix::net::listen(&listener, BACKLOG);
    tokio::spawn(async move {
        let mut strangers: VecDeque<(Peer, oneshot::Sender<()>)> = VecDeque::new();
        let mut told = Told::default();
        loop {
            let connection = tokio::select! {
                () = accepted.closed() => return,
                connection = listener.accept() => connection,
            };
            let Ok((stream, address)) = connection else {
                // The caller has gone again, or we have no descriptors: those that leave make room.
                tokio::time::sleep(NO_DESCRIPTORS).await;
                continue;
            };
            // Small answers at once.
            let _as_it_is = stream.set_nodelay(true);
            if strangers.len() >= room {
                strangers.retain(|(peer, place)| !place.is_closed() && !peer.member.load(Ordering::Relaxed));
            }
            if strangers.len() >= room
                && let Some((peer, _place)) = strangers.pop_front()
            {
                told.tell(&log, |count| {
                    let connections = if count == 1 { "connection" } else { "connections" };
                    format!(
                        "control service: {count} {connections} without the job token: closed, more than {room} at once; the last was from {}",
                        peer.address.ip()
                    )
                });
            }
            let peer = Peer { address, member: Arc::default() };
            let (place, told_to_go) = oneshot::channel();
            strangers.push_back((peer.clone(), place));
            let stranger = Stranger { deadline: Box::pin(tokio::time::sleep(STRANGER_LIMIT)), told_to_go };
            let unheard = clear.clone();
            let guarded = Guarded { stream, peer, stranger: Some(stranger), unheard, turned_away: false };
            if accepted.send(Ok(guarded)).await.is_err() {
                return;
            }
        }
    });
    ReceiverStream::new(stream)
}

/// Remembers what has been said about strangers.
#[derive(Default)]
struct Told {
    last: Option<Instant>,
    count: usize,
}

impl Told {
    fn tell(&mut self, log: &Log, line: impl FnOnce(usize) -> String) {
        self.count += 1;
        if self.last.is_none_or(|last| last.elapsed() > LOG_EVERY) {
            log(&line(self.count));
            *self = Told { last: Some(Instant::now()), count: 0 };
        }
    }
}

/// The connection of a call. Under TLS it stands inside what the call knows of that.
fn peer_of(request: &Request<()>) -> Option<Peer> {
    let plain = request.extensions().get::<Peer>().cloned();
    #[cfg(feature = "tls")]
    let plain = plain.or_else(|| {
        let tls = request.extensions().get::<tonic::transport::server::TlsConnectInfo<Peer>>();
        tls.map(|info| info.get_ref().clone())
    });
    plain
}

/// Accepts calls with the token, and marks their connections as members.
pub fn check_token(token: Token, log: Log) -> impl FnMut(Request<()>) -> Result<Request<()>, Status> + Clone {
    let told: Arc<std::sync::Mutex<Told>> = Arc::default();
    move |request: Request<()>| {
        let peer = peer_of(&request);
        let given = request.metadata().get(TOKEN_KEY);
        if given.is_some_and(|given| token.matches(given.as_bytes())) {
            if let Some(peer) = &peer {
                peer.member.store(true, Ordering::Relaxed);
            }
            return Ok(request);
        }
        let from = peer.as_ref().map_or("somebody".to_string(), |p| p.address.ip().to_string());
        let mut told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        told.tell(&log, |count| {
            let what = if given.is_some() { "a wrong job token" } else { "no job token" };
            match count {
                1 => format!("control service: a call from {from} had {what} and was refused"),
                n => format!("control service: {n} calls were refused, the last from {from}, which had {what}"),
            }
        });
        Err(Status::unauthenticated("wrong or missing job token"))
    }
}
