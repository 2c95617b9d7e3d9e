//! Who may connect to the control plane's ports, for how long without saying the token, and how many at once.
//!
//! A connection that has not shown the token is worth nothing: it is closed after a few seconds, and when there are too many
//! of them the oldest gives way to the newest, so that strangers cannot keep members out.

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
use crate::control::Token;
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

/// What requests know of their connection.
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
}

struct Stranger {
    deadline: Pin<Box<Sleep>>,
    /// Ends when the connection is to give way.
    told_to_go: oneshot::Receiver<()>,
}

impl Guarded {
    /// An error once a stranger's time is up, or its place is needed.
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
        Pin::new(&mut self.stream).poll_read(cx, buf)
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

/// The connections of a listener for so many members. Ends when the stream is dropped.
pub fn incoming(listener: TcpListener, members: usize, log: Log) -> ReceiverStream<io::Result<Guarded>> {
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
                told.tell(&log, room, peer.address);
            }
            let peer = Peer { address, member: Arc::default() };
            let (place, told_to_go) = oneshot::channel();
            strangers.push_back((peer.clone(), place));
            let stranger = Stranger { deadline: Box::pin(tokio::time::sleep(STRANGER_LIMIT)), told_to_go };
            if accepted.send(Ok(Guarded { stream, peer, stranger: Some(stranger) })).await.is_err() {
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
    fn tell(&mut self, log: &Log, room: usize, address: SocketAddr) {
        self.count += 1;
        if self.last.is_none_or(|last| last.elapsed() > LOG_EVERY) {
            let connections = if self.count == 1 { "connection" } else { "connections" };
            log(&format!(
                "control service: {} {connections} without the job token: closed, more than {room} at once; the last was from {}",
                self.count,
                address.ip()
            ));
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

/// Lets calls with the token pass, and with them their connection.
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
        told.count += 1;
        if told.last.is_none_or(|last| last.elapsed() > LOG_EVERY) {
            let what = if given.is_some() { "a wrong job token" } else { "no job token" };
            let text = match told.count {
                1 => format!("a call from {from} had {what} and was refused"),
                n => format!("{n} calls were refused, the last from {from}, which had {what}"),
            };
            log(&format!("control service: {text}"));
            *told = Told { last: Some(Instant::now()), count: 0 };
        }
        Err(Status::unauthenticated("wrong or missing job token"))
    }
}
