//! The rank's handle on the control plane: blocking calls, served by a thread of the client's own.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use oflow_proto::control as pb;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tonic::{Code, Request, Status};

use super::flight::Recorder;
use super::session::{self, Stub};
use super::vitals::Vitals;
use super::{Failure, LaunchEnv};
use oflow_base::{Error, Result};
use oflow_comm::Communicator;

/// What a rank says of itself when it joins. All ranks of a job must say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Version of the oflow library.
    pub version: String,
    /// Hash of all op declarations.
    pub registry_hash: u64,
    /// Hash of the program.
    pub program_hash: u64,
}

/// What [`ControlClient::compare_and_set`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CasOutcome {
    /// The key holds the new value.
    Set,
    /// The key held something else, which is here (none: it was not set), and was left alone.
    Differs(Option<Vec<u8>>),
}

/// A waiting call gives the service this much longer than the caller's own limit, so that the service's better message
/// (who is missing) wins over a bare timeout.
const SLACK: Duration = Duration::from_secs(5);
/// Calls that do not wait for other ranks.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait that a call may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

type Callback = Box<dyn FnOnce(&Failure) + Send>;
type MakeReport = Box<dyn FnOnce() -> String + Send>;

/// What the client's thread and its handle share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) vitals: OnceLock<Vitals>,
    /// Heartbeats that are wanted at once.
    pub(super) beat: Notify,
    /// What to add to this host's clock to have node 0's, in nanoseconds.
    pub(super) clock_offset: AtomicI64,
    failed: AtomicBool,
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

    /// Records the first failure and tells everyone who asked. Later ones are consequences and are dropped.
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
/// The calls block the calling thread and work under any async runtime of the user's, because the client's own runtime
/// lives on its own thread. That thread also sends the heartbeats and hears of failures. Dropping the client leaves the
/// job; how the rank ended, the launcher sees by its exit.
pub struct ControlClient {
    rank: usize,
    local_rank: usize,
    world: usize,
    cost_model: Vec<u8>,
    stub: Stub,
    runtime: Handle,
    shared: Arc<Shared>,
    wants_report: bool,
    report: Mutex<Option<MakeReport>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ControlClient {
    /// Connects to the service that `env` names and joins the job.
    ///
    /// # Errors
    /// The service cannot be reached within five seconds, does not know the token, or refuses the rank because its build
    /// or its program is not that of the other ranks; the message then names both sides.
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
            report: Mutex::default(),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// This rank's number on its host.
    pub fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// Number of ranks in the job, as the service says.
    pub fn world(&self) -> usize {
        self.world
    }

    /// Measured constants of the cost model as JSON, the same bytes for every rank of the job; empty where there are none.
    pub fn cost_model(&self) -> &[u8] {
        &self.cost_model
    }

    /// Sets `key`, whatever it held.
    pub fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        let request = pb::PutRequest { key: key.into(), value: value.into() };
        let mut stub = self.stub.clone();
        self.call(async move { stub.put(timed(request, CALL_TIMEOUT)).await }).map(drop)
    }

