//! The control service of one job: an [`Agent`] on each host serves the ranks there and stands in contact with the root, which
//! the agent of node 0 hosts.
//!
//! `state.rs` holds what is known of the job and decides; this file carries it over gRPC. Everything waits on one watch
//! channel that holds the state, so there is one lock and no wake-up can be missed.

mod state;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::control::{Failure, Token};
use crate::error::{Error, Result};
use oflow_proto::control as pb;
use oflow_proto::control::control_server::{Control, ControlServer as Generated};
use oflow_proto::{MAX_MESSAGE_BYTES, TOKEN_KEY};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tonic::codegen::InterceptedService;
use tonic::codegen::tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

pub use state::Silence;
use state::{Arrival, JobState, Refusal};

/// Longest a call may wait, whatever it asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Where the hosts of a job meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendezvous {
    /// One host: nothing listens but the loopback interface.
    Alone,
    /// This agent is node 0 and hosts the root at this address (`host:port`).
    Host(String),
    /// The root is at this address; it need not be there yet.
    Join(String),
    /// The first agent that can listen at this address is node 0, the others join it.
    Either(String),
}

/// What an agent is started with.
#[derive(Clone)]
pub struct AgentOptions {
    /// Secret of the job.
    pub token: Token,
    /// Number of ranks on this host.
    pub nproc: usize,
    /// Where the hosts meet.
    pub rendezvous: Rendezvous,
    /// How many hosts the job may have. It starts with the most if they come in time.
    pub nodes: RangeInclusive<usize>,
    /// This host's number; without one they are numbered as they come.
    pub node_rank: Option<usize>,
    /// How often all ranks are started again after a failure. Node 0's counts.
    pub max_restarts: u32,
    /// JSON that each rank is given when it joins, or nothing for the default constants. Node 0's counts.
    pub cost_model: Vec<u8>,
}

impl AgentOptions {
    /// A job of so many ranks on one host.
    pub fn alone(nproc: usize, token: Token) -> AgentOptions {
        AgentOptions {
            token,
            nproc,
            rendezvous: Rendezvous::Alone,
            nodes: 1..=1,
            node_rank: None,
            max_restarts: 0,
            cost_model: Vec::new(),
        }
    }
}

/// An agent's part in the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Number of this host.
    pub node: usize,
    /// Number of hosts.
    pub nodes: usize,
    /// World rank of the first rank here; the others follow.
    pub first_rank: usize,
    /// Number of ranks here.
    pub nproc: usize,
    /// Number of ranks in the job.
    pub world: usize,
    /// How often the job has been started again.
    pub restart: u32,
}

/// The control plane of one host: serves its ranks. Dropping it closes the port.
pub struct Agent {
    address: SocketAddr,
    assignment: Assignment,
    job: Job,
    _shutdown: oneshot::Sender<()>,
}

impl Agent {
    /// Starts an agent on the current tokio runtime. Its ranks are served on a free port of the loopback interface.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub async fn start(options: AgentOptions) -> Result<Agent> {
        let AgentOptions { token, nproc, rendezvous, cost_model, .. } = options;
        if rendezvous != Rendezvous::Alone {
            return Err(Error::unsupported("jobs of several hosts cannot be started yet"));
        }
        let world = nproc;
        let cannot = |e: io::Error| Error::comm("cannot start the control service").because(e);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let job = Job { state: Arc::new(watch::Sender::new(JobState::new(world))), cost_model: cost_model.into() };
        let service = Generated::new(job.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let service = InterceptedService::new(service, move |request: Request<()>| {
            let known = request.metadata().get(TOKEN_KEY).is_some_and(|given| token.matches(given.as_bytes()));
            if known { Ok(request) } else { Err(Status::unauthenticated("wrong or missing job token")) }
        });
        let (shutdown, over) = oneshot::channel::<()>();
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let serving = tonic::transport::Server::builder().serve_with_incoming_shutdown(service, incoming, async move {
            // Resolves when the handle is dropped.
            let _dropped = over.await;
        });
        tokio::spawn(async move {
            if let Err(e) = serving.await {
                eprintln!("oflaunch: the control service has ended: {e}");
            }
        });
        let assignment = Assignment { node: 0, nodes: 1, first_rank: 0, nproc, world, restart: 0 };
        Ok(Agent { address, assignment, job, _shutdown: shutdown })
    }

