//! The control plane under attack: noise, replayed and damaged conversations, messages that are too large. What is sent is
//! recorded from a real conversation and then changed at random. Afterwards the job works as before.
//!
//! `OFLOW_FUZZ_SECONDS` makes the noise last longer.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::tap::Tap;
use crate::common::{LONG, wait_for};
use oflow::control::handshake::{Connector, Refused};
use oflow::control::service::{Agent, AgentOptions, Assignment, Next, Rendezvous};
use oflow::control::{ControlClient, Hello, LaunchEnv, Token};
use oflow_faults::Random;
use oflow_faults::attack::{mutate, noise as noise_of};
use oflow_proto::control as pb;
use oflow_proto::control::control_client::ControlClient as RawControl;
use oflow_proto::control::nodes_client::NodesClient;
use tokio::runtime::Runtime;
use tonic::Code;
use tonic::codegen::tokio_stream;
use tonic::transport::{Channel, Endpoint};

/// A job of two hosts in this process, each with one rank.
struct Job {
    runtime: Runtime,
    token: Token,
    agents: Vec<(Agent, Assignment)>,
    tap: Tap,
    log: Arc<Mutex<Vec<String>>>,
}

impl Job {
    fn start() -> Job {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let token = Token::random().unwrap();
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let options = |rendezvous| {
            let log = log.clone();
            AgentOptions {
                rendezvous,
                nodes: 2..=2,
                log: Arc::new(move |line| log.lock().unwrap().push(line.to_string())),
                ..AgentOptions::alone(1, token.clone())
            }
        };
        let (agents, tap) = runtime.block_on(async {
            let zero = Agent::start(options(Rendezvous::Host("127.0.0.1:0".into()))).await.unwrap();
            let tap = Tap::before(zero.root_address().unwrap());
            let one = Agent::start(options(Rendezvous::Join(tap.address.to_string()))).await.unwrap();
            let mut agents = Vec::new();
            for agent in [zero, one] {
                let Next::Again(part) = agent.assigned().await.unwrap() else { panic!("the job is over") };
                agents.push((agent, part));
            }
            (agents, tap)
        });
        Job { runtime, token, agents, tap, log }
    }

    fn root(&self) -> SocketAddr {
        self.agents[0].0.root_address().unwrap()
    }

    fn env(&self, host: usize, port: u16) -> LaunchEnv {
        let part = self.agents[host].1;
        LaunchEnv {
            rank: part.first_rank,
            local_rank: 0,
            world: part.world,
            local_world: part.nproc,
            node: part.node,
            nodes: part.nodes,
            master_addr: "127.0.0.1".into(),
            master_port: port,
            address: None,
            token: self.token.clone(),
            shm_fd: None,
            report: false,
            stall: None,
            outage: Default::default(),
            threads: None,
        }
    }

    fn client(&self, host: usize, port: u16) -> ControlClient {
        let hello = Hello { version: "1".into(), registry_hash: 1, program_hash: host as u64 };
        ControlClient::connect(&self.env(host, port), hello).unwrap()
    }

    /// The ranks of both hosts meet and tell each other something.
    fn works(&self, clients: &[ControlClient]) {
        std::thread::scope(|s| {
            for client in clients {
                s.spawn(move || {
                    for round in 0..5u8 {
                        let all = client.meet("check", 2, &[client.rank() as u8, round], LONG).unwrap();
                        assert_eq!(all, [vec![0, round], vec![1, round]]);
                    }
                });
            }
        });
        assert!(self.agents.iter().all(|(agent, _)| agent.failure().is_none()));
    }

    fn logged(&self, what: &str) -> bool {
        self.log.lock().unwrap().iter().any(|line| line.contains(what))
    }
}

