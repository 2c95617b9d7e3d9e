//! Hosts [`RootState`]: node 0's own ranks reach it through a lock, the agents of other hosts through one stream each.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use oflow_proto::MAX_MESSAGE_BYTES;
use oflow_proto::control as pb;
use oflow_proto::control::nodes_server::{Nodes, NodesServer};
use pb::down::Item as Down;
use pb::up::Item as Up;
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tonic::codegen::tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};

use super::agent::{Core, now_ns};
use super::guard;
use super::root::{JobOptions, OWN, RootState, WARNING};
use super::serve::{MAX_HEADERS, MAX_STREAMS};
use super::{AgentOptions, Rendezvous};
use oflow_base::{Error, Result};

/// Time-out for the hello of a connected agent.
const HELLO_LIMIT: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(50);
/// Larger messages are cut in two.
pub(super) const FRAME_BYTES: usize = 256 << 10;
/// Items that are sent in one message.
pub(super) const FRAME_ITEMS: usize = 1024;

/// Listens at the address of the rendezvous if this host is node 0. Returns the address in either case.
pub(super) async fn listen(rendezvous: &Rendezvous) -> Result<(Option<TcpListener>, String)> {
    let (address, may_join) = match rendezvous {
        Rendezvous::Alone => return Ok((None, String::new())),
        Rendezvous::Join(address) => return Ok((None, address.clone())),
        Rendezvous::Host(address) => (address, false),
        Rendezvous::Either(address) => (address, true),
    };
    use std::io::ErrorKind::{AddrInUse, AddrNotAvailable};
    match TcpListener::bind(address).await {
        Ok(listener) => Ok((Some(listener), address.clone())),
        // Another host's address, or somebody hosts already.
        Err(e) if may_join && matches!(e.kind(), AddrInUse | AddrNotAvailable) => Ok((None, address.clone())),
        Err(e) => {
            let help = match e.kind() {
                AddrInUse => "another program listens there; choose another port for --rdzv",
                AddrNotAvailable => {
                    "--rdzv names node 0, and this host has no such address; start it with another --node-rank"
                }
                _ => "--rdzv is HOST:PORT, the address of node 0 as all hosts know it",
            };
            Err(Error::comm(format!("cannot listen at {address}")).because(e).help(help))
        }
    }
}

/// The root, and the ways to the nodes.
pub(super) struct Host {
    state: Mutex<RootState>,
    ways: Mutex<BTreeMap<u64, mpsc::UnboundedSender<pb::Down>>>,
    ids: AtomicU64,
    others: watch::Sender<usize>,
    events: mpsc::Sender<pb::NodeEvent>,
    address: OnceLock<SocketAddr>,
}

impl Host {
    pub(super) fn new(plan: JobOptions, own: pb::NodeHello, events: mpsc::Sender<pb::NodeEvent>) -> Host {
        Host {
            state: Mutex::new(RootState::new(plan, own, Instant::now())),
            ways: Mutex::default(),
            ids: AtomicU64::new(OWN + 1),
            others: watch::Sender::new(0),
            events,
            address: OnceLock::new(),
        }
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address.get().copied()
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&RootState) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the root's state and carries what follows, between it and node 0's own ranks until neither has anything left
    /// to say. The root is locked all the while, so that all agents receive the messages in one order; its lock is taken before
    /// any other.
    pub(super) fn exchange<T>(&self, core: &Arc<Core>, change: impl FnOnce(&mut RootState) -> T) -> T {
        let mut root = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let value = change(&mut root);
        loop {
            let ups = core.take_up();
            let nothing_up = ups.is_empty();
            let now = Instant::now();
            for item in ups.into_iter().filter_map(|up| up.item) {
                if let Err(status) = root.handle(OWN, item, now) {
                    (core.log)(&format!("control service: {}", status.message()));
                }
            }
            let out = root.take_out();
            if nothing_up && out.is_empty() {
                break;
            }
            let ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
            for (node, mut down) in out {
                if let Some(Down::Pong(pong)) = &mut down.item {
                    pong.root_ns = now_ns();
                }
                match down.item {
                    Some(item) if node == OWN => core.down(item),
                    _ => {
                        // A stream that has ended is told of by its reader.
                        let _gone = ways.get(&node).map(|way| way.send(down));
                    }
                }
            }
        }
        root.take_closed().into_iter().for_each(|id| self.close(id));
        for event in root.take_events() {
            if event.topic == WARNING && event.rank.is_none() {
                (core.log)(&format!("warning: {}", event.text));
            }
            // What nobody takes is dropped.
            let _unread = self.events.try_send(event);
        }
        value
    }

    /// Serves the agents of other hosts.
    pub(super) fn serve(
        self: &Arc<Self>,
        core: &Arc<Core>,
        listener: TcpListener,
        options: &AgentOptions,
    ) -> Result<JoinHandle<()>> {
        let address = listener.local_addr().map_err(|e| Error::comm("cannot listen").because(e))?;
        let _first = self.address.set(address);
        let log = options.log.clone();
        let service = NodesServer::new(Attach { host: self.clone(), core: core.clone() })
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let builder = tonic::transport::Server::builder()
            .max_concurrent_streams(MAX_STREAMS)
            .http2_max_header_list_size(MAX_HEADERS);
        let admission = guard::Admission {
            members: *options.nodes.end(),
            token: options.token.clone(),
            tls: super::tls::acceptor(options.tls.as_deref())?,
            outage: options.outage,
            log: log.clone(),
        };
        let incoming = guard::incoming(listener, admission);
        let serving = builder.serve_with_incoming(service, incoming);
        let serving = tokio::spawn(async move {
            if let Err(e) = serving.await {
                log(&format!("the control service for other hosts has stopped: {e}"));
            }
        });
        Ok(serving)
    }

