//! Serves the ranks of this host over gRPC: passes calls to [`NodeState`] and returns its answers.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use oflow_proto::MAX_MESSAGE_BYTES;
use oflow_proto::control as pb;
use oflow_proto::control::control_server::{Control, ControlServer};
use tokio::sync::{mpsc, oneshot, watch};
use tonic::codegen::tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status};

use super::agent::Core;
use super::guard;
use super::node::{Answer, NodeState, Outcome};
use crate::Failure;
use oflow_base::{Error, Result};
use oflow_comm::tcp::Outage;

/// Longest a call may wait, whatever it asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);
/// Calls that wait for the root only, while it can be reached.
const CALL_LIMIT: Duration = Duration::from_secs(9);
/// Time-out for the root's answer about missing ranks.
const EXPLAIN: Duration = Duration::from_secs(3);
/// Calls of one rank at a time.
pub(super) const MAX_STREAMS: u32 = 1024;
/// Headers of a call.
pub(super) const MAX_HEADERS: u32 = 16 << 10;

/// Why a start of the job has failed, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The first failure.
    pub failure: Failure,
    /// The exit code of the job, if known already.
    pub code: Option<u8>,
    /// Whether all ranks are started again.
    pub restarts: bool,
}

/// The ranks of this host in one start of the job. Dropping it closes the port.
pub(super) struct Ranks {
    inner: Mutex<Inner>,
    pub(super) verdict: watch::Sender<Option<Verdict>>,
    pub(super) address: SocketAddr,
    cost_model: Vec<u8>,
    outage: Outage,
    core: Weak<Core>,
    _shutdown: oneshot::Sender<()>,
}

struct Inner {
    state: NodeState,
    waiting: BTreeMap<u64, oneshot::Sender<Outcome>>,
}

impl Inner {
    /// Delivers the answers to waiting calls.
    fn deliver(&mut self) {
        for (ticket, outcome) in self.state.take_answers() {
            if let Some(waiting) = self.waiting.remove(&ticket) {
                let _caller_may_have_gone = waiting.send(outcome);
            }
        }
    }
}

impl Ranks {
    /// Serves the ranks of `state` on a free port of the loopback interface.
    pub(super) fn start(core: &Arc<Core>, state: NodeState, cost_model: Vec<u8>) -> Result<Arc<Ranks>> {
        let cannot = |e: std::io::Error| Error::comm("cannot start the control service").because(e);
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let _runtime = core.runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot)?;
        let (token, log) = (core.token.clone(), core.log.clone());
        let (members, outage) = (state.members(), core.outage);
        let admission = guard::Admission { members, token, tls: None, outage, log };
        let incoming = guard::incoming(listener, admission);
        let (shutdown, over) = oneshot::channel::<()>();
        let ranks = Arc::new(Ranks {
            inner: Mutex::new(Inner { state, waiting: BTreeMap::new() }),
            verdict: watch::Sender::new(None),
            address,
            cost_model,
            outage,
            core: Arc::downgrade(core),
            _shutdown: shutdown,
        });
        let service = ControlServer::new(Served(Arc::downgrade(&ranks)))
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let serving = tonic::transport::Server::builder()
            .max_concurrent_streams(MAX_STREAMS)
            .http2_max_header_list_size(MAX_HEADERS)
            .serve_with_incoming_shutdown(service, incoming, async move {
                // Resolves when the handle is dropped.
                let _dropped = over.await;
            });
        let log = core.log.clone();
        core.runtime.spawn(async move {
            if let Err(e) = serving.await {
                log(&format!("the control service has ended: {e}"));
            }
        });
        Ok(ranks)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // The data is whole at every point where a panic could happen, so a poisoned lock is usable.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the state.
    pub(super) fn look<T>(&self, look: impl FnOnce(&NodeState) -> T) -> T {
        look(&self.inner().state)
    }

    /// Applies a message of the root to the state. Resulting messages are sent with the next exchange.
    pub(super) fn apply<T>(&self, change: impl FnOnce(&mut NodeState) -> T) -> T {
        let mut inner = self.inner();
        let value = change(&mut inner.state);
        inner.deliver();
        value
    }

