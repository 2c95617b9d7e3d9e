//! The control service and its clients over real sockets: ranks are threads here.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use crate::common::{LONG, wait_for};
use oflow::comm::{Communicator, sim::SimWorld};
use oflow::control::flight::Recorder;
use oflow::control::service::{Agent, AgentOptions};
use oflow::control::{CasOutcome, ControlClient, Failure, FailureKind, Hello, LaunchEnv, Token};
use oflow::{CallSite, Error, ErrorKind};
use oflow_proto::control as pb;
use oflow_proto::control::control_client::ControlClient as Raw;
use tokio::runtime::Runtime;
use tonic::transport::Endpoint;

/// What the launcher tells of the cost model; to the service it is bytes.
const MODEL: &[u8] = b"{\"a\": 1}";

/// A service for a test, on a runtime of its own.
struct Service {
    runtime: Runtime,
    agent: Option<Agent>,
    token: Token,
    world: usize,
}

impl Service {
    fn new(world: usize) -> Service {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let token = Token::random().unwrap();
        let options = AgentOptions { cost_model: MODEL.to_vec(), ..AgentOptions::alone(world, token.clone()) };
        let agent = runtime.block_on(Agent::start(options)).unwrap();
        Service { runtime, agent: Some(agent), token, world }
    }

    fn agent(&self) -> &Agent {
        self.agent.as_ref().unwrap()
    }

    fn env(&self, rank: usize) -> LaunchEnv {
        LaunchEnv {
            rank,
            local_rank: rank,
            world: self.world,
            local_world: self.world,
            node: 0,
            nodes: 1,
            master_addr: self.agent().address().ip().to_string(),
            master_port: self.agent().address().port(),
            token: self.token.clone(),
            shm_fd: None,
            address: None,
            report: false,
            stall: None,
            outage: Default::default(),
            threads: None,
        }
    }

    fn client(&self, rank: usize) -> ControlClient {
        ControlClient::connect(&self.env(rank), hello()).unwrap()
    }

    fn clients(&self) -> Vec<ControlClient> {
        (0..self.world).map(|rank| self.client(rank)).collect()
    }
}

fn hello() -> Hello {
    Hello { version: "1.0".into(), registry_hash: 1, program_hash: 2 }
}

fn refused<T>(result: oflow::Result<T>) -> Error {
    result.map(drop).unwrap_err()
}

#[test]
fn values_reach_every_rank() {
    let service = Service::new(2);
    let clients = service.clients();
    assert_eq!((clients[1].rank(), clients[1].world()), (1, 2));
    assert!(clients.iter().all(|c| c.cost_model() == MODEL));
    assert_eq!(clients[1].get("id").unwrap(), None);
    clients[0].put("id", b"\0\xff").unwrap();
    assert_eq!(clients[1].get("id").unwrap(), Some(b"\0\xff".to_vec()));
    clients[1].put("id", b"").unwrap();
    assert_eq!(clients[0].get_wait("id", LONG).unwrap(), b"");
}

#[test]
fn a_reader_waits_for_the_writer() {
    let service = Service::new(2);
    let [writer, reader] = <[ControlClient; 2]>::try_from(service.clients()).unwrap();
    let waiting = std::thread::spawn(move || reader.get_wait("late", LONG));
    // Whether the reader is there first or not, it must get the value.
    writer.put("late", b"value").unwrap();
    assert_eq!(waiting.join().unwrap().unwrap(), b"value");
    let error = refused(writer.get_wait("never", Duration::from_millis(30)));
    assert_eq!(error.to_string(), "no rank has set the key \"never\" within 0.0 s");
}

#[test]
fn one_of_many_wins_a_compare_and_set() {
    let service = Service::new(4);
    let threads: Vec<_> = service
        .clients()
        .into_iter()
        .map(|client| {
            std::thread::spawn(move || client.compare_and_set("leader", None, &[client.rank() as u8]).unwrap())
        })
        .collect();
    let outcomes: Vec<CasOutcome> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    let winners: Vec<usize> = (0..4).filter(|r| outcomes[*r] == CasOutcome::Set).collect();
    assert_eq!(winners.len(), 1);
    for outcome in outcomes.iter().filter(|o| **o != CasOutcome::Set) {
        assert_eq!(*outcome, CasOutcome::Differs(Some(vec![winners[0] as u8])));
    }
}