    /// Gives the root its time.
    pub(super) fn tick(self: &Arc<Self>, core: &Arc<Core>) -> JoinHandle<()> {
        let (host, core) = (self.clone(), core.clone());
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(TICK);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                host.exchange(&core, |root| root.tick(Instant::now()));
            }
        })
    }

    /// Waits until no other host's stream is open.
    pub(super) async fn others_have_left(&self) {
        let mut others = self.others.subscribe();
        // The sender lives in self.
        let _none_left = others.wait_for(|n| *n == 0).await;
    }

    fn open(&self) -> (u64, mpsc::UnboundedReceiver<pb::Down>) {
        let (way, downs) = mpsc::unbounded_channel();
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        self.ways.lock().unwrap_or_else(PoisonError::into_inner).insert(id, way);
        self.others.send_modify(|n| *n += 1);
        (id, downs)
    }

    fn close(&self, id: u64) {
        if self.ways.lock().unwrap_or_else(PoisonError::into_inner).remove(&id).is_some() {
            self.others.send_modify(|n| *n -= 1);
        }
    }
}

/// The service that agents of other hosts attach to.
struct Attach {
    host: Arc<Host>,
    core: Arc<Core>,
}

impl Attach {
    fn refuse(&self, from: &str, status: Status) -> Status {
        (self.core.log)(&format!("control service: {from} was refused: {}", status.message()));
        status
    }
}

#[tonic::async_trait]
impl Nodes for Attach {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<pb::FromRoot, Status>> + Send>>;

    async fn attach(&self, request: Request<Streaming<pb::FromNode>>) -> Result<Response<Self::AttachStream>, Status> {
        let mut ups = request.into_inner();
        let first = tokio::time::timeout(HELLO_LIMIT, ups.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("the host sent no hello"));
        let first = first.and_then(|m| m).map_err(|s| self.refuse("a host", s))?;
        let mut items = first.into_iter().flat_map(|m| m.items).filter_map(|up| up.item);
        let Some(Up::Hello(mut hello)) = items.next() else {
            return Err(self.refuse("a host", Status::invalid_argument("the first message of a host must be a hello")));
        };
        // It stands in lines on terminals.
        hello.host = printable(&hello.host);
        let from = hello.host.clone();
        let (id, downs) = self.host.open();
        if let Err(status) = self.host.exchange(&self.core, |root| root.arrive(id, hello, Instant::now())) {
            self.host.close(id);
            return Err(self.refuse(&from, status));
        }
        let (frames, stream) = mpsc::channel(4);
        tokio::spawn(write(downs, frames));
        let rest: Vec<Up> = items.collect();
        tokio::spawn(read(self.host.clone(), self.core.clone(), id, from, rest, ups));
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

/// A name without what a terminal would take for a command, and no longer than a host's name can be.
fn printable(name: &str) -> String {
    const MOST: usize = 255;
    let shown: String = name.chars().take(MOST).map(|c| if c.is_control() { '?' } else { c }).collect();
    if shown.is_empty() { "a host without a name".into() } else { shown }
}

/// Passes on what a host sends until its stream ends.
async fn read(
    host: Arc<Host>,
    core: Arc<Core>,
    id: u64,
    from: String,
    first: Vec<Up>,
    mut ups: Streaming<pb::FromNode>,
) {
    let mut items = first;
    let why = loop {
        let handled = host.exchange(&core, |root| {
            let now = Instant::now();
            items.drain(..).try_for_each(|item| root.handle(id, item, now))
        });
        if let Err(status) = handled {
            (core.log)(&format!("control service: {from} was refused: {}", status.message()));
            break format!("it was refused: {}", status.message());
        }
        match ups.message().await {
            Ok(Some(message)) => items = message.items.into_iter().filter_map(|up| up.item).collect(),
            Ok(None) => break "its oflaunch has ended".to_string(),
            Err(_) => break "its connection has ended; its oflaunch was killed, or the network is cut".to_string(),
        }
    };
    host.exchange(&core, |root| root.lost(id, &why, Instant::now()));
    host.close(id);
}

/// Sends what is there in messages of a reasonable size.
async fn write(mut downs: mpsc::UnboundedReceiver<pb::Down>, frames: mpsc::Sender<Result<pb::FromRoot, Status>>) {
    let mut batch = Vec::new();
    while downs.recv_many(&mut batch, FRAME_ITEMS).await > 0 {
        for items in cut(std::mem::take(&mut batch), FRAME_BYTES) {
            if frames.send(Ok(pb::FromRoot { items })).await.is_err() {
                return;
            }
        }
    }
}

/// Items in groups of at most so many bytes, where one alone is not larger.
pub(super) fn cut<M: Message>(items: Vec<M>, most: usize) -> Vec<Vec<M>> {
    let (mut groups, mut bytes): (Vec<Vec<M>>, usize) = (Vec::new(), 0);
    for item in items {
        let size = item.encoded_len();
        match groups.last_mut() {
            Some(group) if bytes + size <= most => {
                bytes += size;
                group.push(item);
            }
            _ => {
                bytes = size;
                groups.push(vec![item]);
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_of_hosts_command_no_terminal() {
        assert_eq!(super::printable("node-7.rack1"), "node-7.rack1");
        assert_eq!(super::printable("\u{1b}[2J\nfailed\r\u{9b}31m"), "?[2J?failed??31m");
        assert_eq!(super::printable(&"x".repeat(5000)).len(), 255);
        assert_eq!(super::printable(""), "a host without a name");
    }
}