/// Says something to a port and reads until the other side is done with us, or for a moment.
fn say(to: SocketAddr, bytes: &[u8]) {
    let Ok(mut stream) = TcpStream::connect(to) else { return };
    stream.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
    // The other side may have had enough before the end.
    let _refused = stream.write_all(bytes);
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(1..) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

/// Throws noise and damaged conversations at ports, from several threads.
fn noise(ports: [SocketAddr; 2], recorded: &[Vec<u8>]) -> Vec<JoinHandle<usize>> {
    let seconds = std::env::var("OFLOW_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    (1..=4u64)
        .map(|seed| {
            let recorded = recorded.to_vec();
            std::thread::spawn(move || {
                let mut random = Random::new(seed);
                let mut tries = 0;
                while Instant::now() < end {
                    let to = ports[random.within(0..2)];
                    let bytes = match random.within(0..4) {
                        0 => noise_of(random.within(0..2000), &mut random),
                        1 => {
                            // It never comes so far without a handshake.
                            let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
                            bytes.extend(noise_of(random.within(0..500), &mut random));
                            bytes
                        }
                        _ => mutate(&recorded[random.within(0..recorded.len())], &mut random),
                    };
                    say(to, &bytes);
                    tries += 1;
                }
                tries
            })
        })
        .collect()
}

#[test]
fn noise_and_damaged_conversations_do_no_harm() {
    let job = Job::start();
    let ports: Vec<u16> = job.agents.iter().map(|(agent, _)| agent.address().port()).collect();
    let clients = [job.client(0, ports[0]), job.client(1, ports[1])];
    clients[1].put("key", b"value").unwrap();
    job.works(&clients);
    // Conversations of another job, whose token this one does not know. (Members are believed: who has the token may speak
    // for any rank, and end the job.)
    let other = Job::start();
    let tap = Tap::before(other.agents[1].0.address());
    let others = [other.client(0, other.agents[0].0.address().port()), other.client(1, tap.address.port())];
    other.works(&others);
    let recorded = [other.tap.said(), tap.said()];
    assert!(recorded.iter().all(|r| r.len() > 100));
    let threads = noise([job.root(), job.agents[0].0.address()], &recorded);
    while threads.iter().any(|t| !t.is_finished()) {
        job.works(&clients);
    }
    let tries: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    println!("{tries} conversations");
    assert!(tries > 20, "{tries}");
    job.works(&clients);
    assert_eq!(clients[0].get("key").unwrap(), Some(b"value".to_vec()));
}

#[test]
fn the_token_never_crosses_the_wire() {
    let job = Job::start();
    let tap = Tap::before(job.agents[1].0.address());
    let clients = [job.client(0, job.agents[0].0.address().port()), job.client(1, tap.address.port())];
    job.works(&clients);
    let secret = job.token.expose().as_bytes();
    let bytes: Vec<u8> =
        secret.chunks(2).map(|c| u8::from_str_radix(std::str::from_utf8(c).unwrap(), 16).unwrap()).collect();
    // What a host says to node 0, what a rank says to its agent.
    for said in [job.tap.said(), tap.said()] {
        assert!(said.len() > 100, "{}", said.len());
        for part in secret.windows(12).chain(bytes.windows(6)) {
            assert!(!said.windows(part.len()).any(|w| w == part), "a part of the token was sent");
        }
    }
}

#[test]
fn a_replayed_host_is_refused() {
    let job = Job::start();
    let ports: Vec<u16> = job.agents.iter().map(|(agent, _)| agent.address().port()).collect();
    let clients = [job.client(0, ports[0]), job.client(1, ports[1])];
    job.works(&clients);
    let recorded = job.tap.said();
    for _ in 0..5 {
        say(job.root(), &recorded);
    }
    // Its proof was for another challenge.
    wait_for("the refusal in the log", LONG, || job.logged("without the job token: refused").then_some(()));
    job.works(&clients);
}

#[test]
fn what_is_too_large_or_has_no_token_is_refused() {
    let job = Job::start();
    let ports: Vec<u16> = job.agents.iter().map(|(agent, _)| agent.address().port()).collect();
    let clients = [job.client(0, ports[0]), job.client(1, ports[1])];
    job.works(&clients);
    let (root, control) = (job.root(), job.agents[0].0.address());
    job.runtime.block_on(async {
        let endpoint = |to: SocketAddr| Endpoint::from_shared(format!("http://{to}")).unwrap();
        let connect = async |to: SocketAddr, token: &Token| {
            endpoint(to)
                .connect_with_connector(Connector { token: token.clone(), tls: false, outage: Default::default() })
                .await
        };
        let attach = async |channel: Channel, message: pb::FromNode| {
            let request = tonic::Request::new(tokio_stream::iter([message]));
            NodesClient::new(channel).attach(request).await.err().unwrap().code()
        };
        let hello = pb::Up { item: Some(pb::up::Item::Hello(pb::NodeHello { nproc: 1, ..Default::default() })) };
        if let Ok(plain) = endpoint(root).connect().await {
            let code = attach(plain, pb::FromNode { items: vec![hello.clone()] }).await;
            assert!(matches!(code, Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled), "{code}");
        }
        let wrong = connect(root, &"0".repeat(64).parse().unwrap()).await.unwrap_err();
        assert!(matches!(Refused::of(&wrong), Some(Refused::Token)), "{wrong:?}");
        // A member that says nonsense.
        let member = connect(root, &job.token).await.unwrap();
        assert_eq!(attach(member.clone(), pb::FromNode { items: vec![] }).await, Code::InvalidArgument);
        let put = pb::NodePut { value: vec![0; 5 << 20], ..Default::default() };
        let large = pb::FromNode { items: vec![pb::Up { item: Some(pb::up::Item::Put(put)) }] };
        assert_eq!(attach(member, large).await, Code::OutOfRange);
        let request = pb::PutRequest { key: "k".into(), value: vec![0; 5 << 20] };
        let refused = RawControl::new(connect(control, &job.token).await.unwrap()).put(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    });
    assert!(job.logged("control service: 1 connection without the job token: refused; the last was from 127.0.0.1"));
    job.works(&clients);
}
