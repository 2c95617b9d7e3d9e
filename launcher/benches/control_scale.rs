//! How the control plane grows: `cargo bench -p oflaunch --bench control_scale`.
//!
//! 1,024 ranks on one host join, exchange a value each with the next one and pass a barrier; then 1,250 hosts of 8 ranks each
//! do the same through their streams to the root. Server and clients are processes of their own. Printed are the time from
//! the word go to the last one through, and the memory of the server. The hosts speak the protocol of an agent; they serve no
//! ranks themselves, so what is measured is the root.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use oflow::control::handshake::Connector;
use oflow::control::service::{Agent, AgentOptions, Rendezvous};
use oflow::control::{ControlClient, Hello, LaunchEnv, Token};
use oflow_proto::MAX_MESSAGE_BYTES;
use oflow_proto::control as pb;
use oflow_proto::control::nodes_client::NodesClient;
use pb::{down, up};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;

const CLIENTS: usize = 1024;
const HOSTS: usize = 1250;
const RANKS_PER_HOST: usize = 8;
const PROCESSES: usize = 4;
const LONG: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["serve-ranks", world] => serve(AgentOptions::alone(world.parse()?, token()?)),
        ["serve-hosts", hosts] => {
            let hosts: usize = hosts.parse()?;
            let mut options = AgentOptions::alone(RANKS_PER_HOST, token()?);
            options.rendezvous = Rendezvous::Host("127.0.0.1:0".into());
            options.nodes = hosts..=hosts;
            serve(options)
        }
        ["ranks", port, first, end, world] => ranks(port.parse()?, first.parse()?..end.parse()?, world.parse()?),
        ["hosts", port, first, end, all] => hosts(port.parse()?, first.parse()?..end.parse()?, all.parse()?),
        _ => parent(),
    }
}

fn parent() -> Outcome<()> {
    for _ in 0..3 {
        measure("serve-ranks", "ranks", CLIENTS, 0, &format!("{CLIENTS} ranks of one host"))?;
    }
    for _ in 0..3 {
        let what = format!("{HOSTS} hosts of {RANKS_PER_HOST} ranks");
        // The server is the first of them, but has no ranks that call.
        measure("serve-hosts", "hosts", HOSTS, 1, &what)?;
    }
    Ok(())
}

/// One process of the bench.
struct Part {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Part {
    fn start(args: &[&str], token: &str) -> Outcome<Part> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(args)
            .env("OFLOW_TOKEN", token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (to, from) = (child.stdin.take().ok_or("no stdin")?, child.stdout.take().ok_or("no stdout")?);
        Ok(Part { child, to, from: BufReader::new(from) })
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        if line.is_empty() { Err("a process of the bench has ended".into()) } else { Ok(line.trim().to_string()) }
    }

    fn say(&mut self, line: &str) -> Outcome<()> {
        writeln!(self.to, "{line}")?;
        Ok(self.to.flush()?)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _may_have_ended = self.child.kill();
        let _may_be_reaped = self.child.wait();
    }
}

fn measure(serve: &str, kind: &str, number: usize, first: usize, what: &str) -> Outcome<()> {
    let secret = Token::random()?;
    let mut server = Part::start(&[serve, &number.to_string()], secret.expose())?;
    let port = server.line()?;
    let mut parts = Vec::new();
    for p in 0..PROCESSES {
        let share = |p: usize| (first + (number - first) * p / PROCESSES).to_string();
        let args = [kind, &port, &share(p), &share(p + 1), &number.to_string()];
        parts.push(Part::start(&args, secret.expose())?);
    }
    for part in &mut parts {
        part.line()?;
    }
    let start = Instant::now();
    for part in &mut parts {
        part.say("go")?;
    }
    for part in &mut parts {
        part.line()?;
    }
    let took = start.elapsed();
    server.say("memory")?;
    println!(
        "{what}: joined, exchanged and through a barrier in {:.0} ms; server: {}",
        took.as_secs_f64() * 1e3,
        server.line()?
    );
    Ok(())
}

fn token() -> Outcome<Token> {
    Ok(std::env::var("OFLOW_TOKEN")?.parse()?)
}

/// Waits for the word go.
fn go() -> Outcome<()> {
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

fn serve(options: AgentOptions) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let agent = Agent::start(options).await?;
        println!("{}", agent.root_address().unwrap_or(agent.address()).port());
        // The runtime has one thread, which serves.
        tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
        let status = std::fs::read_to_string("/proc/self/status")?;
        let of = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("?").trim().to_string();
        println!("{} now, {} at most", of("VmRSS:"), of("VmHWM:"));
        Ok(())
    })
}

