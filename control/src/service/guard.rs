//! Admits connections to the control plane's ports: each proves that it knows the token before it is served.
//!
//! A connection that has not done so is closed after a few seconds. If there are too many of them, a new connection replaces
//! the oldest, so strangers cannot keep members out.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use oflow_comm::tcp::Outage;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;

use super::Log;
use super::admitted::Admitted;
use super::tls::Acceptor;
use crate::Token;
use crate::knock::{Refused, admit};

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
/// Pause when the system has no descriptor for a new connection.
const NO_DESCRIPTORS: Duration = Duration::from_millis(50);

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
    let room = STRANGERS + 2 * admission.members;
    // All members may knock in the same millisecond; who finds no room comes again after a whole second. Only a wish.
    let _as_many_as_the_system_lets = rustix::net::listen(&listener, BACKLOG);
    let port = Arc::new(Port { admission, told: Mutex::default() });
    tokio::spawn(async move {
        let mut strangers: VecDeque<(IpAddr, AbortHandle)> = VecDeque::new();
        loop {
            let connection = tokio::select! {
                () = admitted.closed() => return,
                connection = listener.accept() => connection,
            };
            let Ok((stream, address)) = connection else {
                // The caller has gone again, or we have no descriptors: those that leave make room.
                tokio::time::sleep(NO_DESCRIPTORS).await;
                continue;
            };
            if strangers.len() >= room {
                strangers.retain(|(_, task)| !task.is_finished());
            }
            if strangers.len() >= room
                && let Some((from, oldest)) = strangers.pop_front()
            {
                oldest.abort();
                port.tell(Told::Many, |n, s| {
                    format!("{n} connection{s} without the job token: closed, more than {room} at once; the last was from {from}")
                });
            }
            let task = tokio::spawn(port.clone().knocked(stream, address.ip(), admitted.clone()));
            strangers.push_back((address.ip(), task.abort_handle()));
        }
    });
    ReceiverStream::new(stream)
}

/// A port and what has been said about its strangers.
struct Port {
    admission: Admission,
    told: Mutex<[Lines; 4]>,
}

/// What is told of strangers; each kind has lines of its own.
#[derive(Clone, Copy)]
enum Told {
    Many,
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
    async fn knocked(
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
            Ok(Err(Refused::NoTls)) => self.tell(Told::Tls, |n, s| {
                format!(
                    "{n} connection{s} without TLS: refused; the last was from {from}; start that host with --tls-dir"
                )
            }),
            // It said nothing, or went away.
            Err(_) | Ok(Err(Refused::Io(_))) => {}
            Ok(Err(why)) => self.tell(Told::Token, |n, s| {
                format!("{n} connection{s} without the job token: refused; the last was from {from}: {why}")
            }),
        }
    }

    /// Tells of a host with the token whose TLS handshake has failed.
    fn tell_of_certificates(&self, from: IpAddr, why: &str) {
        self.tell(Told::Certificate, |n, s| {
            format!(
                "{n} connection{s} with the job token: refused in the TLS handshake; the last was from {from}: {why}"
            )
        });
    }

    /// Counts a stranger, and tells of those since the last line.
    fn tell(&self, what: Told, line: impl FnOnce(usize, &str) -> String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = &mut told[what as usize];
        lines.count += 1;
        if lines.last.is_none_or(|last| last.elapsed() > LOG_EVERY) {
            let s = if lines.count == 1 { "" } else { "s" };
            (self.admission.log)(&format!("control service: {}", line(lines.count, s)));
            *lines = Lines { last: Some(Instant::now()), count: 0 };
        }
    }
}