    /// Waits until all hosts are there; tells this host's part.
    ///
    /// # Errors
    /// The root refuses this host, or they did not come in time.
    pub async fn assigned(&self) -> Result<Assignment> {
        Ok(self.assignment)
    }

    /// Where the ranks of this host find their service.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Fails the job: every rank hears of it, and calls that wait end. Only the first failure counts.
    pub fn fail(&self, failure: Failure) {
        self.job.state.send_if_modified(|s| s.fail(failure));
    }

    /// Why the job has failed, if it has.
    pub fn failure(&self) -> Option<Failure> {
        self.job.state.borrow().failure().cloned()
    }

    /// Waits until the job has failed.
    pub async fn failed(&self) -> Failure {
        let mut changes = self.job.state.subscribe();
        match changes.wait_for(|s| s.failure().is_some()).await.ok().and_then(|s| s.failure().cloned()) {
            Some(failure) => failure,
            // The sender lives in self, so the wait cannot end otherwise.
            None => std::future::pending().await,
        }
    }

    /// Notes that a rank's process has ended, whether or not it said goodbye.
    pub fn mark_left(&self, rank: usize) {
        self.job.state.send_if_modified(|s| s.leave(rank));
    }

    /// The ranks that have left, in order: a rank that fails because another has gone stands behind that one.
    pub fn departures(&self) -> Vec<usize> {
        self.job.state.borrow().departures().to_vec()
    }

    /// What a key holds.
    pub fn value(&self, key: &str) -> Option<Vec<u8>> {
        self.job.state.borrow().get(key)
    }

    /// What ranks have communicated, as JSON of `oflow::Report`, by rank; of those that came to tell.
    pub fn reports(&self) -> BTreeMap<usize, String> {
        self.job.state.borrow().reports().clone()
    }

    /// Ranks that have joined, have not left, and have not been heard of for longer than `limit`.
    pub fn silent(&self, limit: Duration) -> Vec<Silence> {
        self.job.state.borrow().silent(Instant::now(), limit)
    }
}

/// The service's side of the job state.
#[derive(Clone)]
struct Job {
    state: Arc<watch::Sender<JobState>>,
    cost_model: Arc<[u8]>,
}

impl Job {
    /// Changes the state; waiters look again if `change` says so.
    fn change<T>(&self, change: impl FnOnce(&mut JobState) -> Result<(T, bool), Refusal>) -> Result<T, Status> {
        let mut outcome = None;
        self.state.send_if_modified(|state| match change(state) {
            Ok((value, wake)) => {
                outcome = Some(Ok(value));
                wake
            }
            Err(refusal) => {
                // A refusal may have failed the job, which waiters must see.
                let wake = refusal.fails_job;
                outcome = Some(Err(refusal.status));
                wake
            }
        });
        outcome.unwrap_or_else(|| Err(Status::internal("the state was not looked at")))
    }

    /// Waits until `done` says something, the job fails, or the time is up (`None`).
    async fn wait<T>(&self, limit: Duration, done: impl Fn(&JobState) -> Option<T>) -> Result<Option<T>, Status> {
        let mut changes = self.state.subscribe();
        let ready = changes.wait_for(|s| s.failure().is_some() || done(s).is_some());
        match tokio::time::timeout(limit.min(LONGEST_WAIT), ready).await {
            Err(_) => Ok(None),
            Ok(Err(_)) => Err(Status::aborted("the job is over")),
            Ok(Ok(state)) => match (done(&state), state.failure()) {
                (Some(value), _) => Ok(Some(value)),
                (None, Some(failure)) => Err(aborted(failure)),
                (None, None) => Ok(None),
            },
        }
    }
}

/// Takes a waiting rank out of its meeting when the wait ends, also early: by a timeout, or because the caller went away.
struct Waiting<'a> {
    job: &'a Job,
    arrival: Arrival,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.job.state.send_if_modified(|s| {
            s.withdraw(&self.arrival);
            false
        });
    }
}

fn aborted(failure: &Failure) -> Status {
    Status::aborted(format!("the job has failed: {failure}"))
}

#[tonic::async_trait]
impl Control for Job {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<pb::WatchEvent, Status>> + Send>>;