    /// What `key` holds now, if anything.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.get_within(key, Duration::ZERO)
    }

    /// What `key` holds, as soon as it holds something.
    ///
    /// # Errors
    /// Nobody set it within `timeout`, or the job failed meanwhile.
    pub fn get_wait(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        self.get_within(key, timeout)?.ok_or_else(|| {
            Error::comm(format!("no rank has set the key {key:?} within {:.1} s", timeout.as_secs_f64()))
        })
    }

    /// Sets `key` to `value` if it holds `expected` (none: is not set).
    pub fn compare_and_set(&self, key: &str, expected: Option<&[u8]>, value: &[u8]) -> Result<CasOutcome> {
        let request =
            pb::CompareAndSetRequest { key: key.into(), expected: expected.map(<[u8]>::to_vec), value: value.into() };
        let mut stub = self.stub.clone();
        let reply = self.call(async move { stub.compare_and_set(timed(request, CALL_TIMEOUT)).await })?;
        Ok(if reply.set { CasOutcome::Set } else { CasOutcome::Differs(reply.current) })
    }

    /// Waits until `participants` different ranks have come to the barrier of this name; it may be used again at once.
    ///
    /// # Errors
    /// They did not all come within `timeout` (the message says who did), they do not agree on the number, or the job
    /// failed meanwhile.
    pub fn barrier(&self, name: &str, participants: usize, timeout: Duration) -> Result<()> {
        self.meet(name, participants, &[], timeout).map(drop)
    }

    /// Brings a small value to the meeting of this name, waits for `participants` different ranks, and returns what each of
    /// them brought, in order of ranks.
    ///
    /// # Errors
    /// As [`ControlClient::barrier`].
    pub fn meet(&self, name: &str, participants: usize, value: &[u8], timeout: Duration) -> Result<Vec<Vec<u8>>> {
        let request = pb::MeetRequest {
            name: name.into(),
            rank: self.rank as u32,
            participants: u32::try_from(participants).unwrap_or(u32::MAX),
            wait_ms: millis(timeout),
            value: value.into(),
        };
        let mut stub = self.stub.clone();
        let limit = timeout.min(LONGEST_WAIT) + SLACK;
        Ok(self.call(async move { stub.meet(timed(request, limit)).await })?.values)
    }

    /// Fails the job in this rank's name: every rank hears of it, and the launcher ends the job.
    pub fn report_failure(&self, failure: &Failure) -> Result<()> {
        let request = pb::ReportFailureRequest {
            rank: self.rank as u32,
            message: failure.message.clone(),
            detail: failure.to_json(),
        };
        let mut stub = self.stub.clone();
        self.call(async move { stub.report_failure(timed(request, CALL_TIMEOUT)).await }).map(drop)
    }

    /// Fails the job for this rank alone, which knows what the service cannot tell any more.
    pub(crate) fn fail_here(&self, failure: Failure) {
        self.shared.fail(failure);
    }

    /// Whether the launcher wants to hear at the end what this rank has communicated.
    pub fn wants_report(&self) -> bool {
        self.wants_report
    }

    /// Has `make` called when this rank leaves; what it returns goes to the launcher. The last one given counts.
    pub fn report_at_end(&self, make: impl FnOnce() -> String + Send + 'static) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(make));
    }

    /// Has the heartbeats tell how far this rank is, and what it waits for in that communicator.
    pub fn watch(&self, recorder: Arc<Recorder>, comm: &Arc<dyn Communicator>) {
        let vitals = Vitals::new(recorder, comm);
        // A second context of one client would be a second rank of the same number.
        let _first_counts = self.shared.vitals.set(vitals);
    }

    /// Tells the service that this rank has met another one in a different op, with its last ops, from which the service
    /// finds the first one that differs. Returns when that is found, or after a short time. Errors are consequences of the
    /// failure that is told anyway.
    pub fn tell_divergence(&self, error: &Error) {
        self.shared.beat.notify_one();
        if let Err(e) = self.report_failure(&Failure::of_error(self.rank, error)) {
            tracing::debug!("could not tell of a divergence: {e}");
        }
    }

    /// What to add to this host's clock to have node 0's, in nanoseconds: to put times of several hosts in one order. 0 on
    /// node 0, and for the first second elsewhere.
    pub fn clock_offset(&self) -> i64 {
        self.shared.clock_offset.load(Ordering::Relaxed)
    }

    /// Tells node 0's launcher something for its log of events (`oflaunch --events`): a metric, for instance.
    ///
    /// # Errors
    /// The service cannot be reached.
    pub fn publish(&self, topic: &str, text: &str) -> Result<()> {
        let request = pb::PublishRequest { rank: self.rank as u32, topic: topic.into(), text: text.into() };
        let mut stub = self.stub.clone();
        self.call(async move { stub.publish(timed(request, CALL_TIMEOUT)).await }).map(drop)
    }

    /// Whether the job is known to have failed. Costs one load.
    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }

    /// Why the job has failed, if it has.
    pub fn failure(&self) -> Option<Failure> {
        self.shared.news().failure.clone()
    }

    /// Has `callback` called once when the job fails, on the client's thread; at once, on this thread, if it already has.
    /// It must not block: heartbeats wait for it.
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

    /// Leaves the job: this rank is done and expects nothing more.
    pub fn leave(mut self) -> Result<()> {
        let left = self.say_goodbye();
        self.stop_thread();
        left
    }

    fn get_within(&self, key: &str, wait: Duration) -> Result<Option<Vec<u8>>> {
        let request = pb::GetRequest { key: key.into(), wait_ms: millis(wait) };
        let mut stub = self.stub.clone();
        let limit = CALL_TIMEOUT.max(wait.min(LONGEST_WAIT) + SLACK);
        Ok(self.call(async move { stub.get(timed(request, limit)).await })?.value)
    }

    pub(super) fn say_goodbye(&self) -> Result<()> {
        let make = self.report.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(make) = make {
            let request = pb::SubmitReportRequest { rank: self.rank as u32, report: make() };
            let mut stub = self.stub.clone();
            // A report that is lost must not keep the rank from saying goodbye; the launcher says whose it has not got.
            if let Err(error) = self.call(async move { stub.submit_report(timed(request, CALL_TIMEOUT)).await }) {
                tracing::debug!("could not report: {error}");
            }
        }
        let request = pb::LeaveRequest { rank: self.rank as u32 };
        let mut stub = self.stub.clone();
        self.call(async move { stub.leave(timed(request, CALL_TIMEOUT)).await }).map(drop)
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
            Ok(Err(status)) => Err(explain(&status)),
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
    let message = status.message();
    match status.code() {
        Code::Aborted => Error::peer(message),
        Code::InvalidArgument | Code::OutOfRange | Code::ResourceExhausted => Error::argument(message),
        Code::FailedPrecondition | Code::AlreadyExists | Code::DeadlineExceeded => Error::comm(message),
        Code::Unauthenticated => Error::comm("the control service does not know this job's token")
            .help("start all ranks of a job with the same oflaunch"),
        code => Error::comm(format!("the control service does not answer ({code}: {message})"))
            .help("oflaunch may have been killed"),
    }
}
