//! Work of the client's thread: connecting, joining, heartbeats, and receiving news of a failure.

use std::sync::mpsc;
use std::time::Duration;

use oflow_proto::MAX_MESSAGE_BYTES;
use oflow_proto::control as pb;
use oflow_proto::control::control_client::ControlClient as Generated;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use super::client::{Hello, Shared, explain, timed};
use super::handshake::{Connector, Refused, innermost};
use super::vitals::ReportedState;
use super::{Failure, FailureKind, LaunchEnv};
use oflow_base::{Error, Result};

/// Time-out of all attempts to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time-out of the first attempt; each further one has twice as long as the one before. Now and then the handshake of a connection
/// is stuck on a loaded host, and a new one is not; the last attempts have the time that a slow host needs.
const FIRST_ATTEMPT: Duration = Duration::from_millis(500);
/// A thousand ranks may join at once on a few cores.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_RETRY: Duration = Duration::from_millis(50);
/// Ranks that never talk to each other are found to differ after two or three of these.
const HEARTBEAT: Duration = Duration::from_millis(250);
/// The launcher is lost if it has sent nothing for this time.
const LOST_AFTER: Duration = Duration::from_secs(10);

pub(super) type Stub = Generated<Channel>;

/// State that the handle needs of a session that has joined.
pub(super) struct Session {
    pub(super) world: usize,
    pub(super) cost_model: Vec<u8>,
    pub(super) stub: Stub,
    pub(super) runtime: Handle,
}

/// The body of the client's thread. Says on `started` how joining went, then works until `stopped` resolves.
pub(super) fn run(
    env: &LaunchEnv,
    hello: Hello,
    shared: &Shared,
    started: &mpsc::SyncSender<Result<Session>>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            let _waiting = started.send(Err(Error::comm("cannot start the control runtime").because(e)));
            return;
        }
    };
    runtime.block_on(async {
        let stub = match join(env, hello).await {
            Ok((stub, world, cost_model)) => {
                let session = Session { world, cost_model, stub: stub.clone(), runtime: Handle::current() };
                let _waiting = started.send(Ok(session));
                stub
            }
            Err(e) => {
                let _waiting = started.send(Err(e));
                return;
            }
        };
        tokio::select! {
            _ = stopped => {}
            () = heartbeat(stub.clone(), env.rank as u32, shared) => {}
            () = watch(stub, env.rank as u32, shared) => {}
        }
    });
    // A call that still waits (another thread's) ends with the runtime instead of holding this thread.
    runtime.shutdown_background();
}

async fn join(env: &LaunchEnv, hello: Hello) -> Result<(Stub, usize, Vec<u8>)> {
    let mut stub = connect(env, CONNECT_TIMEOUT).await?;
    let request = pb::JoinRequest {
        rank: env.rank as u32,
        version: hello.version,
        registry_hash: hello.registry_hash,
        program_hash: hello.program_hash,
    };
    let reply = stub
        .join(timed(request, JOIN_TIMEOUT + env.outage.patience()))
        .await
        .map_err(|status| explain(&status))?
        .into_inner();
    let world = reply.world_size as usize;
    if world != env.world {
        return Err(Error::comm(format!(
            "rank {} was told of a world of {}, but its job has {world} ranks",
            env.rank, env.world
        )));
    }
    Ok((stub, world, reply.cost_model))
}

async fn connect(env: &LaunchEnv, limit: Duration) -> Result<Stub> {
    let (host, port) = (&env.master_addr, env.master_port);
    // An IPv6 address stands in brackets before a port.
    let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|e| Error::argument(format!("{address:?} is not the address of a control service")).because(e))?;
    let connector = Connector { token: env.token.clone(), tls: false, outage: env.outage };
    let deadline = Instant::now() + limit;
    let mut attempt = FIRST_ATTEMPT;
    let channel = loop {
        let until = deadline.min(Instant::now() + attempt);
        attempt = (attempt * 2).min(limit);
        let why = match timeout_at(until, endpoint.connect_with_connector(connector.clone())).await {
            Ok(Ok(channel)) => break channel,
            Ok(Err(e)) if Refused::of(&e).is_some_and(|r| !matches!(r, Refused::Io(_))) => {
                let why = match Refused::of(&e) {
                    Some(Refused::Token) | None => "the control service does not know this job's token".to_string(),
                    Some(why) => format!("what listens at {address} is not this job's control service: {why}"),
                };
                return Err(Error::comm(why).help("start all ranks of a job with the same oflaunch"));
            }
            // The service of a first node may come up after a rank of another.
            Ok(Err(e)) => Some(e),
            Err(_) => None,
        };
        if Instant::now() + CONNECT_RETRY >= deadline {
            let error = Error::comm(format!("cannot connect to the control service at {address}"));
            let error = match why {
                Some(e) => error.because(innermost(&e)),
                None => error.because("it accepts connections and does not answer"),
            };
            return Err(error.help("the service lives as long as the oflaunch that started this rank"));
        }
        sleep(CONNECT_RETRY).await;
    };
    Ok(Generated::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES))
}

