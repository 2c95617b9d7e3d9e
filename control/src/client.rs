//! A rank's client of the control service: blocking calls, carried out by a thread of the client.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use oflow_proto::control as pb;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tonic::{Code, Request, Status};

use super::flight::Recorder;
use super::glimpse::Watched;
use super::service::missing_rank;
use super::session::{self, Stub};
use super::vitals::Vitals;
use super::{Failure, LaunchEnv};
use oflow_base::{Error, ErrorKind, Result};
use oflow_comm::Communicator;

/// Versions that a rank sends when it joins. They must be equal on all ranks of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Version of the oflow library.
    pub version: String,
    /// Hash of all op declarations.
    pub registry_hash: u64,
    /// Hash of the program.
    pub program_hash: u64,
}

/// Result of [`ControlClient::compare_and_set`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CasOutcome {
    /// The key now holds the new value.
    Set,
    /// The key held another value, given here (`None`: the key was not set), and was not changed.
    Differs(Option<Vec<u8>>),
}

/// A waiting call gives the service this much longer than the caller's own limit, so that the service's better message
/// (who is missing) wins over a bare timeout.
const SLACK: Duration = Duration::from_secs(5);
/// Calls that do not wait for other ranks, while node 0 can be reached.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait that a call may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

type Callback = Box<dyn FnOnce(&Failure) + Send>;
type MakeReport = Box<dyn FnOnce() -> String + Send>;

/// The clock of this host beside that of node 0, as the launchers compare them. It stays readable when the rank has left the job.
#[derive(Clone, Debug, Default)]
pub struct HostClock(Arc<Mutex<Option<(i64, u64)>>>);

impl HostClock {
    /// The clock of node 0 minus the clock of this host, in nanoseconds, and its largest error. It is (0, 0) on node 0, and `None` during
    /// the first half second elsewhere.
    pub fn offset(&self) -> Option<(i64, u64)> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, offset_ns: i64, error_ns: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((offset_ns, error_ns));
    }
}

/// State that the client's thread and its handle share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) vitals: OnceLock<Vitals>,
    /// Source of the rank's glimpses while somebody watches the job.
    pub(super) watched: OnceLock<Arc<dyn Watched>>,
    /// Asks for a heartbeat at once.
    pub(super) beat: Notify,
    pub(super) clock: HostClock,
    failed: AtomicBool,
    /// Whether the service has been told for whom this rank has waited in vain.
    missing: AtomicBool,
    news: Mutex<News>,
}

#[derive(Default)]
struct News {
    failure: Option<Failure>,
    callbacks: Vec<Callback>,
}

impl Shared {
    fn news(&self) -> std::sync::MutexGuard<'_, News> {
        // The data is whole at every point where a panic could happen, so a poisoned lock is usable.
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the first failure and calls the callbacks. Later failures are consequences and are dropped.
    pub(super) fn fail(&self, failure: Failure) {
        let callbacks = {
            let mut news = self.news();
            if news.failure.is_some() {
                return;
            }
            news.failure = Some(failure.clone());
            self.failed.store(true, Ordering::Release);
            std::mem::take(&mut news.callbacks)
        };
        // Outside the lock: a callback may ask the client about the failure.
        for callback in callbacks {
            callback(&failure);
        }
    }
}

