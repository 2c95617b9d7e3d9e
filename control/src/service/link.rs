//! The stream from an agent to the root on another host.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oflow_proto::MAX_MESSAGE_BYTES;
use oflow_proto::control as pb;
use oflow_proto::control::nodes_client::NodesClient;
use pb::down::Item as Down;
use pb::up::Item;
use tokio::sync::{Notify, mpsc};
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

use super::agent::{Core, End, now_ns};
use super::host::{FRAME_BYTES, cut};
use super::root::silence_of;
use super::tls;
use crate::handshake::{Connector, Refused, innermost};
use oflow_comm::tcp::{NAMED_AFTER, Outage};

const RETRY: Duration = Duration::from_millis(100);
/// Time-out of the first attempt to connect; each further one has twice as long, up to the most. A handshake takes several round
/// trips, and on a slow network one of them may take seconds.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
const MOST_CONNECT_LIMIT: Duration = Duration::from_secs(24);
/// When to say that the root is not there yet.
const PATIENCE: Duration = Duration::from_secs(5);
const SAY_AGAIN: Duration = Duration::from_secs(60);
const BEAT: Duration = Duration::from_millis(500);
/// Comparisons of the clocks that follow each other at once when a host has joined: the quickest answer tells most, and timelines use the first
/// offset that is known.
const FIRST_COMPARISONS: usize = 8;
/// Interval at which arrivals that wait for the rest of their host are forwarded.
const TICK: Duration = Duration::from_millis(100);

/// Where the root is, and what to say there.
pub(super) struct RootEndpoint {
    pub(super) address: String,
    pub(super) hello: pb::NodeHello,
    pub(super) tls: Option<PathBuf>,
    /// How long the root may take to be there.
    pub(super) limit: Duration,
    /// The longest outage of the network that is survived.
    pub(super) outage: Outage,
    /// Told when there is something to send.
    pub(super) more: Arc<Notify>,
}

/// Why a try did not end in a connection.
enum Trouble {
    /// The root may be reachable later.
    Later(String),
    /// The root refuses this host.
    Never { message: String, help: String },
}