    /// Changes the state, and passes on what follows for the root.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut NodeState) -> T) -> T {
        let value = self.apply(change);
        if let Some(core) = self.core.upgrade() {
            core.flush();
        }
        value
    }

    /// How long a call waits for the root: an outage of the network on the way to it included.
    fn call_limit(&self) -> Duration {
        CALL_LIMIT + self.outage.patience()
    }

    /// Makes a call and waits for its answer, at most `limit`.
    pub(super) async fn call(
        &self,
        limit: Duration,
        begin: impl FnOnce(&mut NodeState) -> Result<u64, Status>,
    ) -> Outcome {
        let (answer, mut answered) = oneshot::channel();
        let begun = {
            let mut inner = self.inner();
            let begun = begin(&mut inner.state);
            if let Ok(ticket) = begun {
                inner.waiting.insert(ticket, answer);
            }
            inner.deliver();
            begun
        };
        if let Some(core) = self.core.upgrade() {
            core.flush();
        }
        let waiting = Waiting { ranks: self, ticket: begun? };
        let over = || Status::aborted("the job is over");
        match tokio::time::timeout(limit, &mut answered).await {
            Ok(outcome) => outcome.unwrap_or_else(|_| Err(over())),
            Err(_) => {
                self.change(|s| s.time_is_up(waiting.ticket, limit));
                match tokio::time::timeout(EXPLAIN, answered).await {
                    Ok(outcome) => outcome.unwrap_or_else(|_| Err(over())),
                    Err(_) => {
                        let seconds = limit.as_secs_f64();
                        Err(Status::deadline_exceeded(format!(
                            "the call was not answered within {seconds:.1} s, and node 0 does not tell which ranks are missing"
                        )))
                    }
                }
            }
        }
    }
}

/// Ends a call when its caller has gone, or has its answer.
struct Waiting<'a> {
    ranks: &'a Ranks,
    ticket: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waited = self.ranks.inner().waiting.remove(&self.ticket).is_some();
        if waited {
            self.ranks.change(|s| s.cancel(self.ticket));
        }
    }
}

/// The service's side. It does not keep the ranks' state alive: with a new start of the job the old one ends.
struct Served(Weak<Ranks>);

impl Served {
    fn ranks(&self) -> Result<Arc<Ranks>, Status> {
        self.0.upgrade().ok_or_else(|| Status::aborted("the job is over"))
    }
}

fn unexpected(answer: Answer) -> Status {
    Status::internal(format!("an answer to something else: {answer:?}"))
}

/// How long a rank that reports a failure is kept until there is a verdict.
const VERDICT_WAIT: Duration = Duration::from_secs(2);

#[tonic::async_trait]
impl Control for Served {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<pb::WatchEvent, Status>> + Send>>;

    async fn join(&self, request: Request<pb::JoinRequest>) -> Result<Response<pb::JoinReply>, Status> {
        let (ranks, hello) = (self.ranks()?, request.into_inner());
        match ranks.call(ranks.call_limit(), |s| s.join(hello, Instant::now())).await? {
            Answer::World(world_size) => {
                Ok(Response::new(pb::JoinReply { world_size, cost_model: ranks.cost_model.clone() }))
            }
            other => Err(unexpected(other)),
        }
    }

    async fn put(&self, request: Request<pb::PutRequest>) -> Result<Response<pb::PutReply>, Status> {
        let pb::PutRequest { key, value } = request.into_inner();
        let ranks = self.ranks()?;
        ranks.call(ranks.call_limit(), |s| s.put(key, value)).await?;
        Ok(Response::new(pb::PutReply {}))
    }

    async fn get(&self, request: Request<pb::GetRequest>) -> Result<Response<pb::GetReply>, Status> {
        let pb::GetRequest { key, wait_ms } = request.into_inner();
        let ranks = self.ranks()?;
        let limit = if wait_ms == 0 { ranks.call_limit() } else { Duration::from_millis(wait_ms).min(LONGEST_WAIT) };
        match ranks.call(limit, |s| s.get(key, wait_ms != 0)).await? {
            Answer::Value(value) => Ok(Response::new(pb::GetReply { value })),
            other => Err(unexpected(other)),
        }
    }

