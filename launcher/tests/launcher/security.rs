//! The ports of a running job under attack from another process, this one: every socket at which any process of the job
//! listens is found in /proc and attacked, whatever it speaks. Refused, and the job unharmed: it trains on and ends well.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use crate::common::{ManyFiles, wait_for};
use oflow::control::handshake::{Connector, Refused};
use oflow_faults::Setup;
use oflow_faults::attack::{self, CALLS, call, connect, mutate, path, send, without_token};
use oflow_faults::job::{self, Order, Started};
use oflow_faults::{Random, leftovers};
use oflow_proto::MAX_MESSAGE_BYTES;
use oflow_proto::control as pb;
use oflow_proto::control::control_client::ControlClient as Raw;
use tonic::Code;
use tonic::transport::Endpoint;

const LONG: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_millis(20);
/// More than any process may have open by default.
const IDLE: usize = 3000;

fn setup() -> Setup {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("security");
    fs::create_dir_all(&work).unwrap();
    Setup { oflaunch: PathBuf::from(env!("CARGO_BIN_EXE_oflaunch")), work }
}

fn victim() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| job::build(&setup(), &job::victim()).unwrap()).clone()
}

/// A job of 4 ranks that trains until it is told to end.
struct Target {
    job: Started,
    folder: PathBuf,
    /// Every port at which a process of the job listens.
    ports: BTreeSet<u16>,
    /// Those of the services that ranks talk to.
    services: BTreeSet<u16>,
    token: String,
}

impl Target {
    fn start(name: &str, hosts: usize) -> Target {
        let setup = setup();
        let folder = setup.work.join(name);
        let end = folder.join("end");
        let args = ["--dir", folder.to_str().unwrap(), "--until", end.to_str().unwrap()];
        let order = Order {
            ranks: vec![4 / hosts; hosts],
            options: vec![],
            program: victim(),
            args: args.iter().map(|a| a.to_string()).collect(),
        };
        let mut job = setup.start(name, &order).unwrap();
        for rank in 0..4 {
            wait_for("the ranks to train", LONG, || {
                assert!(!job.any_ended().unwrap(), "{}", job.stderr(0));
                folder.join(format!("pid{rank}")).exists().then_some(())
            });
        }
        let processes: Vec<i32> = job.processes().into_iter().map(|(pid, _)| pid).collect();
        let ports = processes.iter().flat_map(|pid| attack::listening(*pid)).collect();
        // As the user who runs the job could: its ranks keep it behind a descriptor.
        let token = |pid: &i32| {
            let fd = attack::variable(*pid, "OFLOW_TOKEN_FD")?;
            fs::read_to_string(format!("/proc/{pid}/fd/{fd}")).ok().filter(|t| t.len() == 64)
        };
        let tokens = processes.iter().find_map(token);
        let services = processes.iter().filter_map(|pid| attack::variable(*pid, "MASTER_PORT")?.parse().ok()).collect();
        Target { job, folder, ports, services, token: tokens.expect("ranks have a token") }
    }

    /// The job goes on, ends well, and no failure was reported of it; nothing that it wrote holds its secret.
    fn unharmed(mut self) {
        assert!(!self.job.any_ended().unwrap(), "{}", self.job.stderr(0));
        fs::write(self.folder.join("end"), "").unwrap();
        assert!(self.job.wait(LONG).unwrap(), "the job does not end: {:?}", self.job.processes());
        for host in 0..self.job.hosts() {
            assert_eq!(self.job.code(host), Some(0), "{}", self.job.stderr(host));
            let failures: Vec<_> = self.job.events(host).unwrap().iter().filter_map(|e| e.report()).collect();
            assert!(failures.is_empty(), "{failures:?}");
        }
        let printed = self.job.stdout(0);
        let loss = printed.trim().trim_start_matches("[rank 0] ").parse::<f64>();
        assert!(loss.is_ok_and(f64::is_finite), "{printed}");
        assert_eq!(self.job.leftovers(), Vec::<String>::new());
        for file in leftovers::files(&self.folder).iter().filter(|f| !f.ends_with('/') && *f != "token") {
            let text = fs::read(self.folder.join(file)).unwrap_or_default();
            assert!(!text.windows(64).any(|w| w == self.token.as_bytes()), "{file} holds the token");
        }
    }

    fn client(&self, runtime: &tokio::runtime::Runtime, port: u16) -> Raw<tonic::transport::Channel> {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
        let connector = Connector { token: self.token.parse().unwrap(), tls: false, outage: Default::default() };
        Raw::new(runtime.block_on(endpoint.connect_with_connector(connector)).unwrap())
    }