/// Says four times a second that this rank lives, and at once when something is asked. Returns never; failed beats are the
/// concern of [`watch`].
async fn heartbeat(mut stub: Stub, rank: u32, shared: &Shared) {
    let mut beats = interval(HEARTBEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut reported, mut asked) = (ReportedState::default(), false);
    let joined = Instant::now();
    loop {
        // What the service has asked for it gets at once; what this rank wants it to know goes with its last ops.
        let urgent = !asked
            && tokio::select! {
                _ = beats.tick() => false,
                () = shared.beat.notified() => true,
            };
        let mut beat = match shared.vitals.get() {
            Some(vitals) => vitals.beat(&reported, urgent),
            // It has joined and has not made its communicator yet.
            None => pb::HeartbeatRequest { last_ms: joined.elapsed().as_millis() as u64, ..Default::default() },
        };
        beat.rank = rank;
        let watched = shared.watched.get();
        if let Some(watched) = watched {
            watched.watch(reported.watched);
        }
        beat.glimpse = reported.glimpse(watched.map(|w| &**w));
        let carries = reported.with(&beat);
        match stub.heartbeat(timed(beat, LOST_AFTER)).await {
            Ok(reply) => {
                let mut reply = reply.into_inner();
                if let Some(error) = reply.clock_error_ns {
                    shared.clock.set(reply.clock_offset_ns, error);
                }
                reported = carries;
                asked = reported.hear(&mut reply);
            }
            // The marks go with the next one.
            Err(status) => {
                asked = false;
                tracing::debug!("heartbeat: {status}");
            }
        }
    }
}

/// Waits for the news of a failure. Returns never; a service that stays away is itself a failure.
async fn watch(mut stub: Stub, rank: u32, shared: &Shared) {
    let mut heard = Instant::now();
    loop {
        match listen(&mut stub, rank, &mut heard).await {
            Ok(failure) => {
                shared.fail(failure);
                break;
            }
            Err(status) if heard.elapsed() > LOST_AFTER => {
                let message = format!("the launcher is gone ({})", explain(&status).message());
                shared.fail(Failure::of_job(FailureKind::NodeLost, message));
                break;
            }
            Err(_) => sleep(HEARTBEAT).await,
        }
    }
    // The heartbeats go on: a rank that winds down is alive.
    std::future::pending().await
}

async fn listen(stub: &mut Stub, rank: u32, heard: &mut Instant) -> Result<Failure, Status> {
    let mut events = stub.watch(pb::WatchRequest { rank }).await?.into_inner();
    let news = events.message().await;
    // Up to now the stream was open, so the service was there.
    *heard = Instant::now();
    match news? {
        Some(event) => Ok(Failure::from_wire(event.rank.map(|r| r as usize), event.message, &event.detail)),
        None => Err(Status::unavailable("the control service closed the connection")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Token;
    use crate::service::{Agent, AgentOptions};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

    /// Stands before a server. The first `mute` connections are accepted, and nothing is said on them.
    fn mute_at_first(mute: usize, server: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let _silent: Vec<TcpStream> = (0..mute).map(|_| listener.accept().unwrap().0).collect();
            let near = listener.accept().unwrap().0;
            let far = TcpStream::connect(server).unwrap();
            let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            let back = std::thread::spawn(move || std::io::copy(&mut &far, &mut &near));
            let _ends = (std::io::copy(&mut from, &mut to), to.shutdown(std::net::Shutdown::Both), back.join());
        });
        address
    }

    fn env(service: SocketAddr, token: Token) -> LaunchEnv {
        let vars = [
            ("OFLOW_CONTROL", service.to_string()),
            ("RANK", "0".into()),
            ("LOCAL_RANK", "0".into()),
            ("WORLD_SIZE", "1".into()),
            ("LOCAL_WORLD_SIZE", "1".into()),
            ("OFLOW_TOKEN", token.expose().to_string()),
        ];
        let get = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into());
        LaunchEnv::from_vars(get).unwrap().unwrap()
    }

    #[test]
    fn a_handshake_that_is_stuck_is_tried_again() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let token = Token::random().unwrap();
            let agent = Agent::start(AgentOptions::alone(1, token.clone())).await.unwrap();
            let way = mute_at_first(2, agent.address());
            let began = Instant::now();
            connect(&env(way, token), CONNECT_TIMEOUT).await.unwrap();
            // Two attempts in vain, of half a second and a second.
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        });
    }

    #[test]
    fn a_service_that_never_answers_is_told() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let env = env(listener.local_addr().unwrap(), Token::random().unwrap());
        let error = runtime.block_on(async { connect(&env, Duration::from_secs(1)).await }).unwrap_err();
        let port = env.master_port;
        assert_eq!(error.message(), format!("cannot connect to the control service at 127.0.0.1:{port}"));
        assert!(error.to_string().contains("it accepts connections and does not answer"), "{error}");
    }
}