    async fn compare_and_set(
        &self,
        request: Request<pb::CompareAndSetRequest>,
    ) -> Result<Response<pb::CompareAndSetReply>, Status> {
        let request = request.into_inner();
        let ranks = self.ranks()?;
        match ranks.call(ranks.call_limit(), |s| s.compare_and_set(request)).await? {
            Answer::Set(reply) => Ok(Response::new(reply)),
            other => Err(unexpected(other)),
        }
    }

    async fn meet(&self, request: Request<pb::MeetRequest>) -> Result<Response<pb::MeetReply>, Status> {
        let request = request.into_inner();
        let limit = Duration::from_millis(request.wait_ms).min(LONGEST_WAIT);
        match self.ranks()?.call(limit, |s| s.arrive(request)).await? {
            Answer::Met(values) => Ok(Response::new(pb::MeetReply { values: values.to_vec() })),
            other => Err(unexpected(other)),
        }
    }

    async fn heartbeat(&self, request: Request<pb::HeartbeatRequest>) -> Result<Response<pb::HeartbeatReply>, Status> {
        let ranks = self.ranks()?;
        let request = request.into_inner();
        let asks = ranks.apply(|s| s.heartbeat(request, Instant::now()))?;
        let clock = ranks.core.upgrade().map(|core| (core.clock_offset(), core.clock_error()));
        let (clock_offset_ns, clock_error_ns) = clock.unwrap_or((0, None));
        Ok(Response::new(pb::HeartbeatReply { clock_offset_ns, clock_error_ns, ..asks }))
    }

    async fn watch(&self, _request: Request<pb::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let (events, stream) = mpsc::channel(1);
        let mut changes = self.ranks()?.verdict.subscribe();
        tokio::spawn(async move {
            let failure = tokio::select! {
                // The rank has gone: nobody is left to tell.
                () = events.closed() => return,
                verdict = changes.wait_for(Option::is_some) => verdict.ok().and_then(|v| v.clone()).map(|v| v.failure),
            };
            if let Some(failure) = failure {
                let (rank, detail) = (failure.rank.map(|r| r as u32), failure.to_json());
                let event = pb::WatchEvent { rank, message: failure.message, detail };
                let _listener_may_have_gone = events.send(Ok(event)).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn report_failure(
        &self,
        request: Request<pb::ReportFailureRequest>,
    ) -> Result<Response<pb::ReportFailureReply>, Status> {
        let request = request.into_inner();
        let ranks = self.ranks()?;
        ranks.change(|s| s.report(request))?;
        // The verdict may wait for what other ranks know of a divergence. The one who tells it must not end before: its end
        // would be taken for the failure.
        let mut verdict = ranks.verdict.subscribe();
        let _late_or_none = tokio::time::timeout(VERDICT_WAIT, verdict.wait_for(Option::is_some)).await;
        Ok(Response::new(pb::ReportFailureReply {}))
    }

    async fn submit_report(
        &self,
        request: Request<pb::SubmitReportRequest>,
    ) -> Result<Response<pb::SubmitReportReply>, Status> {
        let request = request.into_inner();
        self.ranks()?.change(|s| s.submit_report(request))?;
        Ok(Response::new(pb::SubmitReportReply {}))
    }

    async fn publish(&self, request: Request<pb::PublishRequest>) -> Result<Response<pb::PublishReply>, Status> {
        let pb::PublishRequest { rank, topic, text } = request.into_inner();
        self.ranks()?.change(|s| s.publish(pb::NodeEvent { rank: Some(rank), topic, text }))?;
        Ok(Response::new(pb::PublishReply {}))
    }

    async fn note_missing(
        &self,
        request: Request<pb::NoteMissingRequest>,
    ) -> Result<Response<pb::NoteMissingReply>, Status> {
        let request = request.into_inner();
        self.ranks()?.change(|s| s.note_missing(request))?;
        Ok(Response::new(pb::NoteMissingReply {}))
    }

    async fn leave(&self, request: Request<pb::LeaveRequest>) -> Result<Response<pb::LeaveReply>, Status> {
        let pb::LeaveRequest { rank } = request.into_inner();
        self.ranks()?.change(|s| s.leave(rank as usize));
        Ok(Response::new(pb::LeaveReply {}))
    }
}