/// A rank's connection to the control service of its job.
///
/// Calls block the calling thread. They work inside any async runtime of the program, because the client's runtime has its own
/// thread. That thread also sends heartbeats and receives news of failures. Dropping the client leaves the job; the launcher
/// judges success by the exit code of the process.
pub struct ControlClient {
    rank: usize,
    local_rank: usize,
    world: usize,
    cost_model: Vec<u8>,
    stub: Stub,
    runtime: Handle,
    shared: Arc<Shared>,
    wants_report: bool,
    /// Time-out of a call that waits for nobody: an outage of the network to node 0 included.
    call_limit: Duration,
    /// Time-out of a call that waits for other ranks for as long as the job lives.
    wait_limit: Duration,
    report: Mutex<Option<MakeReport>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ControlClient {
    /// Connects to the service that `env` names and joins the job.
    ///
    /// # Errors
    /// If the service cannot be reached within ten seconds, if it does not accept the token, or if the rank's build of oflow or
    /// its program differs from that of the other ranks (the message names both).
    pub fn connect(env: &LaunchEnv, hello: Hello) -> Result<ControlClient> {
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = oneshot::channel();
        let (started_tx, started) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("oflow-control".into())
            .spawn({
                let (env, shared) = (env.clone(), shared.clone());
                move || session::run(&env, hello, &shared, &started_tx, stopped)
            })
            .map_err(|e| Error::comm("cannot start the control thread").because(e))?;
        let session = started.recv().map_err(|_| Error::comm("the control thread ended before it had connected"))??;
        Ok(ControlClient {
            rank: env.rank,
            local_rank: env.local_rank,
            world: session.world,
            cost_model: session.cost_model,
            stub: session.stub,
            runtime: session.runtime,
            shared,
            wants_report: env.report,
            call_limit: CALL_TIMEOUT + env.outage.patience(),
            wait_limit: env.wait_limit(),
            report: Mutex::default(),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the number of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of this rank on its host.
    pub fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// Returns the number of ranks in the job.
    pub fn world(&self) -> usize {
        self.world
    }

    /// Returns the measured constants of the cost model as JSON: the same bytes on every rank of the job, empty if there are
    /// none.
    pub fn cost_model(&self) -> &[u8] {
        &self.cost_model
    }

    /// Sets `key` to `value`.
    pub fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        let request = pb::PutRequest { key: key.into(), value: value.into() };
        let (mut stub, limit) = (self.stub.clone(), self.call_limit);
        self.call(async move { stub.put(timed(request, limit)).await }).map(drop)
    }

    /// Returns the value of `key`, or `None` if it is not set.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.get_within(key, Duration::ZERO)
    }

    /// Waits until `key` is set and returns its value.
    ///
    /// # Errors
    /// If no rank sets it within `timeout`, or if the job fails meanwhile.
    pub fn get_wait(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        self.get_within(key, timeout)?.ok_or_else(|| {
            Error::comm(format!("no rank has set the key {key:?} within {:.1} s", timeout.as_secs_f64()))
        })
    }

    /// Sets `key` to `value` if it holds `expected` (`None`: if it is not set).
    pub fn compare_and_set(&self, key: &str, expected: Option<&[u8]>, value: &[u8]) -> Result<CasOutcome> {
        let request =
            pb::CompareAndSetRequest { key: key.into(), expected: expected.map(<[u8]>::to_vec), value: value.into() };
        let (mut stub, limit) = (self.stub.clone(), self.call_limit);
        let reply = self.call(async move { stub.compare_and_set(timed(request, limit)).await })?;
        Ok(if reply.set { CasOutcome::Set } else { CasOutcome::Differs(reply.current) })
    }

    /// Waits until `participants` different ranks have called this with the same name. The name may be used again afterwards.
    ///
    /// # Errors
    /// If fewer ranks call it within `timeout` (the message lists those that did), if they differ in `participants`, or if the
    /// job fails meanwhile.
    pub fn barrier(&self, name: &str, participants: usize, timeout: Duration) -> Result<()> {
        self.meet(name, participants, &[], timeout).map(drop)
    }

    /// Gathers small values: waits until `participants` different ranks have called this with the same name, and returns the
    /// value of each, in order of ranks.
    ///
    /// # Errors
    /// Those of [`ControlClient::barrier`].
    pub fn meet(&self, name: &str, participants: usize, value: &[u8], timeout: Duration) -> Result<Vec<Vec<u8>>> {
        self.gather(name, (participants, Vec::new()), value, timeout)
    }

    /// [`ControlClient::meet`] of these ranks, this one among them, in order. The wait ends with an error as soon as one of them has left
    /// the job, and one that does not come counts as stalled (`oflaunch --stall`).
    ///
    /// # Errors
    /// Those of [`ControlClient::barrier`], and if the ranks differ in `ranks`.
    pub fn meet_of(&self, name: &str, ranks: &[usize], value: &[u8]) -> Result<Vec<Vec<u8>>> {
        let members = ranks.iter().map(|r| u32::try_from(*r).unwrap_or(u32::MAX)).collect();
        self.gather(name, (ranks.len(), members), value, self.wait_limit)
    }

    fn gather(
        &self,
        name: &str,
        (participants, members): (usize, Vec<u32>),
        value: &[u8],
        timeout: Duration,
    ) -> Result<Vec<Vec<u8>>> {
        let request = pb::MeetRequest {
            name: name.into(),
            rank: self.rank as u32,
            participants: u32::try_from(participants).unwrap_or(u32::MAX),
            wait_ms: millis(timeout),
            value: value.into(),
            members,
        };
        let mut stub = self.stub.clone();
        let limit = timeout.min(LONGEST_WAIT) + SLACK;
        Ok(self.call(async move { stub.meet(timed(request, limit)).await })?.values)
    }

    /// Reports that this rank has failed. Every rank is told, and the launcher ends the job.
    pub fn report_failure(&self, failure: &Failure) -> Result<()> {
        let request = pb::ReportFailureRequest {
            rank: self.rank as u32,
            message: failure.message.clone(),
            detail: failure.to_json(),
        };
        let (mut stub, limit) = (self.stub.clone(), self.call_limit);
        self.call(async move { stub.report_failure(timed(request, limit)).await }).map(drop)
    }

    /// Fails the job on this rank only, if the service cannot be told any more.
    pub(crate) fn fail_here(&self, failure: Failure) {
        self.shared.fail(failure);
    }

    /// Returns whether the launcher asks for a report of this rank's communication at its end (`oflaunch --report`).
    pub fn wants_report(&self) -> bool {
        self.wants_report
    }

    /// Registers `make`, which is called when this rank leaves; its result is sent to the launcher. A later call replaces `make`.
    pub fn report_at_end(&self, make: impl FnOnce() -> String + Send + 'static) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(make));
    }

    /// Adds to the heartbeats how far this rank is and which ranks it waits for in that communicator.
    pub fn watch(&self, recorder: Arc<Recorder>, comm: &Arc<dyn Communicator>) {
        let vitals = Vitals::new(recorder, comm);
        // A second context of one client would be a second rank of the same number.
        let _first_counts = self.shared.vitals.set(vitals);
    }

    /// Adds to the heartbeats what this rank shows, whenever somebody watches the job (`oflaunch --watch`, `--top`).
    pub fn show(&self, what: Arc<dyn Watched>) {
        let _first_counts = self.shared.watched.set(what);
    }

    /// Reports that this rank and another one are in different ops, together with this rank's last ops. The service compares them
    /// and finds the first op that differs. Returns when it is found, or after a short time. An error of this call is logged
    /// only: the job fails anyway.
    pub fn tell_divergence(&self, error: &Error) {
        self.shared.beat.notify_one();
        if let Err(e) = self.report_failure(&Failure::of_error(self.rank, error)) {
            tracing::debug!("could not tell of a divergence: {e}");
        }
    }

    /// Tells the service for whom this rank has waited in vain, if the error says so. If this rank ends badly then, however it
    /// does so, that rank is reported as the cause.
    pub fn note_missing(&self, error: &Error) {
        let Some(rank) = error.missing_rank() else { return };
        // The first one counts: what follows is its consequence.
        if self.shared.missing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (missing, link) = (rank as u32, error.kind() == ErrorKind::Link);
        let request = pb::NoteMissingRequest { rank: self.rank as u32, missing, link };
        let (mut stub, limit) = (self.stub.clone(), self.call_limit);
        if let Err(e) = self.call(async move { stub.note_missing(timed(request, limit)).await }) {
            tracing::debug!("could not tell that rank {rank} is missing: {e}");
        }
    }

    /// Returns the clock of this host, to order times of several hosts.
    pub fn host_clock(&self) -> HostClock {
        self.shared.clock.clone()
    }

    /// Appends an event, such as a metric, to the event log of node 0's launcher (`oflaunch --events`).
    ///
    /// # Errors
    /// If the service cannot be reached.
    pub fn publish(&self, topic: &str, text: &str) -> Result<()> {
        let request = pb::PublishRequest { rank: self.rank as u32, topic: topic.into(), text: text.into() };
        let (mut stub, limit) = (self.stub.clone(), self.call_limit);
        self.call(async move { stub.publish(timed(request, limit)).await }).map(drop)
    }

    /// Returns whether this rank knows that the job has failed. The cost is one atomic load.
    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }

    /// Returns why the job has failed, or `None`.
    pub fn failure(&self) -> Option<Failure> {
        self.shared.news().failure.clone()
    }

    /// Calls `callback` once when the job fails, on the client's thread. If the job has failed already it is called at once, on
    /// this thread. It must not block, because heartbeats wait for it.
    pub fn on_failure(&self, callback: impl FnOnce(&Failure) + Send + 'static) {
        let failure = {
            let mut news = self.shared.news();
            match &news.failure {
                Some(failure) => failure.clone(),
                None => {
                    news.callbacks.push(Box::new(callback));
                    return;
                }
            }
        };
        callback(&failure);
    }

    /// Leaves the job. The rank takes part in no further calls.
    pub fn leave(mut self) -> Result<()> {
        let left = self.say_goodbye();
        self.stop_thread();
        left
    }

    fn get_within(&self, key: &str, wait: Duration) -> Result<Option<Vec<u8>>> {
        let request = pb::GetRequest { key: key.into(), wait_ms: millis(wait) };
        let mut stub = self.stub.clone();
        let limit = self.call_limit.max(wait.min(LONGEST_WAIT) + SLACK);
        Ok(self.call(async move { stub.get(timed(request, limit)).await })?.value)
    }

    pub(super) fn say_goodbye(&self) -> Result<()> {
        let make = self.report.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(make) = make {
            let request = pb::SubmitReportRequest { rank: self.rank as u32, report: make() };
            let (mut stub, limit) = (self.stub.clone(), self.call_limit);
            // A report that is lost must not keep the rank from saying goodbye; the launcher says whose it has not got.
            if let Err(error) = self.call(async move { stub.submit_report(timed(request, limit)).await }) {
                tracing::debug!("could not report: {error}");
            }
        }
        let request = pb::LeaveRequest { rank: self.rank as u32 };
        let (mut stub, limit) = (self.stub.clone(), self.call_limit);
        self.call(async move { stub.leave(timed(request, limit)).await }).map(drop)
    }

    /// Runs one call on the client's thread and waits for its answer. A std channel, because a runtime's own blocking
    /// primitives refuse to be used on a thread of the user's runtime.
    fn call<T, F>(&self, future: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<tonic::Response<T>, Status>> + Send + 'static,
    {
        let (answer, answered) = mpsc::sync_channel(1);
        // Not waited for by its handle: if the runtime is gone the task is dropped, and with it the sending end.
        drop(self.runtime.spawn(async move {
            let _receiver_waits = answer.send(future.await);
        }));
        match answered.recv() {
            Ok(Ok(reply)) => Ok(reply.into_inner()),
            Ok(Err(status)) => {
                let error = explain(&status);
                self.note_missing(&error);
                Err(error)
            }
            Err(_) => Err(Error::comm("the control thread has ended")),
        }
    }

    fn stop_thread(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            // A failure callback may drop the last handle, and a thread cannot wait for itself.
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the control thread panicked");
        }
    }
}

impl Drop for ControlClient {
    fn drop(&mut self) {
        let on_own_thread = self.thread.as_ref().is_some_and(|t| t.thread().id() == std::thread::current().id());
        if self.thread.is_some()
            && !on_own_thread
            && let Err(error) = self.say_goodbye()
        {
            tracing::debug!("could not leave the job: {error}");
        }
        self.stop_thread();
    }
}

impl fmt::Debug for ControlClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ControlClient(rank {} of {})", self.rank, self.world)
    }
}

/// A request with a deadline, which both ends keep.
pub(super) fn timed<T>(message: T, limit: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.min(LONGEST_WAIT).as_millis()).unwrap_or(u64::MAX)
}

/// An answer of the service as an error of oflow.
pub(super) fn explain(status: &Status) -> Error {
    match missing_rank(status) {
        Some(rank) => explain_code(status).missing(rank),
        None => explain_code(status),
    }
}

fn explain_code(status: &Status) -> Error {
    let message = status.message();
    match status.code() {
        Code::Aborted => Error::peer(message),
        Code::InvalidArgument | Code::OutOfRange | Code::ResourceExhausted => Error::argument(message),
        Code::FailedPrecondition | Code::AlreadyExists | Code::DeadlineExceeded => Error::comm(message),
        code => Error::comm(format!("the control service does not answer ({code}: {message})"))
            .help("oflaunch may have been killed"),
    }
}