    /// What a service answers to a member that says this after its handshake.
    fn member_says(&self, port: u16, bytes: &[u8], patience: Duration) -> Vec<u8> {
        let connector = Connector { token: self.token.parse().unwrap(), tls: false, outage: Default::default() };
        attack::send_on(connector.blocking(("127.0.0.1", port)).unwrap(), bytes, patience)
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// One host, and two where the control plane and the ranks listen for others.
fn on_one_host_and_on_two(name: &str, attack: impl Fn(&Target)) {
    for hosts in [1, 2] {
        let target = Target::start(&format!("{name}-{hosts}"), hosts);
        assert!(!target.ports.is_empty() && target.ports.is_superset(&target.services), "{:?}", target.ports);
        attack(&target);
        target.unharmed();
    }
}

#[test]
fn whatever_is_wrong_is_refused_at_every_port() {
    on_one_host_and_on_two("wrong", |target| {
        let mut random = Random::new(1);
        for &port in &target.ports {
            for (_, bytes) in without_token(&mut random) {
                send(port, &bytes, PATIENCE);
            }
        }
    });
}

#[test]
fn without_the_token_no_call_is_taken() {
    let target = Target::start("token", 1);
    let runtime = runtime();
    for &port in &target.services {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
        // Without a handshake.
        let request = || pb::ReportFailureRequest { rank: 1, message: "boom".into(), ..Default::default() };
        let plain = runtime.block_on(async {
            let channel = endpoint.connect().await.ok()?;
            Raw::new(channel).report_failure(request()).await.ok()
        });
        assert!(plain.is_none());
        let swapped: String = target.token.chars().rev().collect();
        for wrong in ["0".repeat(64), swapped] {
            let connector = Connector { token: wrong.parse().unwrap(), tls: false, outage: Default::default() };
            let error = runtime.block_on(endpoint.connect_with_connector(connector)).unwrap_err();
            assert!(matches!(Refused::of(&error), Some(Refused::Token)), "{error:?}");
        }
    }
    // It is logged, though not once for each.
    let refused = |line: &str| {
        line.starts_with("oflaunch: control service: ") && line.contains(" without the job token: refused")
    };
    wait_for("the refusal in the log", LONG, || target.job.stderr(0).lines().any(refused).then_some(()));
    target.unharmed();
}

#[test]
fn malformed_and_oversized_messages_of_a_member_are_refused() {
    let target = Target::start("malformed", 1);
    let (runtime, mut random) = (runtime(), Random::new(2));
    for &port in &target.services {
        for name in CALLS {
            // No field has this number and no message this end.
            for body in [&[0xff; 40][..], b"\x0a\xff\xff\xff\xff\x0f", b"\x08", b"\x0f"] {
                target.member_says(port, &call(&path(name), body), PATIENCE);
            }
        }
        let put = call(&path("Put"), b"\x0a\x01k\x12\x01v");
        for _ in 0..100 {
            // Bytes before the message: the frames and fields that carry it.
            let cut = random.within(attack::PREFACE.len()..put.len());
            let bytes = [&put[..cut], &mutate(&put[cut..], &mut random)].concat();
            target.member_says(port, &bytes, Duration::from_millis(2));
        }
        let mut client = target.client(&runtime, port);
        let large = pb::PutRequest { key: "k".into(), value: vec![0; MAX_MESSAGE_BYTES + 1] };
        let status = runtime.block_on(client.put(large)).unwrap_err();
        assert!(matches!(status.code(), Code::OutOfRange | Code::ResourceExhausted | Code::Unknown), "{status}");
    }
    target.unharmed();
}

#[test]
fn thousands_of_idle_connections_do_no_harm() {
    let files = ManyFiles::open(2 * IDLE as u64);
    on_one_host_and_on_two("idle", |target| {
        let each = (files.most as usize - 500).min(IDLE) / target.ports.len();
        let mut held: Vec<TcpStream> = vec![];
        for &port in &target.ports {
            // Beyond some number the other side may refuse.
            held.extend((0..each).map_while(|_| connect(port).ok()));
        }
        // With all of them open the job goes on training, and who holds the token is served.
        let step = |rank: usize| fs::metadata(target.folder.join(format!("pid{rank}"))).is_ok();
        assert!((0..4).all(step));
        for &port in &target.services {
            let answer = target.member_says(port, &call(&path("Get"), b"\x0a\x01k"), Duration::from_secs(1));
            assert!(
                attack::answered(&answer),
                "the service at port {port} does not answer beside {} idle connections",
                held.len()
            );
        }
    });
}

#[test]
fn what_was_recorded_cannot_be_played_again() {
    // Between hosts; on one host the loopback interface cannot be listened to by other users.
    let target = Target::start("replay", 2);
    let outside: Vec<u16> = target.ports.difference(&target.services).copied().collect();
    assert!(!outside.is_empty(), "hosts and ranks listen for each other");
    for &port in &outside {
        // What the other side says first, said back to it, and once more on a new connection.
        let first = send(port, &[], PATIENCE);
        let second = send(port, &first, PATIENCE);
        send(port, &[first.clone(), second.clone()].concat(), PATIENCE);
        // A challenge that is the same twice could be answered with an old answer.
        let hello = [&b"oflowctl"[..], &1u32.to_le_bytes(), &[0; 4], &[7; 16]].concat();
        let challenge = || send(port, &hello, PATIENCE);
        let first = challenge();
        assert!(first.len() < 8 || first != challenge(), "port {port} greets alike: {first:?}");
    }
    target.unharmed();
}