/// Attaches to the root and stays until the job is over.
pub(super) async fn run(core: Arc<Core>, way: RootEndpoint) {
    let mut start = Instant::now();
    let mut say_at = PATIENCE;
    // The starts that are over.
    let mut starts = 0;
    let mut attempt = CONNECT_LIMIT;
    loop {
        let outcome = attach(&core, &way, attempt).await;
        attempt = (attempt * 2).min(MOST_CONNECT_LIMIT);
        let why = match outcome {
            Ok((ups, downs)) => {
                let Parted { why, silent } = carry(&core, &way, ups, downs).await;
                if core.starts() > starts {
                    let host = &way.address;
                    if !core.lost_root(&format!("node 0 ({host}) is lost: {why}"), silent) {
                        return;
                    }
                    core.rest().await;
                    (start, say_at, starts) = (Instant::now(), PATIENCE, core.starts());
                    attempt = CONNECT_LIMIT;
                }
                why
            }
            Err(Trouble::Never { message, help }) => {
                core.finish(End::Refused { message, help });
                return;
            }
            Err(Trouble::Later(why)) => why,
        };
        let elapsed = start.elapsed();
        if elapsed > way.limit {
            let (address, seconds) = (&way.address, way.limit.as_secs_f64());
            core.finish(End::Refused {
                message: format!("node 0 is not at {address} after {seconds:.0} s: {why}"),
                help: "start oflaunch there, with the same --rdzv; --rdzv names node 0".into(),
            });
            return;
        }
        if elapsed > say_at {
            say_at = elapsed + SAY_AGAIN;
            (core.log)(&format!(
                "waiting for node 0 at {} ({why}); start oflaunch there, or check --rdzv",
                way.address
            ));
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn attach(
    core: &Core,
    way: &RootEndpoint,
    limit: Duration,
) -> Result<(mpsc::Sender<pb::FromNode>, Streaming<pb::FromRoot>), Trouble> {
    let never = |message: String, help: &str| Trouble::Never { message, help: help.to_string() };
    let (address, folder) = (&way.address, way.tls.as_deref());
    let endpoint = Endpoint::from_shared(format!("{}://{address}", tls::scheme(folder)))
        .map_err(|_| never(format!("{address:?} is not an address"), "--rdzv is HOST:PORT"))?
        .connect_timeout(limit);
    let endpoint = tls::client(endpoint, folder).map_err(|e| never(e.to_string(), ""))?;
    let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
    let connector = Connector { token: core.token.clone(), tls: folder.is_some(), outage: way.outage };
    let connected = endpoint.connect_with_connector(connector).await;
    let channel: Channel = connected.map_err(|e| match (Refused::of(&e), tls::mismatch(&e, host)) {
        (Some(refused), _) => strange(address, refused),
        (None, Some(mismatch)) => never(mismatch.message, mismatch.help),
        (None, None) => Trouble::Later(innermost(&e)),
    })?;
    let (ups, stream) = mpsc::channel(16);
    let hello = pb::Up { item: Some(Item::Hello(way.hello.clone())) };
    // There is room for it.
    let _sent = ups.send(pb::FromNode { items: vec![hello] }).await;
    let request = Request::new(ReceiverStream::new(stream));
    let mut stub = NodesClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    match tokio::time::timeout(way.outage.patience(), stub.attach(request)).await {
        Err(_) => Err(Trouble::Later("it does not answer".into())),
        Ok(Ok(reply)) => Ok((ups, reply.into_inner())),
        Ok(Err(status)) => Err(match tls::mismatch(&status, host) {
            Some(mismatch) => never(mismatch.message, mismatch.help),
            None => refusal(address, &status),
        }),
    }
}

/// Converts the refusal of a handshake to the trouble of a connection.
fn strange(address: &str, refused: &Refused) -> Trouble {
    let (message, help) = match refused {
        Refused::Io(_) => return Trouble::Later(refused.to_string()),
        Refused::Token | Refused::Unproved => (
            format!("what listens at {address} does not know this job token"),
            "give all hosts the same token: --token-file or OFLOW_TOKEN",
        ),
        Refused::WantsTls => {
            (format!("node 0 speaks TLS with other hosts ({address})"), "start this host with --tls-dir, too")
        }
        Refused::NoTls => ("node 0 does not speak TLS".into(), "start it with --tls-dir, or this host without"),
        Refused::Stranger | Refused::Version(_) => {
            (format!("{address} is not node 0 of a job of this version of oflow: {refused}"), "check --rdzv")
        }
    };
    Trouble::Never { message: format!("this host cannot join node 0: {message}"), help: help.into() }
}

fn refusal(address: &str, status: &Status) -> Trouble {
    let (message, help) = match status.code() {
        Code::FailedPrecondition | Code::InvalidArgument => (status.message().to_string(), ""),
        Code::Unimplemented => (format!("{address} is not node 0 of a job of this version of oflow"), "check --rdzv"),
        _ => return Trouble::Later(status.message().to_string()),
    };
    Trouble::Never { message: format!("node 0 refuses this host: {message}"), help: help.into() }
}

/// Why a connection has ended.
struct Parted {
    why: String,
    /// Whether nothing was heard for too long, as when the network is out.
    silent: bool,
}

/// A beat, which node 0 answers with its clock.
fn compare_clocks() -> pb::Up {
    pb::Up { item: Some(Item::Beat(pb::NodeBeat { sent_ns: now_ns(), ranks: Vec::new() })) }
}

/// Carries items both ways until the connection ends.
async fn carry(
    core: &Arc<Core>,
    way: &RootEndpoint,
    ups: mpsc::Sender<pb::FromNode>,
    mut downs: Streaming<pb::FromRoot>,
) -> Parted {
    let closed = |why: &str| Parted { why: why.to_string(), silent: false };
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut heard, mut ticked, mut beat) = (Instant::now(), Instant::now(), None::<Instant>);
    let mut comparisons = FIRST_COMPARISONS;
    // Whether the silence of the root has been told.
    let mut silent = false;
    // What waits for room on the way. It is not waited for: the clock must go on where the way is cut.
    let mut unsent: VecDeque<Vec<pb::Up>> = VecDeque::new();
    loop {
        let mut items = Vec::new();
        tokio::select! {
            message = downs.message() => match message {
                Ok(Some(message)) => {
                    let silence = std::mem::replace(&mut heard, Instant::now()).elapsed();
                    if std::mem::take(&mut silent) {
                        (core.log)(&format!("node 0 ({}) is heard again, after {:.1} s", way.address, silence.as_secs_f64()));
                    }
                    let (mut pong, arrived) = (false, message.items.into_iter().filter_map(|d| d.item));
                    for item in arrived {
                        pong |= matches!(item, Down::Pong(_));
                        core.down(item);
                    }
                    if pong && comparisons > 0 {
                        comparisons -= 1;
                        items.push(compare_clocks());
                    }
                }
                Ok(None) => return closed("its oflaunch has ended"),
                Err(_) => return closed("its connection has ended; its oflaunch was killed, or the network is cut"),
            },
            () = way.more.notified() => {}
            room = ups.reserve(), if !unsent.is_empty() => match (room, unsent.pop_front()) {
                (Ok(room), Some(items)) => room.send(pb::FromNode { items }),
                // The end of the other direction says why.
                _ => unsent.clear(),
            },
            _ = ticks.tick() => {
                let now = Instant::now();
                // If we have slept, silence says nothing about node 0.
                if now - ticked > Duration::from_secs(1) {
                    heard = (heard + (now - ticked)).min(now);
                }
                ticked = now;
                let silence = now - heard;
                if silence > way.outage.patience() {
                    let why = format!("nothing heard from it for {:.0} s", silence.as_secs_f64());
                    return Parted { why, silent: true };
                }
                if silence >= NAMED_AFTER.min(way.outage.patience()) && !std::mem::replace(&mut silent, true) {
                    let node = format!("node 0 ({})", way.address);
                    (core.log)(&silence_of(&node, silence.as_secs_f64(), way.outage.limit().as_secs_f64()));
                }
                core.tick();
                if beat.is_none_or(|beat| now - beat >= BEAT) {
                    beat = Some(now);
                    items.push(compare_clocks());
                }
            }
        }
        items.extend(core.take_up());
        unsent.extend(cut(items, FRAME_BYTES));
    }
}