fn ranks(port: u16, own: std::ops::Range<usize>, world: usize) -> Outcome<()> {
    let token = token()?;
    let ready = Arc::new(Barrier::new(own.len() + 1));
    let threads: Vec<_> = own
        .map(|rank| {
            let (ready, token) = (ready.clone(), token.clone());
            std::thread::Builder::new().stack_size(256 << 10).spawn(move || -> oflow::Result<ControlClient> {
                let env = LaunchEnv {
                    rank,
                    local_rank: rank,
                    world,
                    local_world: world,
                    node: 0,
                    nodes: 1,
                    master_addr: "127.0.0.1".into(),
                    master_port: port,
                    address: None,
                    token,
                    shm_fd: None,
                    report: false,
                    stall: None,
                    outage: Default::default(),
                    threads: None,
                };
                ready.wait();
                let client = ControlClient::connect(&env, hello())?;
                client.put(&format!("address/{rank}"), format!("10.0.0.1:{rank}").as_bytes())?;
                client.get_wait(&format!("address/{}", (rank + 1) % world), LONG)?;
                client.barrier("start", world, LONG)?;
                Ok(client)
            })
        })
        .collect::<Result<_, _>>()?;
    go()?;
    ready.wait();
    let clients: Result<Vec<ControlClient>, _> = threads
        .into_iter()
        .map(|t| t.join().unwrap_or_else(|_| Err(oflow::Error::comm("a thread panicked"))))
        .collect();
    let clients = clients?;
    println!("done");
    // Until the parent has looked at the server.
    std::io::stdin().read_line(&mut String::new())?;
    drop(clients);
    Ok(())
}

fn hello() -> Hello {
    Hello { version: "bench".into(), registry_hash: 1, program_hash: 2 }
}

fn hosts(port: u16, own: std::ops::Range<usize>, all: usize) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let secret = token()?;
    go()?;
    runtime.block_on(async {
        let tasks: Vec<_> = own.map(|_| tokio::spawn(host(port, all, secret.expose().to_string()))).collect();
        let mut streams = Vec::new();
        for task in tasks {
            streams.push(task.await??);
        }
        println!("done");
        tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
        Ok(())
    })
}

type Streams = (mpsc::Sender<pb::FromNode>, tonic::Streaming<pb::FromRoot>);

/// What an agent says for 8 ranks.
async fn host(port: u16, all: usize, secret: String) -> Outcome<Streams> {
    let connector = Connector { token: secret.parse()?, tls: false, outage: Default::default() };
    let channel = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?.connect_with_connector(connector).await?;
    let (ups, stream) = mpsc::channel(16);
    let item = |item: up::Item| pb::Up { item: Some(item) };
    let nodes = u32::try_from(all)?;
    let hello = pb::NodeHello {
        version: env!("CARGO_PKG_VERSION").into(),
        host: "bench".into(),
        nproc: RANKS_PER_HOST as u32,
        min_nodes: nodes,
        max_nodes: nodes,
        ..Default::default()
    };
    ups.send(pb::FromNode { items: vec![item(up::Item::Hello(hello))] }).await?;
    let request = tonic::Request::new(ReceiverStream::new(stream));
    let mut stub = NodesClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let mut downs = stub.attach(request).await?.into_inner();
    let begin = loop {
        let message = downs.message().await?.ok_or("the root has gone")?;
        if let Some(begin) = message.items.into_iter().find_map(|d| match d.item {
            Some(down::Item::Begin(begin)) => Some(begin),
            _ => None,
        }) {
            break begin;
        }
    };
    let (first, world) = (u64::from(begin.first_rank), u64::from(begin.world));
    let ranks = first..first + RANKS_PER_HOST as u64;
    let hello = pb::JoinRequest { rank: first as u32, version: "bench".into(), registry_hash: 1, program_hash: 2 };
    let mut items = vec![item(up::Item::Join(pb::NodeJoin { ticket: 0, hello: Some(hello) }))];
    let key = |rank: u64| format!("address/{rank}");
    for rank in ranks.clone() {
        let value = format!("10.0.0.1:{rank}").into_bytes();
        items.push(item(up::Item::Put(pb::NodePut { ticket: 1 + rank, key: key(rank), value })));
        // The ranks of the server's own host put nothing.
        let next = if rank + 1 == world { RANKS_PER_HOST as u64 } else { rank + 1 };
        items.push(item(up::Item::Get(pb::NodeGet { ticket: 1 + world + rank, key: key(next), wait: true })));
    }
    let arrivals = |ticket: u64| {
        ranks.clone().map(|rank| pb::Arrival { ticket: ticket + rank, rank: rank as u32, value: Vec::new() }).collect()
    };
    ups.send(pb::FromNode { items }).await?;
    answered(&mut downs, 1 + 2 * RANKS_PER_HOST).await?;
    let barrier = pb::NodeArrive {
        name: "start".into(),
        participants: (world - RANKS_PER_HOST as u64) as u32,
        arrivals: arrivals(1 + 2 * world),
        members: vec![],
    };
    ups.send(pb::FromNode { items: vec![item(up::Item::Arrive(barrier))] }).await?;
    answered(&mut downs, RANKS_PER_HOST).await?;
    Ok((ups, downs))
}

/// Waits for so many answers.
async fn answered(downs: &mut tonic::Streaming<pb::FromRoot>, mut left: usize) -> Outcome<()> {
    while left > 0 {
        let message = downs.message().await?.ok_or("the root has gone")?;
        for down in message.items {
            match down.item {
                Some(down::Item::Answer(answer)) => {
                    if let Some(pb::answer::Answer::Refused(refused)) = answer.answer {
                        return Err(refused.message.into());
                    }
                    left = left.checked_sub(answer.tickets.len()).ok_or("more answers than calls")?;
                }
                Some(down::Item::Failed(failed)) => return Err(String::from_utf8_lossy(&failed.failure).into()),
                _ => {}
            }
        }
    }
    Ok(())
}