#[test]
fn nobody_passes_a_barrier_early() {
    const ROUNDS: usize = 20;
    let service = Service::new(4);
    let counters: Arc<Vec<_>> = Arc::new((0..4).map(|_| std::sync::atomic::AtomicUsize::new(0)).collect());
    let threads: Vec<_> = service
        .clients()
        .into_iter()
        .map(|client| {
            let counters = counters.clone();
            std::thread::spawn(move || {
                use std::sync::atomic::Ordering::SeqCst;
                for round in 1..=ROUNDS {
                    counters[client.rank()].store(round, SeqCst);
                    client.barrier("step", 4, LONG).unwrap();
                    assert!(counters.iter().all(|c| c.load(SeqCst) >= round));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

#[test]
fn a_barrier_that_cannot_complete_says_why() {
    let service = Service::new(3);
    let [a, b, c] = <[ControlClient; 3]>::try_from(service.clients()).unwrap();
    let error = refused(a.barrier("x", 3, Duration::from_millis(50)));
    assert_eq!(error.kind(), ErrorKind::Comm);
    assert_eq!(error.message(), "barrier \"x\" was not complete after 0.1 s: 1 of 3 ranks came, ranks 1, 2 did not");
    // The one whose time was up does not count as present.
    let error = refused(b.barrier("x", 2, Duration::from_millis(50)));
    assert!(error.message().ends_with("1 of 2 ranks came: rank 1"), "{error}");
    assert_eq!(refused(b.barrier("x", 4, LONG)).kind(), ErrorKind::Argument);
    let waiting = std::thread::spawn(move || a.barrier("all", 3, LONG));
    c.leave().unwrap();
    let error = refused(waiting.join().unwrap());
    assert!(error.message().contains("rank 2 left the job"), "{error}");
}

#[test]
fn a_reported_failure_reaches_everyone() {
    let service = Service::new(3);
    let [a, b, c] = <[ControlClient; 3]>::try_from(service.clients()).unwrap();
    let (tx, heard) = mpsc::channel();
    a.on_failure(move |failure| tx.send(failure.clone()).unwrap());
    let waiting = std::thread::spawn(move || b.barrier("never", 3, LONG));
    assert!(!a.has_failed() && a.failure().is_none());
    c.report_failure(&Failure::of_rank(2, FailureKind::Storage, "disk full")).unwrap();
    let failure = heard.recv_timeout(LONG).unwrap();
    assert_eq!((failure.rank, failure.message.as_str()), (Some(2), "rank 2 reported: disk full"));
    assert!(a.has_failed());
    let error = refused(waiting.join().unwrap());
    assert_eq!(error.kind(), ErrorKind::Peer);
    assert_eq!(error.message(), "the job has failed: rank 2 reported: disk full");
    // Who asks later is told at once.
    let (tx, heard) = mpsc::channel();
    a.on_failure(move |failure| tx.send(failure.clone()).unwrap());
    assert_eq!(heard.try_recv().unwrap(), failure);
    assert_eq!(service.runtime.block_on(service.agent().failed()), failure);
}

#[test]
fn a_failure_seen_by_the_launcher_reaches_everyone() {
    let service = Service::new(2);
    let clients = service.clients();
    let text = "rank 1 (pid 5) was killed by signal 9 (SIGKILL)";
    service.agent().fail(Failure::of_rank(1, FailureKind::Killed, text));
    for client in &clients {
        let failure = wait_for("the news", LONG, || client.failure());
        assert_eq!((failure.rank, failure.message.contains("SIGKILL")), (Some(1), true));
        assert_eq!(failure.kind, FailureKind::Killed);
    }
}

#[test]
fn different_builds_are_refused_and_both_named() {
    for (other, message) in [
        (Hello { version: "1.1".into(), ..hello() }, "rank 0 runs oflow 1.0, rank 1 runs oflow 1.1"),
        (Hello { registry_hash: 9, ..hello() }, "rank 0 has op registry 0000000000000001, rank 1 has 0000000000000009"),
        (Hello { program_hash: 9, ..hello() }, "rank 0 has program 0000000000000002, rank 1 has 0000000000000009"),
    ] {
        let service = Service::new(2);
        let first = service.client(0);
        let error = refused(ControlClient::connect(&service.env(1), other));
        assert!(error.message().starts_with(message), "{error}");
        let failure = wait_for("the news", LONG, || first.failure());
        assert!(failure.message.starts_with(message), "{failure}");
    }
}

#[test]
fn a_rank_joins_once_and_in_the_right_world() {
    let service = Service::new(2);
    let _first = service.client(0);
    let error = refused(ControlClient::connect(&service.env(0), hello()));
    assert_eq!(error.message(), "rank 0 has joined this job before");
    let wrong = LaunchEnv { world: 3, ..service.env(1) };
    let error = refused(ControlClient::connect(&wrong, hello()));
    assert_eq!(error.message(), "rank 1 was told of a world of 3, but its job has 2 ranks");
}

#[test]
fn a_wrong_token_is_refused() {
    let service = Service::new(1);
    let env = LaunchEnv { token: Token::random().unwrap(), ..service.env(0) };
    let error = refused(ControlClient::connect(&env, hello()));
    assert_eq!(error.message(), "the control service does not know this job's token");
}

#[test]
fn no_call_is_answered_without_a_handshake() {
    let service = Service::new(1);
    let address = format!("http://{}", service.agent().address());
    service.runtime.block_on(async {
        // The connection is made, and closed before it says anything of use.
        let Ok(channel) = Endpoint::from_shared(address).unwrap().connect().await else { return };
        let mut raw = Raw::new(channel);
        macro_rules! unanswered {
            ($($call:ident($request:expr)),* $(,)?) => {
                $({
                    let status = raw.$call($request).await.err().unwrap();
                    assert!(std::error::Error::source(&status).is_some(), "the service answered: {status}");
                })*
            };
        }
        unanswered! {
            join(pb::JoinRequest::default()),
            put(pb::PutRequest::default()),
            get(pb::GetRequest::default()),
            compare_and_set(pb::CompareAndSetRequest::default()),
            meet(pb::MeetRequest::default()),
            heartbeat(pb::HeartbeatRequest::default()),
            watch(pb::WatchRequest::default()),
            report_failure(pb::ReportFailureRequest::default()),
            submit_report(pb::SubmitReportRequest::default()),
            leave(pb::LeaveRequest::default()),
        }
    });
}

#[test]
fn too_large_a_message_is_refused() {
    let service = Service::new(1);
    let client = service.client(0);
    assert_eq!(refused(client.put("k", &vec![0; (1 << 20) + 1])).kind(), ErrorKind::Argument);
    assert!(client.put("k", &vec![0; oflow_proto::MAX_MESSAGE_BYTES + 1]).is_err());
    assert_eq!(client.get("k").unwrap(), None);
}

#[test]
fn calls_work_inside_a_runtime_of_the_users() {
    for mut builder in [tokio::runtime::Builder::new_current_thread(), tokio::runtime::Builder::new_multi_thread()] {
        let service = Service::new(1);
        builder.enable_all().build().unwrap().block_on(async {
            let client = service.client(0);
            client.put("k", b"v").unwrap();
            assert_eq!(client.get("k").unwrap(), Some(b"v".to_vec()));
            client.leave().unwrap();
        });
    }
}

#[test]
fn heartbeats_keep_a_rank_from_being_silent() {
    let service = Service::new(1);
    let client = service.client(0);
    let recorder = Arc::new(Recorder::new(0, 1, None));
    let comm: Arc<dyn Communicator> = Arc::new(SimWorld::new(1).pop().unwrap());
    client.watch(recorder.clone(), &comm);
    for line in 1..=42 {
        recorder.next("relu", 0, CallSite::at("train.rs", line), None);
    }
    // Progress arrives with a heartbeat; silence with a limit of zero shows every joined rank.
    wait_for("a heartbeat", LONG, || {
        service.agent().silent(Duration::ZERO).first().filter(|s| s.progress == 42).cloned()
    });
    assert!(service.agent().silent(Duration::from_secs(10)).is_empty());
    drop(client);
    assert!(service.agent().silent(Duration::ZERO).is_empty(), "a dropped client has left");
}

#[test]
fn a_service_that_is_not_there() {
    let service = Service::new(1);
    let env = service.env(0);
    let mut gone = Service::new(1);
    let client = gone.client(0);
    // The port of a service that has ended.
    let dead = LaunchEnv { master_port: gone.agent().address().port(), ..env };
    drop(gone.agent.take());
    gone.runtime.shutdown_background();
    let start = Instant::now();
    let error = refused(client.put("k", b"v"));
    assert_eq!(error.kind(), ErrorKind::Comm, "{error}");
    let error = refused(ControlClient::connect(&dead, hello()));
    assert!(error.message().starts_with("cannot connect to the control service at 127.0.0.1:"), "{error}");
    // What the system says, and not that the transport has an error.
    assert!(error.to_string().contains("Connection refused"), "{error}");
    assert!(start.elapsed() < LONG);
}

#[test]
fn a_meeting_tells_everyone_what_each_brought() {
    let service = Service::new(3);
    let clients = service.clients();
    std::thread::scope(|s| {
        for client in &clients {
            s.spawn(move || {
                // The same name may be used again at once, with values of any lengths.
                for round in 0..20 {
                    let mine = vec![client.rank() as u8; client.rank() * round];
                    let all = client.meet("addresses", 3, &mine, LONG).unwrap();
                    assert_eq!(all, (0..3).map(|r| vec![r as u8; r * round]).collect::<Vec<_>>());
                }
            });
        }
    });
    let error = clients[0].meet("large", 1, &vec![0; (1 << 20) + 1], LONG).unwrap_err().to_string();
    assert!(error.contains("the value of \"large\" has 1048577 bytes"), "{error}");
}