    async fn join(&self, request: Request<pb::JoinRequest>) -> Result<Response<pb::JoinReply>, Status> {
        let request = request.into_inner();
        let world_size = self.change(|s| s.join(request, Instant::now()).map(|world| (world, true)))?;
        Ok(Response::new(pb::JoinReply { world_size, cost_model: self.cost_model.to_vec() }))
    }

    async fn put(&self, request: Request<pb::PutRequest>) -> Result<Response<pb::PutReply>, Status> {
        let pb::PutRequest { key, value } = request.into_inner();
        self.change(|s| s.put(key, value).map(|()| ((), true)))?;
        Ok(Response::new(pb::PutReply {}))
    }

    async fn get(&self, request: Request<pb::GetRequest>) -> Result<Response<pb::GetReply>, Status> {
        let pb::GetRequest { key, wait_ms } = request.into_inner();
        if wait_ms == 0 {
            let value = self.state.borrow().get(&key);
            return Ok(Response::new(pb::GetReply { value }));
        }
        let value = self.wait(Duration::from_millis(wait_ms), |s| s.get(&key)).await?;
        Ok(Response::new(pb::GetReply { value }))
    }

    async fn compare_and_set(
        &self,
        request: Request<pb::CompareAndSetRequest>,
    ) -> Result<Response<pb::CompareAndSetReply>, Status> {
        let pb::CompareAndSetRequest { key, expected, value } = request.into_inner();
        let reply = self.change(|s| {
            let (set, current) = s.compare_and_set(key, expected.as_deref(), value)?;
            Ok((pb::CompareAndSetReply { set, current }, set))
        })?;
        Ok(Response::new(reply))
    }

    async fn meet(&self, request: Request<pb::MeetRequest>) -> Result<Response<pb::MeetReply>, Status> {
        let request = request.into_inner();
        let limit = Duration::from_millis(request.wait_ms);
        let name = request.name.clone();
        let arrival = self.change(|s| s.arrive(request))?;
        let waiting = Waiting { job: self, arrival };
        match self.wait(limit, |s| s.verdict(&waiting.arrival)).await? {
            Some(Ok(values)) => Ok(Response::new(pb::MeetReply { values: values.to_vec() })),
            Some(Err(why)) => Err(Status::failed_precondition(why)),
            None => {
                let missing = self.state.borrow().describe_meeting(&waiting.arrival);
                let seconds = limit.as_secs_f64();
                Err(Status::deadline_exceeded(format!(
                    "barrier {name:?} was not complete after {seconds:.1} s: {missing}"
                )))
            }
        }
    }

    async fn heartbeat(&self, request: Request<pb::HeartbeatRequest>) -> Result<Response<pb::HeartbeatReply>, Status> {
        let pb::HeartbeatRequest { rank, progress, .. } = request.into_inner();
        self.change(|s| s.heartbeat(rank, progress, Instant::now()).map(|()| ((), false)))?;
        Ok(Response::new(pb::HeartbeatReply { ask: None }))
    }

    async fn watch(&self, _request: Request<pb::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let (events, stream) = tokio::sync::mpsc::channel(1);
        let mut changes = self.state.subscribe();
        tokio::spawn(async move {
            let failure = tokio::select! {
                // The rank has gone: nobody is left to tell.
                () = events.closed() => return,
                state = changes.wait_for(|s| s.failure().is_some()) => state.ok().and_then(|s| s.failure().cloned()),
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
        self.change(|s| s.report(request).map(|wake| ((), wake)))?;
        Ok(Response::new(pb::ReportFailureReply {}))
    }

    async fn submit_report(
        &self,
        request: Request<pb::SubmitReportRequest>,
    ) -> Result<Response<pb::SubmitReportReply>, Status> {
        let request = request.into_inner();
        self.change(|s| s.submit_report(request).map(|()| ((), false)))?;
        Ok(Response::new(pb::SubmitReportReply {}))
    }

    async fn leave(&self, request: Request<pb::LeaveRequest>) -> Result<Response<pb::LeaveReply>, Status> {
        let rank = request.into_inner().rank as usize;
        self.change(|s| Ok(((), s.leave(rank))))?;
        Ok(Response::new(pb::LeaveReply {}))
    }
}
